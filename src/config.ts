/**
 * What the server is told at start, after flags, environment and config file were merged (`main.ts`, `flags.ts`).
 * Everything below gets its part of this as an argument; nothing else reads argv or the environment.
 */
import type { Json } from "./ir/conversation"
import type { TokenizerMode } from "./ir/tokenizer-mode"

/** Parts of the Responses API that are refused unless the operator turns them on. */
export const responsesExtensions = ["custom_tools", "namespace_tools", "allowed_tools", "logprobs"] as const
/** One of them. */
export type ResponsesExtension = (typeof responsesExtensions)[number]

/** What `--tool-strict-level` takes: nothing beyond the request's wish, a call's frame, its arguments too. */
export const toolStrictLevels = ["auto", "function", "parameter"] as const

/** The whole configuration of one process. Units stand at the end of the names. */
export interface Config {
  /** `render`: no engine in memory. */
  readonly role: "serve" | "render"
  /** Render, derender and generate routes; off, they answer 403. */
  readonly enableScaleOut: boolean
  /** Only token ids in and out: nothing is turned into text or made of it. */
  readonly tokensOnly: boolean
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
  /** How prompts are made; `auto` = as the model's files tell. */
  readonly tokenizerMode: TokenizerMode
  readonly revision: string | null
  readonly downloadDir: string | null
  /** Folder where vocabularies are kept as they are once loaded; null = each start builds them. */
  readonly tokenizerCacheDir: string | null
  /** Names accepted in `model`; the first is echoed. Empty = the model's own name. */
  readonly servedModelNames: readonly string[]
  /** The window M in tokens; null = the model's. */
  readonly contextTokensMax: number | null
  /** Template text, already read from its file. */
  readonly chatTemplate: string | null
  readonly chatTemplateContentFormat: "auto" | "string" | "openai"
  readonly trustRequestChatTemplate: boolean
  readonly trustRequestMmKwargs: boolean
  /** Which generation of Cohere's formats templates are told (`cohere_format`), where nothing else says so. */
  readonly cohereFormat: "cmd3" | "cmd4"
  readonly defaultChatTemplateKwargs: { readonly [name: string]: Json }
  readonly reasoningEffortMap: { readonly [level: string]: string }
  readonly responseRole: string
  /** Whether special tokens that users and tools spell out are text (`guard`), or tokens as in the reference. */
  readonly promptSpecialTokens: "guard" | "parity"
  /** A parser name, `auto` or `none`. */
  readonly reasoningParser: string
  readonly toolCallParser: string
  readonly excludeToolsWhenToolChoiceNone: boolean
  /** `YYYY-MM-DD` that gpt-oss is told as today; null = the day it is. */
  readonly harmonyStartDate: string | null
  /** Whether instructions to gpt-oss stand in its system message, not in the developer's. */
  readonly harmonySystemInstructions: boolean
  /** How much of a function call is held to a grammar at least, whatever the request asks for. */
  readonly toolStrictLevel: (typeof toolStrictLevels)[number]
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
  readonly engine: "simulator" | "vllm" | "http"
  readonly simulator: SimulatorConfig
  /** Counts only where `engine` is `http`. */
  readonly http: HttpEngineConfig
  /** Counts only where `engine` is `vllm`. */
  readonly vllm: VllmConfig
}

