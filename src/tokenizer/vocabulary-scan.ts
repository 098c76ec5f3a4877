/**
 * Reads a tokenizer.json from its bytes, without making strings and objects of the hundreds of thousands of tokens and
 * merges in it. Anything out of the ordinary gives null; then the file goes through JSON.parse.
 */
import { Vocabulary } from "./vocabulary"

/** A tokenizer.json whose `model.vocab` and `model.merges` were read apart. */
export interface ScannedFile {
  /** The file without them: an empty object and an empty list stand in their place. */
  readonly json: unknown
  readonly vocabulary: Vocabulary
  /** Ids of each merge, left and right. */
  readonly merges: Uint32Array
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const braceOpen = 0x7b
const braceClose = 0x7d
const bracketOpen = 0x5b
const bracketClose = 0x5d

const simpleEscapes: { readonly [code: number]: number } = {
  34: 34,
  92: 92,
  47: 47,
  98: 8,
  102: 12,
  110: 10,
  114: 13,
  116: 9,
}

class Odd extends Error {}

/** Reads the file, or gives null when it is not laid out as tokenizer files are. */
export function scanTokenizerJson(bytes: Uint8Array): ScannedFile | null {
  try {
    return new Scanner(bytes).file()
  } catch (cause) {
    if (cause instanceof Odd || cause instanceof SyntaxError) return null
    throw cause
  }
}

class Scanner {
  private readonly bytes: Uint8Array
  private at = 0
  /** The string read last: `[start, end)` of `source`, which is the file, or `unescaped` when it had escapes. */
  private source: Uint8Array
  private start = 0
  private end = 0
  private unescaped = new Uint8Array(256)
  private readonly vocabulary = new Vocabulary()
  /** Byte ranges of the file that were read here. */
  private vocabSpan: [number, number] | null = null
  private mergesSpan: [number, number] | null = null
  private merges: Uint32Array | null = null

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.source = bytes
  }

  file(): ScannedFile {
    this.eachKey((key) => {
      if (key === "model" && this.peek() === braceOpen) this.model()
      else this.skipValue()
    })
    const { vocabSpan, mergesSpan } = this
    if (vocabSpan === null || mergesSpan === null) throw new Odd()
    if (this.merges === null) {
      // They stood before the vocabulary, which has to be read first.
      this.at = mergesSpan[0]
      this.merges = this.readMerges()
      if (this.at !== mergesSpan[1]) throw new Odd()
    }
    return { json: this.rest(vocabSpan, mergesSpan), vocabulary: this.vocabulary, merges: this.merges }
  }

  private rest(vocabSpan: [number, number], mergesSpan: [number, number]): unknown {
    const decoder = new TextDecoder()
    const spans = [vocabSpan, mergesSpan].sort((a, b) => a[0] - b[0])
    let json = ""
    let at = 0
    for (const [start, end] of spans) {
      json += decoder.decode(this.bytes.subarray(at, start)) + (start === vocabSpan[0] ? "{}" : "[]")
      at = end
    }
    return JSON.parse(json + decoder.decode(this.bytes.subarray(at)))
  }

  private model(): void {
    this.eachKey((key) => {
      const start = this.at
      const opens = this.peek()
      if (key === "vocab") {
        if (opens !== braceOpen || this.vocabSpan !== null) throw new Odd()
        this.readVocabulary()
        this.vocabSpan = [start, this.at]
      } else if (key === "merges") {
        if (opens !== bracketOpen || this.mergesSpan !== null) throw new Odd()
        if (this.vocabSpan === null) this.skipValue()
        else this.merges = this.readMerges()
        this.mergesSpan = [start, this.at]
      } else {
        this.skipValue()
      }
    })
  }

  private readVocabulary(): void {
    this.expect(braceOpen)
    if (this.peek() === braceClose) throw new Odd()
    for (;;) {
      this.expect(quote)
      this.readString()
      const { source, start, end } = this
      this.expect(colon)
      if (!this.vocabulary.put(this.readId(), source, start, end)) throw new Odd()
      if (this.peek() === braceClose) break
      this.expect(comma)
    }
    this.at += 1
  }

  private readMerges(): Uint32Array {
    let merges = new Uint32Array(1 << 18)
    let count = 0
    this.expect(bracketOpen)
    while (this.peek() !== bracketClose) {
      if (count > 0) this.expect(comma)
      if (count + 2 > merges.length) {
        const larger = new Uint32Array(2 * merges.length)
        larger.set(merges)
        merges = larger
      }
      let left: number
      let right: number
      if (this.peek() === quote) {
        this.at += 1
        this.readString()
        const { source, start, end } = this
        let blank = start
        while (blank < end && source[blank] !== 0x20) blank += 1
        left = this.vocabulary.find(source, start, blank)
        right = blank < end ? this.vocabulary.find(source, blank + 1, end) : -1
      } else {
        this.expect(bracketOpen)
        left = this.readToken()
        this.expect(comma)
        right = this.readToken()
        this.expect(bracketClose)
      }
      // Unknown parts, or several blanks: the other road says what is wrong.
      if (left < 0 || right < 0) throw new Odd()
      merges[count++] = left
      merges[count++] = right
    }
    this.at += 1
    return merges.slice(0, count)
  }

