/**
 * The Engine plug point: who computes tokens. The interface lives in the waist so that `generate` never imports
 * `engine/`; only the roots choose one. Contract suite: test/engine/contract.ts.
 */
import type { Result } from "../result"
import type { Json } from "./conversation"
import type { GenerateRequest } from "./generate-request"

/** Why a sequence ended; the integers are the engine protocol's (ENGINE_PROTOCOL). -1 = still running. */
export const Finish = { none: -1, stop: 0, length: 1, abort: 2, error: 3, repetition: 4 } as const
/** One of the values of `Finish`. */
export type Finish = (typeof Finish)[keyof typeof Finish]

/** The API's word for a finish code. */
export type FinishReason = "stop" | "length" | "abort" | "error" | "repetition"
/** All of them, in the order of their codes. */
export const finishReasons: readonly FinishReason[] = ["stop", "length", "abort", "error", "repetition"]

/** Turns a finish code other than `none` into its name. */
export function finishReason(finish: Finish): FinishReason {
  return finishReasons[finish] ?? "error"
}

const finishCodes: ReadonlyMap<unknown, Finish> = new Map<unknown, Finish>([
  ["stop", Finish.stop],
  ["length", Finish.length],
  ["abort", Finish.abort],
  ["error", Finish.error],
  ["repetition", Finish.repetition],
])

/** The code of a name as it came from outside; null = no sequence ends with that. */
export function finishCode(name: unknown): Finish | null {
  return finishCodes.get(name) ?? null
}

/** How an engine can fail a request. `message` is for our log; clients get a fixed text (api/errors.ts). */
export type EngineError =
  /** The engine refuses the request itself (a bad grammar, say): the client's fault, its words are shown. */
  | { readonly kind: "engine_validation"; readonly message: string; readonly param: string | null }
  /** This server is being stopped and ends what runs. */
  | { readonly kind: "shutting_down"; readonly message: string }
  /** Overloaded, paused or restarting: worth another try. */
  | { readonly kind: "engine_retryable"; readonly message: string }
  /** The engine is gone; every running request fails and /health is 503. */
  | { readonly kind: "engine_dead"; readonly message: string }
  /** The model failed to produce a reply (an output with finish `error`). */
  | { readonly kind: "engine_failed"; readonly message: string }
  /** The connection broke, or the stream ended without a finish. */
  | { readonly kind: "engine_disconnected"; readonly message: string }

/**
 * Logprobs of the tokens in an output: row i belongs to the i-th new token. Each row holds `width` entries, the
 * sampled token first, then the alternatives by rank; unused entries have id -1. The engine owns the arrays.
 */
export interface LogprobRows {
  readonly width: number
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
  /** Vocabulary rank of the sampled token of each row, 1 = most likely. */
  readonly ranks: Int32Array
}

/**
 * What one step gave one sequence. The engine reuses the object and its arrays: they are valid only during the call.
 * New tokens are `tokenIds[start, end)`.
 */
export interface EngineOutput {
  tokenIds: Uint32Array
  start: number
  end: number
  finish: Finish
  /** The stop token that ended the sequence, as the engine reports it: -1 for EOS, length or none. */
  stopTokenId: number
  logprobs: LogprobRows | null
  /** Rows for prompt tokens 1…; only on the output that carries them. */
  promptLogprobs: LogprobRows | null
  /** Length of the prompt where the engine made it longer than what it was given; -1 = it did not, or is not known. */
  promptTokens: number
  /** Prompt tokens found in the prefix cache, or written to it; -1 while unknown. */
  cachedTokens: number
  cacheWriteTokens: number
  /** When the step ended; seconds on the engine's clock, as the two below; -1 = the receiver may take its own. */
  at: number
  /** -1 while unknown, and where `at` is. An engine that puts a sequence back may schedule it again. */
  queuedAt: number
  scheduledAt: number
  /** What whoever continues the request elsewhere must be told; null = nothing. */
  kvTransferParams: Json
  ecTransferParams: Json
}

/** An output that says nothing yet, for an engine to reuse; it owns `tokenIds` from now on. */
export function emptyOutput(tokenIds: Uint32Array): EngineOutput {
  return {
    tokenIds,
    start: 0,
    end: 0,
    finish: Finish.none,
    stopTokenId: -1,
    logprobs: null,
    promptLogprobs: null,
    promptTokens: -1,
    cachedTokens: -1,
    cacheWriteTokens: -1,
    at: -1,
    queuedAt: -1,
    scheduledAt: -1,
    kvTransferParams: null,
    ecTransferParams: null,
  }
}

/** Who gets the outputs of one sequence. After `fail`, or an output that finishes, neither is called again. */
export interface EngineReceiver {
  /** Hot: one step. Must not keep the object. */
  output(output: EngineOutput): void
  /** `finished` = the engine itself ended the sequence with an error, so that all its tokens are here. Absent = it broke. */
  fail(error: EngineError, finished?: boolean): void
}

/** What an engine has counted while this server ran. Tokens, unless it says otherwise. */
export interface EngineCounters {
  /** Sequences put back for want of memory. */
  preemptions: number
  /** Looked up in the prefix cache, and found there. */
  prefixCacheQueries: number
  prefixCacheHits: number
  /** The same in a cache outside the engine (a KV connector). */
  externalCacheQueries: number
  externalCacheHits: number
  /** Speculative decoding: drafts made, their tokens, and those that were kept. */
  drafts: number
  draftTokens: number
  acceptedTokens: number
  acceptedTokensPerPosition: number[]
}

/** One engine's own figures. */
export interface EngineReport {
  readonly rank: number
  readonly running: number
  readonly waiting: number
  /** 0–1. */
  readonly kvCacheUsage: number
  readonly counters: Readonly<EngineCounters>
  /** Its KV cache: tokens of a block, and blocks; null while unknown. */
  readonly cacheBlockTokens: number | null
  readonly cacheBlocks: number | null
  /** Adapters that requests use now, by name; null when the engine takes none. */
  readonly lora: {
    readonly running: readonly string[]
    readonly waiting: readonly string[]
    readonly max: number
  } | null
}

/** Gauges for /health and /metrics. */
export interface EngineStatus {
  /** False once the engine is dead; /health then answers 503. */
  readonly alive: boolean
  /** False while a new request would be refused (starting, restarting). */
  readonly ready: boolean
  readonly running: number
  readonly waiting: number
  /** 0–1; the mean of several engines. */
  readonly kvCacheUsage: number
  /** Engines that report for themselves; empty where the gauges above are all there is. */
  readonly engines: readonly EngineReport[]
}

/** A running sequence, to be aborted. */
export interface EngineSequence {
  /** Ends the sequence without another call to its receiver. Does nothing when it has ended. */
  abort(): void
}

/** Computes tokens for many sequences at once. */
export interface Engine {
  /** `simulator`, `vllm`, `http`: sent in `x-sluice-engine`. */
  readonly name: string
  /** Starts a sequence, or says why not. The receiver is never called before this returns. */
  submit(request: GenerateRequest, receiver: EngineReceiver): Result<EngineSequence, EngineError>
  status(): EngineStatus
  /** Ends all sequences and frees what it holds. */
  close(): Promise<void>
}
