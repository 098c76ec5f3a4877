/** What every kind of tokenizer file is read into, for `WasmTokenizer` to work with. */
import type { AddedToken } from "./added-tokens"
import type { BpeTables } from "./bpe-core"
import type { Normalizer } from "./normalizer"
import type { PackedTokens } from "./packed-tokens"
import type { PostProcessor } from "./post-processor"
import type { PreTokenizer, PreTokenizerStep } from "./pre-tokenizer"
import type { SentencePieceRules } from "./sentencepiece"

/** How ids become text: GPT-2's bytes, or SentencePiece's rules. */
export type DecoderRules =
  | { readonly kind: "bytes" }
  | { readonly kind: "sentencepiece"; readonly rules: SentencePieceRules }

/** A tokenizer file, read. */
export interface ReadParts {
  readonly parts: TokenizerParts
  /** What the core is built from. */
  readonly tables: BpeTables
  /** What is to be kept to have `parts` again without reading the file; as views of what they use. */
  readonly keep: () => KeptParts
}

/** What parts are made of: plain JSON, and flat arrays, each the bytes of one. Which ones is up to the file's kind. */
export interface KeptParts {
  readonly kind: "tokenizer.json" | "ranks"
  readonly facts: unknown
  readonly arrays: readonly Uint8Array[]
}

/** All that a tokenizer file says but the tables, ready for use. */
export interface TokenizerParts {
  /** Ids are below this; gaps may exist. */
  readonly vocabSize: number
  /** The most bytes that a BPE token stands for. */
  readonly tokenBytesMax: number
  readonly normalizer: Normalizer | null
  readonly preTokenizer: PreTokenizer
  /** The vocabulary lacks bytes: how a text is cut into the pieces in which its offsets are counted. Null: it has all. */
  readonly lossyCuts: readonly PreTokenizerStep[] | null
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
