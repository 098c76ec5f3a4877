/**
 * What every role makes of a model before it listens: its vocabulary, parsers, templates and metrics, and the room that
 * routes are given. Reaches no engine.
 */
import { basename } from "node:path"
import { withAdapterIds } from "./adapter-ids"
import { serverTemplateKwargs } from "./api/conversation"
import type { ModelFacts } from "./api/endpoint"
import type { RenderRoom } from "./api/room"
import type { Config } from "./config"
import { createKeyCheck } from "./http/access"
import { Admission } from "./http/admission"
import { BodyBudget } from "./http/body-budget"
import { corsHeaders, corsPreflight } from "./http/cors"
import { printable } from "./http/log-line"
import { createMetrics, type Metrics } from "./http/metrics"
import { ServedWindow } from "./ir/served-window"
import { type Listener, monotonicSeconds, type StartFailure } from "./listener"
import { openMistralFormat } from "./mistral-format"
import { readVocabulary } from "./model/files"
import { type MediaPlaceholders, mediaPlaceholders } from "./model/media-placeholders"
import type { ModelProfile } from "./model/profile"
import { plainFactory } from "./parser/families/plain"
import type { ParserFactory } from "./parser/parser"
import { chooseParser, writesHarmony } from "./parser/registry"
import { openRenderer, type PromptFormat } from "./prompt/open-renderer"
import { type Prepared, Preparer } from "./prompt/prepare"
import { ok, type Result } from "./result"
import { eosIds } from "./tokenizer/eos-ids"
import { harmonyTokens } from "./tokenizer/extra-tokens"
import { openO200k, openVocabularyFile } from "./tokenizer/open"
import { TokenTexts } from "./tokenizer/token-texts"
import type { Tokenizer } from "./tokenizer/tokenizer"

/** A model, ready to render for and to parse. */
export interface ServedModel {
  readonly tokenizer: Tokenizer
  /** Its window is that of `window`, as it is when asked. */
  readonly facts: ModelFacts
  readonly window: ServedWindow
  readonly metrics: Metrics
  readonly preparer: Preparer
  /** For conversations, and for completions, which have no structure. */
  readonly chatParser: ParserFactory
  readonly textParser: ParserFactory
  readonly eosTokenIds: readonly number[]
}

/** Opens the vocabulary and all that hangs on it, or says in one line why this model cannot be served. */
export async function openServedModel(
  config: Config,
  profile: ModelProfile,
): Promise<Result<ServedModel, StartFailure>> {
  const tokenizer = await openTokenizer(profile, config.tokenizerCacheDir)
  if (!tokenizer.ok) return tokenizer
  const chatParser = chooseParser(profile, config.reasoningParser, config.toolCallParser, tokenizer.value)
  if (!chatParser.ok) return chatParser
  const chatTemplates = config.chatTemplate === null ? profile.chatTemplates : { default: config.chatTemplate }

  const isHarmony = writesHarmony(profile, chatParser.value)
  const format = isHarmony ? harmonyFormat(config) : await promptFormat(profile)
  if (!format.ok) return format
  const placeholders = knownPlaceholders(profile, tokenizer.value)
  const mediaKinds = [...placeholders.keys()]
  const window = new ServedWindow(profile.contextTokensMax)
  const facts: ModelFacts = {
    ...modelFacts(config, profile, tokenizer.value, chatTemplates, chatParser.value),
    get contextTokensMax() {
      return window.tokensMax
    },
    writesHarmony: isHarmony,
    mediaKinds,
  }
  const metrics = createMetrics({ modelName: facts.names[0]!, contextTokensMax: facts.contextTokensMax })
  const renderer = openRenderer({
    tokenizer: tokenizer.value,
    format: format.value,
    chatTemplates,
    specialTokens: profile.specialTokens,
    contentFormat: config.chatTemplateContentFormat,
    mediaPlaceholders: placeholders,
    promptSpecialTokens: config.promptSpecialTokens,
    defaultTemplateKwargs: serverTemplateKwargs(config),
    onUnguarded: () => metrics.unguardedPrompt(),
  })
  if (!renderer.ok) return renderer
  return ok({
    tokenizer: tokenizer.value,
    facts,
    window,
    metrics,
    preparer: new Preparer({
      tokenizer: tokenizer.value,
      renderer: renderer.value,
      window,
      mediaPlaceholders: placeholders,
    }),
    chatParser: chatParser.value,
    textParser: plainFactory(tokenizer.value),
    eosTokenIds: eosIds(profile.eosToken, tokenizer.value, profile.eosTokenIds),
  })
}

