/** Python's white space and line ends of texts; JavaScript's lack U+001C–U+001F and U+0085 and have U+FEFF. */
/** White space as the inside of a character class. */
export const space = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
const spaceUnit = new RegExp(`[${space}]`)
const spaceRun = new RegExp(`[${space}]+`)
const onlySpace = new RegExp(`^[${space}]+$`)
const breaks = "\\n\\v\\f\\r\\x1c-\\x1e\\x85\\u2028\\u2029"
const lineEnd = new RegExp(`\\r\\n|[${breaks}]`, "g")

/** Which ends of a text are stripped. */
export type Side = "both" | "left" | "right"

/** Python's `str.strip`; `chars` null = white space. */
export function strip(value: string, chars: string | null, side: Side): string {
  let start = 0
  let end = value.length
  if (chars !== null) return stripChars(value, new Set(chars), side)
  if (side !== "right") while (start < end && isSpace(value.charCodeAt(start))) start += 1
  if (side !== "left") while (end > start && isSpace(value.charCodeAt(end - 1))) end -= 1
  return value.slice(start, end)
}

/** By code points, so that half of a pair is never taken. */
function stripChars(value: string, chars: ReadonlySet<string>, side: Side): string {
  let start = 0
  let end = value.length
  if (side !== "right") {
    for (let width = 0; start < end; start += width) {
      width = isPair(value, start) ? 2 : 1
      if (!chars.has(value.slice(start, start + width))) break
    }
  }
  if (side !== "left") {
    for (let width = 0; end > start; end -= width) {
      width = end - start > 1 && isPair(value, end - 2) ? 2 : 1
      if (!chars.has(value.slice(end - width, end))) break
    }
  }
  return value.slice(start, end)
}

function isPair(value: string, at: number): boolean {
  return (value.codePointAt(at) ?? 0) > 0xffff
}

function isSpace(unit: number): boolean {
  if (unit <= 0x7f) return unit === 0x20 || (unit >= 9 && unit <= 13) || (unit >= 0x1c && unit <= 0x1f)
  return spaceUnit.test(String.fromCharCode(unit))
}

/** True for a text of nothing but white space, which is not empty. */
export function isBlank(value: string): boolean {
  return onlySpace.test(value)
}

/** The words of a text, at most `times` cut off in front (-1 = all); the rest is the last one. */
export function words(value: string, times: number): string[] {
  let rest = strip(value, null, "left")
  if (times < 0) return rest === "" ? [] : strip(rest, null, "right").split(spaceRun)
  const found: string[] = []
  while (rest !== "" && found.length < times) {
    const at = rest.search(spaceUnit)
    if (at < 0) break
    found.push(rest.slice(0, at))
    rest = strip(rest.slice(at), null, "left")
  }
  if (rest !== "") found.push(rest)
  return found
}

/** The same from behind. */
export function wordsFromBehind(value: string, times: number): string[] {
  if (times < 0) return words(value, -1)
  let rest = strip(value, null, "right")
  const found: string[] = []
  while (rest !== "" && found.length < times) {
    let at = rest.length
    while (at > 0 && !isSpace(rest.charCodeAt(at - 1))) at -= 1
    if (at === 0) break
    found.push(rest.slice(at))
    rest = strip(rest.slice(0, at), null, "right")
  }
  if (rest !== "") found.push(rest)
  return found.reverse()
}

/** Python's `str.splitlines`. */
export function splitLines(value: string, keepEnds = false): string[] {
  const lines: string[] = []
  let start = 0
  for (const { 0: end, index } of value.matchAll(lineEnd)) {
    lines.push(value.slice(start, keepEnds ? index + end.length : index))
    start = index + end.length
  }
  if (start < value.length) lines.push(value.slice(start))
  return lines
}
