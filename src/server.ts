/**
 * Composition root of the full role: chooses each room's plug and connects them. Reads as a table of contents of the
 * road; no logic of its own beside start and stop.
 */
import { type AppRoom, createApp } from "./api/app"
import type { ModelFacts } from "./api/endpoint"
import type { Config } from "./config"
import { openEngine } from "./engine/open"
import { createKeyCheck } from "./http/access"
import { Admission } from "./http/admission"
import { corsHeaders, corsPreflight } from "./http/cors"
import { createMetrics } from "./http/metrics"
import type { Engine } from "./ir/engine"
import type { ModelProfile } from "./model/profile"
import { plainFactory } from "./parser/families/plain"
import { chooseParser } from "./parser/registry"
import { checkTemplates, Preparer } from "./prompt/prepare"
import { err, ok, type Result } from "./result"
import { openO200k, openTokenizerJson } from "./tokenizer/open"
import type { Tokenizer } from "./tokenizer/tokenizer"

/** A server that accepts connections. */
export interface RunningServer {
  /** `http://HOST:PORT`, or `unix:PATH`. */
  readonly url: string
  /** Names of the parsers in use, for the banner. */
  readonly reasoningParser: string
  readonly toolCallParser: string
  /** Settles when nothing runs any more after `stop`. */
  readonly drained: Promise<void>
  /** Takes no new requests; running ones get `shutdownTimeoutSeconds`, then an error. */
  stop(): void
}

/** Why a server cannot start. `message` is one line for the user. */
export interface StartFailure {
  readonly kind: string
  readonly message: string
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
  const templateFault = checkTemplates(chatTemplates)
  if (templateFault !== null) return err({ kind: "template_unusable", message: templateFault })

  const facts = modelFacts(config, profile, tokenizer.value, chatTemplates, chatParser.value)
  const engine = openEngine(config, {
    encode: scriptEncoder(tokenizer.value),
    decode: (tokenIds) => tokenizer.value.decode(tokenIds, false),
    vocabSize: tokenizer.value.vocabSize,
  })
  const preparer = new Preparer({
    tokenizer: tokenizer.value,
    chatTemplates,
    contextTokensMax: facts.contextTokensMax,
    specialTokens: profile.specialTokens,
    contentFormat: config.chatTemplateContentFormat,
  })
  const metrics = createMetrics({ modelName: facts.names[0]!, contextTokensMax: facts.contextTokensMax })
  const life = new Life(config, engine)
  const room: AppRoom = {
    config,
    facts,
    preparer,
    generate: {
      engine,
      tokenizer: tokenizer.value,
      ids: { item: newId, call: newCallId },
      now: monotonicSeconds,
      countTokens: (prompt, output) => metrics.tokens(prompt, output),
    },
    chatParser: chatParser.value,
    textParser: plainFactory(tokenizer.value),
    eosTokenIds: profile.eosTokenIds,
    admission: new Admission(config.limits.concurrentRequestsMax),
    observer: metrics,
    log: (line) => log(printable(line)),
    newId,
    unixTime: () => Math.floor(Date.now() / 1000),
    running: life.running,
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
    isDraining: () => life.isDraining,
  }
  const listening = life.listen(createApp(room))
  if (!listening.ok) {
    await engine.close()
    return listening
  }
  return ok({
    url: listening.value,
    reasoningParser: chatParser.value.reasoning,
    toolCallParser: chatParser.value.tools,
    drained: life.drained,
    stop: () => life.stop(),
  })
}

async function openTokenizer(profile: ModelProfile): Promise<Result<Tokenizer, StartFailure>> {
  const source = profile.tokenizer
  if (source.kind === "tokenizer_json") return openTokenizerJson(source.tokenizerJson, source.tokenizerConfig)
  return ok(await openO200k({ special: source.specialTokens, added: source.addedTokens }))
}

function modelFacts(
  config: Config,
  profile: ModelProfile,
  tokenizer: Tokenizer,
  chatTemplates: { readonly [name: string]: string },
  parser: { readonly reasoning: string; readonly tools: string },
): ModelFacts {
  const one = new Uint32Array(1)
  /** Filled as tokens are asked for; logprobs ask for the same ones again and again. */
  const texts = new Array<string | undefined>(tokenizer.vocabSize)
  return {
    names: config.servedModelNames.length > 0 ? config.servedModelNames : [profile.name],
    root: profile.root,
    contextTokensMax: profile.contextTokensMax,
    samplingDefaults: profile.samplingDefaults,
    vocabSize: tokenizer.vocabSize,
    hasChatTemplate: Object.keys(chatTemplates).length > 0,
    parsesReasoning: parser.reasoning !== "none",
    parsesCalls: parser.tools !== "none",
    tokenText: (id) => {
      const known = texts[id]
      if (known !== undefined) return known
      one[0] = id
      const text = tokenizer.decode(one, false)
      texts[id] = text
      return text
    },
    decode: (tokenIds) => tokenizer.decode(tokenIds, false),
  }
}

