/**
 * Reads a tokenizer.json from its bytes, without making strings and objects of the hundreds of thousands of tokens and
 * merges in it. Anything out of the ordinary gives null; then the file goes through JSON.parse.
 */
import { Vocabulary } from "./vocabulary"
import { wasmModule } from "./wasm-module"

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

/** What wasm/assembly/vocabulary-file.ts gives for an offset when it finds something out of the ordinary. */
const oddOffset = 0xffff_ffff

/** The WebAssembly side (wasm/assembly/vocabulary-file.ts). Offsets are bytes of the file. */
interface Exports {
  readonly memory: WebAssembly.Memory
  layFile(bytes: number): number
  readVocabulary(offset: number): number
  readMerges(offset: number): number
  spelledAddress(): number
  spelledBytes(): number
  spelledStartsAddress(): number
  spelledLengthsAddress(): number
  spelledHashesAddress(): number
  spelledCount(): number
  spelledIdEnd(): number
  readMergesAddress(): number
  readMergesCount(): number
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
  private readonly wasm: Exports
  private at = 0
  /** Byte ranges of the file that were read here. */
  private vocabSpan: [number, number] | null = null
  private mergesSpan: [number, number] | null = null
  private hasMerges = false

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    // The imports are none, and the exports are what wasm/assembly/core.ts says.
    this.wasm = new WebAssembly.Instance(wasmModule()).exports as unknown as Exports
    const address = this.wasm.layFile(bytes.length)
    if (address === 0) throw new Odd()
    new Uint8Array(this.wasm.memory.buffer, address, bytes.length).set(bytes)
  }

  file(): ScannedFile {
    this.eachKey((key) => {
      if (key === "model" && this.peek() === braceOpen) this.model()
      else this.skipValue()
    })
    const { vocabSpan, mergesSpan } = this
    if (vocabSpan === null || mergesSpan === null) throw new Odd()
    if (!this.hasMerges) {
      // They stood before the vocabulary, which has to be read first.
      this.at = mergesSpan[0]
      this.readMerges()
      if (this.at !== mergesSpan[1]) throw new Odd()
    }
    return { json: this.rest(vocabSpan, mergesSpan), vocabulary: this.vocabulary(), merges: this.merges() }
  }

  /** Copies, so that the instance and the file in it can go. */
  private vocabulary(): Vocabulary {
    const { wasm } = this
    const { buffer } = wasm.memory
    const idEnd = wasm.spelledIdEnd()
    const bytes = new Uint8Array(buffer, wasm.spelledAddress(), wasm.spelledBytes()).slice()
    const starts = new Uint32Array(buffer, wasm.spelledStartsAddress(), idEnd).slice()
    const lengths = new Int32Array(buffer, wasm.spelledLengthsAddress(), idEnd).slice()
    const hashes = new Uint32Array(buffer, wasm.spelledHashesAddress(), idEnd).slice()
    // One more than the length, so that 0 is no token.
    for (let id = 0; id < idEnd; id++) lengths[id]! -= 1
    return Vocabulary.of(bytes, starts, lengths, hashes)
  }

  private merges(): Uint32Array {
    const { wasm } = this
    return new Uint32Array(wasm.memory.buffer, wasm.readMergesAddress(), 2 * wasm.readMergesCount()).slice()
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
      if (key === "vocab") {
        if (this.vocabSpan !== null) throw new Odd()
        this.at = this.behind(this.wasm.readVocabulary(start))
        this.vocabSpan = [start, this.at]
      } else if (key === "merges") {
        if (this.mergesSpan !== null) throw new Odd()
        if (this.vocabSpan === null) this.skipValue()
        else this.readMerges()
        this.mergesSpan = [start, this.at]
      } else {
        this.skipValue()
      }
    })
  }

  private readMerges(): void {
    this.at = this.behind(this.wasm.readMerges(this.at))
    this.hasMerges = true
  }

  private behind(offset: number): number {
    if (offset >>> 0 === oddOffset) throw new Odd()
    return offset >>> 0
  }

  /** Behind the opening quote of a key; one with escapes is none that is looked for. */
  private readKey(): string {
    const { bytes } = this
    const start = this.at
    while (bytes[this.at] !== quote) {
      if (this.at >= bytes.length || bytes[this.at] === backslash) throw new Odd()
      this.at += 1
    }
    this.at += 1
    return new TextDecoder().decode(bytes.subarray(start, this.at - 1))
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
      const key = this.readKey()
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
