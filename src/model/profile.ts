/**
 * All that is known about a model before a request comes: where its vocabulary is, how its prompts look, when it stops.
 * Made by `model/files` from a Hugging Face folder, or by `model/built-in` when no model is given.
 */
import type { SamplingDefaults } from "../ir/sampling"
import type { SettledTokenizerMode } from "../ir/tokenizer-mode"

/** A vocabulary in a file, whose name tells its format. */
export interface VocabularyFile {
  readonly kind: "file"
  readonly path: string
  /** In `mistral` mode the file that tells which version the model's prompts are written in; else null. */
  readonly versionPath: string | null
  /** tokenizer_config.json, parsed ({} when absent). */
  readonly tokenizerConfig: unknown
}

/** Where the vocabulary comes from. */
export type TokenizerSource =
  | VocabularyFile
  /**
   * o200k_base ranks of the `tiktoken` package with tokens beside them (spelling → id): special ones, which
   * `skip_special_tokens` drops, and added ones, which it keeps.
   */
  | {
      readonly kind: "o200k"
      readonly specialTokens: { readonly [token: string]: number }
      readonly addedTokens: { readonly [token: string]: number }
    }
  /** The same ranks with the tokens of gpt-oss, for its folders that hold no vocabulary. */
  | { readonly kind: "o200k_harmony" }

/** A model, read and checked. */
export interface ModelProfile {
  /** Served when no `--served-model-name` is given: the folder or `org/name` as the user wrote it. */
  readonly name: string
  /** Absolute folder, or the built-in profile's name. */
  readonly root: string
  readonly tokenizer: TokenizerSource
  /** How prompts are made where neither the model nor its parser means Harmony. */
  readonly tokenizerMode: SettledTokenizerMode
  /** Template texts by name; `default` first, `tool_use` where the model has one. Empty = no chat. */
  readonly chatTemplates: { readonly [name: string]: string }
  /** Template variables: bos_token, eos_token, pad_token … as strings. */
  readonly specialTokens: { readonly [name: string]: string }
  /** The tokenizer's own eos token, spelled out; null when it names none. */
  readonly eosToken: string | null
  /** Those of config.json, then of generation_config.json, without repeats. `eosToken` comes before them (server.ts). */
  readonly eosTokenIds: readonly number[]
  /** The window M in tokens. */
  readonly contextTokensMax: number
  readonly samplingDefaults: SamplingDefaults
  /** `model_type` and `architectures` of config.json, for choosing parsers; "" and [] when absent. */
  readonly modelType: string
  readonly architectures: readonly string[]
  /** Whether config.json names experts: several engines of such a model step together. */
  readonly isMixtureOfExperts: boolean
}
