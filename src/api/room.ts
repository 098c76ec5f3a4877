/**
 * What the API is given by the composition root: one object for the life of the server. Nothing in `api/` reaches for
 * globals; clocks, ids, metrics and the log come from here.
 */
import type { Config } from "../config"
import type { GenerateRoom, ReadingOptions } from "../generate/generate"
import type { Admission } from "../http/admission"
import type { BodyBudget } from "../http/body-budget"
import type { Metrics } from "../http/metrics"
import type { Prepared, Preparer } from "../prompt/prepare"
import type { LowerContext, ModelFacts } from "./endpoint"
import type { VocabularyView } from "./tokenize"

/** A parser factory, as `generate` wants it. */
export type ParserChoice = ReadingOptions["parser"]

/** Receives what is counted. Written by `api/serve` only. */
export type RequestObserver = Pick<Metrics, "started" | "tokens" | "choiceEnded">

/** What takes a request from its body to token ids: all that a role without an engine has. */
export interface PromptRoom {
  readonly config: Config
  readonly facts: ModelFacts
  readonly preparer: Preparer
  /** Why what is generated or counted here carries no media; null = the engine takes them. Rendering always carries them. */
  readonly mediaRefusal: string | null
  /** For conversations, and for completions, which have no structure. */
  readonly chatParser: ParserChoice
  readonly textParser: ParserChoice
  /** Ids that end a reply; the first is the primary one. */
  readonly eosTokenIds: readonly number[]
  readonly log: (line: string) => void
  /** 32 hex digits. */
  readonly newId: () => string
  /** Unix seconds. */
  readonly unixTime: () => number
}

/** What rendering for an engine elsewhere needs on top. */
export interface RenderingRoom extends PromptRoom {
  /**
   * Where each id came from, as pairs of characters of the text; null where that cannot be told: the ids are not what
   * the text alone encodes to, or the vocabulary has no offsets. `side`: which end of the text was truncated.
   */
  readonly tokenOffsets: (prepared: Prepared, addSpecialTokens: boolean, side: "left" | "right") => number[][] | null
}

/** Everything a request needs that is answered here. */
export interface ServeRoom extends PromptRoom {
  readonly generate: GenerateRoom
  readonly admission: Admission
  readonly observer: RequestObserver
  /** Requests that run, so that a shutdown can end them. */
  readonly running: Set<RunningRequest>
}

/** What endpoints lower a request with these headers against. */
export function lowerContext(room: PromptRoom, headers: Headers): LowerContext {
  return { config: room.config, model: room.facts, headers, mediaRefusal: room.mediaRefusal, newId: room.newId }
}

/** The same for what is only rendered, or was generated elsewhere: no engine of ours has to take media. */
export function renderContext(room: PromptRoom, headers: Headers): LowerContext {
  return { ...lowerContext(room, headers), mediaRefusal: null }
}

/** A request that a shutdown, or its client by its id, may cut short. */
export interface RunningRequest {
  /** As its reply has it. */
  readonly id: string
  /** Ends its choices with finish reason `abort`. */
  abort(): void
  /** Ends it with an error that the client sees. */
  shutDown(): void
}

/** What is around every route, whatever the role. */
export interface GateRoom {
  readonly config: Config
  readonly log: (line: string) => void
  readonly newId: () => string
  /** Seconds on a monotonic clock. */
  readonly now: () => number
  /** Room for the bodies of all requests. */
  readonly bodies: BodyBudget
  /** Sent in `x-sluice-engine`; `none` in the role that has no engine. */
  readonly engineName: string
  readonly observeHttp: (method: string, handler: string, status: number, seconds: number) => void
  /** Whether an `Authorization` header carries one of the server's keys; true when there are none. */
  readonly hasKey: (authorization: string | null) => boolean
  /** CORS headers of a reply, or the whole answer to a preflight. */
  readonly corsHeaders: (request: Request) => { readonly [name: string]: string }
  readonly preflight: (request: Request) => Response | null
  /** True once the server takes no new work. */
  readonly isDraining: () => boolean
}

/** What the routes about the server itself need. */
export interface StateRoom extends Pick<PromptRoom, "facts" | "newId" | "unixTime"> {
  readonly isHealthy: () => boolean
  readonly admission: Admission
  /** Prometheus text. */
  readonly metricsText: () => string
}

/** What all roles have: the way from a body to token ids, and from token ids to an answer. */
export interface RenderRoom extends RenderingRoom, GateRoom, StateRoom {
  readonly vocabulary: VocabularyView
  readonly tokenizer: GenerateRoom["tokenizer"]
}

/** The full role's. */
export interface AppRoom extends ServeRoom, RenderRoom {}
