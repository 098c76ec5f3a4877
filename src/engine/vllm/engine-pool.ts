/**
 * The engines of a server as they come and go: handshake, registration, loss of a connection, return. What any of it
 * means for running sequences is the owner's business (client.ts).
 */
import type { VllmConfig } from "../../config"
import type { Json } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { listenZmtp } from "../zmtp/listener"
import type { ZmtpListener, ZmtpPeer } from "../zmtp/peer"
import { ControlEncoder } from "./control-messages"
import { Coordinator } from "./coordinator"
import { readEngineFacts } from "./engine-facts"
import { EngineLink, newCounters } from "./engine-link"
import { openFrontDoor, rankOf } from "./front-door"
import { LifeSigns } from "./life-signs"
import { hostOf, isWildcard, meetingPoint, portOf, tcpAddress } from "./socket-address"

/** What the pool needs to know, and whom it tells. */
export interface EnginePoolPorts {
  /** The served model's window; an engine's own may be smaller, and then counts for what goes to it. */
  readonly contextTokensMax: number
  readonly vocabSize: number
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

/** A new engine of a rank that another holds: the other one has this long to show that it lives. */
const incumbentMs = 2_000
/** What an engine said last (that it ends its sequences, or dies) may come after its input connection has closed. */
const lastOutputsMs = 100
/** Every so often each engine is asked whether its machine is still there; it has as long to answer. */
const heartbeatMs = 10_000
/** The call that shows whether an engine steps: cheap, and known to all versions. */
export const probeMethod = "is_sleeping"

/** See the head of this file. */
export class EnginePool {
  /** By data-parallel rank; null = never came. */
  readonly links: readonly (EngineLink | null)[]
  private readonly slots: (EngineLink | null)[]
  private readonly config: VllmConfig
  private readonly ports: EnginePoolPorts
  private readonly control = new ControlEncoder()
  private door: ZmtpListener | null = null
  private coordination: Coordinator | null = null
  /** Engines that said HELLO while another one holds their rank, which is asked whether it lives. */
  private readonly atDoor = new Set<ZmtpPeer>()
  /** Engines that wait for INIT: a group that steps together meets on the machine of rank 0, so that one comes first. */
  private readonly uninitialized = new Set<EngineLink>()
  /** What INIT tells a group that steps together. */
  private group: { readonly [key: string]: Json } = {}
  private readonly lives = new LifeSigns()
  private readonly heartbeat: Timer
  private closed = false

