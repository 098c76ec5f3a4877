/** What the ids of a byte-level vocabulary decode to: all bytes in one array, texts made when first asked for. */

import type { PackedTokens } from "./bpe-core"
import { type TokenBytes, unfinishedBytes } from "./byte-detokenizer"

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
/** Tokens up to this many bytes are copied one by one, which is faster than a view of them. */
const copiedOneByOneMax = 24

/** One vocabulary's bytes by id. */
export class ByteTable implements TokenBytes {
  private readonly packed: Uint8Array
  /** `[starts[id], starts[id + 1])` of `packed`. */
  private readonly starts: Uint32Array
  private readonly special: Uint8Array
  private readonly size: number
  /** undefined = not looked up, null = not whole characters. */
  private readonly texts: (string | null | undefined)[]
  private buffer = new Uint8Array(4096)

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
    const { packed, starts, special, size } = this
    let length = 0
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!
      if (id < size) length += starts[id + 1]! - starts[id]!
    }
    const isLarge = length > 1 << 20
    if (!isLarge && length > this.buffer.length) this.buffer = new Uint8Array(2 * length)
    const out = isLarge ? new Uint8Array(length) : this.buffer
    let to = 0
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!
      if (id >= size || (skipSpecial && special[id] === 1)) continue
      const end = starts[id + 1]!
      let from = starts[id]!
      if (end - from > copiedOneByOneMax) {
        out.set(packed.subarray(from, end), to)
        to += end - from
      } else {
        while (from < end) out[to++] = packed[from++]!
      }
    }
    return lossy.decode(out.subarray(0, to))
  }
}
