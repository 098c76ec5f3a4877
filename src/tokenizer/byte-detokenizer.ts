import type { Piece } from "../ir/piece"
import type { CopyableDetokenizer } from "./detokenizer"

/** What a byte-level vocabulary tells its detokenizers. One object per tokenizer, shared by all sequences. */
export interface TokenBytes {
  /** The token's text when its bytes are whole characters, else null (look at `bytes`). "" for unknown ids. */
  text(id: number): string | null
  /** The token's bytes; owned by the table. */
  bytes(id: number): Uint8Array
  /** True for tokens that `skip_special_tokens` drops. */
  isSpecial(id: number): boolean
}

const noTokens = new Uint32Array(0)
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

/**
 * How many bytes at the end of `bytes[0, length)` may begin a character that is not complete yet: 0 to 3. Bytes that
 * can never become a character count as complete, so that they turn into U+FFFD at once.
 */
export function unfinishedBytes(bytes: Uint8Array, length: number): number {
  const back = Math.min(3, length)
  for (let i = 1; i <= back; i++) {
    const byte = bytes[length - i]!
    if ((byte & 0xc0) === 0x80) continue
    const size =
      byte >= 0xc2 && byte <= 0xdf ? 2 : byte >= 0xe0 && byte <= 0xef ? 3 : byte >= 0xf0 && byte <= 0xf4 ? 4 : 1
    return size > i ? i : 0
  }
  return 0
}

/**
 * Streaming decoder of byte-level vocabularies (tiktoken, ByteLevel BPE): tokens are bytes, so the text is their
 * concatenation read as UTF-8, with U+FFFD for bytes that are none. State: at most three held bytes.
 */
export class ByteDetokenizer implements CopyableDetokenizer {
  private held = new Uint8Array(3)
  private heldCount = 0
  private readonly table: TokenBytes
  private readonly skipSpecial: boolean

  /** A prompt that ends inside a character hands its bytes on. */
  constructor(table: TokenBytes, skipSpecial: boolean, promptTokenIds: Uint32Array = noTokens) {
    this.table = table
    this.skipSpecial = skipSpecial
    // Three tokens hold all of a character but its last byte.
    for (const id of promptTokenIds.subarray(Math.max(0, promptTokenIds.length - 3))) {
      const isSkipped = skipSpecial && table.isSpecial(id)
      if (!isSkipped && (this.heldCount > 0 || table.text(id) === null)) this.join(table.bytes(id))
    }
  }

  /** Hot (bench/fold.ts). */
  push(id: number, piece: Piece): void {
    if (this.skipSpecial && this.table.isSpecial(id)) {
      piece.add(id, "")
      return
    }
    if (this.heldCount === 0) {
      const text = this.table.text(id)
      if (text !== null) {
        piece.add(id, text)
        return
      }
    }
    piece.add(id, this.join(this.table.bytes(id)))
  }

  finish(piece: Piece): void {
    if (this.heldCount === 0) return
    piece.extendLast(lossy.decode(this.held.subarray(0, this.heldCount)))
    this.heldCount = 0
  }

  copy(): ByteDetokenizer {
    const twin = new ByteDetokenizer(this.table, this.skipSpecial)
    twin.held.set(this.held)
    twin.heldCount = this.heldCount
    return twin
  }

  /** Held bytes and new ones as text; holds the start of an unfinished character. Rare, so it may allocate. */
  private join(bytes: Uint8Array): string {
    const joined = new Uint8Array(this.heldCount + bytes.length)
    joined.set(this.held.subarray(0, this.heldCount))
    joined.set(bytes, this.heldCount)
    const unfinished = unfinishedBytes(joined, joined.length)
    this.held.set(joined.subarray(joined.length - unfinished))
    this.heldCount = unfinished
    return lossy.decode(joined.subarray(0, joined.length - unfinished))
  }
}

/** Decodes ids in one go, by the streaming decoder: one truth for both roads. */
export function decodeBytes(table: TokenBytes, tokenIds: Uint32Array, skipSpecial: boolean, piece: Piece): string {
  const detokenizer = new ByteDetokenizer(table, skipSpecial)
  let text = ""
  for (const id of tokenIds) {
    detokenizer.push(id, piece)
    if (piece.count < 1024) continue
    text += piece.text
    piece.clear()
  }
  detokenizer.finish(piece)
  return text + piece.text
}