  private constructor(config: VllmConfig, ports: EnginePoolPorts) {
    this.config = config
    this.ports = ports
    this.slots = new Array<EngineLink | null>(config.dataParallelSize).fill(null)
    this.links = this.slots
    this.heartbeat = setInterval(() => this.askAll(), heartbeatMs)
    this.heartbeat.unref()
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

  /** Closes all connections and sockets. */
  close(reason: string): void {
    this.closed = true
    clearInterval(this.heartbeat)
    for (const link of this.slots) link?.close(reason)
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
    this.uninitialized.delete(link)
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
    if (!needsCoordinator(config, ports.isMixtureOfExperts)) return null
    const coordinator = Coordinator.open({
      engines,
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

  /** A second HELLO of a rank counts only when the first engine is gone or does not answer. */
  private hello(rank: number, peer: ZmtpPeer): void {
    const incumbent = this.slots[rank] ?? null
    if (incumbent === null || incumbent.state === "silent" || incumbent.state === "gone") {
      this.welcome(rank, peer)
      return
    }
    const { connection } = incumbent
    if (incumbent.greeting === peer) return // it said so already
    this.atDoor.add(peer)
    // Behind READY an engine may have no connection for a moment: the others are still being opened.
    const sign =
      connection === null
        ? Bun.sleep(incumbentMs).then(() => incumbent.connection !== null)
        : this.lives.ask(connection, incumbentMs)
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
    const address = tcpAddress(this.config.address, 0)
    const inputs = listenZmtp({
      address,
      socketType: "ROUTER",
      handler: {
        ready: (from) => this.inputOpened(link, from),
        message: (from, frames) => this.register(link, from, frames),
        closed: (from, reason) => this.dataClosed(link, from, reason),
        pong: (from) => this.lives.came(from),
      },
    })
    const outputs = listenZmtp({
      address,
      socketType: "PULL",
      handler: {
        ready: (from) => this.outputOpened(link, from),
        message: (from, frames) => {
          if (link.output === from) this.ports.message(link, frames)
        },
        closed: (from, reason) => this.dataClosed(link, from, reason),
        pong: (from) => this.lives.came(from),
      },
    })
    if (!inputs.ok || !outputs.ok) {
      const failure = inputs.ok ? outputs : inputs
      for (const each of [inputs, outputs]) if (each.ok) each.value.close()
      this.ports.log(`engine ${rank} cannot be served: ${failure.ok ? "" : failure.error.message}`)
      peer.close()
      return
    }
    const listeners = { inputs: inputs.value, outputs: outputs.value }
    const link: EngineLink = new EngineLink(rank, listeners, peer, old?.counters ?? newCounters())
    this.slots[rank] = link
    this.ports.log(`${link.label} connected and starts`)
    this.uninitialized.add(link)
    this.initialize()
  }

  private initialize(): void {
    if (this.coordination === null) {
      for (const link of this.uninitialized) this.sendInit(link, {})
      return
    }
    const first = this.slots[0] ?? null
    if (first === null || first.state === "gone") return
    if (this.uninitialized.has(first) && first.greeting !== null) {
      this.group = meetingPoint(first.greeting, this.config.dataParallelSize)
    }
    for (const link of this.uninitialized) this.sendInit(link, this.group)
  }

  private sendInit(link: EngineLink, parallelConfig: { readonly [key: string]: Json }): void {
    this.uninitialized.delete(link)
    const { greeting } = link
    if (greeting === null) return
    const host = isWildcard(this.config.address) ? hostOf(greeting.local) : this.config.address
    const advertised = (address: string): string => tcpAddress(host, portOf(address))
    const coordinator = this.coordination?.addresses ?? null
    const body = this.control.init(
      {
        inputs: [advertised(link.listeners.inputs.address)],
        outputs: [advertised(link.listeners.outputs.address)],
        coordinatorInput: coordinator === null ? null : advertised(coordinator.input),
        coordinatorOutput: coordinator === null ? null : advertised(coordinator.output),
        frontendStatsPublish: null,
      },
      parallelConfig,
    )
    if (!greeting.send([body])) this.lose(link, "its handshake connection takes nothing")
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

  private inputOpened(link: EngineLink, peer: ZmtpPeer): void {
    if (rankOf(peer.identity, this.slots.length) !== link.rank) {
      this.ports.log(`an input connection of somebody else than ${link.label} was closed`)
      peer.close()
      return
    }
    if (link.leaving !== null) this.bury(link, link.leaving.reason)
    if (link.input !== null) {
      this.doubt(link, link.input, peer)
      return
    }
    link.input = peer
    this.verify(link)
  }

  private register(link: EngineLink, peer: ZmtpPeer, frames: readonly Uint8Array[]): void {
    if (link.input !== peer) return
    const read = readEngineFacts(frames[0] ?? new Uint8Array(0))
    if (!read.ok) {
      this.lose(link, `its registration cannot be read: ${read.error.message}`)
      return
    }
    const facts = read.value
    link.register(facts, {
      contextTokensMax: Math.min(facts.contextTokensMax ?? Number.MAX_SAFE_INTEGER, this.ports.contextTokensMax),
      vocabSize: this.ports.vocabSize,
      supportsLora: facts.supportsLora,
      structuredOutputsBackend: backendOf(this.config),
    })
    const windows = this.slots.flatMap((each) => each?.sending?.limits.contextTokensMax ?? [])
    this.ports.window(Math.min(...windows))
    this.verify(link)
  }

  private dataClosed(link: EngineLink, peer: ZmtpPeer, reason: string): void {
    this.lives.closed(peer)
    if (peer !== link.input && peer !== link.output) return
    const name = peer === link.input ? "input" : "output"
    link[name] = null
    const why = `its ${name} connection closed (${reason})`
    if (link.leaving !== null) this.bury(link, link.leaving.reason)
    else if (name === "input" && link.output !== null && link.state !== "gone") this.letLeave(link, why)
    else this.lose(link, why)
  }

  private outputOpened(link: EngineLink, peer: ZmtpPeer): void {
    if (link.output !== null) {
      this.doubt(link, link.output, peer)
      return
    }
    link.output = peer
    this.verify(link)
  }

  /**
   * A second connection beside one that is open: it is closed. But an engine dials again only when it lost the first
   * one, perhaps without our noticing; if nobody answers there, that one goes too, and the next dial is taken.
   */
  private doubt(link: EngineLink, present: ZmtpPeer, second: ZmtpPeer): void {
    second.close()
    if (this.lives.asks(present)) return
    this.ports.log(`${link.label} opened a connection twice: the second one was closed`)
    this.ask(link, present, incumbentMs)
  }

  private ask(link: EngineLink, connection: ZmtpPeer, withinMs: number): void {
    void this.lives.ask(connection, withinMs).then((lives) => {
      if (lives || (link.input !== connection && link.output !== connection)) return
      // Of an engine that is on its way back only this connection is known to be dead.
      if (link.state === "gone") connection.close()
      else this.lose(link, `no sign of life for ${withinMs / 1_000} s`)
    })
  }

  /**
   * Once all has arrived, one call shows that both directions work; with its answer the engine takes requests. The same
   * for a process that was cut off and dialled again: that one never says HELLO twice.
   */
  private verify(link: EngineLink): void {
    const isWhole = link.input !== null && link.output !== null && link.saidReady && link.sending !== null
    if (!isWhole || link.verifies || link.state === "ready" || link.state === "silent") return
    const returns = link.state === "gone"
    link.state = "starting"
    link.verifies = true
    void link.call(probeMethod, [], this.config.utilityTimeoutMs).then((answer) => {
      link.verifies = false
      // Lost while the call was waiting; what opens its connections again verifies again.
      if (link.state !== "starting") return
      // An engine that lacks the method answers too.
      if (answer.ok || answer.error.kind === "utility_failed") this.begin(link, returns)
      else this.lose(link, answer.error.message)
    })
  }

  /** A machine that is gone, or cut off without a word, closes no connection. */
  private askAll(): void {
    for (const link of this.slots) {
      if (link === null) continue
      for (const connection of [link.input, link.output]) {
        if (connection !== null && !this.lives.asks(connection)) this.ask(link, connection, heartbeatMs)
      }
    }
  }

  private begin(link: EngineLink, returns: boolean): void {
    link.abortOrphans()
    link.state = "ready"
    const { version, contextTokensMax, sequencesMax } = link.facts
    const known = [
      version === null ? null : `vLLM ${version}`,
      contextTokensMax === null ? null : `window ${contextTokensMax}`,
      sequencesMax === null ? null : `${sequencesMax} sequences at once`,
    ].filter((each) => each !== null)
    this.ports.log(returns ? `${link.label} is back` : [`${link.label} is ready`, ...known].join(", "))
    if (!returns && contextTokensMax !== null && contextTokensMax < this.ports.contextTokensMax) {
      this.ports.log(`the window is ${link.label}'s, ${contextTokensMax} tokens, not ${this.ports.contextTokensMax}`)
    }
    this.ports.ready(link)
  }
}

function needsCoordinator(config: VllmConfig, isMixtureOfExperts: boolean): boolean {
  if (config.coordinator !== "auto") return config.coordinator === "on"
  return config.dataParallelSize > 1 && isMixtureOfExperts
}

/** Since 0.33 engines wake their siblings themselves. An engine that does not tell its version may be older. */
function needsAnnouncements(version: string | null): boolean {
  const match = /^(\d+)\.(\d+)/.exec(version ?? "")
  return match === null || (match[1] === "0" && Number(match[2]) < 33)
}

/** vLLM's own default is xgrammar. */
function backendOf(config: VllmConfig): string {
  return config.structuredOutputsBackend === "auto" ? "xgrammar" : config.structuredOutputsBackend
}
