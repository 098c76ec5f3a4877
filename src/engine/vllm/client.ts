/**
 * vLLM engines behind the Engine plug point (ENGINE_PROTOCOL). Here: what a request, a message, and the loss of an
 * engine mean. The engines come and go in `EnginePool`, bytes become calls in `OutputDelivery`.
 */
import type { VllmConfig } from "../../config"
import {
  type Engine,
  type EngineError,
  type EngineReceiver,
  type EngineReport,
  type EngineSequence,
  type EngineStatus,
  emptyOutput,
  Finish,
} from "../../ir/engine"
import type { GenerateRequest } from "../../ir/generate-request"
import { err, ok, type Result } from "../../result"
import { checkAdd } from "./add-check"
import type { AddRequest } from "./add-request"
import { badWordTokenIds } from "./bad-words"
import { EngineChoice } from "./engine-choice"
import { clientIndex, type EngineLink } from "./engine-link"
import { EnginePool, type EnginePoolFailure } from "./engine-pool"
import { HangWatch } from "./hang-watch"
import { type MediaFeature, readFeatures } from "./media-features"
import { OutputDelivery } from "./output-delivery"
import { isEngineDead } from "./outputs-decoder"
import { RequestIds } from "./request-id"
import { RunningSequences } from "./running-sequences"

/** What the client needs from the root: the served vocabulary, and who is told of what happens. */
export interface VllmPorts {
  /** Window of the served model, in tokens. */
  readonly contextTokensMax: number
  readonly vocabSize: number
  /** The model's name and folder: an engine that comes back must have been started for one of them. Absent = any. */
  readonly modelNames?: readonly string[]
  /** Whether the model is a mixture of experts: several engines of it step together. */
  readonly isMixtureOfExperts: boolean
  /** Requests that may wait in the engines; null = no limit. */
  readonly queuedRequestsMax: number | null
  /** Modalities whose processed features requests are trusted to bring; absent or empty = none. */
  readonly featureModalities?: readonly string[]
  /** Token ids without special tokens around them: words that must not be generated. */
  encode(text: string): Uint32Array
  log(line: string): void
  /** The smallest window of the engines that have registered, in tokens, whenever one does. */
  window?(tokens: number): void
  /** An engine takes requests from now on. */
  ready?(rank: number): void
  /** An engine is dead, cut off or hangs: whoever started it may start it again. */
  lost?(rank: number, reason: string): void
  /** Milliseconds on a monotonic clock. */
  now(): number
}

/** Time that the last messages to the engines have to leave. */
const lastMessagesMs = 1_000

/** All vLLM engines of a server. */
export class VllmEngine implements Engine {
  readonly name = "vllm"
  private readonly ports: VllmPorts
  private readonly pool: EnginePool
  private readonly choice = new EngineChoice()
  private readonly sequences: RunningSequences
  private readonly delivery: OutputDelivery
  private readonly watch: HangWatch | null
  private closed = false

  private constructor(config: VllmConfig, ports: VllmPorts, ids: RequestIds, pool: EnginePool) {
    this.ports = ports
    this.pool = pool
    this.sequences = new RunningSequences(ids)
    this.delivery = new OutputDelivery(this.sequences, ids, (line) => ports.log(line))
    const { hangTimeoutMs } = config
    this.watch =
      hangTimeoutMs === 0
        ? null
        : new HangWatch(hangTimeoutMs, {
            links: () => pool.links,
            hangs: (link, silentMs) => this.hangs(link, silentMs),
            now: () => ports.now(),
          })
  }

  /** Binds the sockets that engines dial. They may come at any time; until one has, nothing is ready. */
  static open(config: VllmConfig, ports: VllmPorts): Result<VllmEngine, EnginePoolFailure> {
    let engine: VllmEngine | null = null
    const pool = EnginePool.open(config, {
      contextTokensMax: ports.contextTokensMax,
      vocabSize: ports.vocabSize,
      modelNames: ports.modelNames ?? [],
      isMixtureOfExperts: ports.isMixtureOfExperts,
      log: (line) => ports.log(line),
      now: () => ports.now(),
      window: (tokens) => ports.window?.(tokens),
      ready: (link) => ports.ready?.(link.rank),
      message: (link, frames) => engine?.receive(link, frames),
      lost: (link, reason) => engine?.lost(link, reason),
    })
    if (!pool.ok) return pool
    // This process's own number: ids of sequences that another one left in an engine never meet ours.
    const ids = new RequestIds(crypto.getRandomValues(new Uint32Array(1))[0]!)
    engine = new VllmEngine(config, ports, ids, pool.value)
    return ok(engine)
  }

  /** The handshake address that engines dial. */
  get address(): string {
    return this.pool.address
  }

  /** Whether engines that are started elsewhere find the next process of this server by themselves. */
  get isOutlived(): boolean {
    return this.pool.isOutlived
  }

  submit(request: GenerateRequest, receiver: EngineReceiver): Result<EngineSequence, EngineError> {
    if (this.closed) return err({ kind: "engine_dead", message: "the engine link was closed" })
    const chosen = this.choose(request)
    if (!chosen.ok) return chosen
    const link = chosen.value
    const media = this.media(request)
    if (!media.ok) return media
    const badWords = badWordTokenIds(request.sampling.badWords, (text) => this.ports.encode(text))
    if (!badWords.ok) return badWords
    const sequence = this.sequences.add(request.requestId, link, receiver)
    if (sequence === null) return err({ kind: "engine_retryable", message: "all places for sequences are taken" })
    sequence.constraintPending = request.sampling.structuredOutputs !== null
    const sent = this.send(link, {
      request,
      engineRequestId: sequence.id,
      arrivalTime: Date.now() / 1000,
      clientIndex,
      currentWave: this.pool.coordinator?.wave ?? 0,
      badWordTokenIds: badWords.value,
      mediaFeatures: media.value,
    })
    if (sent.ok) return ok(sequence)
    this.sequences.remove(sequence)
    return sent
  }

