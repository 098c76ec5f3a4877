/**
 * Where a text stops being JSON. The runtime's parser says what it dislikes but not where; this reads a text that it
 * refused a second time, so it costs nothing while clients behave.
 */

/** The first place that cannot be JSON. Counted in UTF-16 units; line and column begin at 1, offset at 0. */
export interface SyntaxFault {
  readonly expected: string
  readonly line: number
  readonly column: number
  readonly offset: number
}

/** Finds the fault of a text, or null when it is JSON after all. Needs no stack: nesting is kept in a list. */
export function findSyntaxFault(text: string): SyntaxFault | null {
  const fault = new SyntaxReader(text).read()
  if (fault === null) return null
  const before = text.slice(0, fault.offset)
  const lineStart = before.lastIndexOf("\n") + 1
  let line = 1
  for (let at = before.indexOf("\n"); at !== -1; at = before.indexOf("\n", at + 1)) line += 1
  return { expected: fault.expected, line, column: fault.offset - lineStart + 1, offset: fault.offset }
}

interface Fault {
  readonly expected: string
  readonly offset: number
}

/** Sticky patterns of the tokens that need more than one look. */
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const wordPattern = /true|false|null/y
const spacePattern = /[ \t\n\r]*/y
const escapePattern = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

class SyntaxReader {
  private readonly text: string
  private at = 0
  /** `[` and `{` that are open. */
  private readonly open: string[] = []

  constructor(text: string) {
    this.text = text
  }

  read(): Fault | null {
    for (;;) {
      const fault = this.readValue()
      if (fault !== null) return fault
      const behind = this.readBehindValue()
      if (behind === "value") continue
      return behind
    }
  }

  /** Reads a scalar, or goes into a list or object up to where its first value stands; an empty one is read whole. */
  private readValue(): Fault | null {
    for (;;) {
      this.skip(spacePattern)
      const char = this.text[this.at]
      if (char === '"') return this.readString("a string")
      if (char !== "[" && char !== "{") {
        return this.skip(numberPattern) || this.skip(wordPattern) ? null : this.expected("a value")
      }
      this.at += 1
      this.skip(spacePattern)
      if (this.text[this.at] === (char === "[" ? "]" : "}")) {
        this.at += 1
        return null
      }
      this.open.push(char)
      if (char === "{") {
        const fault = this.readKey()
        if (fault !== null) return fault
      }
    }
  }

  /** Reads what closes lists and objects, then the comma that brings the next value, or the end of the text. */
  private readBehindValue(): Fault | "value" | null {
    for (;;) {
      this.skip(spacePattern)
      const inside = this.open.at(-1)
      if (inside === undefined) return this.at === this.text.length ? null : this.expected("nothing more")
      const closes = inside === "[" ? "]" : "}"
      const char = this.text[this.at]
      if (char !== "," && char !== closes) return this.expected(`"," or "${closes}"`)
      this.at += 1
      if (char === closes) {
        this.open.pop()
        continue
      }
      if (inside === "[") return "value"
      return this.readKey() ?? "value"
    }
  }

  private readKey(): Fault | null {
    this.skip(spacePattern)
    if (this.text[this.at] !== '"') return this.expected("a property name in double quotes")
    const fault = this.readString("a property name")
    if (fault !== null) return fault
    this.skip(spacePattern)
    if (this.text[this.at] !== ":") return this.expected('":"')
    this.at += 1
    return null
  }

  private readString(what: string): Fault | null {
    const start = this.at
    this.at += 1
    while (this.at < this.text.length) {
      const code = this.text.charCodeAt(this.at)
      if (code === 0x22) {
        this.at += 1
        return null
      }
      if (code < 0x20) return this.expected("no control character in a string")
      if (code !== 0x5c) this.at += 1
      else if (!this.skip(escapePattern)) return this.expected("a valid escape")
    }
    return { expected: `the end of ${what}`, offset: start }
  }

  /** Moves past the pattern; false when it is not there (or matches nothing). */
  private skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found === null || found[0] === "") return false
    this.at += found[0].length
    return true
  }

  private expected(expected: string): Fault {
    return { expected, offset: this.at }
  }
}
