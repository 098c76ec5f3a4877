import { type Run, TemplateError } from "./run"
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
  run: Run,
): string {
  const lines = splitLines(text)
  return lines
    .map((line) => wrapped(pieces(line, breakOnHyphens), width, breakLongWords, breakOnHyphens, run).join(between))
    .join(between)
}

// Python's `\w`, and those of them that are no decimal digits.
const word = "[\\p{L}\\p{N}_]"
const letter = "[\\p{L}\\p{Nl}\\p{No}_]"
const wordOrMark = "[\\p{L}\\p{N}_!\"'&.,?]"
/** Where words may be cut: behind a hyphen between letters, and on both sides of a dash of several hyphens. */
const cuts = new RegExp(
  `(?<=${letter}{2}-|${letter}-${wordOrMark}-)(?=${letter}-?${letter})|(?<=${wordOrMark})(?=-{2,}${word})|(?=${word})(?<=${wordOrMark}-{2,})`,
  "u",
)

/** Words and the blanks between them, in order; hyphenated words in parts. */
function pieces(line: string, breakOnHyphens: boolean): string[] {
  const found = line.match(/[\t\n\v\f\r ]+|[^\t\n\v\f\r ]+/g) ?? []
  if (!breakOnHyphens) return found
  return found.flatMap((piece) => (piece.includes("-") ? piece.split(cuts) : [piece]))
}

function wrapped(
  parts: readonly string[],
  width: number,
  breakLongWords: boolean,
  breakOnHyphens: boolean,
  run: Run,
): string[] {
  if (width <= 0) throw new TemplateError(`invalid width ${width} (must be > 0)`)
  const rest = [...parts].reverse()
  const lines: string[] = []
  while (rest.length > 0) {
    run.step()
    const line: string[] = []
    let taken = 0
    // A line does not begin with the blanks that ended the one before.
    if (lines.length > 0 && isBlank(rest.at(-1) ?? "")) rest.pop()
    while (rest.length > 0 && taken + codePoints(rest.at(-1)!) <= width) {
      taken += codePoints(rest.at(-1)!)
      line.push(rest.pop()!)
    }
    if (rest.length > 0 && codePoints(rest.at(-1)!) > width) {
      if (breakLongWords) {
        cutLongWord(rest, line, lines, width, width - taken, breakOnHyphens, run)
        continue
      }
      if (line.length === 0) line.push(rest.pop()!)
    }
    endLine(line, lines)
  }
  return lines
}

/** A line does not end with blanks. */
function endLine(line: string[], lines: string[]): void {
  if (line.length > 0 && isBlank(line.at(-1)!)) line.pop()
  if (line.length > 0) lines.push(line.join(""))
}

/** Fills the line with the beginning of a word that no line holds, and lines with it until its end fits into one. */
function cutLongWord(
  rest: string[],
  line: string[],
  lines: string[],
  width: number,
  room: number,
  breakOnHyphens: boolean,
  run: Run,
): void {
  const chars = Array.from(rest.pop()!)
  let at = 0
  let space = room
  let open = line
  while (chars.length - at > width) {
    run.step()
    const end = at + cutOf(chars, at, space, breakOnHyphens)
    open.push(chars.slice(at, end).join(""))
    endLine(open, lines)
    open = []
    at = end
    space = width
  }
  rest.push(chars.slice(at).join(""))
}

/** How many characters of the word go into so much room: all of it, or up to the last hyphen in it. */
function cutOf(chars: readonly string[], at: number, space: number, breakOnHyphens: boolean): number {
  if (!breakOnHyphens) return space
  for (let hyphen = at + space - 1; hyphen > at; hyphen--) {
    if (chars[hyphen] !== "-") continue
    // Hyphens alone are no part of a word.
    for (let before = at; before < hyphen; before++) if (chars[before] !== "-") return hyphen + 1 - at
    return space
  }
  return space
}
