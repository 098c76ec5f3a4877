/** What the ids of a byte-level vocabulary decode to: all bytes in one array, texts made when first asked for. */

import { type TokenBytes, unfinishedBytes } from "./byte-detokenizer"
import { DecodeCore, tokenKinds } from "./decode-core"
import type { PackedTokens } from "./packed-tokens"

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
const noBytes = new Uint8Array(0)

/** One vocabulary's bytes by id. */
export class ByteTable implements TokenBytes {
  private readonly tokens: PackedTokens
  /** By id: bits of `tokenKinds`. */
  private readonly kinds: Uint8Array
  private readonly size: number
  /** undefined = not looked up, null = not whole characters. */
  private readonly texts: (string | null | undefined)[]
  /** Views of the few tokens that are not whole characters, by id. */
  private readonly views: (Uint8Array | undefined)[]
  /** Made for the first `decode`: streaming, which most servers do alone, needs none of it. */
  private core: DecodeCore | null = null

  constructor(tokens: PackedTokens, specialIds: Iterable<number>) {
    this.size = tokens.ends.length
    this.tokens = tokens
    this.kinds = new Uint8Array(this.size)
    for (const id of specialIds) this.kinds[id] = tokenKinds.special
    this.texts = new Array<string | null | undefined>(this.size).fill(undefined)
    this.views = new Array<Uint8Array | undefined>(this.size)
  }

  /** Hot (bench/fold.ts): one array read once the token has been seen. */
  text(id: number): string | null {
    const known = this.texts[id]
    return known !== undefined ? known : this.lookUp(id)
  }

  bytes(id: number): Uint8Array {
    if (id >= this.size) return noBytes
    const { bytes, ends } = this.tokens
    this.views[id] ??= bytes.subarray(id === 0 ? 0 : ends[id - 1]!, ends[id]!)
    return this.views[id]!
  }

  isSpecial(id: number): boolean {
    return id < this.size && this.kinds[id] === tokenKinds.special
  }

  /** Hot (bench/detokenize.ts): the ids' bytes side by side, then read as UTF-8 at once. */
  decode(tokenIds: Uint32Array, skipSpecial: boolean): string {
    this.core ??= new DecodeCore(this.tokens, this.kinds)
    return this.core.decode(tokenIds, skipSpecial)
  }

  private lookUp(id: number): string | null {
    if (id >= this.size) return ""
    const { ends } = this.tokens
    const bytes = this.tokens.bytes.subarray(id === 0 ? 0 : ends[id - 1]!, ends[id]!)
    // A token that starts or ends inside a character is no text of its own.
    const whole = unfinishedBytes(bytes, bytes.length) === 0 ? lossy.decode(bytes) : null
    const text = whole === null || whole.includes("\ufffd") ? null : whole
    this.texts[id] = text
    return text
  }
}
