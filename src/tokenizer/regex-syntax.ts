/**
 * Reads the regular expressions of tokenizer files: the part of Oniguruma's and fancy-regex's syntax that split
 * patterns use. What is not understood exactly is refused by name, never guessed.
 */
import { err, ok, type Result } from "../result"
import { type CharRanges, complementOf, intersectionOf, unionOf } from "./char-set"

/** A place between characters. `word`: between a word character and none; `inside`: not so. */
export type Edge = "text_start" | "text_end" | "line_start" | "line_end" | "word" | "inside"

/** One part of a pattern. `set` is one character; `max` may be Infinity. */
export type RegexNode =
  | { readonly kind: "set"; readonly ranges: CharRanges }
  | { readonly kind: "sequence"; readonly parts: readonly RegexNode[] }
  | { readonly kind: "choice"; readonly options: readonly RegexNode[] }
  | {
      readonly kind: "repeat"
      readonly part: RegexNode
      readonly min: number
      readonly max: number
      readonly mode: "greedy" | "lazy" | "possessive"
    }
  | { readonly kind: "look"; readonly part: RegexNode; readonly ahead: boolean; readonly negative: boolean }
  | { readonly kind: "atomic"; readonly part: RegexNode }
  | { readonly kind: "edge"; readonly of: Edge }

/** Unicode classes by their short name (`L`, `Lu`, `Han`, `White_Space` …); null for one without a table. */
export type ClassTable = (name: string) => CharRanges | null

/** A pattern that is not understood, and why. */
export interface RegexRefusal {
  readonly kind: "regex_unsupported"
  readonly message: string
}

/** Repeats above this are refused: they are no split pattern's business and cost stack. */
const countMax = 1000

class Refused extends Error {}

/**
 * The pattern as a tree. `dollar` says what `$` means to the engine the pattern was written for: the end of the text
 * only (fancy-regex), or of any line (Oniguruma).
 */
export function parseRegex(
  pattern: string,
  classes: ClassTable,
  dollar: "text_end" | "line_end",
): Result<RegexNode, RegexRefusal> {
  try {
    return ok(new RegexReader(pattern, classes, dollar).whole())
  } catch (cause) {
    if (!(cause instanceof Refused)) throw cause
    return err({ kind: "regex_unsupported", message: `the pattern ${JSON.stringify(pattern)} has ${cause.message}` })
  }
}

const escapedControls: { readonly [letter: string]: number } = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27 }

/** Recursive descent over code points; throws `Refused`, which does not leave this file. */
class RegexReader {
  private readonly chars: string[]
  private at = 0
  private readonly classes: ClassTable
  private readonly dollar: "text_end" | "line_end"

  constructor(pattern: string, classes: ClassTable, dollar: "text_end" | "line_end") {
    this.chars = Array.from(pattern)
    this.classes = classes
    this.dollar = dollar
  }

  whole(): RegexNode {
    const node = this.choice(false)
    if (this.at < this.chars.length) throw new Refused(`an unexpected ${this.chars[this.at]}`)
    return node
  }

  private choice(folded: boolean): RegexNode {
    const options = [this.sequence(folded)]
    while (this.take("|")) options.push(this.sequence(folded))
    return options.length === 1 ? options[0]! : { kind: "choice", options }
  }

  private sequence(folded: boolean): RegexNode {
    const parts: RegexNode[] = []
    let fold = folded
    while (this.at < this.chars.length && this.chars[this.at] !== "|" && this.chars[this.at] !== ")") {
      // `(?i)` in the middle holds until the group ends.
      if (this.takeAll("(?i)")) {
        fold = true
        continue
      }
      parts.push(this.repeated(this.atom(fold)))
    }
    return parts.length === 1 ? parts[0]! : { kind: "sequence", parts }
  }

