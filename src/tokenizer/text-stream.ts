import { Piece } from "../ir/piece"
import type { CopyableDetokenizer } from "./detokenizer"

/** Turns ids into text as they come, never showing half a character. One a sequence; ask the tokenizer for it. */
export class TextStream {
  private readonly detokenizer: CopyableDetokenizer
  private readonly piece = new Piece()

  constructor(detokenizer: CopyableDetokenizer) {
    this.detokenizer = detokenizer
  }

  /** The text that one more id adds; "" while it only begins a character. */
  push(id: number): string {
    this.piece.clear()
    this.detokenizer.push(id, this.piece)
    return this.piece.text
  }

  /** The end: what is left of an unfinished character, as U+FFFD. */
  finish(): string {
    this.piece.clear()
    this.detokenizer.finish(this.piece)
    return this.piece.text
  }

  /** Another one in the same state. */
  copy(): TextStream {
    return new TextStream(this.detokenizer.copy())
  }
}
