/**
 * The Endpoint plug point: one generation API. It lowers a checked body to the intermediate representation on the way
 * down, and gives two views of the same item calls on the way up: a stream of frames, or one object. Contract suite:
 * test/api/contract.ts.
 */
import type { TSchema } from "@sinclair/typebox"
import type { Config } from "../config"
import type { WriteDelta } from "../http/delta-frame"
import type { MediaKind, PromptInput } from "../ir/conversation"
import type { LoraAdapter } from "../ir/generate-request"
import type { ItemSink } from "../ir/item-event"
import type { PromptMedia } from "../ir/prompt-media"
import type { SamplingDefaults, SamplingParams } from "../ir/sampling"
import type { Prepared, Truncation } from "../prompt/prepare"
import type { Result } from "../result"
import type { ApiError } from "./errors"
import type { Fold } from "./fold"
import type { BodyCheck } from "./schema"

/** What lowering looks at besides the body. */
export interface LowerContext {
  readonly config: Config
  readonly model: ModelFacts
  readonly headers: Headers
  /** Why the road that the request takes carries no media, in words for the client; null = it does. */
  readonly mediaRefusal: string | null
  /** For ids that the client does not name: 32 hex digits. */
  readonly newId: () => string
}

/** What is known of the served model when a request comes. */
export interface ModelFacts {
  /** Served names; the first is echoed. */
  readonly names: readonly string[]
  /** Adapters that requests may name as their model. */
  readonly adapters: readonly LoraAdapter[]
  /** Absolute folder, or the built-in profile's name. */
  readonly root: string
  /** The window M. */
  readonly contextTokensMax: number
  readonly samplingDefaults: SamplingDefaults
  readonly vocabSize: number
  readonly hasChatTemplate: boolean
  /** Whether conversations become Harmony messages, which no chat template writes. */
  readonly writesHarmony: boolean
  /** Whether the chosen parser finds reasoning, and calls. */
  readonly parsesReasoning: boolean
  readonly parsesCalls: boolean
  /** Media that the model takes; empty = text alone. Whether this server can bring them to it is another question. */
  readonly mediaKinds: readonly MediaKind[]
  /** A token as text, as it reads on its own (U+FFFD for bytes that are no characters). */
  readonly tokenText: (id: number) => string
  /** Ids as text, special tokens spelled out. */
  readonly decode: (tokenIds: Uint32Array) => string
}

/** A request in terms that no API shows through, with `ask`: what its reply must know. */
export interface Lowered<Ask> {
  /** Without prefix of choice or prompt. */
  readonly id: string
  /** One; several for completions with a list. */
  readonly prompts: readonly PromptInput[]
  /** Of the one prompt; absent or null = its ids are all. */
  readonly media?: PromptMedia | null
  readonly choicesPerPrompt: number
  /** `maxTokens` is still open: see `replyTokensMax`. */
  readonly sampling: SamplingParams
  /** What the client asked for; null = whatever fits. */
  readonly replyTokensMax: number | null
  /** Keep only that many prompt tokens (-1 = as many as fit with one token of reply); null = refuse long prompts. */
  readonly truncation: Truncation | null
  /** `none` for completions: text only. */
  readonly parsing: { readonly isChat: boolean; readonly calls: boolean }
  readonly includeReasoning: boolean
  readonly parallelToolCalls: boolean
  readonly wantsSteps: boolean
  readonly intervalTokens: number
  readonly stream: boolean
  readonly priority: number
  readonly cacheSalt: string | null
  readonly sessionId: string | null
  /** What the client knows of a prompt of ids: whether the reasoning lies behind it. Absent or null = not known. */
  readonly reasoningEnded?: boolean | null
  readonly ask: Ask
}

/** A lowered request with its prompts made: what both views of the reply are given. */
export interface Exchange<Ask> {
  readonly id: string
  /** Unix seconds. */
  readonly createdAt: number
  /** The name that replies carry. */
  readonly model: string
  readonly ask: Ask
  readonly prompts: readonly Prepared[]
  readonly media: PromptMedia | null
  /** Whether the length of the reply is left to whoever generates: see `GenerateRequest`. */
  readonly isOpenEnded: boolean
  readonly choicesPerPrompt: number
  /** Effective values, `maxTokens` of the first prompt. */
  readonly sampling: SamplingParams
  /** Whether its constraint applies from the first token; null = the engine finds out. */
  readonly reasoningEnded: boolean | null
  readonly facts: ModelFacts
  readonly config: Config
}

/** The streaming view of one reply. Writes whole frames. */
export interface StreamView {
  /** Before any token. */
  begin(): void
  /** The sink of choice `index`; it watches `fold`, which gets every call first. */
  choice(index: number, fold: Fold): ItemSink
  /** After all choices ended or one failed; `folds` in choice order. */
  end(folds: readonly Fold[]): void
}

/** One generation API. */
export interface Endpoint<Body, Ask> {
  /** Route, such as `/v1/chat/completions`. */
  readonly path: string
  /** For the OpenAPI page. */
  readonly summary: string
  readonly check: BodyCheck<TSchema & { readonly static: Body }>
  lower(body: Body, context: LowerContext): Result<Lowered<Ask>, ApiError>
  /** Frames that differ in one text go to `writeDelta` where it is given: it is the fast road to a socket. */
  stream(exchange: Exchange<Ask>, write: (frame: string) => void, writeDelta?: WriteDelta): StreamView
  present(exchange: Exchange<Ask>, folds: readonly Fold[]): object
}
