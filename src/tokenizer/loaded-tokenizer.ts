import type { Result } from "../result"
import type { CopyableDetokenizer } from "./detokenizer"
import type { TextStream } from "./text-stream"
import type { EncodeFailure, EncodeOptions, OffsetUnit, TextSegment, Tokenizer, TokensWithOffsets } from "./tokenizer"

/**
 * What `load` gives: the Tokenizer plug with all its parts, and the calls that only users of the tokenizer alone need.
 * Without options special tokens are put around a text and left out of decoded text, as HF tokenizers do. Calls are
 * synchronous; a thread needs a tokenizer of its own. Token ids that are given out belong to the caller.
 */
export interface LoadedTokenizer extends Tokenizer {
  encode(text: string, options?: EncodeOptions): Result<Uint32Array, EncodeFailure>
  /**
   * As `encode`, into the caller's array from its start: how many ids there are. More than fit: the array holds the
   * first ones, and the count says what it would take.
   */
  encodeInto(text: string, out: Uint32Array, options?: EncodeOptions): Result<number, EncodeFailure>
  /** As `encode`, for many texts; the first failure ends it. */
  encodeBatch(texts: readonly string[], options?: EncodeOptions): Result<Uint32Array[], EncodeFailure>
  /** As `encode` of all segments' text in one, except that nothing in a `text` segment becomes a special token. */
  encodeSegments(segments: readonly TextSegment[], options?: EncodeOptions): Result<Uint32Array, EncodeFailure>
  /** As `encode`, with where in the text each id came from. */
  encodeWithOffsets(text: string, unit: OffsetUnit, options?: EncodeOptions): Result<TokensWithOffsets, EncodeFailure>
  /** The ids' text, without special tokens unless told otherwise. Ids outside the vocabulary give nothing. */
  decode(tokenIds: Uint32Array, skipSpecialTokens?: boolean): string
  /** Text as its ids come. The prompt's ids make the first token's leading space right. */
  stream(skipSpecialTokens?: boolean, promptTokenIds?: Uint32Array): TextStream
  /** As `stream`, onto a `Piece`, which says which id gave which part of the text. */
  detokenizer(promptTokenIds: Uint32Array, skipSpecialTokens: boolean): CopyableDetokenizer
}