  private repeated(part: RegexNode): RegexNode {
    let node = part
    for (;;) {
      let min: number
      let max: number
      const counted = this.peek() === "{" ? this.counts() : null
      if (counted !== null) [min, max] = counted
      else if (this.take("*")) [min, max] = [0, Infinity]
      else if (this.take("+")) [min, max] = [1, Infinity]
      else if (this.take("?")) [min, max] = [0, 1]
      else return node
      if (node.kind === "look" || node.kind === "edge") throw new Refused("a repeated assertion")
      // Oniguruma reads `{2}+` as a repeat of a repeat and `{2}?` as an optional one, fancy-regex as possessive and lazy.
      const isOniguruma = this.dollar === "line_end"
      if (isOniguruma && counted !== null && min === max && this.peek() === "?") throw new Refused("a ? behind {n}")
      const isPossessive = !(isOniguruma && counted !== null) && this.take("+")
      const mode = isPossessive ? "possessive" : this.take("?") ? "lazy" : "greedy"
      node = { kind: "repeat", part: node, min, max, mode }
      if (this.peek() === "*" || this.peek() === "?" || (this.peek() === "+" && mode !== "greedy")) {
        throw new Refused("a repeat of a repeat")
      }
    }
  }

  private counts(): [number, number] | null {
    const match = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.chars.slice(this.at, this.at + 16).join(""))
    if (match === null) throw new Refused("a brace that is no count")
    const min = Number(match[1])
    const max = match[2] === undefined ? min : match[3] === "" ? Infinity : Number(match[3])
    if (min > max || min > countMax || (max !== Infinity && max > countMax)) throw new Refused("a count out of range")
    this.at += match[0].length
    return [min, max]
  }

  private atom(folded: boolean): RegexNode {
    const char = this.chars[this.at++]!
    if (char === "(") return this.group(folded)
    if (char === "[") return { kind: "set", ranges: this.bracket(folded) }
    if (char === ".") return { kind: "set", ranges: complementOf([10, 10]) }
    if (char === "^") return { kind: "edge", of: this.dollar === "line_end" ? "line_start" : "text_start" }
    if (char === "$") return { kind: "edge", of: this.dollar }
    if (char === "*" || char === "+" || char === "?" || char === "{") throw new Refused(`a ${char} behind nothing`)
    if (char !== "\\") return { kind: "set", ranges: this.literal(char.codePointAt(0)!, folded) }
    const next = this.peek()
    if (next === "z") {
      this.at += 1
      return { kind: "edge", of: "text_end" }
    }
    if (next === "b" || next === "B") {
      this.at += 1
      this.named("Word")
      return { kind: "edge", of: next === "b" ? "word" : "inside" }
    }
    if (next === "A") {
      this.at += 1
      return { kind: "edge", of: "text_start" }
    }
    return { kind: "set", ranges: this.escape(folded) }
  }

  private group(folded: boolean): RegexNode {
    let wrap = (inner: RegexNode): RegexNode => inner
    let fold = folded
    if (this.takeAll("?:")) {
      // A plain group.
    } else if (this.takeAll("?i:")) fold = true
    else if (this.takeAll("?!")) wrap = (part) => ({ kind: "look", part, ahead: true, negative: true })
    else if (this.takeAll("?=")) wrap = (part) => ({ kind: "look", part, ahead: true, negative: false })
    else if (this.takeAll("?<!")) wrap = (part) => ({ kind: "look", part, ahead: false, negative: true })
    else if (this.takeAll("?<=")) wrap = (part) => ({ kind: "look", part, ahead: false, negative: false })
    else if (this.takeAll("?>")) wrap = (part) => ({ kind: "atomic", part })
    else if (this.peek() === "?") throw new Refused(`a group (?${this.chars[this.at + 1] ?? ""}`)
    const node = wrap(this.choice(fold))
    if (node.kind === "look" && !node.ahead && node.part.kind !== "set") {
      throw new Refused("a lookbehind of more than one character")
    }
    if (!this.take(")")) throw new Refused("an unclosed group")
    return node
  }

  /** A character class, behind its `[`: ranges, escapes, classes in it, and `&&`. */
  private bracket(folded: boolean): CharRanges {
    const negative = this.take("^")
    let result: CharRanges | null = null
    let current: CharRanges[] = []
    let first = true
    for (;;) {
      if (this.at >= this.chars.length) throw new Refused("an unclosed class")
      if (!first && this.take("]")) break
      if (first && this.peek() === "]") throw new Refused("an empty class")
      first = false
      if (this.takeAll("&&")) {
        const side = unionOf(current)
        result = result === null ? side : intersectionOf(result, side)
        current = []
        continue
      }
      if (this.take("[")) {
        if (this.peek() === ":") throw new Refused("a POSIX bracket")
        current.push(this.bracket(folded))
        continue
      }
      current.push(this.classItem(folded))
    }
    const side = unionOf(current)
    const all = result === null ? side : intersectionOf(result, side)
    return negative ? complementOf(all) : all
  }

  private classItem(folded: boolean): CharRanges {
    const start = this.classChar(folded)
    const isRange = this.peek() === "-" && this.chars[this.at + 1] !== "]" && this.chars[this.at + 1] !== undefined
    if (!isRange) return typeof start === "number" ? this.literal(start, folded) : start
    if (typeof start !== "number") throw new Refused("a range that starts with a class")
    this.at += 1
    if (this.peek() === "[") throw new Refused("a range that ends with a class")
    const end = this.classChar(folded)
    if (typeof end !== "number") throw new Refused("a range that ends with a class")
    if (start > end) throw new Refused("a range that runs backwards")
    if (folded) throw new Refused("a range that ignores case")
    return [start, end]
  }

  private classChar(folded: boolean): number | CharRanges {
    const char = this.chars[this.at++]!
    if (char !== "\\") return char.codePointAt(0)!
    const ranges = this.escape(false)
    if (ranges.length === 2 && ranges[0] === ranges[1]) return ranges[0]!
    if (folded && ranges.length > 2) return ranges
    return ranges
  }

  /** What stands behind a backslash, as a set. */
  private escape(folded: boolean): CharRanges {
    const char = this.chars[this.at++]
    if (char === undefined) throw new Refused("a backslash at its end")
    if (char === "p" || char === "P") return this.property(char === "P")
    if (char === "s") return this.named("White_Space")
    if (char === "S") return complementOf(this.named("White_Space"))
    if (char === "d") return this.named("Nd")
    if (char === "D") return complementOf(this.named("Nd"))
    if (char === "w") return this.named("Word")
    if (char === "W") return complementOf(this.named("Word"))
    if (char === "u" || char === "x") return this.literal(this.codeEscape(char), folded)
    const control = escapedControls[char]
    if (control !== undefined) return [control, control]
    if (/[A-Za-z0-9]/.test(char)) throw new Refused(`an escape \\${char}`)
    return this.literal(char.codePointAt(0)!, folded)
  }

  private codeEscape(kind: string): number {
    const rest = this.chars.slice(this.at, this.at + 12).join("")
    const match =
      kind === "u" ? /^([0-9a-fA-F]{4})/.exec(rest) : /^(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})/.exec(rest)
    if (match === null) throw new Refused(`an escape \\${kind}`)
    this.at += match[0].length
    const code = Number.parseInt(match[1] ?? match[2]!, 16)
    // Two hexadecimal digits above 0x7f are a byte to Oniguruma and a character to others.
    if (code > 0x10ffff || (kind === "x" && match[1] !== undefined && code > 0x7f)) throw new Refused("a byte escape")
    return code
  }

  private property(negative: boolean): CharRanges {
    let name: string
    let inverted = negative
    if (this.take("{")) {
      if (this.take("^")) inverted = !inverted
      const end = this.chars.indexOf("}", this.at)
      if (end < 0) throw new Refused("an unclosed property")
      name = this.chars.slice(this.at, end).join("")
      this.at = end + 1
    } else {
      name = this.chars[this.at++] ?? ""
    }
    const ranges = this.named(name.replace(/^(?:Script|script|sc)=/, ""))
    return inverted ? complementOf(ranges) : ranges
  }

  private named(name: string): CharRanges {
    const ranges = this.classes(name)
    if (ranges === null) throw new Refused(`the class ${name}, for which there is no table`)
    return ranges
  }

  /** One character, with its other cases where case is ignored. Both engines fold U+017F to s and U+212A to k. */
  private literal(code: number, folded: boolean): CharRanges {
    if (!folded) return [code, code]
    if (code > 0x7f) throw new Refused("a character outside ASCII that ignores case")
    const char = String.fromCharCode(code)
    const cases = new Set([char.toLowerCase().charCodeAt(0), char.toUpperCase().charCodeAt(0)])
    if (cases.has(0x73)) cases.add(0x17f)
    if (cases.has(0x6b)) cases.add(0x212a)
    return unionOf([...cases].map((each) => [each, each]))
  }

  private peek(): string | undefined {
    return this.chars[this.at]
  }

  private take(char: string): boolean {
    if (this.chars[this.at] !== char) return false
    this.at += 1
    return true
  }

  private takeAll(text: string): boolean {
    for (let i = 0; i < text.length; i++) if (this.chars[this.at + i] !== text[i]) return false
    this.at += text.length
    return true
  }
}
