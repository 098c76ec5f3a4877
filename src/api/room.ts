/**
 * What the API is given by the composition root: one object for the life of the server. Nothing in `api/` reaches for
 * globals; clocks, ids, metrics and the log come from here.
 */
import type { Config } from "../config"
import type { GenerateRoom, ReadingOptions } from "../generate/generate"
import type { Admission } from "../http/admission"
import type { FinishReason } from "../ir/engine"
import type { ChoiceTiming, ChoiceUsage } from "../ir/item-event"
import type { Preparer } from "../prompt/prepare"
import type { ModelFacts } from "./endpoint"

/** A parser factory, as `generate` wants it. */
export type ParserChoice = ReadingOptions["parser"]

/** One choice that ended, for the metrics. */
export interface ChoiceRecord {
  /** `abort` when the client went away, `error` when the choice failed; null = the engine would not have it. */
  readonly finish: FinishReason | null
  readonly usage: ChoiceUsage
  readonly timing: ChoiceTiming
}

/** Receives what is counted. Written by `api/serve` only. */
export interface RequestObserver {
  /** A request reached the engine: its choices and the tokens each may have. */
  started(choices: number, replyTokensMax: number): void
  /** New tokens, as they come; prompt tokens once, with the first of a choice. */
  tokens(promptTokens: number, outputTokens: number): void
  /** A choice ended; `startedAt` and `endedAt` are seconds on `ServeRoom.generate.now`'s clock. */
  choiceEnded(record: ChoiceRecord, startedAt: number, endedAt: number): void
}

/** Everything a request needs. */
export interface ServeRoom {
  readonly config: Config
  readonly facts: ModelFacts
  readonly preparer: Preparer
  readonly generate: GenerateRoom
  /** For conversations, and for completions, which have no structure. */
  readonly chatParser: ParserChoice
  readonly textParser: ParserChoice
  /** Ids that end a reply; the first is the primary one. */
  readonly eosTokenIds: readonly number[]
  readonly admission: Admission
  readonly observer: RequestObserver
  readonly log: (line: string) => void
  /** 32 hex digits. */
  readonly newId: () => string
  /** Unix seconds. */
  readonly unixTime: () => number
  /** Requests that run, so that a shutdown can end them. */
  readonly running: Set<RunningRequest>
}

/** A request that a shutdown may cut short. */
export interface RunningRequest {
  /** Ends it with an error that the client sees. */
  shutDown(): void
}
