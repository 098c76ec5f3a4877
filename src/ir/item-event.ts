/**
 * The way up, as calls: what one choice generated, item by item. `generate/items` makes the calls, `api/fold` keeps
 * their text, and every API is a view of them. At most one item is open at any time.
 */
import type { EngineError, FinishReason, LogprobRows } from "./engine"

/** What an item is. */
export type ItemKind = "reasoning" | "text" | "call"

/**
 * An item as it opens. `callId` and `name` are empty strings unless it is a call. `joiner` stands between its text and
 * that of the items of its kind before it, where an API shows them as one text; absent = nothing does.
 */
export interface ItemOpening {
  readonly kind: ItemKind
  /** 0, 1, 2 … within the choice. */
  readonly index: number
  /** 32 hex digits; APIs put their own prefix before it. */
  readonly id: string
  readonly callId: string
  readonly name: string
  readonly joiner?: string
}

/** How a choice ended, with its token counts. */
export interface Outcome {
  readonly finish: FinishReason
  /** The stop string or the stop token id that matched; null for EOS and length. */
  readonly stopReason: string | number | null
  readonly usage: ChoiceUsage
  readonly timing: ChoiceTiming
  readonly kvTransferParams: unknown
  readonly ecTransferParams: unknown
}

/** Token counts of one choice. `outputTokens` includes the stop token. */
export interface ChoiceUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
}

/** Seconds on the engine's monotonic clock, which only tells times between them; -1 where a moment is unknown. */
export interface ChoiceTiming {
  readonly queuedAt: number
  readonly scheduledAt: number
  readonly firstTokenAt: number
  readonly lastTokenAt: number
  /** When the first token had come here, on the server's own clock. */
  readonly firstTokenCameAt: number
}

/**
 * Receives one choice. Grammar: `promptLogprobs? ((open delta* close)* | step | flush)* (done | fail)`; `step` and
 * `flush` may stand between any two calls. The last item is closed before `done` or `fail`.
 */
export interface ItemSink {
  /** At most once, before anything else: logprobs of the prompt (rows for prompt tokens 1…). */
  promptLogprobs(rows: LogprobRows): void
  open(item: ItemOpening): void
  /** A piece of the open item's text, never empty. */
  delta(text: string): void
  /** Ends the open item. `cut`: the model did not end it: the reply limit did, or a call stops half-way. */
  close(cut: boolean): void
  /**
   * New token ids `[start, end)` of one engine step, after the item calls that they caused, with their logprobs. Called
   * only when the request wants ids or logprobs; arrays are valid during the call only.
   */
  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void
  /** What was called since the last flush belongs together: views that gather write now. `done` and `fail` flush too. */
  flush(): void
  done(outcome: Outcome): void
  /** The choice broke; `usage` is null when the engine gave no finish. */
  fail(error: EngineError, usage: ChoiceUsage | null): void
}
