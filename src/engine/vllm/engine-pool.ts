/**
 * The engines of a server as they come and go: handshake, registration, loss of a connection, return. What any of it
 * means for running sequences is the owner's business (client.ts).
 */
import type { VllmConfig } from "../../config"
import { err, ok, type Result } from "../../result"
import type { ZmtpListener, ZmtpPeer } from "../zmtp/peer"
import { ConnectionWatch, doubtMs } from "./connection-watch"
import { Coordinator, needsAnnouncements, needsCoordinator } from "./coordinator"
import { DataPlaces } from "./data-places"
import type { DataSocketPorts, DataSockets } from "./data-sockets"
import { type EngineFacts, readEngineFacts, unknownFacts } from "./engine-facts"
import { EngineLink, newCounters } from "./engine-link"
import { EngineRecords, type RecordedPlace } from "./engine-records"
import { openFrontDoor, rankOf } from "./front-door"
import { InitSender } from "./init-sender"
import { LifeSigns } from "./life-signs"
import { isEngineDead } from "./outputs-decoder"
import { readyLines } from "./ready-lines"
import { askFacts, type ServedModel, whyNotTaken } from "./returning-engine"
import { tcpAddress } from "./socket-address"

/** What the pool needs to know, and whom it tells. */
export interface EnginePoolPorts {
  /** The served model's window; an engine's own may be smaller, and then counts for what goes to it. */
  readonly contextTokensMax: number
  readonly vocabSize: number
  /** The model's name and folder: an engine that comes back must have been started for one of them. Empty = any. */
  readonly modelNames: readonly string[]
  /** Whether the engines step together and need a coordinator when there are several. */
  readonly isMixtureOfExperts: boolean
  log(line: string): void
  /** Milliseconds on a monotonic clock. */
  now(): number
  /** A message of an engine; the frames are borrowed during the call. */
  message(link: EngineLink, frames: readonly Uint8Array[]): void
  /** The smallest window of the engines that have registered, in tokens, whenever one does. */
  window(tokens: number): void
  /** The engine takes requests from now on. */
  ready(link: EngineLink): void
  /** The engine is dead or cut off: its link is `gone`, and what ran in it still stands in `link.running`. */
  lost(link: EngineLink, reason: string): void
}

/** Why the sockets cannot be opened; `message` is one line for the operator. */
export interface EnginePoolFailure {
  readonly kind: "cannot_listen"
  readonly message: string
}

/** What an engine said last (that it ends its sequences, or dies) may come after its input connection has closed. */
const lastOutputsMs = 100
/** An engine that comes back opens both its connections within a tenth of a second; later it is said what is missing. */
const halfOpenMs = 2_000
/** The call that shows whether an engine steps: cheap, and known to all versions. */
export const probeMethod = "is_sleeping"

/** See the head of this file. */
export class EnginePool {
  /** By data-parallel rank; null = never came. */
  readonly links: readonly (EngineLink | null)[]
  private readonly slots: (EngineLink | null)[]
  private readonly places: DataPlaces
  private readonly inits: InitSender
  private readonly records: EngineRecords
  private readonly config: VllmConfig
  private readonly ports: EnginePoolPorts
  private door: ZmtpListener | null = null
  private coordination: Coordinator | null = null
  /** Engines that said HELLO while another one holds their rank, which is asked whether it lives. */
  private readonly atDoor = new Set<ZmtpPeer>()
  private readonly lives = new LifeSigns()
  private readonly watch: ConnectionWatch
  private closed = false

  private readonly served: ServedModel
  private readonly dataPorts: DataSocketPorts = {
    inputOpened: (sockets, peer) => this.inputOpened(sockets, peer),
    registered: (sockets, peer, frames) => this.registered(sockets, peer, frames),
    outputOpened: (sockets, peer) => this.outputOpened(sockets, peer),
    outputs: (sockets, peer, frames) => this.heard(sockets, peer, frames),
    closed: (sockets, peer, reason) => this.dataClosed(sockets, peer, reason),
    pong: (peer) => this.lives.came(peer),
  }

  private constructor(config: VllmConfig, ports: EnginePoolPorts) {
    this.config = config
    this.ports = ports
    this.served = {
      modelNames: ports.modelNames,
      vocabSize: ports.vocabSize,
      isCoordinated: needsCoordinator(config, ports.isMixtureOfExperts),
    }
    this.slots = new Array<EngineLink | null>(config.dataParallelSize).fill(null)
    this.links = this.slots
    this.places = new DataPlaces(config)
    this.inits = new InitSender(config, {
      places: this.places,
      links: this.slots,
      coordinator: () => this.coordination,
      lose: (link, reason) => this.lose(link, reason),
    })
    this.records = new EngineRecords(config.recordsDir)
    this.watch = new ConnectionWatch({
      links: this.slots,
      lives: this.lives,
      lose: (link, reason) => this.lose(link, reason),
      log: (line) => ports.log(line),
    })
  }

