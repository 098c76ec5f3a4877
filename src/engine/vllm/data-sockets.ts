import { err, ok, type Result } from "../../result"
import { listenZmtp } from "../zmtp/listener"
import type { ZmtpFailure, ZmtpListener, ZmtpPeer } from "../zmtp/peer"
import type { EngineLink } from "./engine-link"
import { tcpAddress } from "./socket-address"

/** What happens at the data sockets of a rank; frames are borrowed during the call. */
export interface DataSocketPorts {
  inputOpened(sockets: DataSockets, peer: ZmtpPeer): void
  /** A message on an input connection: the engine registers. */
  registered(sockets: DataSockets, peer: ZmtpPeer, frames: readonly Uint8Array[]): void
  outputOpened(sockets: DataSockets, peer: ZmtpPeer): void
  outputs(sockets: DataSockets, peer: ZmtpPeer, frames: readonly Uint8Array[]): void
  closed(sockets: DataSockets, peer: ZmtpPeer, reason: string): void
  /** The answer to a PING. */
  pong(peer: ZmtpPeer): void
}

/** Where they listen. */
export interface DataSocketPlace {
  readonly rank: number
  readonly host: string
  /** Of the inputs; the outputs have the next one. 0 = a free one for each. */
  readonly port: number
}

/**
 * The two sockets at which the engine of a rank takes its requests and leaves its outputs. Those at stable ports stand for
 * as long as the process: whoever knows them from an earlier process finds the next one there, since libzmq dials for
 * ever. At free ports they are one engine's own, so that what it leaves behind never meets its successor.
 */
export class DataSockets {
  readonly rank: number
  readonly isStable: boolean
  /** Whose connections these are; null = nobody's yet. */
  link: EngineLink | null = null
  /** An engine of an earlier process came here and was not taken. */
  hasRefused = false
  private inputs: ZmtpListener | null = null
  private outputs: ZmtpListener | null = null

  private constructor(rank: number, isStable: boolean) {
    this.rank = rank
    this.isStable = isStable
  }

  /** Binds both. */
  static open(place: DataSocketPlace, ports: DataSocketPorts): Result<DataSockets, ZmtpFailure> {
    const { rank, host, port } = place
    const sockets = new DataSockets(rank, port !== 0)
    const inputs = listenZmtp({
      address: tcpAddress(host, port),
      socketType: "ROUTER",
      handler: {
        ready: (peer) => ports.inputOpened(sockets, peer),
        message: (peer, frames) => ports.registered(sockets, peer, frames),
        closed: (peer, reason) => ports.closed(sockets, peer, reason),
        pong: (peer) => ports.pong(peer),
      },
    })
    if (!inputs.ok) return err(inputs.error)
    sockets.inputs = inputs.value
    const outputs = listenZmtp({
      address: tcpAddress(host, port === 0 ? 0 : port + 1),
      socketType: "PULL",
      handler: {
        ready: (peer) => ports.outputOpened(sockets, peer),
        message: (peer, frames) => ports.outputs(sockets, peer, frames),
        closed: (peer, reason) => ports.closed(sockets, peer, reason),
        pong: (peer) => ports.pong(peer),
      },
    })
    if (!outputs.ok) {
      sockets.close()
      return err(outputs.error)
    }
    sockets.outputs = outputs.value
    return ok(sockets)
  }

  /** Where the engine reads, and where it writes; a host that is a wildcard stays one. */
  get addresses(): { readonly input: string; readonly output: string } {
    return { input: this.inputs?.address ?? "", output: this.outputs?.address ?? "" }
  }

  /** Closes both, with all connections. */
  close(): void {
    this.inputs?.close()
    this.outputs?.close()
  }
}
