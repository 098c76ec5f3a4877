import type { Token, TokenKind } from "./lexer"
import { TemplateError } from "./run"

/** Tags, brackets and operators inside each other that a template may have; Python's own parser stops near it. */
const nestingMax = 150

/** A cursor over tokens, and what parsers ask of one. Failures carry Jinja's words and the line. */
export class TokenStream {
  private readonly tokens: readonly Token[]
  private at = 0
  private nesting = 0

  /** The last token is an `end`. */
  constructor(tokens: readonly Token[]) {
    this.tokens = tokens
  }

  get current(): Token {
    return this.tokens[this.at]!
  }

  /** The token behind the current one. */
  get following(): Token {
    return this.tokens[Math.min(this.at + 1, this.tokens.length - 1)]!
  }

  /** The current token, going on to the next. */
  next(): Token {
    const token = this.current
    if (token.kind !== "end") this.at += 1
    return token
  }

  isName(...names: readonly string[]): boolean {
    return this.current.kind === "name" && names.includes(this.current.text)
  }

  isOperator(...spellings: readonly string[]): boolean {
    return this.current.kind === "operator" && spellings.includes(this.current.text)
  }

  skipName(name: string): boolean {
    const skips = this.isName(name)
    if (skips) this.at += 1
    return skips
  }

  skipOperator(spelling: string): boolean {
    const skips = this.isOperator(spelling)
    if (skips) this.at += 1
    return skips
  }

  expectName(): string {
    return this.expect("name").text
  }

  expectWord(name: string): void {
    if (!this.skipName(name)) throw this.unexpected(`'${name}'`)
  }

  expectOperator(spelling: string): void {
    if (!this.skipOperator(spelling)) throw this.unexpected(`'${spelling}'`)
  }

  expect(kind: TokenKind): Token {
    if (this.current.kind !== kind) throw this.unexpected(`'${descriptions[kind] ?? kind}'`)
    return this.next()
  }

  /** Runs a parser one level deeper. */
  nested<Parsed>(parse: () => Parsed): Parsed {
    this.nesting += 1
    if (this.nesting > nestingMax) throw this.failure("the template nests too deeply")
    const parsed = parse()
    this.nesting -= 1
    return parsed
  }

  failure(message: string): TemplateError {
    return new TemplateError(`line ${this.current.line}: ${message}`)
  }

  /** The failure of a token that stands where another should. */
  unexpected(expected: string): TemplateError {
    if (this.current.kind === "end") return this.failure(`unexpected end of template, expected ${expected}.`)
    return this.failure(`expected token ${expected}, got '${describe(this.current)}'`)
  }
}

const descriptions: { readonly [kind in TokenKind]?: string } = {
  block_begin: "begin of statement block",
  block_end: "end of statement block",
  print_begin: "begin of print statement",
  print_end: "end of print statement",
  data: "template data / text",
  end: "end of template",
  text: "string",
}

/** A token in Jinja's words. */
export function describe(token: Token): string {
  if (token.kind === "name" || token.kind === "operator") return token.text
  return descriptions[token.kind] ?? token.kind
}
