/** What every kind of tokenizer file is read into, for `WasmTokenizer` to work with. */
import type { AddedToken } from "./added-tokens"
import type { BpeTables, PackedTokens } from "./bpe-core"
import type { Normalizer } from "./normalizer"
import type { PostProcessor } from "./post-processor"
import type { PreTokenizer } from "./pre-tokenizer"
import type { SentencePieceRules } from "./sentencepiece"

/** How ids become text: GPT-2's bytes, or SentencePiece's rules. */
export type DecoderRules =
  | { readonly kind: "bytes" }
  | { readonly kind: "sentencepiece"; readonly rules: SentencePieceRules }

/** All that a tokenizer file says, ready for use. */
export interface TokenizerParts {
  /** Ids are below this; gaps may exist. */
  readonly vocabSize: number
  readonly tables: BpeTables
  /** The BPE tokens' bytes, as in `tables`. */
  readonly packedTokens: PackedTokens
  readonly normalizer: Normalizer | null
  readonly preTokenizer: PreTokenizer
  readonly addedTokens: readonly AddedToken[]
  readonly postProcessor: PostProcessor
  readonly decoder: DecoderRules
  /** By id: what a token decodes to, added tokens included; for SentencePiece's rules, its spelling. */
  readonly decodedTokens: PackedTokens
  /** The vocabulary's own spelling of an id, added tokens included; null for gaps and beyond. */
  readonly spellingOf: (id: number) => string | null
  /** The id of a spelling, or -1. */
  readonly idOf: (spelling: string) => number
}
