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
 * concatenation read as UTF-8, with U+FFFD for bytes that are none. State: an unfinished character.
 * Source: the UTF-8 decoder of the Encoding Standard, section 8.1, so that U+FFFD stands where TextDecoder has it.
 */
export class ByteDetokenizer implements CopyableDetokenizer {
  /** The character in progress: how many bytes it still needs, and its bits so far. */
  private needed = 0
  private point = 0
  /** What its next byte must lie in: narrower behind some first bytes. */
  private lower = 0x80
  private upper = 0xbf
  private readonly table: TokenBytes
  private readonly skipSpecial: boolean

  /** A prompt that ends inside a character hands its bytes on. */
  constructor(table: TokenBytes, skipSpecial: boolean, promptTokenIds: Uint32Array = noTokens) {
    this.table = table
    this.skipSpecial = skipSpecial
    // Three tokens hold all of a character but its last byte.
    for (let i = Math.max(0, promptTokenIds.length - 3); i < promptTokenIds.length; i++) {
      const id = promptTokenIds[i]!
      const isSkipped = skipSpecial && table.isSpecial(id)
      if (!isSkipped && (this.needed > 0 || table.text(id) === null)) this.join(table.bytes(id))
    }
  }

  /** Hot (bench/fold.ts). */
  push(id: number, piece: Piece): void {
    if (this.skipSpecial && this.table.isSpecial(id)) {
      piece.add(id, "")
      return
    }
    if (this.needed === 0) {
      const text = this.table.text(id)
      if (text !== null) {
        piece.add(id, text)
        return
      }
    }
    piece.add(id, this.join(this.table.bytes(id)))
  }

  finish(piece: Piece): void {
    if (this.needed === 0) return
    piece.extendLast("\ufffd")
    this.begin(0, 0)
  }

  copy(): ByteDetokenizer {
    const twin = new ByteDetokenizer(this.table, this.skipSpecial)
    twin.needed = this.needed
    twin.point = this.point
    twin.lower = this.lower
    twin.upper = this.upper
    return twin
  }

  /** The text that the bytes complete; what stays unfinished is kept. */
  private join(bytes: Uint8Array): string {
    let text = ""
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!
      if (this.needed > 0) {
        if (byte >= this.lower && byte <= this.upper) {
          this.lower = 0x80
          this.upper = 0xbf
          this.point = (this.point << 6) | (byte & 0x3f)
          this.needed -= 1
          if (this.needed === 0) text += String.fromCodePoint(this.point)
          continue
        }
        // The byte ends the character that it does not belong to, and is looked at again.
        text += "\ufffd"
        this.begin(0, 0)
      }
      if (byte < 0x80) text += String.fromCharCode(byte)
      else if (byte < 0xc2 || byte > 0xf4) text += "\ufffd"
      else if (byte < 0xe0) this.begin(1, byte & 0x1f)
      else if (byte < 0xf0) {
        this.begin(2, byte & 0xf)
        // Not what two bytes spell, and no surrogates.
        if (byte === 0xe0) this.lower = 0xa0
        else if (byte === 0xed) this.upper = 0x9f
      } else {
        this.begin(3, byte & 7)
        // Not what three bytes spell, and nothing above U+10FFFF.
        if (byte === 0xf0) this.lower = 0x90
        else if (byte === 0xf4) this.upper = 0x8f
      }
    }
    return text
  }

  private begin(needed: number, point: number): void {
    this.needed = needed
    this.point = point
    this.lower = 0x80
    this.upper = 0xbf
  }
}
