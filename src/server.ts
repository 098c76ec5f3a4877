/**
 * Composition root of the full role: chooses each room's plug and connects them. Reads as a table of contents of the
 * road; no logic of its own beside start and stop.
 */
import { basename } from "node:path"
import { createApp } from "./api/app"
import type { ModelFacts } from "./api/endpoint"
import type { AppRoom } from "./api/room"
import type { Config } from "./config"
import { openEngine } from "./engine/open"
import { createKeyCheck } from "./http/access"
import { Admission } from "./http/admission"
import { corsHeaders, corsPreflight } from "./http/cors"
import { printable } from "./http/log-line"
import { createMetrics } from "./http/metrics"
import { Listener, monotonicSeconds, type StartFailure } from "./listener"
import { readVocabulary } from "./model/files"
import type { ModelProfile } from "./model/profile"
import { plainFactory } from "./parser/families/plain"
import { chooseParser } from "./parser/registry"
import { Preparer } from "./prompt/prepare"
import { openTemplateRenderer } from "./prompt/template-renderer"
import { ok, type Result } from "./result"
import { eosIds } from "./tokenizer/eos-ids"
import { openO200k, openVocabularyFile } from "./tokenizer/open"
import { TokenTexts } from "./tokenizer/token-texts"
import type { Tokenizer } from "./tokenizer/tokenizer"

/** A server that accepts connections. */
export interface RunningServer {
  /** `http://HOST:PORT`, or `unix:PATH`. */
  readonly url: string
  /** Where engines dial in; null for one of this process. */
  readonly engineAddress: string | null
  /** Names of the parsers in use, for the banner. */
  readonly reasoningParser: string
  readonly toolCallParser: string
  /** Settles when nothing runs any more after `stop`. */
  readonly drained: Promise<void>
  /** Takes no new requests; running ones get `shutdownTimeoutSeconds`, then an error. */
  stop(): void
}

/** Connects everything and listens. */
export async function startServer(
  config: Config,
  profile: ModelProfile,
  log: (line: string) => void,
): Promise<Result<RunningServer, StartFailure>> {
  const tokenizer = await openTokenizer(profile)
  if (!tokenizer.ok) return tokenizer
  const chatParser = chooseParser(profile, config.reasoningParser, config.toolCallParser, tokenizer.value)
  if (!chatParser.ok) return chatParser
  const chatTemplates = config.chatTemplate === null ? profile.chatTemplates : { default: config.chatTemplate }

  const facts = modelFacts(config, profile, tokenizer.value, chatTemplates, chatParser.value)
  const metrics = createMetrics({ modelName: facts.names[0]!, contextTokensMax: facts.contextTokensMax })
  const renderer = openTemplateRenderer({
    tokenizer: tokenizer.value,
    chatTemplates,
    specialTokens: profile.specialTokens,
    contentFormat: config.chatTemplateContentFormat,
    promptSpecialTokens: config.promptSpecialTokens,
    onUnguarded: () => metrics.unguardedPrompt(),
  })
  if (!renderer.ok) return renderer
  const opened = openEngine(config, {
    encode: (text) => encodeBare(tokenizer.value, text),
    decode: (tokenIds) => tokenizer.value.decode(tokenIds, false),
    vocabSize: tokenizer.value.vocabSize,
    contextTokensMax: facts.contextTokensMax,
    isMixtureOfExperts: profile.isMixtureOfExperts,
    log: (line) => log(printable(line)),
  })
  if (!opened.ok) return opened
  const { engine, address: engineAddress } = opened.value
  const listener = new Listener(config, engine)
  const room: AppRoom = {
    config,
    facts,
    preparer: new Preparer({
      tokenizer: tokenizer.value,
      renderer: renderer.value,
      contextTokensMax: facts.contextTokensMax,
    }),
    generate: {
      engine,
      tokenizer: tokenizer.value,
      ids: { item: newId, call: newCallId },
      now: monotonicSeconds,
      countTokens: (prompt, output) => metrics.tokens(prompt, output),
    },
    chatParser: chatParser.value,
    textParser: plainFactory(tokenizer.value),
    eosTokenIds: eosIds(profile.eosToken, tokenizer.value, profile.eosTokenIds),
    admission: new Admission(config.limits.concurrentRequestsMax),
    observer: metrics,
    log: (line) => log(printable(line)),
    newId,
    unixTime: () => Math.floor(Date.now() / 1000),
    running: listener.running,
    vocabulary: {
      idToToken: (id) => tokenizer.value.idToToken(id),
      vocabSize: tokenizer.value.vocabSize,
      decode: (tokenIds) => tokenizer.value.decode(tokenIds, false),
    },
    engineName: engine.name,
    engineStatus: () => engine.status(),
    metricsText: () => metrics.render(engine.status()),
    observeHttp: (method, handler, status, seconds) => metrics.http(method, handler, status, seconds),
    hasKey: createKeyCheck(config.apiKeys),
    corsHeaders: (request) => corsHeaders(config.cors, request),
    preflight: (request) => corsPreflight(config.cors, request),
    isDraining: () => listener.isDraining,
  }
  const listening = listener.listen(createApp(room))
  if (!listening.ok) {
    await engine.close()
    return listening
  }
  return ok({
    url: listening.value,
    engineAddress,
    reasoningParser: chatParser.value.reasoning,
    toolCallParser: chatParser.value.tools,
    drained: listener.drained,
    stop: () => listener.stop(),
  })
}

async function openTokenizer(profile: ModelProfile): Promise<Result<Tokenizer, StartFailure>> {
  const source = profile.tokenizer
  if (source.kind === "file") {
    const bytes = await readVocabulary(source.path)
    return bytes.ok ? openVocabularyFile(basename(source.path), bytes.value, source.tokenizerConfig) : bytes
  }
  return ok(await openO200k({ special: source.specialTokens, added: source.addedTokens }))
}

function modelFacts(
  config: Config,
  profile: ModelProfile,
  tokenizer: Tokenizer,
  chatTemplates: { readonly [name: string]: string },
  parser: { readonly reasoning: string; readonly tools: string },
): ModelFacts {
  const texts = new TokenTexts(tokenizer)
  return {
    names: config.servedModelNames.length > 0 ? config.servedModelNames : [profile.name],
    // Ids are the engine's names for them: from 1, in the order of the flags.
    adapters: config.vllm.loraModules.map((module, i) => ({ ...module, id: i + 1 })),
    root: profile.root,
    contextTokensMax: profile.contextTokensMax,
    samplingDefaults: profile.samplingDefaults,
    vocabSize: tokenizer.vocabSize,
    hasChatTemplate: Object.keys(chatTemplates).length > 0,
    parsesReasoning: parser.reasoning !== "none",
    parsesCalls: parser.tools !== "none",
    // No engine here takes media yet.
    mediaKinds: [],
    tokenText: (id) => texts.text(id),
    decode: (tokenIds) => tokenizer.decode(tokenIds, false),
  }
}

/** Nothing is added; special tokens that are spelled out become their ids. What cannot be encoded gives nothing. */
function encodeBare(tokenizer: Tokenizer, text: string): Uint32Array {
  const encoded = tokenizer.encode(text, { addSpecialTokens: false })
  return encoded.ok ? encoded.value : new Uint32Array(0)
}

function newId(): string {
  return crypto.randomUUID().replaceAll("-", "")
}

function newCallId(): string {
  return `call_${newId().slice(0, 24)}`
}
