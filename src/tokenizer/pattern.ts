/** `{"String": …}` or `{"Regex": …}` of tokenizer.json: what Split and Replace look for. */
import { err, ok, type Result } from "../result"
import { objectOf, stringOf, type Unsupported } from "./json-shape"
import type { ClassTable } from "./regex-syntax"
import { type SplitFailure, SplitRegex } from "./split-regex"

/** Something to look for in text. */
export interface Pattern {
  /** Appends `start, end` of all matches, in UTF-16 units, in order. Fails when a budget of steps is spent. */
  matches(text: string, out: number[]): Result<null, SplitFailure>
}

class Literal implements Pattern {
  private readonly literal: string

  constructor(literal: string) {
    this.literal = literal
  }

  matches(text: string, out: number[]): Result<null, SplitFailure> {
    const { literal } = this
    for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length)) {
      out.push(at, at + literal.length)
    }
    return ok(null)
  }
}

/** Reads a pattern; an empty one, or a regex that is not understood, is unsupported. */
export function readPattern(value: unknown, classes: ClassTable): Result<Pattern, Unsupported> {
  const shape = objectOf(value)
  const literal = stringOf(shape?.String)
  if (literal !== null && literal !== "") return ok(new Literal(literal))
  const source = stringOf(shape?.Regex)
  if (source === null) return err({ kind: "unsupported", message: "a pattern that is neither text nor a regex" })
  const regex = SplitRegex.create(source, classes)
  return regex.ok ? regex : err({ kind: "unsupported", message: regex.error.message })
}