/** Scripts that are sent again and again, as benches do, are encoded once: that work is not the server's. */
const scriptsKept = 64
const scriptUnitsMax = 65_536

/** Encodes what scripts spell; special tokens become their ids. A text that cannot be encoded gives nothing. */
function scriptEncoder(tokenizer: Tokenizer): (text: string) => Uint32Array {
  const kept = new Map<string, Uint32Array>()
  return (text) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const encoded = tokenizer.encode(text, { addSpecialTokens: false })
    const ids = encoded.ok ? encoded.value : new Uint32Array(0)
    if (text.length <= scriptUnitsMax) {
      const oldest = kept.keys().next()
      if (kept.size >= scriptsKept && !oldest.done) kept.delete(oldest.value)
      kept.set(text, ids)
    }
    return ids
  }
}

/** What clients send may end up in log lines: it must not make lines of its own, nor steer a terminal. */
function printable(line: string): string {
  return line.replace(/[\p{Cc}\u2028\u2029]/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}

function newId(): string {
  return crypto.randomUUID().replaceAll("-", "")
}

function newCallId(): string {
  return `call_${newId().slice(0, 24)}`
}

function monotonicSeconds(): number {
  return performance.now() / 1000
}

/** A connection on which nothing moves; routes that may stay silent for longer say so. Bun's own most is 255. */
const idleSecondsMax = 60
const pollMs = 10

/** The listening socket, from bind to drain. */
class Life {
  readonly running: AppRoom["running"] = new Set()
  readonly drained: Promise<void>
  isDraining = false
  private settle: () => void = () => {}
  private server: Bun.Server<undefined> | null = null
  private readonly config: Config
  private readonly engine: Engine

  constructor(config: Config, engine: Engine) {
    this.config = config
    this.engine = engine
    this.drained = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  listen(fetch: ReturnType<typeof createApp>): Result<string, StartFailure> {
    const { config } = this
    const common = {
      development: false,
      // Bun breaks the connection of a body over its own limit; ours (http/body.ts) answers.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: (request: Request, server: Bun.Server<undefined>) =>
        fetch(request, (seconds) => server.timeout(request, seconds ?? idleSecondsMax)),
    }
    // Without `development` Bun shares a taken port silently unless it is told not to.
    const tcp = { hostname: config.host, port: config.port, reusePort: false, idleTimeout: idleSecondsMax }
    try {
      this.server =
        config.uds === null
          ? Bun.serve({ ...common, ...tcp, ...this.tls() })
          : Bun.serve({ ...common, unix: config.uds, ...this.tls() })
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const place = config.uds ?? `${config.host}:${config.port}`
      return err({ kind: "cannot_listen", message: `cannot listen on ${place}: ${reason}` })
    }
    if (config.uds !== null) return ok(`unix:${config.uds}`)
    const scheme = config.tls === null ? "http" : "https"
    const host = config.host.includes(":") ? `[${config.host}]` : config.host
    return ok(`${scheme}://${host}:${this.server.port}`)
  }

  stop(): void {
    if (this.isDraining) return
    this.isDraining = true
    void this.drain()
  }

  private tls(): { tls?: Bun.TLSOptions } {
    const { tls } = this.config
    if (tls === null) return {}
    return {
      tls: {
        key: Bun.file(tls.keyFile),
        cert: Bun.file(tls.certFile),
        ...(tls.caFile !== null && { ca: Bun.file(tls.caFile) }),
      },
    }
  }

  private async drain(): Promise<void> {
    const deadline = monotonicSeconds() + this.config.shutdownTimeoutSeconds
    const stopped = this.server?.stop(false)
    while (this.running.size > 0 && monotonicSeconds() < deadline) await Bun.sleep(pollMs)
    for (const request of [...this.running]) request.shutDown()
    // Their last frames still have to leave; connections that clients merely keep open do not hold us up.
    await Promise.race([stopped, Bun.sleep(lastFramesMs)])
    await this.server?.stop(true)
    await this.engine.close()
    this.settle()
  }
}

/** Time that the errors of a cut drain have to reach their clients. */
const lastFramesMs = 200
