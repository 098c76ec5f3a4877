/**
 * Template text → tokens, as Jinja cuts it under the reference's settings: `trim_blocks`, `lstrip_blocks`, one line end
 * at the end of the template dropped, all line ends read as `\n`.
 */
import { TemplateError } from "./run"
import { unescapeLiteral } from "./string-literal"
import { space, strip } from "./whitespace"

/** What a token is; operators (brackets and commas too) carry their spelling. */
export type TokenKind =
  | "data"
  | "print_begin"
  | "print_end"
  | "block_begin"
  | "block_end"
  | "name"
  | "text"
  | "integer"
  | "float"
  | "operator"
  | "end"

/** One token. `text` is the name, the operator, the number's digits without underscores, or the literal's value. */
export interface Token {
  readonly kind: TokenKind
  readonly text: string
  readonly line: number
}

/** UTF-16 units of a template: far above any real one (the largest known has 60 KB). Compiling takes time with it. */
export const templateUnitsMax = 256 * 1024

const opening = /\{[{%#]/g
const rawBegin = new RegExp(`\\{%[-+]?[${space}]*raw[${space}]*(?:-%\\}[${space}]*|%\\})`, "y")
const rawEnd = new RegExp(`\\{%([-+]?)[${space}]*endraw[${space}]*(?:\\+%\\}|-%\\}[${space}]*|%\\}\\n?)`, "g")
const commentEnd = new RegExp(`\\+#\\}|-#\\}[${space}]*|#\\}\\n?`, "g")
const blockEnd = new RegExp(`\\+%\\}|-%\\}[${space}]*|%\\}\\n?`, "y")
const printEnd = new RegExp(`-\\}\\}[${space}]*|\\}\\}`, "y")
const blanks = new RegExp(`[${space}]+`, "y")
const float = /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy
const integer = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy
const name = /[\p{XID_Start}_]\p{XID_Continue}*/uy
const text = /'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"/sy
const operator = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y
const closers: { readonly [opener: string]: string } = { "(": ")", "[": "]", "{": "}" }

/** All tokens of a template, an `end` behind them. Throws `TemplateError` for a text that cannot be cut. */
export function tokenize(template: string): readonly Token[] {
  if (template.length > templateUnitsMax) throw new TemplateError("the template is too long")
  return new Lexer(template.replace(/\r\n?/g, "\n").replace(/\n$/, "")).tokenize()
}

class Lexer {
  private readonly source: string
  private readonly tokens: Token[] = []
  private at = 0
  private line = 1
  /** The first line end that was not counted yet, or -1. */
  private nextBreak: number
  /** Whether the last tag ended with a line end, so that the text behind it begins a line. */
  private startsLine = true

  constructor(source: string) {
    this.source = source
    this.nextBreak = source.indexOf("\n")
  }

  tokenize(): readonly Token[] {
    while (this.at < this.source.length) this.readData()
    this.push("end", "")
    return this.tokens
  }

  /** Plain text up to a tag, then the tag. */
  private readData(): void {
    opening.lastIndex = this.at
    const found = opening.exec(this.source)
    if (found === null) {
      this.push("data", this.source.slice(this.at))
      this.at = this.source.length
      return
    }
    const begin = found.index
    const sign = this.source.charAt(begin + 2)
    const isPrint = found[0] === "{{"
    this.pushData(this.source.slice(this.at, begin), sign, isPrint)
    this.at = begin
    if (found[0] === "{#") this.readComment()
    else if (!isPrint && this.matches(rawBegin) !== null) this.readRaw()
    else {
      this.at = begin + (sign === "-" || sign === "+" ? 3 : 2)
      this.push(isPrint ? "print_begin" : "block_begin", "")
      this.readTag(isPrint)
    }
  }

  /** Text before a tag: `-` takes white space away, and a tag that stands first in its line its indentation. */
  private pushData(data: string, sign: string, isPrint: boolean): void {
    let kept = data
    if (sign === "-") kept = strip(data, null, "right")
    else if (sign !== "+" && !isPrint) {
      const lineStart = data.lastIndexOf("\n") + 1
      const beginsLine = lineStart > 0 || this.startsLine
      if (beginsLine && strip(data.slice(lineStart), null, "both") === "") kept = data.slice(0, lineStart)
    }
    if (kept !== "") this.push("data", kept)
  }

  private readComment(): void {
    commentEnd.lastIndex = this.at + 2
    const end = commentEnd.exec(this.source)
    if (end === null) throw this.failure("Missing end of comment tag")
    this.goBehind(end.index, end[0])
  }

  private readRaw(): void {
    const begin = this.matches(rawBegin) ?? ""
    this.goBehind(this.at, begin)
    // The reference stops at the end of the text without asking what is open.
    if (this.at === this.source.length) return
    rawEnd.lastIndex = this.at
    const end = rawEnd.exec(this.source)
    if (end === null) throw this.failure("Missing end of raw directive")
    this.pushData(this.source.slice(this.at, end.index), end[1] ?? "", false)
    this.goBehind(end.index, end[0])
  }

  /** The inside of a tag up to its end, which counts only outside of brackets. */
  private readTag(isPrint: boolean): void {
    const expected: string[] = []
    for (;;) {
      if (expected.length === 0) {
        const end = this.matches(isPrint ? printEnd : blockEnd)
        if (end !== null) {
          this.push(isPrint ? "print_end" : "block_end", "")
          this.goBehind(this.at, end)
          return
        }
      }
      const blank = this.matches(blanks)
      if (blank !== null) {
        this.at += blank.length
        continue
      }
      // The parser tells what is missing at the end.
      if (this.at >= this.source.length) return
      this.readToken(expected)
    }
  }

  private readToken(expected: string[]): void {
    const literal = this.matches(float)
    if (literal !== null) this.take("float", literal, literal.replaceAll("_", ""))
    else if (!this.takes("integer", integer) && !this.takes("name", name) && !this.takes("text", text)) {
      this.readOperator(expected)
    }
  }

  private takes(kind: "integer" | "name" | "text", pattern: RegExp): boolean {
    const spelled = this.matches(pattern)
    if (spelled === null) return false
    if (kind === "text") this.take(kind, spelled, unescapeLiteral(spelled.slice(1, -1)))
    else this.take(kind, spelled, kind === "integer" ? spelled.replaceAll("_", "") : spelled)
    return true
  }

  private readOperator(expected: string[]): void {
    const spelled = this.matches(operator)
    if (spelled === null) throw this.failure(`unexpected char '${this.source.charAt(this.at)}' at ${this.at}`)
    const closer = closers[spelled]
    if (closer !== undefined) expected.push(closer)
    else if (spelled === ")" || spelled === "]" || spelled === "}") {
      const wanted = expected.pop()
      if (wanted === undefined) throw this.failure(`unexpected '${spelled}'`)
      if (wanted !== spelled) throw this.failure(`unexpected '${spelled}', expected '${wanted}'`)
    }
    this.take("operator", spelled, spelled)
  }

  private take(kind: TokenKind, spelled: string, value: string): void {
    this.push(kind, value)
    this.at += spelled.length
  }

  private goBehind(start: number, tag: string): void {
    this.at = start + tag.length
    this.startsLine = tag.endsWith("\n")
  }

  private matches(pattern: RegExp): string | null {
    pattern.lastIndex = this.at
    return pattern.exec(this.source)?.[0] ?? null
  }

  private push(kind: TokenKind, value: string): void {
    this.countLines()
    this.tokens.push({ kind, text: value, line: this.line })
  }

  /** Looks for each line end once, however many tokens stand before it. */
  private countLines(): void {
    while (this.nextBreak >= 0 && this.nextBreak < this.at) {
      this.line += 1
      this.nextBreak = this.source.indexOf("\n", this.nextBreak + 1)
    }
  }

  private failure(message: string): TemplateError {
    this.countLines()
    return new TemplateError(`line ${this.line}: ${message}`)
  }
}
