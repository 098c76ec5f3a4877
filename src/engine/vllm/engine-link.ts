import type { Json } from "../../ir/conversation"
import type { EngineCounters, EngineReport } from "../../ir/engine"
import type { Result } from "../../result"
import type { ZmtpPeer } from "../zmtp/peer"
import { AddEncoder } from "./add-encoder"
import type { EngineLimits } from "./add-request"
import { ControlEncoder, MessageType } from "./control-messages"
import { type EngineFacts, unknownFacts } from "./engine-facts"
import type { SchedulerStats } from "./output-fields"
import type { RunningSequence } from "./running-sequences"
import { UtilityCalls, type UtilityFailure } from "./utility-calls"

/**
 * Where an engine stands:
 * `starting`: it said HELLO, or served an earlier process; it loads its model, or has not answered its first call yet;
 * `ready`: takes requests;
 * `silent`: it does not answer while requests run; it is back as soon as it says anything;
 * `gone`: dead, or a connection of it closed. A new HELLO of its rank replaces it; when only the network failed, the
 * same process dials again and comes back through `starting`.
 */
export type EngineLinkState = "starting" | "ready" | "silent" | "gone"

const addType = Uint8Array.of(MessageType.add)
const abortType = Uint8Array.of(MessageType.abort)
const utilityType = Uint8Array.of(MessageType.utility)

/** This front end among those that an engine serves; INIT names one address of each kind, ours. */
export const clientIndex = 0

/** Gauges of an engine as it reported them last. */
export interface EngineLoad {
  readonly running: number
  readonly waiting: number
  readonly kvCacheUsage: number
}

/** Ids that are remembered as aborted; beyond that, some are aborted twice, which does no harm. */
const strangersMax = 65_536

const noAdapters = { running: [], waiting: [] }

/** Counters of an engine that has done nothing yet. */
export function newCounters(): EngineCounters {
  return {
    preemptions: 0,
    prefixCacheQueries: 0,
    prefixCacheHits: 0,
    externalCacheQueries: 0,
    externalCacheHits: 0,
    drafts: 0,
    draftTokens: 0,
    acceptedTokens: 0,
    acceptedTokensPerPosition: [],
  }
}

const idle: EngineLoad = { running: 0, waiting: 0, kvCacheUsage: 0 }

/**
 * One engine as this front end sees it: its two connections, what it said of itself, and what runs in it. Sends and
 * keeps the books; what a change of state means for requests is decided in `VllmEngine`.
 */
export class EngineLink {
  readonly rank: number
  state: EngineLinkState = "starting"
  facts: EngineFacts = unknownFacts
  /** It registered with an earlier process of this server, and came without a HELLO. */
  readonly isReturning: boolean
  /** Who told `facts`: the engine itself, what the earlier process left, or nobody. */
  toldBy: "engine" | "record" | "nobody" = "nobody"
  /** It has answered a call at least once. */
  isProven = false
  /** Handshake connection until READY; then the engine closes it. */
  greeting: ZmtpPeer | null
  input: ZmtpPeer | null = null
  output: ZmtpPeer | null = null
  /**
   * Connections that may be its own, or those of another process that once had its rank and dials for ever: which
   * input is its own shows when it registers there, which output when the answer to a call comes.
   */
  readonly inputs = new Set<ZmtpPeer>()
  readonly outputs = new Set<ZmtpPeer>()
  /** Answers to its calls that came. */
  answers = 0
  /** A connection was opened beside its own, and the log tells it. */
  toldOfSecond = false
  /** Its input connection has closed, and its output connection has a moment left to tell the rest. */
  leaving: { readonly reason: string; readonly timer: Timer } | null = null
  /** It said READY on the handshake connection. */
  saidReady = false
  /** How its requests are checked and written; null until it registered on the input connection. */
  sending: { readonly limits: EngineLimits; readonly encoder: AddEncoder } | null = null
  /** A call is under way that shall show that both directions work. */
  verifies = false
  readonly running = new Set<RunningSequence>()
  load: EngineLoad = idle
  /** Go on when another process takes the rank. */
  readonly counters: EngineCounters
  private lora: { readonly running: readonly string[]; readonly waiting: readonly string[] } = noAdapters
  /** When it last sent an output, or was sent the first request after it had none; milliseconds, monotonic. */
  heardAt = 0
  /** When the call was made that shall show whether it hangs; -1 = none is under way. */
  probedAt = -1
  /** Sequences that it may still compute though nobody waits for them; told to it when it is back. */
  private readonly orphans: string[] = []
  private pendingAborts: string[] = []
  /** Sequences of an earlier process of this server that it was told to drop. */
  private readonly strangers = new Set<string>()
  private toldOfStrangers = false
  private readonly calls = new UtilityCalls()
  private readonly control = new ControlEncoder()

  /** `greeting` is where it said HELLO; null = it did not, and returns. */
  constructor(rank: number, greeting: ZmtpPeer | null, counters: EngineCounters) {
    this.rank = rank
    this.counters = counters
    this.isReturning = greeting === null
    this.saidReady = this.isReturning
    this.greeting = greeting
  }

  /** For log lines. */
  get label(): string {
    return `engine ${this.rank}`
  }

  /** A connection of it that is open, to see whether it lives; null = none is. */
  get connection(): ZmtpPeer | null {
    return this.input ?? this.output ?? this.greeting
  }

  /** This input connection is its own; others that might have been are closed. */
  settleInput(peer: ZmtpPeer): void {
    this.input = peer
    settle(this.inputs, peer)
  }

  /** The same for outputs. */
  settleOutput(peer: ZmtpPeer): void {
    this.output = peer
    settle(this.outputs, peer)
  }