  private readToken(): number {
    this.expect(quote)
    this.readString()
    return this.vocabulary.find(this.source, this.start, this.end)
  }

  private readId(): number {
    let byte = this.peek()
    let id = 0
    let digits = 0
    while (byte >= 0x30 && byte <= 0x39 && digits < 10) {
      id = 10 * id + byte - 0x30
      digits += 1
      byte = this.bytes[++this.at]!
    }
    if (digits === 0 || byte === 0x2e || byte === 0x65 || byte === 0x45) throw new Odd()
    return id
  }

  /** Behind the opening quote; leaves the string in `source`, `start`, `end`. */
  private readString(): void {
    const { bytes } = this
    const start = this.at
    let at = start
    while (at < bytes.length && bytes[at] !== quote && bytes[at] !== backslash) at += 1
    if (at >= bytes.length) throw new Odd()
    this.source = bytes
    this.start = start
    this.end = at
    this.at = at + 1
    if (bytes[at] === backslash) this.readEscaped(start, at)
  }

  private readEscaped(start: number, firstEscape: number): void {
    const { bytes } = this
    let to = 0
    const put = (byte: number): void => {
      if (to === this.unescaped.length) {
        const larger = new Uint8Array(2 * this.unescaped.length)
        larger.set(this.unescaped)
        this.unescaped = larger
      }
      this.unescaped[to++] = byte
    }
    for (let i = start; i < firstEscape; i++) put(bytes[i]!)
    let at = firstEscape
    for (;;) {
      const byte = bytes[at]
      if (byte === undefined) throw new Odd()
      at += 1
      if (byte === quote) break
      if (byte !== backslash) {
        put(byte)
        continue
      }
      const kind = bytes[at++]!
      if (kind !== 0x75) {
        const simple = simpleEscapes[kind]
        if (simple === undefined) throw new Odd()
        put(simple)
        continue
      }
      let code = this.hex(at)
      at += 4
      if (code >= 0xd800 && code <= 0xdfff) {
        const low = bytes[at] === backslash && bytes[at + 1] === 0x75 ? this.hex(at + 2) : 0
        if (code > 0xdbff || low < 0xdc00 || low > 0xdfff) throw new Odd()
        code = 0x10000 + ((code - 0xd800) << 10) + low - 0xdc00
        at += 6
      }
      if (code < 0x80) put(code)
      else if (code < 0x800) {
        put(0xc0 | (code >> 6))
        put(0x80 | (code & 63))
      } else {
        if (code > 0xffff) {
          put(0xf0 | (code >> 18))
          put(0x80 | ((code >> 12) & 63))
        } else put(0xe0 | (code >> 12))
        put(0x80 | ((code >> 6) & 63))
        put(0x80 | (code & 63))
      }
    }
    this.at = at
    this.source = this.unescaped
    this.start = 0
    this.end = to
  }

  private hex(at: number): number {
    let code = 0
    for (let i = at; i < at + 4; i++) {
      const digit = Number.parseInt(String.fromCharCode(this.bytes[i] ?? 0), 16)
      if (Number.isNaN(digit)) throw new Odd()
      code = 16 * code + digit
    }
    return code
  }

  /** Walks an object; `onKey` reads the value. */
  private eachKey(onKey: (key: string) => void): void {
    this.expect(braceOpen)
    if (this.peek() === braceClose) {
      this.at += 1
      return
    }
    for (;;) {
      this.expect(quote)
      this.readString()
      const key = new TextDecoder().decode(this.source.subarray(this.start, this.end))
      this.expect(colon)
      this.peek()
      onKey(key)
      if (this.peek() === braceClose) break
      this.expect(comma)
    }
    this.at += 1
  }

  /** Goes behind a value; brackets are counted, not matched, since JSON.parse or a reader here sees it again. */
  private skipValue(): void {
    const { bytes } = this
    let depth = 0
    let byte = this.peek()
    for (;;) {
      if (byte === quote) {
        this.at += 1
        this.skipString()
      } else if (byte === braceOpen || byte === bracketOpen) {
        depth += 1
        this.at += 1
      } else if (byte === braceClose || byte === bracketClose) {
        if (depth === 0) return
        depth -= 1
        this.at += 1
      } else if (byte === comma && depth === 0) {
        return
      } else {
        this.at += 1
      }
      if (depth === 0 && byte !== comma && (byte === quote || byte === braceClose || byte === bracketClose)) return
      if (this.at >= bytes.length) throw new Odd()
      byte = bytes[this.at]!
    }
  }

  private skipString(): void {
    const { bytes } = this
    let at = this.at
    while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
    this.at = at + 1
  }

  /** The next byte that is no white space. */
  private peek(): number {
    const { bytes } = this
    let at = this.at
    while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
    this.at = at
    if (at >= bytes.length) throw new Odd()
    return bytes[at]!
  }

  private expect(byte: number): void {
    if (this.peek() !== byte) throw new Odd()
    this.at += 1
  }
}