  /** Binds the sockets that engines dial; they may come at any time from now on. */
  static open(config: VllmConfig, ports: EnginePoolPorts): Result<EnginePool, EnginePoolFailure> {
    const pool = new EnginePool(config, ports)
    const failure = pool.bind()
    if (failure === null) return ok(pool)
    pool.close("the server did not start")
    return err({ kind: "cannot_listen", message: failure })
  }

  /** The handshake address. */
  get address(): string {
    return this.door?.address ?? ""
  }

  /** Of engines that step together; null otherwise. */
  get coordinator(): Coordinator | null {
    return this.coordination
  }

  /** Whether engines that are started elsewhere find the next process of this server by themselves. */
  get isOutlived(): boolean {
    return this.coordination === null && this.places.areStable
  }

  /** Closes all connections and sockets. */
  close(reason: string): void {
    this.closed = true
    this.watch.close()
    for (const link of this.slots) link?.close(reason)
    this.places.close()
    this.door?.close()
    this.coordination?.close()
  }

  /** The engine cannot be used any more. Does nothing for one that is gone already. */
  lose(link: EngineLink, reason: string): void {
    if (link.state === "gone" && link.leaving === null) return
    link.state = "gone"
    this.bury(link, reason)
  }

  private bury(link: EngineLink, reason: string): void {
    clearTimeout(link.leaving?.timer)
    link.leaving = null
    this.inits.remove(link)
    link.disconnect(reason)
    if (!this.closed) this.ports.lost(link, reason)
  }

  /** It is gone at once, but what it said last is still heard. */
  private letLeave(link: EngineLink, reason: string): void {
    link.state = "gone"
    link.leaving = { reason, timer: setTimeout(() => this.bury(link, reason), lastOutputsMs) }
  }

  /** Why the sockets cannot be bound; null = they are. */
  private bind(): string | null {
    const { config, ports } = this
    const { dataParallelSize: engines } = config
    const door = openFrontDoor(tcpAddress(config.address, config.rpcPort), {
      engines,
      hello: (rank, peer) => this.hello(rank, peer),
      ready: (rank, peer) => this.saidReady(rank, peer),
      left: (rank, peer) => this.leftDoor(rank, peer),
      pong: (peer) => this.lives.came(peer),
      log: (line) => ports.log(line),
    })
    if (!door.ok) return door.error.message
    this.door = door.value
    if (config.rpcPort === 0) ports.log(`engines dial ${door.value.address}`)
    return this.places.bind(this.dataPorts, (line) => ports.log(line)) ?? this.bindCoordinator()
  }

  private bindCoordinator(): string | null {
    const { config, ports } = this
    if (!this.served.isCoordinated) return null
    const coordinator = Coordinator.open({
      engines: config.dataParallelSize,
      host: config.address,
      announces: () => this.slots.some((link) => link !== null && needsAnnouncements(link.facts.version)),
      report: (rank, stats) => this.slots[rank]?.noteLoad(stats),
      log: (line) => ports.log(line),
      now: () => ports.now(),
    })
    if (!coordinator.ok) return coordinator.error.message
    this.coordination = coordinator.value
    return null
  }

  /** A second HELLO of a rank counts only when the first engine is gone, does not answer, or has not shown that it works. */
  private hello(rank: number, peer: ZmtpPeer): void {
    const incumbent = this.slots[rank] ?? null
    const isFree = incumbent === null || incumbent.state === "silent" || incumbent.state === "gone"
    if (isFree || (incumbent.isReturning && !incumbent.isProven)) {
      this.welcome(rank, peer)
      return
    }
    const { connection } = incumbent
    if (incumbent.greeting === peer) return // it said so already
    this.atDoor.add(peer)
    // Behind READY an engine may have no connection for a moment: the others are still being opened.
    const sign =
      connection === null
        ? Bun.sleep(doubtMs).then(() => incumbent.connection !== null)
        : this.lives.ask(connection, doubtMs)
    void sign.then((lives) => {
      // Meanwhile it may have left, and the first one may have gone, been replaced, or closed the connection that was
      // asked, as it does with the one of the handshake.
      if (this.closed || !this.atDoor.delete(peer)) return
      const isOther = this.slots[rank] !== incumbent || (!lives && incumbent.connection !== connection)
      if (isOther) this.hello(rank, peer)
      else if (lives) {
        this.ports.log(`a second engine ${rank} came while the first one lives: it was sent away`)
        peer.close()
      } else this.welcome(rank, peer)
    })
  }

