/**
 * The one table of flags: name, kind, unit, default, help, environment variables, and where each lands in `Config`.
 * Names are vLLM's (`vllm serve --help`) where vLLM has the flag; ours stand in the groups "simulator", "engine" and "limits".
 * Reading, help and the config file all come from here.
 */
import { responsesExtensions, toolStrictLevels } from "./config"
import { always, cors, type Flag, inverted, limit, many, one, pace } from "./flags-fields"
import { engineFlagTable } from "./flags-table-engine"
import {
  booleanValue,
  choiceValue,
  countValue,
  durationValue,
  integerValue,
  jsonObjectValue,
  jsonStringMapValue,
  jsonStringsValue,
  pathListValue,
  rootPathValue,
  someOfValue,
  textValue,
  type ValueKind,
  windowValue,
} from "./flags-values"
import { type TokenizerMode, tokenizerModes } from "./ir/tokenizer-mode"

const tokenizerModeWords = choiceValue(...tokenizerModes)
/** In any case, as vLLM takes it. */
const tokenizerModeValue: ValueKind<TokenizerMode> = {
  sample: tokenizerModeWords.sample,
  read: (text) => tokenizerModeWords.read(text.toLowerCase()),
}

/** All flags that are built. */
export const flagTable: readonly Flag[] = [
  one(
    "model",
    "model",
    textValue("MODEL"),
    "model",
    "Model folder, or org/name on the hub. May also be the first argument.",
    { unset: "the built-in profile" },
  ),
  many("model", "served-model-name", "NAME", "servedModelNames", "Names that requests may use; the first is echoed.", {
    unset: "the model as given",
  }),
  one(
    "model",
    "tokenizer",
    textValue("MODEL"),
    "tokenizer",
    "Folder or org/name whose tokenizer and chat template are used instead.",
    { unset: "the model's", forEngine: "too" },
  ),
  one(
    "model",
    "tokenizer-mode",
    tokenizerModeValue,
    "tokenizerMode",
    "How prompts are made: chat templates (hf), or a model family's own format.",
    { forEngine: "too" },
  ),
  one(
    "model",
    "tokenizer-cache",
    textValue("DIR|off"),
    "tokenizerCacheChoice",
    "Where vocabularies are kept as they are once loaded, for faster starts.",
    { unset: "~/.cache/sluice" },
  ),
  one("model", "revision", textValue("REV"), "revision", "Branch, tag or commit on the hub.", {
    unset: "main",
    forEngine: "too",
  }),
  one("model", "download-dir", textValue("DIR"), "downloadDir", "Where files from the hub are kept.", {
    unset: "the hub's cache folder",
    env: ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"],
    forEngine: "too",
  }),
  one(
    "model",
    "max-model-len",
    windowValue,
    "contextTokensMax",
    "The window: prompt and reply together. 8k is 8000, 8K is 8192.",
    { unit: "tokens", unset: "the model's", forEngine: "too" },
  ),
  one(
    "model",
    "generation-config",
    textValue("auto|vllm|DIR"),
    "generationConfig",
    "Sampling defaults: the model's generation_config.json, none, or another folder's.",
  ),
  one(
    "model",
    "override-generation-config",
    jsonObjectValue,
    "overrideGenerationConfig",
    'Sampling defaults on top of those, such as {"temperature": 0.5}.',
  ),

  one("server", "host", textValue("HOST"), "host", "Address to listen on."),
  one("server", "port", integerValue(0, 65_535), "port", "TCP port; 0 = any free one."),
  one("server", "uds", textValue("PATH"), "uds", "Listen on a Unix socket instead.", { unset: "none" }),
  one("server", "root-path", rootPathValue, "rootPath", "Prefix that a proxy in front adds to every path.", {
    unset: "none",
  }),
  one(
    "server",
    "shutdown-timeout",
    durationValue(1000),
    "shutdownTimeoutSeconds",
    "What running requests get after SIGTERM or SIGINT; 0 = abort at once.",
    { unit: "seconds" },
  ),
  one(
    "server",
    "sse-keep-alive-interval",
    durationValue(1000),
    "sseKeepAliveSeconds",
    "Comment frames on idle streams; 0 = none.",
    { unit: "seconds" },
  ),
  one(
    "server",
    "enable-request-id-headers",
    booleanValue,
    "enableRequestIdHeaders",
    "Send X-Request-Id with every reply.",
  ),
  one(
    "server",
    "enable-scale-out",
    booleanValue,
    "enableScaleOut",
    "Render, generate and derender routes; off = 403.",
    { unset: "on in render", env: ["VLLM_ENABLE_SCALE_OUT_ENDPOINTS"] },
  ),
  one("server", "tokens-only", booleanValue, "tokensOnly", "Only token ids in and out (POST /inference/v1/generate)."),
  inverted("server", "disable-fastapi-docs", "docs", "No /docs and no /openapi.json."),
  always("server", "enable-offline-docs", "true", "The docs page never needs the network."),
  always("server", "enable-server-load-tracking", "true", "/load counts."),
  always("server", "api-server-count", "1", "Processes on the port."),

  many("security", "api-key", "KEY", "apiKeys", "Keys that guarded routes accept.", {
    unset: "none",
    env: ["VLLM_API_KEY"],
  }),
  cors("allowed-origins", jsonStringsValue, "origins", "CORS origins."),
  cors("allowed-methods", jsonStringsValue, "methods", "CORS methods."),
  cors("allowed-headers", jsonStringsValue, "headers", "CORS request headers."),
  cors("allow-credentials", booleanValue, "credentials", "CORS with cookies and authorization."),
  one("security", "ssl-keyfile", textValue("FILE"), "sslKeyFile", "TLS private key (PEM).", { unset: "none" }),
  one(
    "security",
    "ssl-certfile",
    textValue("FILE"),
    "sslCertFile",
    "TLS certificate chain (PEM); may hold the key as well.",
    { unset: "none" },
  ),
  one("security", "ssl-ca-certs", textValue("FILE"), "sslCaFile", "TLS certificate authorities (PEM).", {
    unset: "none",
  }),

  one(
    "prompts",
    "chat-template",
    textValue("FILE|TEXT"),
    "chatTemplateSource",
    "A template file, or the template itself on one line.",
    { unset: "the model's" },
  ),
  one(
    "prompts",
    "chat-template-content-format",
    choiceValue("auto", "string", "openai"),
    "chatTemplateContentFormat",
    "How message content reaches the template.",
  ),
  one(
    "prompts",
    "cohere-format",
    choiceValue("cmd4", "cmd3"),
    "cohereFormat",
    "Told to chat templates as cohere_format, under all other kwargs.",
  ),
  one(
    "prompts",
    "trust-request-chat-template",
    booleanValue,
    "trustRequestChatTemplate",
    "Requests may bring their own template.",
  ),
  one(
    "prompts",
    "trust-request-mm-kwargs",
    booleanValue,
    "trustRequestMmKwargs",
    "Requests may set media options, and bring features.",
  ),
  one(
    "prompts",
    "default-chat-template-kwargs",
    jsonObjectValue,
    "defaultChatTemplateKwargs",
    "Template variables under those of the request.",
  ),
  one(
    "prompts",
    "reasoning-effort-map",
    jsonStringMapValue,
    "reasoningEffortMap",
    "Renames effort levels for the template.",
  ),
  one("prompts", "response-role", textValue("ROLE"), "responseRole", "Role of chat replies."),
  one(
    "prompts",
    "prompt-special-tokens",
    choiceValue("guard", "parity"),
    "promptSpecialTokens",
    "Special tokens that users and tools spell out: text (guard), or tokens as in vLLM (parity).",
  ),
  one(
    "prompts",
    "exclude-tools-when-tool-choice-none",
    booleanValue,
    "excludeToolsWhenToolChoiceNone",
    "Keep tools out of the prompt when tool_choice is none.",
  ),
  one(
    "prompts",
    "harmony-start-date",
    textValue("YYYY-MM-DD"),
    "harmonyStartDate",
    "The day that gpt-oss models are told as today.",
    { unset: "the day it is", env: ["VLLM_SYSTEM_START_DATE"] },
  ),
  one(
    "prompts",
    "harmony-system-instructions",
    booleanValue,
    "harmonySystemInstructions",
    "Put instructions into gpt-oss's system message.",
    { env: ["VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS"] },
  ),

  one(
    "parsers",
    "reasoning-parser",
    textValue("NAME|auto|none"),
    "reasoningParser",
    "How reasoning is told from text.",
    { forEngine: "too" },
  ),
  one("parsers", "tool-call-parser", textValue("NAME|auto|none"), "toolCallParser", "How function calls are found."),
  one(
    "parsers",
    "tool-strict-level",
    choiceValue(...toolStrictLevels),
    "toolStrictLevel",
    "What a call is held to at least: what requests ask for, its frame, its arguments.",
  ),
  always("parsers", "enable-auto-tool-choice", "true", "No effect: tool choice auto needs no flag."),

  one(
    "replies",
    "return-tokens-as-token-ids",
    booleanValue,
    "returnTokensAsTokenIds",
    "Tokens in logprobs become token_id:N.",
  ),
  one(
    "replies",
    "enable-prompt-tokens-details",
    booleanValue,
    "enablePromptTokensDetails",
    "Cached tokens in chat usage.",
  ),
  one("replies", "enable-per-request-metrics", booleanValue, "enablePerRequestMetrics", "A metrics object in replies."),
  one("replies", "enable-force-include-usage", booleanValue, "enableForceIncludeUsage", "Usage on every stream."),
  one(
    "replies",
    "responses-extensions",
    someOfValue(responsesExtensions),
    "responsesExtensions",
    `What /v1/responses takes on top: ${responsesExtensions.join(", ")}.`,
    { unset: "none" },
  ),
  one(
    "replies",
    "max-logprobs",
    integerValue(-1),
    "maxLogprobs",
    "Alternatives a request may ask for; -1 = no limit.",
    {
      forEngine: "too",
    },
  ),
  one("replies", "stream-interval", integerValue(1), "streamIntervalTokens", "What a streamed chunk holds, at least.", {
    unit: "tokens",
  }),

  one("logging", "enable-log-requests", booleanValue, "enableLogRequests", "Log each request."),
  one(
    "logging",
    "enable-log-outputs",
    booleanValue,
    "enableLogOutputs",
    "Log each reply; needs --enable-log-requests.",
  ),
  one("logging", "max-log-len", integerValue(0), "maxLogLength", "Longest prompt or reply in a log line.", {
    unit: "characters",
    unset: "unlimited",
  }),
  inverted("logging", "disable-uvicorn-access-log", "accessLog", "No line for each HTTP request."),
  one(
    "logging",
    "disable-access-log-for-endpoints",
    pathListValue,
    "accessLogSkippedPaths",
    "Paths without such a line.",
    { unset: "none" },
  ),

  limit("max-request-body-size", countValue(1), "bodyBytesMax", "Larger request bodies get 413.", {
    unit: "bytes",
    env: ["VLLM_HTTP_MAX_REQUEST_BODY_SIZE"],
  }),
  limit(
    "max-media-request-body-size",
    countValue(1),
    "mediaBodyBytesMax",
    "The same where media are passed on, which count here alone.",
    { unit: "bytes" },
  ),
  limit(
    "max-body-bytes-in-flight",
    countValue(1),
    "bodyBytesInFlightMax",
    "Of all bodies from 256 KiB on that are held at one time; more is 503.",
    { unit: "bytes" },
  ),
  limit(
    "max-json-depth",
    integerValue(1, 10_000),
    "jsonDepthMax",
    "Arrays and objects inside each other; more is 400.",
  ),
  limit(
    "max-request-body-seconds",
    integerValue(1, 86_400),
    "bodySecondsMax",
    "Time from the headers to the end of the body; later is 408.",
    { unit: "seconds" },
  ),
  limit(
    "max-concurrent-requests",
    integerValue(1),
    "concurrentRequestsMax",
    "Requests inside generation routes; more is 503.",
  ),
  limit("max-num-queued-reqs", integerValue(0), "queuedRequestsMax", "Requests waiting in the engine; more is 503.", {
    unset: "unlimited",
  }),
  limit("max-n-sequences", integerValue(1), "choicesMax", "Replies of one request: prompts × n.", {
    env: ["VLLM_MAX_N_SEQUENCES"],
  }),
  limit("max-stop-strings", integerValue(0), "stopStringsMax", "Stop strings of one request.", {
    env: ["VLLM_MAX_STOP_STRINGS"],
  }),
  limit("max-stop-string-length", integerValue(1), "stopStringUnitsMax", "Length of one stop string.", {
    unit: "characters",
  }),
  limit("max-completion-prompts", integerValue(1), "completionPromptsMax", "Prompts of one completions request.", {
    env: ["VLLM_MAX_COMPLETION_PROMPTS"],
  }),
  limit("max-num-bad-words", integerValue(0), "badWordsMax", "Bad words of one request.", {
    env: ["VLLM_MAX_NUM_BAD_WORDS"],
  }),
  limit(
    "max-stream-buffer-size",
    countValue(1),
    "streamBufferedBytesMax",
    "Held for a client that does not read; more aborts its stream.",
    { unit: "bytes" },
  ),
  limit(
    "max-kept-derender-tokens",
    integerValue(0),
    "keptDerenderTokensMax",
    "Of derendered streams, kept to go on with; others are replayed.",
    { unit: "tokens" },
  ),
  one(
    "limits",
    "skip-model-name-validation",
    booleanValue,
    "skipModelNameValidation",
    "Accept any model name in requests.",
    { env: ["VLLM_SKIP_MODEL_NAME_VALIDATION"] },
  ),

  ...engineFlagTable,

  pace("sim-step-ms", durationValue(1), "stepMs", "One step; every running sequence gets its tokens in it.", {
    unit: "milliseconds",
  }),
  pace("sim-prefill-ms", durationValue(1), "prefillMs", "What passes before a sequence's first token.", {
    unit: "milliseconds",
  }),
  pace("sim-max-num-seqs", integerValue(1), "sequencesMax", "Sequences that run at once; the rest wait."),
  pace("sim-seed", integerValue(0), "seed", "Seed of what is generated."),
  pace("sim-allow-scripts", booleanValue, "allowScripts", "Requests may say what is generated (vllm_xargs.sim_*)."),
  pace("sim-restart-ms", durationValue(1), "restartMs", "How long a fatal failure keeps the engine down.", {
    unit: "milliseconds",
  }),
]
