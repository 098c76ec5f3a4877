/**
 * What the server is told at start, after flags, environment and config file were merged (`main.ts`, `flags.ts`).
 * Everything below gets its part of this as an argument; nothing else reads argv or the environment.
 */
import type { Json } from "./ir/conversation"

/** Parts of the Responses API that are refused unless the operator turns them on. */
export const responsesExtensions = ["custom_tools", "namespace_tools", "allowed_tools", "logprobs"] as const
/** One of them. */
export type ResponsesExtension = (typeof responsesExtensions)[number]

/** The whole configuration of one process. Units stand at the end of the names. */
export interface Config {
  /** Bind address; `--uds` wins when set. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly uds: string | null
  readonly tls: { readonly keyFile: string; readonly certFile: string; readonly caFile: string | null } | null
  /** Folder or `org/name` given by the user; null = the built-in model profile. */
  readonly model: string | null
  /** Folder or `org/name` whose tokenizer is used instead of the model's. */
  readonly tokenizer: string | null
  readonly revision: string | null
  readonly downloadDir: string | null
  /** Names accepted in `model`; the first is echoed. Empty = the model's own name. */
  readonly servedModelNames: readonly string[]
  /** The window M in tokens; null = the model's. */
  readonly contextTokensMax: number | null
  /** Template text, already read from its file. */
  readonly chatTemplate: string | null
  readonly chatTemplateContentFormat: "auto" | "string" | "openai"
  readonly trustRequestChatTemplate: boolean
  readonly trustRequestMmKwargs: boolean
  readonly defaultChatTemplateKwargs: { readonly [name: string]: Json }
  readonly reasoningEffortMap: { readonly [level: string]: string }
  readonly responseRole: string
  /** Whether special tokens that users and tools spell out are text (`guard`), or tokens as in the reference. */
  readonly promptSpecialTokens: "guard" | "parity"
  /** A parser name, `auto` or `none`. */
  readonly reasoningParser: string
  readonly toolCallParser: string
  readonly excludeToolsWhenToolChoiceNone: boolean
  readonly returnTokensAsTokenIds: boolean
  readonly enablePromptTokensDetails: boolean
  readonly enablePerRequestMetrics: boolean
  readonly enableForceIncludeUsage: boolean
  /** What /v1/responses takes beyond its default contract. */
  readonly responsesExtensions: readonly ResponsesExtension[]
  /** `auto` = generation_config.json of the model, `vllm` = none, else a folder. */
  readonly generationConfig: string
  readonly overrideGenerationConfig: { readonly [name: string]: Json }
  /** −1 = unlimited. */
  readonly maxLogprobs: number
  /** Tokens a chunk, at least. */
  readonly streamIntervalTokens: number
  /** 0 = no keep-alive comments. */
  readonly sseKeepAliveSeconds: number
  readonly enableRequestIdHeaders: boolean
  readonly enableLogRequests: boolean
  readonly enableLogOutputs: boolean
  readonly maxLogLength: number | null
  readonly accessLog: boolean
  readonly accessLogSkippedPaths: readonly string[]
  readonly docs: boolean
  readonly rootPath: string
  readonly apiKeys: readonly string[]
  readonly cors: {
    readonly origins: readonly string[]
    readonly methods: readonly string[]
    readonly headers: readonly string[]
    readonly credentials: boolean
  }
  /** Time that running requests get after SIGTERM or SIGINT. 0 = abort them at once. */
  readonly shutdownTimeoutSeconds: number
  readonly skipModelNameValidation: boolean
  readonly limits: Limits
  readonly engine: "simulator"
  readonly simulator: SimulatorConfig
}

/** Bounds on what comes from outside. Each has a name in --help or in the environment and a clear error. */
export interface Limits {
  /** Bytes of a request body; more is 413. */
  readonly bodyBytesMax: number
  /** Arrays and objects inside each other; more is 400. */
  readonly jsonDepthMax: number
  /** Time from a request's headers to the end of its body; later is 408. */
  readonly bodySecondsMax: number
  /** Requests inside generation routes at once; more is 503. */
  readonly concurrentRequestsMax: number
  /** Requests waiting in the engine; more is 503. null = no limit. */
  readonly queuedRequestsMax: number | null
  /** Replies of one request: prompts × n. */
  readonly choicesMax: number
  readonly stopStringsMax: number
  /** UTF-16 units of one stop string. */
  readonly stopStringUnitsMax: number
  readonly completionPromptsMax: number
  readonly badWordsMax: number
  /** Bytes that one stream may hold for a client that does not read; more aborts it. */
  readonly streamBufferedBytesMax: number
}

/** The pace of the built-in simulator engine. */
export interface SimulatorConfig {
  /** Time of one step; every running sequence gets its tokens in it. */
  readonly stepMs: number
  /** Time before a sequence's first token. */
  readonly prefillMs: number
  /** Sequences that run at once; the rest wait. */
  readonly sequencesMax: number
  readonly seed: number
  /** Whether requests may say what is generated (`vllm_xargs.sim_*`). */
  readonly allowScripts: boolean
  /** How long a `fatal` failure keeps the engine down. */
  readonly restartMs: number
}

/** Values used where neither flag, environment nor config file says otherwise. */
export const defaultConfig: Config = {
  host: "127.0.0.1",
  port: 8000,
  uds: null,
  tls: null,
  model: null,
  tokenizer: null,
  revision: null,
  downloadDir: null,
  servedModelNames: [],
  contextTokensMax: null,
  chatTemplate: null,
  chatTemplateContentFormat: "auto",
  trustRequestChatTemplate: false,
  trustRequestMmKwargs: false,
  defaultChatTemplateKwargs: {},
  reasoningEffortMap: {},
  responseRole: "assistant",
  promptSpecialTokens: "guard",
  reasoningParser: "auto",
  toolCallParser: "auto",
  excludeToolsWhenToolChoiceNone: false,
  returnTokensAsTokenIds: false,
  enablePromptTokensDetails: false,
  enablePerRequestMetrics: false,
  enableForceIncludeUsage: false,
  responsesExtensions: [],
  generationConfig: "auto",
  overrideGenerationConfig: {},
  maxLogprobs: 20,
  streamIntervalTokens: 1,
  sseKeepAliveSeconds: 0,
  enableRequestIdHeaders: false,
  enableLogRequests: false,
  enableLogOutputs: false,
  maxLogLength: null,
  accessLog: true,
  accessLogSkippedPaths: [],
  docs: true,
  rootPath: "",
  apiKeys: [],
  cors: { origins: [], methods: ["*"], headers: ["*"], credentials: false },
  shutdownTimeoutSeconds: 0,
  skipModelNameValidation: false,
  limits: {
    bodyBytesMax: 128 * 1024 * 1024,
    jsonDepthMax: 256,
    bodySecondsMax: 120,
    concurrentRequestsMax: 16_384,
    queuedRequestsMax: null,
    choicesMax: 16_384,
    stopStringsMax: 128,
    stopStringUnitsMax: 16_384,
    completionPromptsMax: 1_024,
    badWordsMax: 1_024,
    streamBufferedBytesMax: 8 * 1024 * 1024,
  },
  engine: "simulator",
  simulator: { stepMs: 10, prefillMs: 5, sequencesMax: 256, seed: 0, allowScripts: true, restartMs: 5_000 },
}
