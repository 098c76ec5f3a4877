/**
 * The way up, as calls: what one choice generated, item by item. `generate/items` makes the calls, `api/fold` keeps
 * their text, and every API is a view of them. At most one item is open at any time.
 */
import type { EngineError, FinishReason, LogprobRows } from "./engine"

/** What an item is. */
export type ItemKind = "reasoning" | "text" | "call"

/** An item as it opens. `callId` and `name` are empty strings unless it is a call. */
export interface ItemOpening {
  readonly kind: ItemKind
  /** 0, 1, 2 … within the choice. */
  readonly index: number
  /** 32 hex digits; APIs put their own prefix before it. */
  readonly id: string
  readonly callId: string
  readonly name: string
}

/** How a choice ended, with its token counts. */
export interface Outcome {
  readonly finish: FinishReason
  /** The stop string or the stop token id that matched; null for EOS and length. */
  readonly stopReason: string | number | null
  readonly usage: ChoiceUsage
  readonly timing: ChoiceTiming
  readonly kvTransferParams: unknown
}

/** Token counts of one choice. `outputTokens` includes the stop token. */
export interface ChoiceUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
}

/** Seconds on one monotonic clock; -1 where a moment is unknown. */
export interface ChoiceTiming {
  readonly queuedAt: number
  readonly scheduledAt: number
  readonly firstTokenAt: number
  readonly lastTokenAt: number
}

/**
 * Receives one choice. Grammar: `(open delta* close)* (done | fail)`, with `step` between any two calls. The last item
 * is closed by `done` or `fail`'s caller before it, with `cut` true when the length limit cut it.
 */
export interface ItemSink {
  /** Once, before anything else, unless it is null: logprobs of the prompt (rows for prompt tokens 1…). */
  promptLogprobs(rows: LogprobRows): void
  open(item: ItemOpening): void
  /** A piece of the open item's text, never empty. */
  delta(text: string): void
  /** Ends the open item. `cut`: the reply limit (or an abort, or a failure) ended it rather than the model. */
  close(cut: boolean): void
  /**
   * The end of one engine step: its new token ids `[start, end)` and their logprobs. Called only when the request
   * wants ids or logprobs; arrays are valid during the call only.
   */
  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void
  done(outcome: Outcome): void
  /** The choice broke; `usage` is null when the engine gave no finish. */
  fail(error: EngineError, usage: ChoiceUsage | null): void
}
