import type { ZmtpPeer } from "../zmtp/peer"
import type { EngineLink } from "./engine-link"
import type { LifeSigns } from "./life-signs"

/** Whose connections are watched, and who hears of it. */
export interface ConnectionWatchPorts {
  /** By data-parallel rank; null = never came. */
  readonly links: readonly (EngineLink | null)[]
  readonly lives: LifeSigns
  /** Nobody is at the other end of a connection that the engine works with. */
  lose(link: EngineLink, reason: string): void
  log(line: string): void
}

/** Whoever is in doubt has this long to show that it lives. */
export const doubtMs = 2_000
/** Every so often each engine is asked whether its machine is still there; it has as long to answer. */
const heartbeatMs = 10_000

/** Notices connections that are dead without having closed: a machine that is gone, or cut off, says no word. */
export class ConnectionWatch {
  private readonly ports: ConnectionWatchPorts
  private readonly heartbeat: Timer

  constructor(ports: ConnectionWatchPorts) {
    this.ports = ports
    this.heartbeat = setInterval(() => this.askAll(), heartbeatMs)
    this.heartbeat.unref()
  }

  /** Asks nobody any more. */
  close(): void {
    clearInterval(this.heartbeat)
  }

  /**
   * A second connection beside one that is open: it is closed. But an engine dials again only when it lost the first
   * one, perhaps without our noticing; if nobody answers there, that one goes too, and the next dial is taken.
   */
  doubt(link: EngineLink, present: ZmtpPeer, second: ZmtpPeer): void {
    second.close()
    if (this.ports.lives.asks(present)) return
    if (!link.toldOfSecond) this.ports.log(`${link.label} opened a connection twice: the second one was closed`)
    link.toldOfSecond = true
    this.ask(link, present, doubtMs)
  }

  private askAll(): void {
    for (const link of this.ports.links) {
      if (link === null) continue
      for (const connection of [link.input, link.output, ...link.outputs]) {
        if (connection !== null && !this.ports.lives.asks(connection)) this.ask(link, connection, heartbeatMs)
      }
    }
  }

  private ask(link: EngineLink, connection: ZmtpPeer, withinMs: number): void {
    void this.ports.lives.ask(connection, withinMs).then((lives) => {
      const isPossible = link.outputs.has(connection)
      if (lives || (link.input !== connection && link.output !== connection && !isPossible)) return
      // Of an engine that is on its way back only this connection is known to be dead.
      if (link.state === "gone" || isPossible) connection.close()
      else this.ports.lose(link, `no sign of life for ${withinMs / 1_000} s`)
    })
  }
}