/** Bounds on what comes from outside. Each has a name in --help or in the environment and a clear error. */
export interface Limits {
  /** Bytes of a request body; more is 413. */
  readonly bodyBytesMax: number
  /** The same on routes that pass media on: those count here alone. */
  readonly mediaBodyBytesMax: number
  /** Bytes of all long bodies (from 256 KiB) that are held at one time; more is 503. */
  readonly bodyBytesInFlightMax: number
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
  /** Tokens of derendered streams that are kept to go on with (with logprobs each counts four); others are replayed. */
  readonly keptDerenderTokensMax: number
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

/** Remote services that take token ids and give token ids (RENDER 6). */
export interface HttpEngineConfig {
  /** `http://HOST:PORT`, without a slash at the end; at least one. */
  readonly urls: readonly string[]
  /** Sent to them as a bearer token. */
  readonly apiKey: string | null
  /** Time between two looks at their health. */
  readonly healthIntervalMs: number
}

/** Back ends of vLLM that hold a reply to a grammar. Source: vLLM 0.33.0, StructuredOutputsConfig. */
export const structuredOutputsBackends = ["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"] as const
/** One of them. */
export type StructuredOutputsBackend = (typeof structuredOutputsBackends)[number]

/** The link to vLLM's headless engines (ENGINE_PROTOCOL §1, §12): engines dial us, and some of them we start. */
export interface VllmConfig {
  /** Engines in all, here and elsewhere: data-parallel ranks 0 … size − 1. */
  readonly dataParallelSize: number
  /** Host name or address without brackets; handshake and data sockets bind it. May be a wildcard. */
  readonly address: string
  /** Port of the handshake; 0 = any free one. */
  readonly rpcPort: number
  /**
   * First port for data: rank r reads at this one + 2 r, and writes to the next. null = the one behind `rpcPort`, where it
   * can be had; 0 = any that are free.
   */
  readonly dataPort: number | null
  /**
   * Host that engines dial for data, where they know this machine by a name that outlives its address; null = `address`, or
   * where they reached a wildcard.
   */
  readonly dataAddress: string | null
  /** Folder where it is kept what engines said when they registered; null = nowhere. */
  readonly recordsDir: string | null
  /** Whether Sluice plays the coordinator of data parallel; `auto` = for mixture-of-experts models with several ranks. */
  readonly coordinator: "auto" | "on" | "off"
  /** What starts engines here; null = all of them are started elsewhere. */
  readonly command: EngineCommand | null
  readonly restart: EngineRestart
  /** Time from the start of an engine to its registration; later it is started again. null = no limit. */
  readonly startupTimeoutSeconds: number | null
  /** Time between SIGTERM and SIGKILL for an engine that we started. */
  readonly stopTimeoutMs: number
  /** Time without any output and without an answer to a utility call, while requests run; 0 = never taken for hung. */
  readonly hangTimeoutMs: number
  /** Time for the answer to any other utility call. */
  readonly utilityTimeoutMs: number
  readonly loraModules: readonly LoraModule[]
  readonly structuredOutputsBackend: StructuredOutputsBackend
}

/** A command that starts engines on this machine. It runs without a shell. */
export interface EngineCommand {
  /** Program and arguments, without those that say where Sluice is: `engineArguments` adds them. */
  readonly words: readonly string[]
  /** Engines that one run of it starts, from rank 0 on. At least 1. */
  readonly engines: number
}

/** When an engine that we started and that ended is started again. */
export interface EngineRestart {
  /** `on-failure` leaves alone what ended by itself with status 0. */
  readonly policy: "never" | "on-failure" | "always"
  /** Wait before the first start again; each further one in a row doubles it. */
  readonly delayMs: number
  readonly delayMsMax: number
  /** Starts again in a row; a run of at least `stableMs` begins a new row. */
  readonly restartsMax: number
  readonly stableMs: number
}

/** An adapter that requests may name as their model. */
export interface LoraModule {
  readonly name: string
  /** Folder or `org/name`, as the engine reads it. */
  readonly path: string
  /** Shown as the parent in /v1/models; null = the served model. */
  readonly baseModelName: string | null
  /** Whether the engine shall expect three-dimensional expert weights (vLLM's `is_3d_lora_weight`). */
  readonly is3dWeight: boolean
}

/** Values used where neither flag, environment nor config file says otherwise. */
export const defaultConfig: Config = {
  role: "serve",
  enableScaleOut: false,
  tokensOnly: false,
  host: "127.0.0.1",
  port: 8000,
  uds: null,
  tls: null,
  model: null,
  tokenizer: null,
  tokenizerMode: "auto",
  revision: null,
  downloadDir: null,
  tokenizerCacheDir: null,
  servedModelNames: [],
  contextTokensMax: null,
  chatTemplate: null,
  chatTemplateContentFormat: "auto",
  trustRequestChatTemplate: false,
  trustRequestMmKwargs: false,
  cohereFormat: "cmd4",
  defaultChatTemplateKwargs: {},
  reasoningEffortMap: {},
  responseRole: "assistant",
  promptSpecialTokens: "guard",
  reasoningParser: "auto",
  toolCallParser: "auto",
  excludeToolsWhenToolChoiceNone: false,
  harmonyStartDate: null,
  harmonySystemInstructions: false,
  toolStrictLevel: "auto",
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
    mediaBodyBytesMax: 512 * 1024 * 1024,
    bodyBytesInFlightMax: 2 * 1024 * 1024 * 1024,
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
    keptDerenderTokensMax: 200_000,
  },
  engine: "simulator",
  simulator: { stepMs: 10, prefillMs: 5, sequencesMax: 256, seed: 0, allowScripts: true, restartMs: 5_000 },
  http: { urls: [], apiKey: null, healthIntervalMs: 2_000 },
  vllm: {
    dataParallelSize: 1,
    address: "127.0.0.1",
    rpcPort: 29_550,
    dataPort: null,
    dataAddress: null,
    recordsDir: null,
    coordinator: "auto",
    command: null,
    restart: { policy: "on-failure", delayMs: 1_000, delayMsMax: 60_000, restartsMax: 5, stableMs: 600_000 },
    startupTimeoutSeconds: null,
    stopTimeoutMs: 10_000,
    hangTimeoutMs: 300_000,
    utilityTimeoutMs: 60_000,
    loraModules: [],
    structuredOutputsBackend: "auto",
  },
}