  /** What it is, and so how much it takes. */
  register(facts: EngineFacts, limits: EngineLimits, toldBy: EngineLink["toldBy"]): void {
    this.facts = facts
    this.toldBy = toldBy
    this.sending = { limits, encoder: new AddEncoder(limits) }
  }

  /** Sends an ADD body; false when the connection will not take it. */
  add(body: Uint8Array): boolean {
    return this.send([addType, body])
  }

  /** Tells the engine to drop a sequence, when it is back if it is gone; those of one tick travel together. */
  abort(id: string): void {
    if (this.state === "gone") {
      this.orphans.push(id)
      return
    }
    if (this.pendingAborts.length === 0) queueMicrotask(() => this.flushAborts())
    this.pendingAborts.push(id)
  }

  /**
   * An output came of a sequence that an earlier process started; `isLast` = the engine has ended it. It is told to drop
   * the sequence, once. True for the first one of all.
   */
  dropStranger(id: string, isLast: boolean): boolean {
    if (isLast) {
      this.strangers.delete(id)
      return false
    }
    if (this.strangers.has(id)) return false
    if (this.strangers.size >= strangersMax) this.strangers.clear()
    this.strangers.add(id)
    this.abort(id)
    const isFirst = !this.toldOfStrangers
    this.toldOfStrangers = true
    return isFirst
  }

  /** Sends the aborts that wait for the end of the tick. */
  flushAborts(): void {
    if (this.pendingAborts.length === 0) return
    const ids = this.pendingAborts
    this.pendingAborts = []
    if (!this.send([abortType, this.control.abort(ids)])) this.orphans.push(...ids)
  }

  /** Remembers sequences that the engine was computing when its connection was lost. */
  leaveOrphans(ids: Iterable<string>): void {
    this.orphans.push(...ids)
  }

  /** It is back: what nobody waits for any more is aborted. */
  abortOrphans(): void {
    this.pendingAborts.push(...this.orphans.splice(0))
    this.flushAborts()
  }

  /** Calls a method of the engine; `timeoutMs` null = wait until it answers or is gone. */
  async call(
    method: string,
    parameters: readonly Json[],
    timeoutMs: number | null,
  ): Promise<Result<Json, UtilityFailure>> {
    const { id, answer } = this.calls.begin(method, timeoutMs)
    const sent = this.send([utilityType, this.control.utility(clientIndex, id, method, parameters)])
    if (!sent) this.calls.unsent(id, `${this.label} cannot be reached`)
    return answer
  }

  /** An answer to `call` came. */
  answered(id: number, failure: string | null, result: Json): void {
    if (this.calls.answered(id, failure, result)) this.answers += 1
  }

  /** An answer to `call` came that cannot be read; `id` null = nor can the number of its call. */
  unreadableAnswer(id: number | null, why: string): void {
    if (this.calls.unreadable(id, why)) this.answers += 1
  }

  /** Takes over the gauges of a message, and adds up its counters. */
  note(stats: SchedulerStats): void {
    this.noteLoad(stats)
    const { counters } = this
    counters.prefixCacheQueries += stats.prefixCache.queries
    counters.prefixCacheHits += stats.prefixCache.hits
    counters.externalCacheQueries += stats.connectorPrefixCache?.queries ?? 0
    counters.externalCacheHits += stats.connectorPrefixCache?.hits ?? 0
    this.lora = { running: Object.keys(stats.runningLora), waiting: Object.keys(stats.waitingLora) }
    const { specDecode } = stats
    if (specDecode === null) return
    counters.drafts += specDecode.drafts
    counters.draftTokens += specDecode.draftTokens
    counters.acceptedTokens += specDecode.acceptedTokens
    for (const [position, accepted] of specDecode.acceptedTokensPerPosition.entries()) {
      counters.acceptedTokensPerPosition[position] = (counters.acceptedTokensPerPosition[position] ?? 0) + accepted
    }
  }

  /** Takes over the gauges alone. */
  noteLoad(stats: SchedulerStats): void {
    this.load = {
      running: stats.running,
      waiting: stats.waiting + stats.skipped,
      kvCacheUsage: Math.min(1, Math.max(0, stats.kvCacheUsage)),
    }
  }

  /** What ran in it a step ago, and what it has counted. */
  report(): EngineReport {
    const { facts, load, lora } = this
    // A report is a step old: what has ended since does not wait any more.
    const waiting = Math.min(load.waiting, this.running.size)
    return {
      rank: this.rank,
      running: this.running.size - waiting,
      waiting,
      kvCacheUsage: load.kvCacheUsage,
      counters: this.counters,
      cacheBlockTokens: facts.blockTokens,
      cacheBlocks: facts.blockCount,
      lora: facts.supportsLora ? { ...lora, max: facts.loraMax ?? 0 } : null,
    }
  }

  /** Ends all connections; calls that wait fail, and aborts wait for its return. */
  disconnect(reason: string): void {
    const open = [this.input, this.output, this.greeting, ...this.inputs, ...this.outputs]
    this.input = null
    this.output = null
    this.greeting = null
    this.inputs.clear()
    this.outputs.clear()
    this.orphans.push(...this.pendingAborts)
    this.pendingAborts = []
    this.load = idle
    this.probedAt = -1
    this.calls.failAll(reason)
    for (const peer of open) peer?.close()
  }

  /** The end of the link: its rank is taken by another process, or the server stops. */
  close(reason: string): void {
    this.state = "gone"
    this.disconnect(reason)
  }

  private send(frames: readonly Uint8Array[]): boolean {
    return this.input?.send(frames) ?? false
  }
}

/** All but one are closed, and none is in doubt any more. */
function settle(possible: Set<ZmtpPeer>, settled: ZmtpPeer): void {
  const others = [...possible].filter((peer) => peer !== settled)
  possible.clear()
  for (const other of others) other.close()
}
