const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
const months = [
  ...["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"],
  ...["November", "December"],
]

/**
 * Python's `strftime` in the C locale, for a moment in the server's own time zone. `%-d` drops leading zeros; an
 * unknown code stays as it is. Source: `strftime_now` of transformers' template environment.
 */
export function formatTime(moment: Date, format: string): string {
  return format.replace(/%(-?)([A-Za-z%])/g, (whole: string, dash: string, code: string) => {
    const value = fieldText(moment, code)
    if (value === null) return whole
    return dash === "-" ? value.replace(/^0+(?=.)/, "") : value
  })
}

function fieldText(moment: Date, code: string): string | null {
  const day = days[moment.getDay()] ?? ""
  const month = months[moment.getMonth()] ?? ""
  switch (code) {
    case "Y":
      return String(moment.getFullYear())
    case "y":
      return padded(moment.getFullYear() % 100, 2)
    case "m":
      return padded(moment.getMonth() + 1, 2)
    case "d":
      return padded(moment.getDate(), 2)
    case "e":
      return String(moment.getDate()).padStart(2, " ")
    case "H":
      return padded(moment.getHours(), 2)
    case "I":
      return padded(moment.getHours() % 12 || 12, 2)
    case "M":
      return padded(moment.getMinutes(), 2)
    case "S":
      return padded(moment.getSeconds(), 2)
    case "f":
      return padded(moment.getMilliseconds() * 1000, 6)
    case "p":
      return moment.getHours() < 12 ? "AM" : "PM"
    case "A":
      return day
    case "a":
      return day.slice(0, 3)
    case "B":
      return month
    case "b":
    case "h":
      return month.slice(0, 3)
    case "j":
      return padded(dayOfYear(moment), 3)
    case "w":
      return String(moment.getDay())
    case "u":
      return String(moment.getDay() || 7)
    case "F":
      return formatTime(moment, "%Y-%m-%d")
    case "T":
    case "X":
      return formatTime(moment, "%H:%M:%S")
    case "D":
    case "x":
      return formatTime(moment, "%m/%d/%y")
    case "R":
      return formatTime(moment, "%H:%M")
    case "c":
      return formatTime(moment, "%a %b %e %H:%M:%S %Y")
    case "s":
      return String(Math.floor(moment.getTime() / 1000))
    case "z":
    case "Z":
      // The reference's clock is a naive datetime: both give nothing.
      return ""
    case "%":
      return "%"
    default:
      return null
  }
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0")
}

function dayOfYear(moment: Date): number {
  // Through UTC, so that a change to summer time does not lose a day.
  const start = Date.UTC(moment.getFullYear(), 0, 1)
  return (Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate()) - start) / 86_400_000 + 1
}
