const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
const months = [
  ...["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"],
  ...["November", "December"],
]

/** What a code stands for: a number with its usual width and filling, or a text. */
type Field = string | { readonly number: number; readonly width: number; readonly fill: "0" | " " }

/** Codes that are others put together. */
const composed: { readonly [code: string]: string } = {
  c: "%a %b %e %H:%M:%S %Y",
  D: "%m/%d/%y",
  F: "%Y-%m-%d",
  r: "%I:%M:%S %p",
  R: "%H:%M",
  T: "%H:%M:%S",
  x: "%m/%d/%y",
  X: "%H:%M:%S",
}

/** Columns that a code may ask for. */
const widthMax = 1024

/**
 * Python's `strftime` in the C locale of Linux, for a moment in the server's own time zone: `%-d` has no filling, `%_d`
 * blanks, `%05d` a width, `%^a` capitals. An unknown code stays as it is. Source: `strftime_now` of transformers'
 * template environment, and glibc behind it.
 */
export function formatTime(moment: Date, format: string): string {
  return format.replace(
    /%([-_0^#]*)(\d*)([EO]?)([A-Za-z%])/g,
    (whole, flags: string, width: string, _era, code: string) => {
      const isBare = flags === "" && width === ""
      // Python itself knows microseconds, and only without flags.
      if (code === "f") return isBare ? padded(moment.getMilliseconds() * 1000, 6) : whole
      const field = fieldOf(moment, code)
      if (field === null) return whole
      const plain = typeof field === "string" ? inCase(field, code, flags) : filled(field, flags)
      if (width === "") return plain
      const blanks = flags.includes("_") || (typeof field === "string" && !flags.includes("0"))
      return plain.padStart(Math.min(Number(width), widthMax), blanks ? " " : "0")
    },
  )
}

function inCase(spelled: string, code: string, flags: string): string {
  if (flags.includes("^")) return spelled.toUpperCase()
  if (!flags.includes("#")) return spelled
  return code === "p" ? spelled.toLowerCase() : spelled.toUpperCase()
}

function filled({ number, width, fill }: Exclude<Field, string>, flags: string): string {
  if (flags.includes("-")) return String(number)
  return String(number).padStart(width, flags.includes("_") ? " " : flags.includes("0") ? "0" : fill)
}

function fieldOf(moment: Date, code: string): Field | null {
  const whole = composed[code]
  if (whole !== undefined) return formatTime(moment, whole)
  const day = days[moment.getDay()] ?? ""
  const month = months[moment.getMonth()] ?? ""
  const half = moment.getHours() < 12 ? "AM" : "PM"
  const number = (value: number, width: number, fill: "0" | " " = "0"): Field => ({ number: value, width, fill })
  switch (code) {
    case "A":
      return day
    case "a":
      return day.slice(0, 3)
    case "B":
      return month
    case "b":
    case "h":
      return month.slice(0, 3)
    case "C":
      return number(Math.floor(moment.getFullYear() / 100), 2)
    case "d":
      return number(moment.getDate(), 2)
    case "e":
      return number(moment.getDate(), 2, " ")
    case "G":
      return number(isoWeek(moment).year, 1)
    case "g":
      return number(isoWeek(moment).year % 100, 2)
    case "H":
      return number(moment.getHours(), 2)
    case "I":
      return number(moment.getHours() % 12 || 12, 2)
    case "j":
      return number(dayOfYear(moment), 3)
    case "k":
      return number(moment.getHours(), 2, " ")
    case "l":
      return number(moment.getHours() % 12 || 12, 2, " ")
    case "M":
      return number(moment.getMinutes(), 2)
    case "m":
      return number(moment.getMonth() + 1, 2)
    case "n":
      return "\n"
    case "P":
      return half.toLowerCase()
    case "p":
      return half
    case "S":
      return number(moment.getSeconds(), 2)
    case "s":
      return number(Math.floor(moment.getTime() / 1000), 1)
    case "t":
      return "\t"
    case "U":
      return number(Math.floor((dayOfYear(moment) + 6 - moment.getDay()) / 7), 2)
    case "u":
      return number(moment.getDay() || 7, 1)
    case "V":
      return number(isoWeek(moment).week, 2)
    case "W":
      return number(Math.floor((dayOfYear(moment) + 6 - ((moment.getDay() + 6) % 7)) / 7), 2)
    case "w":
      return number(moment.getDay(), 1)
    case "Y":
      return number(moment.getFullYear(), 1)
    case "y":
      return number(moment.getFullYear() % 100, 2)
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

/** Week and year of ISO 8601: a week belongs to the year of its Thursday. */
function isoWeek(moment: Date): { readonly year: number; readonly week: number } {
  const thursday = new Date(moment.getFullYear(), moment.getMonth(), moment.getDate() + 4 - (moment.getDay() || 7))
  return { year: thursday.getFullYear(), week: Math.ceil(dayOfYear(thursday) / 7) }
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0")
}

function dayOfYear(moment: Date): number {
  // Through UTC, so that a change to summer time does not lose a day.
  const start = Date.UTC(moment.getFullYear(), 0, 1)
  return (Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate()) - start) / 86_400_000 + 1
}
