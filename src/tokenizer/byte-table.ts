/** What the ids of a byte-level vocabulary decode to: all bytes in one array, texts made when first asked for. */

import type { PackedTokens } from "./bpe-core"
import { type TokenBytes, unfinishedBytes } from "./byte-detokenizer"

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
/** Tokens up to this many bytes are copied as words. */
const slotBytes = 16
/** Text up to this many bytes is decoded in a buffer that stays. */
const keptBytesMax = 1 << 20

const noSpecial = new Uint8Array(0)

/** One vocabulary's bytes by id. */
export class ByteTable implements TokenBytes {
  private readonly packed: Uint8Array
  /** `[starts[id], starts[id + 1])` of `packed`. */
  private readonly starts: Uint32Array
  private readonly special: Uint8Array
  private readonly size: number
  /** undefined = not looked up, null = not whole characters. */
  private readonly texts: (string | null | undefined)[]
  /** The first 16 bytes of each token as four words, and how many there are; 255 = more, look at `packed`. */
  private slots = new Uint32Array(0)
  private lengths = new Uint8Array(0)
  private buffer = viewOf(4096)

  constructor(tokens: PackedTokens, isSpecial: (id: number) => boolean) {
    this.size = tokens.ends.length
    this.packed = tokens.bytes
    this.starts = new Uint32Array(this.size + 1)
    this.starts.set(tokens.ends, 1)
    this.special = new Uint8Array(this.size)
    for (let id = 0; id < this.size; id++) if (isSpecial(id)) this.special[id] = 1
    this.texts = new Array<string | null | undefined>(this.size)
  }

  /** Hot (bench/fold.ts): one array read once the token has been seen. */
  text(id: number): string | null {
    if (id >= this.size) return ""
    const known = this.texts[id]
    if (known !== undefined) return known
    const bytes = this.bytes(id)
    // A token that starts or ends inside a character is no text of its own.
    const whole = unfinishedBytes(bytes, bytes.length) === 0 ? lossy.decode(bytes) : null
    const text = whole === null || whole.includes("\ufffd") ? null : whole
    this.texts[id] = text
    return text
  }

  bytes(id: number): Uint8Array {
    return id < this.size ? this.packed.subarray(this.starts[id]!, this.starts[id + 1]!) : this.packed.subarray(0, 0)
  }

  isSpecial(id: number): boolean {
    return id < this.size && this.special[id] === 1
  }

  /** Hot (bench/detokenize.ts): the ids' bytes side by side, then read as UTF-8 at once. */
  decode(tokenIds: Uint32Array, skipSpecial: boolean): string {
    if (this.lengths.length < this.size) this.fillSlots()
    const length = this.lengthOf(tokenIds)
    const isLarge = length > keptBytesMax
    if (!isLarge && length + slotBytes > this.buffer.byteLength) this.buffer = viewOf(2 * length + slotBytes)
    const out = isLarge ? viewOf(length + slotBytes) : this.buffer
    const end = this.fill(tokenIds, skipSpecial ? this.special : noSpecial, out)
    return lossy.decode(new Uint8Array(out.buffer, 0, end))
  }

  /** Worked out for the first decode: streaming, which most servers do alone, needs none of it. */
  private fillSlots(): void {
    this.slots = new Uint32Array(4 * this.size)
    this.lengths = new Uint8Array(this.size)
    for (let id = 0; id < this.size; id++) {
      const start = this.starts[id]!
      const length = this.starts[id + 1]! - start
      this.lengths[id] = length > slotBytes ? 255 : length
      for (let k = 0; k < length && k < slotBytes; k++)
        this.slots[4 * id + (k >> 2)]! |= this.packed[start + k]! << (8 * (k & 3))
    }
  }

  private lengthOf(tokenIds: Uint32Array): number {
    const { lengths } = this
    let length = 0
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!
      if (id >= lengths.length) continue
      const each = lengths[id]!
      length += each > slotBytes ? this.starts[id + 1]! - this.starts[id]! : each
    }
    return length
  }

  /** Four bytes at a time, past a token's end where the next one writes anyway: three times faster than byte by byte. */
  private fill(tokenIds: Uint32Array, special: Uint8Array, out: DataView): number {
    const { lengths, slots } = this
    let to = 0
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!
      if (id >= lengths.length || special[id] === 1) continue
      const length = lengths[id]!
      const slot = id << 2
      if (length > slotBytes) {
        const bytes = this.bytes(id)
        new Uint8Array(out.buffer).set(bytes, to)
        to += bytes.length
        continue
      }
      out.setUint32(to, slots[slot]!, true)
      if (length > 4) out.setUint32(to + 4, slots[slot + 1]!, true)
      if (length > 8) {
        out.setUint32(to + 8, slots[slot + 2]!, true)
        out.setUint32(to + 12, slots[slot + 3]!, true)
      }
      to += length
    }
    return to
  }
}

function viewOf(length: number): DataView {
  return new DataView(new ArrayBuffer(length))
}
