import { TemplateError } from "./run"
import { codePoints } from "./value"
import { isBlank, splitLines } from "./whitespace"

/**
 * Jinja's `wordwrap`: each line of the text on its own, filled up to the width. Words break at hyphens between letters
 * where that is asked for, and anywhere when they are longer than a line. Source: Python's `textwrap`.
 */
export function wrapLines(
  text: string,
  width: number,
  breakLongWords: boolean,
  between: string,
  breakOnHyphens: boolean,
): string {
  const lines = splitLines(text)
  return lines
    .map((line) => wrapped(pieces(line, breakOnHyphens), width, breakLongWords, breakOnHyphens).join(between))
    .join(between)
}

/** Words and the blanks between them, in order; hyphenated words in parts. */
function pieces(line: string, breakOnHyphens: boolean): string[] {
  const found = line.match(/[\t\n\v\f\r ]+|[^\t\n\v\f\r ]+/g) ?? []
  if (!breakOnHyphens) return found
  return found.flatMap((piece) => piece.split(/(?<=[^\W\d_][^\W\d_]-|[^\W\d_]-[^\W\d_]-)(?=[^\W\d_]-?[^\W\d_])/u))
}

function wrapped(parts: readonly string[], width: number, breakLongWords: boolean, breakOnHyphens: boolean): string[] {
  if (width <= 0) throw new TemplateError(`invalid width ${width} (must be > 0)`)
  const rest = [...parts].reverse()
  const lines: string[] = []
  while (rest.length > 0) {
    const line: string[] = []
    let taken = 0
    // A line does not begin with the blanks that ended the one before.
    if (lines.length > 0 && isBlank(rest.at(-1) ?? "")) rest.pop()
    while (rest.length > 0 && taken + codePoints(rest.at(-1)!) <= width) {
      taken += codePoints(rest.at(-1)!)
      line.push(rest.pop()!)
    }
    if (rest.length > 0 && codePoints(rest.at(-1)!) > width)
      cutLongWord(rest, line, width - taken, breakLongWords, breakOnHyphens)
    if (line.length > 0 && isBlank(line.at(-1)!)) line.pop()
    if (line.length > 0) lines.push(line.join(""))
  }
  return lines
}

function cutLongWord(
  rest: string[],
  line: string[],
  room: number,
  breakLongWords: boolean,
  breakOnHyphens: boolean,
): void {
  const space = Math.max(room, 1)
  if (!breakLongWords) {
    if (line.length === 0) line.push(rest.pop()!)
    return
  }
  const word = Array.from(rest.at(-1)!)
  let end = space
  if (breakOnHyphens && word.length > space) {
    const hyphen = word.slice(0, space).lastIndexOf("-")
    if (hyphen > 0 && word.slice(0, hyphen).some((char) => char !== "-")) end = hyphen + 1
  }
  line.push(word.slice(0, end).join(""))
  rest[rest.length - 1] = word.slice(end).join("")
}