  private welcome(rank: number, peer: ZmtpPeer): void {
    const old = this.slots[rank] ?? null
    const replaced = "another process took its place"
    if (old !== null) {
      this.lose(old, replaced)
      old.close(replaced)
    }
    const sockets = this.places.forEngine(rank, this.dataPorts)
    if (!sockets.ok) {
      this.ports.log(`engine ${rank} cannot be served: ${sockets.error.message}`)
      peer.close()
      return
    }
    const link = new EngineLink(rank, peer, old?.counters ?? newCounters())
    sockets.value.link = link
    this.slots[rank] = link
    this.ports.log(`${link.label} connected and starts`)
    this.inits.add(link)
  }

  private saidReady(rank: number, peer: ZmtpPeer): void {
    const link = this.slots[rank] ?? null
    // When the network failed in between, READY comes over another connection than HELLO.
    if (link === null || (link.greeting !== null && link.greeting !== peer)) return
    link.saidReady = true
    this.verify(link)
  }

  /**
   * The engine closes its handshake connection after READY; before, it has failed to start. If it had dialled us already,
   * those connections tell: while they are open the process lives, and has only lost this one.
   */
  private leftDoor(rank: number, peer: ZmtpPeer): void {
    this.atDoor.delete(peer)
    this.lives.closed(peer)
    const link = this.slots[rank] ?? null
    if (link === null || link.greeting !== peer) return
    link.greeting = null
    if (!link.saidReady && link.connection === null) this.lose(link, "it left while it was starting")
  }

  private inputOpened(sockets: DataSockets, peer: ZmtpPeer): void {
    if (rankOf(peer.identity, this.slots.length) !== sockets.rank) {
      this.ports.log(`an input connection of somebody else than engine ${sockets.rank} was closed`)
      peer.close()
      return
    }
    const link = sockets.link ?? this.readmit(sockets)
    if (link === null) return
    if (link.leaving !== null) this.bury(link, link.leaving.reason)
    if (link.input !== null) {
      this.watch.doubt(link, link.input, peer)
    } else if (link.sending === null) {
      link.inputs.add(peer)
    } else {
      link.input = peer
      this.verify(link)
    }
  }

  private registered(sockets: DataSockets, peer: ZmtpPeer, frames: readonly Uint8Array[]): void {
    const { link } = sockets
    if (link === null || (link.input !== peer && !link.inputs.has(peer))) return
    const read = readEngineFacts(frames[0] ?? new Uint8Array(0))
    if (!read.ok) {
      this.lose(link, `its registration cannot be read: ${read.error.message}`)
      return
    }
    link.settleInput(peer)
    this.take(link, read.value, "engine")
    this.verify(link)
  }

  /** What an engine is decides what goes to it, and is left to the next process of this server. */
  private take(link: EngineLink, facts: EngineFacts, toldBy: EngineLink["toldBy"]): void {
    const { contextTokensMax, vocabSize } = this.ports
    const limits = {
      contextTokensMax: Math.min(facts.contextTokensMax ?? Number.MAX_SAFE_INTEGER, contextTokensMax),
      vocabSize,
      supportsLora: facts.supportsLora,
      structuredOutputsBackend: backendOf(this.config),
    }
    link.register(facts, limits, toldBy)
    const windows = this.slots.flatMap((each) => each?.sending?.limits.contextTokensMax ?? [])
    this.ports.window(Math.min(...windows))
    const sockets = this.places.of(link.rank)
    if (toldBy !== "engine" || sockets?.isStable !== true) return
    const isKept = this.records.write(placeOf(sockets), { facts, ...this.served })
    if (!isKept) this.ports.log(`what ${link.label} is cannot be kept in ${this.config.recordsDir}`)
  }

  /** Somebody dials who knows the address of a rank's data from an earlier process of this server. */
  private readmit(sockets: DataSockets): EngineLink | null {
    if (sockets.hasRefused) return null
    const { rank } = sockets
    const record = this.records.read(placeOf(sockets))
    const why = whyNotTaken(record, this.served)
    if (why !== null) {
      // Its connections stay open: closed ones would be dialled again, for ever.
      sockets.hasRefused = true
      this.ports.log(`engine ${rank} served an earlier process of this server and must be started again: ${why}`)
      return null
    }
    const link = new EngineLink(rank, null, newCounters())
    sockets.link = link
    this.slots[rank] = link
    this.ports.log(`${link.label} served an earlier process of this server; it is asked whether it works`)
    this.take(link, record?.facts ?? unknownFacts, record === null ? "nobody" : "record")
    const late = setTimeout(() => this.missHalf(link), halfOpenMs)
    late.unref()
    return link
  }