  status(): EngineStatus {
    const engines: EngineReport[] = []
    let ready = 0
    let waiting = 0
    let usage = 0
    for (const link of this.pool.links) {
      if (link === null) continue
      const report = link.report()
      engines.push(report)
      if (link.state !== "ready") continue
      ready += 1
      waiting += report.waiting
      usage += report.kvCacheUsage
    }
    const isReady = ready > 0 && !this.closed
    return {
      alive: isReady,
      ready: isReady,
      running: this.sequences.size - waiting,
      waiting,
      kvCacheUsage: ready === 0 ? 0 : usage / ready,
      engines,
    }
  }

  /** The engines are told to drop what runs; every sequence ends with `abort`. */
  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    this.watch?.stop()
    for (const link of this.pool.links) {
      if (link === null) continue
      const running = [...link.running]
      for (const sequence of running) link.abort(sequence.id)
      link.flushAborts()
      const last = { ...emptyOutput(new Uint32Array(0)), finish: Finish.abort }
      for (const sequence of running) this.delivery.finish(sequence, last)
    }
    const deadline = this.ports.now() + lastMessagesMs
    while (this.pool.links.some((link) => (link?.input?.bufferedBytes ?? 0) > 0) && this.ports.now() < deadline) {
      await Bun.sleep(5)
    }
    this.pool.close("the server stops")
  }

  private choose(request: GenerateRequest): Result<EngineLink, EngineError> {
    const { links } = this.pool
    const { dataParallelRank: rank } = request
    if (rank !== null && !(Number.isInteger(rank) && rank >= 0 && rank < links.length)) {
      const message = `there is no data-parallel rank ${rank}: they are below ${links.length}`
      return err({ kind: "engine_validation", message, param: "data_parallel_rank" })
    }
    const link = rank === null ? this.choice.choose(links) : (links[rank] ?? null)
    if (link?.state !== "ready") return err({ kind: "engine_retryable", message: "no engine is ready" })
    const { queuedRequestsMax } = this.ports
    if (queuedRequestsMax !== null && this.status().waiting >= queuedRequestsMax) {
      return err({ kind: "engine_retryable", message: `${queuedRequestsMax} requests wait already` })
    }
    return ok(link)
  }

  /** The items of a request that brings what processors made of its media, or why they cannot be taken. */
  private media({ media, promptTokenIds, held }: GenerateRequest): Result<readonly MediaFeature[], EngineError> {
    if (media == null) return ok([])
    const refuse = (param: string, message: string) => err({ kind: "engine_validation" as const, message, param })
    const { features } = media
    if (features === null) return refuse("content_parts", "content_parts need processors that this server has not.")
    const modalities = this.ports.featureModalities ?? []
    if (modalities.length === 0) {
      const why = "features go into the model as they come, and wrong ones end the engine"
      return refuse("features", `${why}: they need --trust-request-mm-kwargs, and a model that is known to take media.`)
    }
    const rules = { promptTokens: promptTokenIds.length, modalities, held: held ?? null }
    const items = readFeatures(features, rules)
    return items.ok ? items : refuse("features", `features: ${items.error}.`)
  }

  private send(link: EngineLink, add: AddRequest): Result<null, EngineError> {
    const { sending } = link
    if (sending === null) return err({ kind: "engine_retryable", message: `${link.label} has not registered` })
    const checked = checkAdd(add, sending.limits)
    if (!checked.ok) return checked
    if (!link.add(sending.encoder.encode(add))) {
      return err({ kind: "engine_retryable", message: `${link.label} takes no more requests now` })
    }
    // The wait for its first output begins now.
    if (link.running.size === 1) link.heardAt = this.ports.now()
    this.pool.coordinator?.requestSent(link.rank)
    return ok(null)
  }

  /** Hot: one message of an engine. */
  private receive(link: EngineLink, frames: readonly Uint8Array[]): void {
    link.heardAt = this.ports.now()
    if (isEngineDead(frames)) {
      this.pool.lose(link, "it reported a fatal failure (ENGINE_CORE_DEAD)")
      return
    }
    const read = this.delivery.message(link, frames)
    if (!read.ok) {
      // Whose tokens were in it cannot be known: none of its sequences is whole any more.
      this.pool.lose(link, `it sent a message that cannot be read: ${read.error.message}`)
    } else if (link.state === "silent") {
      link.state = "ready"
      this.ports.log(`${link.label} answers again`)
      this.ports.ready?.(link.rank)
    }
  }

  /** What ran in it fails. Should the same process come back, it is told to drop them. */
  private lost(link: EngineLink, reason: string): void {
    link.leaveOrphans([...link.running].map((sequence) => sequence.id))
    this.failAll(link, `${link.label} is lost: ${reason}`)
    this.ports.lost?.(link.rank, reason)
  }

  /** What ran in it fails, and is aborted should it ever wake. */
  private hangs(link: EngineLink, silentMs: number): void {
    link.state = "silent"
    for (const sequence of link.running) link.abort(sequence.id)
    const reason = `it has not answered for ${Math.round(silentMs)} ms`
    this.failAll(link, `${link.label} hangs: ${reason}`)
    this.ports.lost?.(link.rank, reason)
  }

  private failAll(link: EngineLink, message: string): void {
    const running = [...link.running]
    this.ports.log(running.length === 0 ? message : `${message}; ${running.length} running sequences fail`)
    for (const sequence of running) this.delivery.fail(sequence, { kind: "engine_dead", message })
  }
}
