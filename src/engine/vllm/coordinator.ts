import type { VllmConfig } from "../../config"
import { ok, type Result } from "../../result"
import { listenZmtp } from "../zmtp/listener"
import type { ZmtpFailure, ZmtpListener, ZmtpPeer } from "../zmtp/peer"
import { ControlEncoder, MessageType } from "./control-messages"
import { OutputFields, type SchedulerStats } from "./output-fields"
import { OutputsDecoder } from "./outputs-decoder"
import { RequestIds } from "./request-id"
import { tcpAddress } from "./socket-address"

/** What the coordinator needs from whoever owns it. */
export interface CoordinatorPorts {
  /** Engines that must have come before any of them may run. */
  readonly engines: number
  /** Host that the sockets bind. */
  readonly host: string
  /** Whether an idle engine must be told that a sibling got a request: `needsAnnouncements` of any engine. */
  announces(): boolean
  /** Gauges that an engine published between its steps. */
  report(rank: number, stats: SchedulerStats): void
  log(line: string): void
  /** Milliseconds on a monotonic clock. */
  now(): number
}

const startWaveType = Uint8Array.of(MessageType.startWave)
const readyFrames = [new TextEncoder().encode("READY")]
/** An announcement that no engine confirmed is made again by the next request after this time. */
const announceAgainMs = 100

/**
 * The coordinator of data-parallel mixture-of-experts engines, which step together or not at all (ENGINE_PROTOCOL 12).
 * A wave is the time from the first request until all engines are idle; requests carry the wave that was heard of last,
 * so that an engine tells a request of a wave that is over. Headless engines bring no coordinator of their own.
 */
export class Coordinator {
  /** The wave that runs, or the next one when none runs. */
  wave = 0
  private running = false
  private announcedAt = Number.NEGATIVE_INFINITY
  private readonly ports: CoordinatorPorts
  /** Connections that have subscribed. */
  private readonly subscribers = new Set<ZmtpPeer>()
  private begun = false
  private readonly decoder: OutputsDecoder
  private readonly fields: OutputFields
  private readonly control = new ControlEncoder()
  private publisher: ZmtpListener | null = null
  private collector: ZmtpListener | null = null

  private constructor(ports: CoordinatorPorts) {
    this.ports = ports
    // Its messages name no request.
    const ids = new RequestIds(0)
    this.decoder = new OutputsDecoder(ids)
    this.fields = new OutputFields(this.decoder.batch, ids)
  }

  /** Binds both sockets at free ports of the host. */
  static open(ports: CoordinatorPorts): Result<Coordinator, ZmtpFailure> {
    const coordinator = new Coordinator(ports)
    const address = tcpAddress(ports.host, 0)
    const publisher = listenZmtp({ address, socketType: "XPUB", handler: coordinator.publisherHandler() })
    if (!publisher.ok) return publisher
    coordinator.publisher = publisher.value
    const collector = listenZmtp({ address, socketType: "PULL", handler: coordinator.collectorHandler() })
    if (!collector.ok) {
      coordinator.close()
      return collector
    }
    coordinator.collector = collector.value
    return ok(coordinator)
  }

  /** Addresses of `coordinator_input` and `coordinator_output` in INIT. */
  get addresses(): { readonly input: string; readonly output: string } {
    return { input: this.publisher?.address ?? "", output: this.collector?.address ?? "" }
  }

  /** A request is about to go to an engine: its idle siblings must step along. */
  requestSent(rank: number): void {
    if (this.running || !this.ports.announces()) return
    const now = this.ports.now()
    if (now - this.announcedAt < announceAgainMs) return
    this.announcedAt = now
    this.startWave(rank)
  }

  close(): void {
    this.publisher?.close()
    this.collector?.close()
  }

  private publisherHandler() {
    return {
      ready: (): void => {},
      message: (): void => {},
      subscribed: (peer: ZmtpPeer, _topic: Uint8Array, on: boolean): void => {
        if (on) this.subscribe(peer)
        else this.subscribers.delete(peer)
      },
      closed: (peer: ZmtpPeer): void => this.unsubscribe(peer),
    }
  }

  private collectorHandler() {
    return {
      ready: (): void => {},
      message: (_peer: ZmtpPeer, frames: readonly Uint8Array[]): void => this.collect(frames),
      closed: (): void => {},
    }
  }

  private subscribe(peer: ZmtpPeer): void {
    if (this.subscribers.has(peer)) return
    this.subscribers.add(peer)
    if (this.begun) {
      peer.send(readyFrames)
      return
    }
    if (this.subscribers.size < this.ports.engines) return
    this.begun = true
    for (const each of this.subscribers) each.send(readyFrames)
  }

  private unsubscribe(peer: ZmtpPeer): void {
    if (!this.subscribers.delete(peer)) return
    // Whatever ran has lost a member: the next request announces itself again.
    this.running = false
    this.announcedAt = Number.NEGATIVE_INFINITY
    if (this.subscribers.size > 0) return
    // The next ones begin from nothing, together.
    this.wave = 0
    this.begun = false
  }

  private collect(frames: readonly Uint8Array[]): void {
    const decoded = this.decoder.decode(frames)
    if (!decoded.ok) {
      this.ports.log(`coordinator: a message cannot be read: ${decoded.error.message}`)
      return
    }
    const { engineIndex, waveComplete, startWave } = decoded.value
    const stats = this.fields.schedulerStats()
    if (stats.ok && stats.value !== null) this.ports.report(engineIndex, stats.value)
    if (waveComplete >= this.wave) {
      this.wave = waveComplete + 1
      this.running = false
      this.announcedAt = Number.NEGATIVE_INFINITY
    } else if (startWave > this.wave || (startWave === this.wave && !this.running)) {
      this.wave = startWave
      this.running = true
      this.startWave(engineIndex)
    }
  }

  /** `knows` is the engine that needs no telling: it has the request. */
  private startWave(knows: number): void {
    const frames = [startWaveType, this.control.startWave(this.wave, knows)]
    for (const peer of this.subscribers) peer.send(frames)
  }
}

/** Whether the engines need a coordinator: several of a model that is a mixture of experts do, unless the flag overrules. */
export function needsCoordinator(config: VllmConfig, isMixtureOfExperts: boolean): boolean {
  if (config.coordinator !== "auto") return config.coordinator === "on"
  return config.dataParallelSize > 1 && isMixtureOfExperts
}

/**
 * Whether engines of a version must be told of their siblings' requests: since 0.33 they find out by themselves
 * (ENGINE_PROTOCOL 14). null = it does not tell its version, and may be older.
 */
export function needsAnnouncements(version: string | null): boolean {
  const match = /^(\d+)\.(\d+)/.exec(version ?? "")
  return match === null || (match[1] === "0" && Number(match[2]) < 33)
}
