import type { Piece } from "../ir/piece"

/**
 * Turns the ids of one sequence into text, one at a time. A token whose bytes end inside a character adds empty text;
 * the token that completes the character gets all of it.
 */
export interface Detokenizer {
  /** Hot (bench/fold.ts): decodes one id onto the end of `piece`. */
  push(id: number, piece: Piece): void
  /** The sequence ended: bytes of an unfinished character come out as U+FFFD, owned by the last token. */
  finish(piece: Piece): void
}

/** A detokenizer whose state is a few bytes. */
export interface CopyableDetokenizer extends Detokenizer {
  /** Another one in the same state, which goes on by itself: for a sequence that forks. */
  copy(): CopyableDetokenizer
}
