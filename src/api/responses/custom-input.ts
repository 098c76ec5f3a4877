/**
 * The text inside `{"input": "…"}`, as it comes. Models write the arguments of the function that stands for a custom
 * tool (api/responses/tools.ts); clients want the text.
 */

const State = { beforeText: 0, text: 1, escape: 2, hex: 3, ended: 4, unreadable: 5 } as const
type State = (typeof State)[keyof typeof State]

/** What stands before the text; white space may stand between its characters but not in the key. */
const opening = ["{", '"input"', ":", '"'] as const

const plainEscapes: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

/**
 * Decodes the arguments of one call in pieces. What was given out is never taken back, and no chunking changes it:
 * - half an escape, or the first half of a surrogate pair, waits for the rest; a half that never gets its other one
 *   becomes U+FFFD, and at the very end it is dropped;
 * - arguments that do not begin with the key `input` and a text are given out at the end: their `input` where they hold
 *   one after all, else all of them, as the model wrote them (RESPONSES 10: no token is lost).
 */
export class CustomInput {
  private state: State = State.beforeText
  /** Part of `opening` that is being read, and how far. */
  private part = 0
  private matched = 0
  /** Everything, until it is known that the text can be read. */
  private raw = ""
  private hex = ""
  /** The first half of a pair, or "". */
  private high = ""

  /** The text that more arguments give. */
  push(text: string): string {
    if (this.state === State.beforeText || this.state === State.unreadable) this.raw += text
    let out = ""
    for (let i = 0; i < text.length && this.state !== State.unreadable && this.state !== State.ended; i++) {
      out += this.read(text.charAt(i))
    }
    return out
  }

  /** The call ended: what is left. */
  finish(): string {
    return this.state === State.unreadable ? wholeInput(this.raw) : ""
  }

  private read(unit: string): string {
    switch (this.state) {
      case State.beforeText:
        this.open(unit)
        return ""
      case State.text:
        if (unit === '"') {
          this.state = State.ended
          return this.high === "" ? "" : this.join("")
        }
        if (unit !== "\\") return this.join(unit)
        this.state = State.escape
        return ""
      case State.escape:
        return this.escape(unit)
      default:
        return this.hexDigit(unit)
    }
  }

  private open(unit: string): void {
    const wanted = opening[this.part]!
    if (this.matched === 0 && " \t\n\r".includes(unit)) return
    if (unit !== wanted.charAt(this.matched)) {
      this.state = State.unreadable
      return
    }
    this.matched += 1
    if (this.matched < wanted.length) return
    this.matched = 0
    this.part += 1
    if (this.part < opening.length) return
    this.state = State.text
    this.raw = ""
  }

  private escape(unit: string): string {
    if (unit === "u") {
      this.state = State.hex
      this.hex = ""
      return ""
    }
    this.state = State.text
    return this.join(plainEscapes[unit] ?? unit)
  }

  private hexDigit(unit: string): string {
    if (!/[0-9a-fA-F]/.test(unit)) {
      // No escape after all; the text goes on as it stands.
      this.state = State.text
      return this.join(`\\u${this.hex}`) + this.read(unit)
    }
    this.hex += unit
    if (this.hex.length < 4) return ""
    this.state = State.text
    return this.join(String.fromCharCode(Number.parseInt(this.hex, 16)))
  }

  /** Adds text behind what is held of a pair; a first half at its end is held in turn. */
  private join(text: string): string {
    const joined = this.high + text
    this.high = ""
    const last = joined.charCodeAt(joined.length - 1)
    if (text === "" || last < 0xd800 || last > 0xdbff) return joined.toWellFormed()
    this.high = joined.slice(-1)
    return joined.slice(0, -1).toWellFormed()
  }
}

/** The input of whole arguments: the same as in pieces. */
export function customInput(text: string): string {
  const input = new CustomInput()
  return input.push(text) + input.finish()
}

function wholeInput(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    const input: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "input") : null
    return typeof input === "string" ? input.toWellFormed() : text
  } catch {
    return text
  }
}
