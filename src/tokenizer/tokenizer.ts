/**
 * The Tokenizer plug point: text ↔ token ids for one vocabulary. Contract suite: test/tokenizer/contract.ts.
 * Implementations are synchronous and hold no state between calls, except caches with a byte limit.
 */
import type { Result } from "../result"
import type { Detokenizer } from "./detokenizer"

/** How to encode. */
export interface EncodeOptions {
  /** Put BOS and the like where the model's post-processor says. Default: true, as in HF tokenizers. */
  readonly addSpecialTokens?: boolean
  /** The caller refuses more ids than this: encoding may stop as soon as there are more. Default: never. */
  readonly tokensMax?: number
  /**
   * Keeps at most so many ids, those of the post-processor included, and drops the rest from the text's left or right
   * end. Source: HF tokenizers' truncation with a stride of 0. Default: never.
   */
  readonly truncate?: { readonly tokensMax: number; readonly side: "left" | "right" }
}

/** What offsets count: code points (the reference's, and the wire's), or UTF-16 units (JavaScript's). */
export type OffsetUnit = "code_point" | "utf16"

/** Ids with where each came from: `[offsets[2 * i], offsets[2 * i + 1])` of the text. Ids put around it: `[0, 0)`. */
export interface TokensWithOffsets {
  readonly tokenIds: Uint32Array
  readonly offsets: Uint32Array
}

/** A stretch of a prompt, and who wrote it. */
export interface TextSegment {
  readonly text: string
  /**
   * `token`: special tokens that it spells out count. `text`: none does, not even one that only begins in it. `plain`:
   * nor do added tokens that are not special.
   */
  readonly special: "token" | "text" | "plain"
}

/** A vocabulary that cannot be used; the message names what in it is not supported. */
export interface TokenizerFailure {
  readonly kind: "tokenizer_unusable"
  readonly message: string
}

/** A text that this tokenizer will not take. */
export interface EncodeFailure {
  readonly kind: "encode_failed"
  readonly message: string
}

/** Text ↔ token ids. */
export interface Tokenizer {
  /** Ids are below this. Gaps may exist. */
  readonly vocabSize: number
  /** The most UTF-8 bytes one token can stand for: bounds a text's tokens from below. */
  readonly tokenBytesMax: number
  /** Which part the text belongs to by the reference: added tokens spelled out in the text become their ids. */
  encode(text: string, options: EncodeOptions): Result<Uint32Array, EncodeFailure>
  /**
   * As `encode` of all segments' text in one, except that nothing in a `text` segment becomes a special token,
   * and nothing in a `plain` one any added token. Absent: this plug cannot keep them apart.
   */
  encodeSegments?(segments: readonly TextSegment[], options: EncodeOptions): Result<Uint32Array, EncodeFailure>
  /** As `encode`, with offsets. Absent: this plug has none. */
  encodeWithOffsets?(text: string, unit: OffsetUnit, options: EncodeOptions): Result<TokensWithOffsets, EncodeFailure>
  /** The ids' text. Ids outside the vocabulary give nothing. */
  decode(tokenIds: Uint32Array, skipSpecialTokens: boolean): string
  /** The token's id, or -1. Takes the vocabulary's own spelling (`Ġhello`). */
  tokenToId(token: string): number
  /** The vocabulary's own spelling, or null for an unknown id. */
  idToToken(id: number): string | null
  /** True for tokens that `skip_special_tokens` drops. */
  isSpecial(id: number): boolean
  /** A streaming decoder for one sequence, primed by the prompt so that the first token's leading space is right. */
  detokenizer(promptTokenIds: Uint32Array, skipSpecialTokens: boolean): Detokenizer
}
