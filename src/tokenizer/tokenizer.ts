/**
 * The Tokenizer plug point: text ↔ token ids for one vocabulary. Contract suite: test/tokenizer/contract.ts.
 * Implementations are synchronous and hold no state between calls, except caches with a byte limit.
 */
import type { Result } from "../result"
import type { Detokenizer } from "./detokenizer"

/** How to encode. */
export interface EncodeOptions {
  /** Put BOS and the like where the model's post-processor says. */
  readonly addSpecialTokens: boolean
  /** The caller refuses more ids than this: encoding may stop as soon as there are more. Default: never. */
  readonly tokensMax?: number
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
