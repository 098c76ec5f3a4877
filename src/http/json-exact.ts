import type { Json } from "../ir/conversation"
import { noteSpelling } from "../ir/json-spelling"

/**
 * Reads a text that is known to be valid JSON with all that it says: integers beyond 2^53 as `bigint`, and a note
 * (ir/json-spelling.ts) on each object and array whose floats or key order JavaScript would lose. Of duplicate keys the
 * last wins and stands where the first stood, as in Python. Recursion is as deep as the nesting.
 */
export function readExactJson(text: string): Json {
  return new ExactReader(text).read()
}

/** Keys that JavaScript lists before all others, in the order of their numbers. */
export function isIndexKey(key: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 4_294_967_295
}

class ExactReader {
  private readonly text: string
  private at = 0
  /** Whether the number read last was an integer written as a float. */
  private isSpelledFloat = false

  constructor(text: string) {
    this.text = text
  }

  read(): Json {
    this.skipSpace()
    this.isSpelledFloat = false
    switch (this.text.charCodeAt(this.at)) {
      case 0x22:
        return this.readString()
      case 0x7b:
        return this.readObject()
      case 0x5b:
        return this.readArray()
      case 0x74:
        return this.word("true", true)
      case 0x66:
        return this.word("false", false)
      case 0x6e:
        return this.word("null", null)
      default:
        return this.readNumber()
    }
  }

  private word(spelled: string, value: Json): Json {
    this.at += spelled.length
    return value
  }

  private skipSpace(): void {
    while (this.text.charCodeAt(this.at) <= 0x20) this.at += 1
  }

  /** Skips space and one character, and tells which. */
  private punctuation(): number {
    this.skipSpace()
    this.at += 1
    return this.text.charCodeAt(this.at - 1)
  }

  private readString(): string {
    const start = this.at
    this.at = stringEnd(this.text, start) + 1
    const inner = this.text.slice(start + 1, this.at - 1)
    // A valid string literal is valid JSON by itself, and its value a string.
    return inner.includes("\\") ? (JSON.parse(this.text.slice(start, this.at)) as string) : inner
  }

  private readNumber(): number | bigint {
    const start = this.at
    let isFloat = false
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at)
      if (code === 0x2e || (code | 0x20) === 0x65) isFloat = true
      else if (code !== 0x2d && code !== 0x2b && (code < 0x30 || code > 0x39)) break
    }
    const spelled = this.text.slice(start, this.at)
    const value = Number(spelled)
    if (!isFloat) return Number.isSafeInteger(value) ? value : BigInt(spelled)
    this.isSpelledFloat = Number.isInteger(value)
    return value
  }

  private readArray(): Json[] {
    const made: Json[] = []
    let floats: Set<string> | null = null
    this.at += 1
    this.skipSpace()
    if (this.text.charCodeAt(this.at) === 0x5d) {
      this.at += 1
      return made
    }
    do {
      made.push(this.read())
      if (this.isSpelledFloat) {
        floats ??= new Set()
        floats.add(String(made.length - 1))
      }
    } while (this.punctuation() === 0x2c)
    if (floats !== null) noteSpelling(made, { keys: null, floats })
    this.isSpelledFloat = false
    return made
  }

  private readObject(): Json {
    const made: { [key: string]: Json } = {}
    const keys: string[] = []
    let hasIndex = false
    let floats: Set<string> | null = null
    this.at += 1
    this.skipSpace()
    if (this.text.charCodeAt(this.at) === 0x7d) {
      this.at += 1
      return made
    }
    do {
      this.skipSpace()
      const key = this.readString()
      this.punctuation()
      const value = this.read()
      if (!Object.hasOwn(made, key)) keys.push(key)
      setOwn(made, key, value)
      hasIndex ||= isIndexKey(key)
      floats?.delete(key)
      if (this.isSpelledFloat) {
        floats ??= new Set()
        floats.add(key)
      }
    } while (this.punctuation() === 0x2c)
    if (hasIndex || floats !== null) noteSpelling(made, { keys: hasIndex ? keys : null, floats })
    this.isSpelledFloat = false
    return made
  }
}

function setOwn(object: { [key: string]: Json }, key: string, value: Json): void {
  if (key !== "__proto__") object[key] = value
  // Assigning would call the setter.
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

/** The closing quote of the string that opens at `start`, or the end of the text. */
export function stringEnd(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end === -1) return text.length
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes += 1
    if (backslashes % 2 === 0) return end
  }
}