  /** An engine that does not read any more ("deaf") has only its output connection left. */
  private missHalf(link: EngineLink): void {
    if (this.closed || this.slots[link.rank] !== link || link.isProven) return
    const missing = link.input === null ? "input" : link.outputs.size === 0 ? "output" : null
    if (missing === null) return
    this.ports.log(`${link.label} of an earlier process opens no ${missing} connection: it must be started again`)
  }

  private dataClosed(sockets: DataSockets, peer: ZmtpPeer, reason: string): void {
    this.lives.closed(peer)
    const { link } = sockets
    if (link === null || link.inputs.delete(peer)) return
    const wasPossible = link.outputs.delete(peer)
    if (!wasPossible && peer !== link.input && peer !== link.output) return
    // The answer that is waited for may come over another one.
    if (wasPossible && (link.outputs.size > 0 || !link.verifies)) return
    const name = peer === link.input ? "input" : "output"
    if (!wasPossible) link[name] = null
    const why = `its ${name} connection closed (${reason})`
    const canTell = link.output !== null || link.outputs.size > 0
    if (link.leaving !== null) this.bury(link, link.leaving.reason)
    else if (name === "input" && canTell && link.state !== "gone") this.letLeave(link, why)
    else this.lose(link, why)
  }

  private outputOpened(sockets: DataSockets, peer: ZmtpPeer): void {
    const link = sockets.link ?? this.readmit(sockets)
    if (link === null) return
    if (link.output !== null) {
      this.watch.doubt(link, link.output, peer)
      return
    }
    link.outputs.add(peer)
    this.verify(link)
  }

  /** Hot for the connection that is known to be the engine's. */
  private heard(sockets: DataSockets, peer: ZmtpPeer, frames: readonly Uint8Array[]): void {
    const { link } = sockets
    if (link === null) return
    if (link.output === peer) {
      this.ports.message(link, frames)
      return
    }
    if (!link.outputs.has(peer)) return
    if (link.outputs.size > 1 && isEngineDead(frames)) {
      // One of them dies, and it may not be this one.
      peer.close()
      return
    }
    const { answers } = link
    this.ports.message(link, frames)
    if (link.answers > answers && link.outputs.has(peer)) link.settleOutput(peer)
  }

  /**
   * Once all has arrived, one call shows that both directions work; with its answer the engine takes requests. The same
   * for a process that was cut off and dialled again: that one never says HELLO twice.
   */
  private verify(link: EngineLink): void {
    const hasOutput = link.output !== null || link.outputs.size > 0
    const isWhole = link.input !== null && hasOutput && link.saidReady && link.sending !== null
    if (!isWhole || link.verifies || link.state === "ready" || link.state === "silent") return
    const returns = link.state === "gone"
    link.state = "starting"
    link.verifies = true
    void this.prove(link, returns)
  }

  private async prove(link: EngineLink, returns: boolean): Promise<void> {
    const { utilityTimeoutMs } = this.config
    const answer = await link.call(probeMethod, [], utilityTimeoutMs)
    // An engine that lacks the method answers too.
    let failure = answer.ok || answer.error.kind === "utility_failed" ? null : answer.error
    if (failure === null && link.state === "starting" && link.toldBy !== "engine") {
      const said = await askFacts(link, utilityTimeoutMs)
      if (!said.ok) failure = said.error
      // It may have registered meanwhile: it was loading its model when the earlier process ended.
      else if (said.value !== null && link.state === "starting") this.take(link, said.value, "engine")
    }
    link.verifies = false
    // Lost while a call was waiting; what opens its connections again verifies again.
    if (link.state !== "starting") return
    if (failure === null) this.begin(link, returns)
    else this.lose(link, failure.message)
  }

  private begin(link: EngineLink, returns: boolean): void {
    link.abortOrphans()
    link.state = "ready"
    for (const line of readyLines(link, returns, this.ports.contextTokensMax)) this.ports.log(line)
    link.isProven = true
    this.ports.ready(link)
  }
}

/** Which engine a record is of. */
function placeOf({ addresses, rank }: DataSockets): RecordedPlace {
  return { address: addresses.input, rank }
}

/** vLLM's own default is xgrammar. */
function backendOf(config: VllmConfig): string {
  return config.structuredOutputsBackend === "auto" ? "xgrammar" : config.structuredOutputsBackend
}
