/**
 * How the engine shall choose tokens: effective values, after the request, the model's generation config and the
 * OpenAI defaults were merged (CHAT 1.2). Names and ranges are vLLM's SamplingParams.
 */
import type { Json } from "./conversation"

/** Grammar that the output must follow; exactly one field is set. */
export interface StructuredOutputs {
  readonly json?: Json
  readonly regex?: string
  readonly choice?: readonly string[]
  readonly grammar?: string
  readonly json_object?: boolean
  readonly structural_tag?: Json
  readonly disable_any_whitespace?: boolean
  readonly disable_additional_properties?: boolean
  readonly whitespace_pattern?: string | null
}

/** When a loop in the output ends it (finish reason `repetition`). */
export interface RepetitionDetection {
  readonly max_pattern_size: number
  readonly min_pattern_size: number
  readonly min_count: number
}

/** Effective sampling parameters of one sequence. */
export interface SamplingParams {
  temperature: number
  topP: number
  /** 0 = off. */
  topK: number
  minP: number
  presencePenalty: number
  frequencyPenalty: number
  repetitionPenalty: number
  /** A signed 64-bit integer; null = the engine chooses. */
  seed: bigint | null
  /** Tokens the reply may have, at least 1. Known only after the prompt was tokenized. */
  maxTokens: number
  minTokens: number
  /** Strings that end the reply; looked for by us, never by the engine. */
  stop: readonly string[]
  includeStopStrInOutput: boolean
  /** Ids of the request that end the reply. EOS ids of the model come on top unless `ignoreEos`. */
  stopTokenIds: readonly number[]
  ignoreEos: boolean
  skipSpecialTokens: boolean
  spacesBetweenSpecialTokens: boolean
  /** Alternatives to report for each generated token: null = no logprobs, 0 = the sampled one only, -1 = all. */
  logprobs: number | null
  promptLogprobs: number | null
  logprobTokenIds: readonly number[] | null
  /** Token id → bias, clipped to ±100. */
  logitBias: ReadonlyMap<number, number> | null
  allowedTokenIds: readonly number[] | null
  badWords: readonly string[]
  structuredOutputs: StructuredOutputs | null
  thinkingTokenBudget: number | null
  watermarking: boolean | null
  repetitionDetection: RepetitionDetection | null
  /** `vllm_xargs`, `kv_transfer_params` and `ec_transfer_params` as the client sent them. */
  extraArgs: { readonly [name: string]: Json } | null
}

/** The model's own defaults (generation_config.json), absent where it states none. */
export interface SamplingDefaults {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly repetitionPenalty?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** Caps the reply when the request names no limit (`max_new_tokens`). */
  readonly maxTokens?: number
}
