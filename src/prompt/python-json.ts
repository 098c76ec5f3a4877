/**
 * JSON as Python's `json` module reads and writes it, for formats whose reference passes client JSON through
 * `json.dumps(json.loads(text), ensure_ascii=False)`. Values are those of templates, which know floats from integers.
 */
import { err, ok, type Result } from "../result"
import { toJson } from "./jinja/json"
import { integerDigitsMax } from "./jinja/number-text"
import { Run, systemClock, TemplateError, templateLimits } from "./jinja/run"
import { Dictionary, Float, type Value } from "./jinja/value"

/** Why a text gives no value: it is no JSON, which callers may take for a plain text, or more than is read. */
export interface PythonJsonFailure {
  readonly kind: "not_json" | "json_too_large"
  readonly message: string
}

/** Lists and objects inside each other. Python's own limit is about a thousand. */
const depthMax = 512

/** `json.loads`: also takes NaN and Infinity; of equal keys the last counts, in the place of the first. */
export function readPythonJson(text: string): Result<Value, PythonJsonFailure> {
  try {
    return ok(new Reader(text).read())
  } catch (cause) {
    if (cause instanceof ReadFailure) return err({ kind: cause.kind, message: cause.message })
    throw cause
  }
}

/** `json.dumps` with its blanks behind commas and colons, and without escapes for characters outside ASCII. */
export function pythonJsonText(value: Value): Result<string, PythonJsonFailure> {
  try {
    return ok(toJson(value, { positional: [], named: new Map() }, new Run(systemClock, templateLimits)))
  } catch (cause) {
    if (cause instanceof TemplateError) return err({ kind: "json_too_large", message: cause.message })
    throw cause
  }
}

/** Leaves the recursion; never leaves this file. */
class ReadFailure extends Error {
  readonly kind: PythonJsonFailure["kind"]

  constructor(kind: PythonJsonFailure["kind"], message: string) {
    super(message)
    this.kind = kind
  }
}

const blank = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings hold none.
const control = /[\u0000-\u001f]/
const word = /true|false|null|NaN|-?Infinity/y

const words: { readonly [spelled: string]: Value } = {
  true: true,
  false: false,
  null: null,
  NaN: new Float(Number.NaN),
  Infinity: new Float(Number.POSITIVE_INFINITY),
  "-Infinity": new Float(Number.NEGATIVE_INFINITY),
}

class Reader {
  private readonly text: string
  private at = 0
  private depth = 0

  constructor(text: string) {
    this.text = text
  }

  read(): Value {
    this.take(blank)
    const value = this.value()
    this.take(blank)
    if (this.at < this.text.length) this.fail()
    return value
  }

  private value(): Value {
    switch (this.text[this.at]) {
      case "{":
        return this.nested(() => this.object())
      case "[":
        return this.nested(() => this.list())
      case '"':
        return this.string()
      default:
        return this.numberOrWord()
    }
  }

  private nested<T>(read: () => T): T {
    this.depth += 1
    if (this.depth > depthMax) throw new ReadFailure("json_too_large", `nests more than ${depthMax} deep`)
    this.at += 1
    this.take(blank)
    const value = read()
    this.depth -= 1
    return value
  }

  private object(): Dictionary {
    const made = new Dictionary()
    if (this.isNext("}")) return made
    do {
      this.take(blank)
      const key = this.string()
      this.take(blank)
      if (!this.isNext(":")) this.fail()
      this.take(blank)
      made.set(key, this.value())
      this.take(blank)
    } while (this.isNext(","))
    if (!this.isNext("}")) this.fail()
    return made
  }

  private list(): Value[] {
    const made: Value[] = []
    if (this.isNext("]")) return made
    do {
      this.take(blank)
      made.push(this.value())
      this.take(blank)
    } while (this.isNext(","))
    if (!this.isNext("]")) this.fail()
    return made
  }

  private string(): string {
    const start = this.at
    let end = this.text[start] === '"' ? start : -1
    do {
      // Behind an odd number of backslashes a quote is part of the string.
      end = end < 0 ? -1 : this.text.indexOf('"', end + 1)
      if (end < 0) this.fail()
    } while (this.isEscaped(end))
    this.at = end + 1
    const inner = this.text.slice(start + 1, end)
    if (!inner.includes("\\") && !control.test(inner)) return inner
    try {
      // A string literal of JSON is JSON by itself. Halves of characters are what the vocabulary makes of them.
      return (JSON.parse(this.text.slice(start, this.at)) as string).toWellFormed()
    } catch {
      return this.fail()
    }
  }

  private isEscaped(at: number): boolean {
    let backslashes = 0
    while (this.text[at - 1 - backslashes] === "\\") backslashes += 1
    return backslashes % 2 === 1
  }

  private numberOrWord(): Value {
    const spelled = this.take(word)?.[0]
    if (spelled !== undefined) return words[spelled]
    const found = this.take(number) ?? this.fail()
    if (found[1] !== undefined || found[2] !== undefined) return new Float(Number(found[0]))
    if (found[0].length > integerDigitsMax && found[0].replace("-", "").length > integerDigitsMax) {
      throw new ReadFailure("json_too_large", `holds an integer of more than ${integerDigitsMax} digits`)
    }
    // Minus zero is zero: integers have one.
    const value = Number(found[0]) + 0
    return Number.isSafeInteger(value) ? value : BigInt(found[0])
  }

  private isNext(char: string): boolean {
    if (this.text[this.at] !== char) return false
    this.at += 1
    return true
  }

  private take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at += found[0].length
    return found
  }

  private fail(): never {
    throw new ReadFailure("not_json", `is no JSON at character ${this.at}`)
  }
}
