/** Ids → text of one vocabulary in WebAssembly (wasm/assembly/decode.ts), in an instance of its own. */
import type { PackedTokens } from "./packed-tokens"
import { wasmModule } from "./wasm-module"

/** What an id is besides its bytes: bits of wasm/assembly/decode.ts. */
export const tokenKinds = {
  /** Dropped when special tokens are skipped. */
  special: 0x20,
  /** One byte of a run that is text only as a whole. */
  byte: 0x40,
  /** No token: gives nothing and ends no run of bytes. */
  absent: 0x80,
} as const

interface Exports {
  readonly memory: WebAssembly.Memory
  prepareDecoder(tokens: number, tokenBytes: number): number
  decoderStartsAddress(): number
  decoderBytesAddress(): number
  decoderKindsAddress(): number
  buildDecoder(): void
  layDecoder(ids: number, textBytes: number): number
  decoderIdsAddress(): number
  decoderTextAddress(): number
  decodedBytes(): number
  decode(count: number, skipsSpecial: boolean, final: boolean): number
}

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
/** Ids that are taken at once: more than most calls have, and what they become stays in the processor's cache. */
const idsUsual = 1 << 15
/** Joined text up to this many bytes leaves its buffer for the next call. */
const keptBytesMax = 1 << 20
/** Memory that a long run of bytes may leave behind. */
const spareBytesMax = 16 * 1024 * 1024
/** Up to here a loop copies faster than `set`. */
const idsCopiedOneByOne = 32

/** Decodes lists of ids. Calls do not nest. */
export class DecodeCore {
  private readonly wasm: Exports
  /** The longest token's bytes: any of them must fit. */
  private readonly longest: number
  private readonly usualBytes: number
  private idsMax = 0
  /** Views; made again when the room is laid anew, since memory may have grown. */
  private ids = new Uint32Array(0)
  private text = new Uint8Array(0)
  /** Text of calls that take several turns. */
  private joined = new Uint8Array(0)

  /** `kinds` by id, of `tokenKinds`. Throws a RangeError without memory for the tables: some 25 bytes a token. */
  constructor(tokens: PackedTokens, kinds: Uint8Array) {
    const size = tokens.ends.length
    // The imports are none, and the exports are what wasm/assembly/core.ts says.
    const wasm = new WebAssembly.Instance(wasmModule()).exports as unknown as Exports
    if (!wasm.prepareDecoder(size, tokens.bytes.length)) throw new RangeError("no memory for the tables")
    const { buffer } = wasm.memory
    new Uint32Array(buffer, wasm.decoderStartsAddress() + 4, size).set(tokens.ends)
    new Uint8Array(buffer, wasm.decoderBytesAddress(), tokens.bytes.length).set(tokens.bytes)
    new Uint8Array(buffer, wasm.decoderKindsAddress(), size).set(kinds)
    wasm.buildDecoder()
    let longest = 0
    for (let id = 0; id < size; id++) longest = Math.max(longest, tokens.ends[id]! - (tokens.ends[id - 1] ?? 0))
    this.wasm = wasm
    this.longest = longest
    this.lay(idsUsual)
    this.usualBytes = wasm.memory.buffer.byteLength
  }

  /** Linear memory never shrinks: true when a long run of bytes made it so large that a new core should take over. */
  isSwollen(): boolean {
    return this.wasm.memory.buffer.byteLength > this.usualBytes + spareBytesMax
  }

  /** Hot (bench/detokenize.ts): the ids' bytes side by side, read as UTF-8, with U+FFFD for what is none. */
  decode(tokenIds: Uint32Array, skipsSpecial: boolean): string {
    const { length } = tokenIds
    let at = 0
    let joinedBytes = 0
    for (;;) {
      const count = Math.min(length - at, this.idsMax)
      this.take(tokenIds, at, count)
      const final = at + count === length
      const taken = this.wasm.decode(count, skipsSpecial, final)
      const bytes = this.wasm.decodedBytes()
      const isLast = final && taken === count
      if (isLast && joinedBytes === 0) return lossy.decode(this.text.subarray(0, bytes))
      this.join(joinedBytes, bytes)
      joinedBytes += bytes
      at += taken
      if (isLast) break
      // A run of bytes longer than the room: rare, and looked at a few times only.
      if (taken === 0) this.lay(2 * this.idsMax)
    }
    const text = lossy.decode(this.joined.subarray(0, joinedBytes))
    if (this.joined.length > keptBytesMax) this.joined = new Uint8Array(0)
    if (this.idsMax > idsUsual) this.lay(idsUsual)
    return text
  }

  private take(tokenIds: Uint32Array, at: number, count: number): void {
    const { ids } = this
    if (count <= idsCopiedOneByOne) for (let i = 0; i < count; i++) ids[i] = tokenIds[at + i]!
    else if (count === tokenIds.length) ids.set(tokenIds)
    else ids.set(tokenIds.subarray(at, at + count))
  }

  private join(used: number, bytes: number): void {
    if (used + bytes > this.joined.length) {
      const larger = new Uint8Array(Math.max(2 * this.joined.length, used + bytes, keptBytesMax))
      larger.set(this.joined.subarray(0, used))
      this.joined = larger
    }
    this.joined.set(this.text.subarray(0, bytes), used)
  }

  private lay(ids: number): void {
    // Room for a token of any length; and for a run of bytes of which each becomes the three of U+FFFD.
    const textBytes = Math.max(8 * ids, 2 * this.longest) + 64
    if (!this.wasm.layDecoder(ids, textBytes)) throw new RangeError("no memory for the text")
    const { buffer } = this.wasm.memory
    this.idsMax = ids
    this.ids = new Uint32Array(buffer, this.wasm.decoderIdsAddress(), ids)
    this.text = new Uint8Array(buffer, this.wasm.decoderTextAddress(), textBytes)
  }
}
