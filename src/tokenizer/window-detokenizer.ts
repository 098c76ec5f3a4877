import type { Piece } from "../ir/piece"
import type { Detokenizer } from "./detokenizer"

/** Decodes a few ids to text, as the reference would decode exactly them. */
export type DecodeIds = (tokenIds: readonly number[]) => string

/** Prompt tokens that prime the window: enough for any leading-space rule (PARSERS.md 7 says 4 to 6). */
const promptTailTokens = 6
/** Ids held because the text ends inside a character; beyond this they come out as they are, so that steps stay cheap. */
const heldTokensMax = 16

/**
 * Streaming decoder for vocabularies whose decoder looks at neighbours (SentencePiece-style spaces, byte fallback):
 * decodes a small window with and without the new id and gives the difference. Slower than `ByteDetokenizer`.
 * Source: CHAT.md 6.1, the rule of vLLM's incremental detokenizer.
 */
export class WindowDetokenizer implements Detokenizer {
  /** Ids of the window; those in `[0, readStart)` have been given out as text. */
  private window: number[]
  private readStart: number
  private shown: string
  private readonly decode: DecodeIds
  private readonly skip: (id: number) => boolean

  /** `skip` says which ids give no text at all (special ones, ids outside the vocabulary). */
  constructor(promptTokenIds: Uint32Array, decode: DecodeIds, skip: (id: number) => boolean) {
    this.decode = decode
    this.skip = skip
    this.window = []
    for (let i = promptTokenIds.length - 1; i >= 0 && this.window.length < promptTailTokens; i--) {
      if (!skip(promptTokenIds[i]!)) this.window.unshift(promptTokenIds[i]!)
    }
    this.readStart = this.window.length
    this.shown = decode(this.window)
  }

  push(id: number, piece: Piece): void {
    if (this.skip(id)) {
      piece.add(id, "")
      return
    }
    this.window.push(id)
    const text = this.decode(this.window)
    const unfinished = text.endsWith("\ufffd") && this.window.length - this.readStart < heldTokensMax
    if (unfinished || text.length <= this.shown.length) {
      piece.add(id, "")
      return
    }
    piece.add(id, text.slice(this.shown.length))
    this.window = this.window.slice(this.readStart)
    this.readStart = this.window.length
    this.shown = this.decode(this.window)
  }

  finish(piece: Piece): void {
    const text = this.decode(this.window)
    if (text.length > this.shown.length) piece.extendLast(text.slice(this.shown.length))
    this.shown = text
  }
}
