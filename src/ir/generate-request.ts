/**
 * What an engine needs to generate one sequence. `render` returns the same thing as JSON; `n > 1` is one of these per
 * choice.
 */
import type { HeldTexts } from "./held-texts"
import type { PromptMedia } from "./prompt-media"
import type { SamplingParams } from "./sampling"

/** An adapter that the engine loads by path. */
export interface LoraAdapter {
  /** What requests name as their model. */
  readonly name: string
  /** At least 1, the same for the same adapter always. */
  readonly id: number
  /** Folder or `org/name`, as the engine reads it. */
  readonly path: string
  /** The model that it was made for, as its owner says; null = the served one. */
  readonly baseModelName: string | null
  /** Whether the engine shall expect three-dimensional expert weights. */
  readonly is3dWeight: boolean
}

/** One sequence to generate. The engine owns `promptTokenIds` until the sequence ends and never writes to it. */
export interface GenerateRequest {
  readonly requestId: string
  readonly promptTokenIds: Uint32Array
  readonly sampling: SamplingParams
  /** End-of-sequence ids of the model, the primary one first; under `ignoreEos` they only bound `minTokens`. */
  readonly eosTokenIds: readonly number[]
  /** Lower is earlier; 0 unless the server schedules by priority. */
  readonly priority: number
  readonly cacheSalt: string | null
  readonly sessionId: string | null
  readonly dataParallelRank: number | null
  /** Absent or null = the served model itself. */
  readonly lora?: LoraAdapter | null
  /**
   * Whether the prompt ends behind the model's reasoning: a grammar then applies from the first token. Absent or null =
   * not known: an engine that knows the family's reasoning looks for its end in the output.
   */
  readonly reasoningEnded?: boolean | null
  /** Images, audio, video; absent or null = the prompt is its ids alone. */
  readonly media?: PromptMedia | null
  /** Has what `media` only shows stand-ins of; absent or null = nothing. */
  readonly held?: HeldTexts | null
  /**
   * Whether nobody said how long the reply may be while the engine's own prompt is longer than `promptTokenIds`, so that
   * `sampling.maxTokens` is a bound and no wish. Absent = false.
   */
  readonly isOpenEnded?: boolean
  /** W3C trace headers of the request, forwarded as they came. */
  readonly traceHeaders: { readonly [name: string]: string } | null
}