/** What routes are given in the role without an engine; the full role puts its engine on top. */
export function renderRoom(
  config: Config,
  model: ServedModel,
  listener: Listener,
  log: (line: string) => void,
): RenderRoom {
  const { tokenizer, facts, metrics, preparer, chatParser, textParser, eosTokenIds } = model
  const bodies = new BodyBudget(config.limits.bodyBytesInFlightMax)
  return {
    config,
    facts,
    preparer,
    mediaRefusal: null,
    chatParser,
    textParser,
    eosTokenIds,
    tokenizer,
    tokenOffsets: (prepared, addSpecialTokens, side) => tokenOffsets(tokenizer, prepared, addSpecialTokens, side),
    admission: new Admission(config.limits.concurrentRequestsMax),
    log: (line) => log(printable(line)),
    newId,
    now: monotonicSeconds,
    bodies,
    unixTime: () => Math.floor(Date.now() / 1000),
    vocabulary: {
      idToToken: (id) => tokenizer.idToToken(id),
      vocabSize: tokenizer.vocabSize,
      decode: (tokenIds) => tokenizer.decode(tokenIds, false),
    },
    engineName: "none",
    isHealthy: () => true,
    metricsText: () => metricsText(metrics, bodies, { running: 0, waiting: 0, kvCacheUsage: 0, engines: [] }),
    observeHttp: (method, handler, status, seconds) => metrics.http(method, handler, status, seconds),
    hasKey: createKeyCheck(config.apiKeys),
    corsHeaders: (request) => corsHeaders(config.cors, request),
    preflight: (request) => corsPreflight(config.cors, request),
    isDraining: () => listener.isDraining,
  }
}

/** Prometheus text, with what is only known now. */
export function metricsText(metrics: Metrics, bodies: BodyBudget, status: Parameters<Metrics["render"]>[0]): string {
  metrics.bodyBytes(bodies.bytes)
  return metrics.render(status)
}

async function openTokenizer(profile: ModelProfile, cacheDir: string | null): Promise<Result<Tokenizer, StartFailure>> {
  const source = profile.tokenizer
  if (source.kind === "file") {
    const bytes = await readVocabulary(source.path)
    if (!bytes.ok) return bytes
    return openVocabularyFile(basename(source.path), bytes.value, source.tokenizerConfig, cacheDir)
  }
  if (source.kind === "o200k_harmony") return ok(await openO200k(harmonyTokens()))
  return ok(await openO200k({ special: source.specialTokens, added: source.addedTokens }))
}

/** The format of models that do not write Harmony. */
async function promptFormat({ tokenizerMode, tokenizer }: ModelProfile): Promise<Result<PromptFormat, StartFailure>> {
  switch (tokenizerMode) {
    case "hf":
      return ok({ kind: "template" })
    case "mistral":
      return openMistralFormat(tokenizer)
    case "deepseek_v32":
      return ok({ kind: "deepseek", version: "v32" })
    case "deepseek_v4":
      return ok({ kind: "deepseek", version: "v4" })
    case "deepseek_v41":
      return ok({ kind: "deepseek", version: "v41" })
  }
}

function harmonyFormat(config: Config): Result<PromptFormat, never> {
  const instructionsIn = config.harmonySystemInstructions ? "system" : "developer"
  return ok({ kind: "harmony", harmony: { startDate: config.harmonyStartDate, instructionsIn, now: () => new Date() } })
}

function modelFacts(
  config: Config,
  profile: ModelProfile,
  tokenizer: Tokenizer,
  chatTemplates: { readonly [name: string]: string },
  parser: { readonly reasoning: string; readonly tools: string },
): Omit<ModelFacts, "contextTokensMax" | "writesHarmony" | "mediaKinds"> {
  const texts = new TokenTexts(tokenizer)
  return {
    names: config.servedModelNames.length > 0 ? config.servedModelNames : [profile.name],
    adapters: withAdapterIds(config.vllm.loraModules),
    root: profile.root,
    samplingDefaults: profile.samplingDefaults,
    vocabSize: tokenizer.vocabSize,
    hasChatTemplate: Object.keys(chatTemplates).length > 0,
    parsesReasoning: parser.reasoning !== "none",
    parsesCalls: parser.tools !== "none",
    tokenText: (id) => texts.text(id),
    decode: (tokenIds) => tokenizer.decode(tokenIds, false),
  }
}

/** Media whose placeholder the vocabulary has: a model of text alone may be derived from one that sees. */
function knownPlaceholders(profile: ModelProfile, tokenizer: Tokenizer): MediaPlaceholders {
  const known = [...mediaPlaceholders(profile.modelType)].filter(([, { token }]) => tokenizer.tokenToId(token) >= 0)
  return new Map(known)
}

/** Offsets of a prompt's ids in its text; null unless the text alone encodes to exactly these ids. */
function tokenOffsets(
  tokenizer: Tokenizer,
  { tokenIds, text }: Prepared,
  addSpecialTokens: boolean,
  side: "left" | "right",
): number[][] | null {
  const encoded = text === null ? undefined : tokenizer.encodeWithOffsets?.(text, "code_point", { addSpecialTokens })
  if (encoded?.ok !== true) return null
  const whole = encoded.value.tokenIds
  const from = side === "left" ? whole.length - tokenIds.length : 0
  if (from < 0) return null
  const pairs: number[][] = []
  for (let i = 0; i < tokenIds.length; i++) {
    if (whole[from + i] !== tokenIds[i]) return null
    const at = 2 * (from + i)
    pairs.push([encoded.value.offsets[at]!, encoded.value.offsets[at + 1]!])
  }
  return pairs
}

/** 32 hex digits. */
export function newId(): string {
  return crypto.randomUUID().replaceAll("-", "")
}

/** A call's id, for models that give their calls none. */
export function newCallId(): string {
  return `call_${newId().slice(0, 24)}`
}
