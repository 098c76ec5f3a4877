import type { GenerateRequest } from "../../ir/generate-request"
import type { MediaFeature } from "./media-features"

/** What the engine's configuration bounds a request by. */
export interface EngineLimits {
  /** `max_model_len` of the engine: prompt and reply together, in tokens. */
  readonly contextTokensMax: number
  /** null = unknown; ids are then only checked to be none that a vocabulary could not have. */
  readonly vocabSize: number | null
  /** Whether the engine takes `lora`. */
  readonly supportsLora: boolean
  /** Which back end compiles grammars: `xgrammar` unless the engine was started with another. */
  readonly structuredOutputsBackend: string
}

/** One sequence as the engine gets it: the request, and what only this side of the engine link knows. */
export interface AddRequest {
  readonly request: GenerateRequest
  /** Made by `RequestIds`; unique among live sequences. */
  readonly engineRequestId: string
  /** Unix seconds. */
  readonly arrivalTime: number
  /** Which of the addresses in INIT the outputs go to. */
  readonly clientIndex: number
  /** The data-parallel wave that was heard of last; 0 for one engine. */
  readonly currentWave: number
  /** `badWordTokenIds` of the request's words. */
  readonly badWordTokenIds: readonly (readonly number[])[]
  /** The request's media, read and checked by `readFeatures`; absent or empty = none. */
  readonly mediaFeatures?: readonly MediaFeature[]
}
