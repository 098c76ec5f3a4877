import { err, type Result } from "../../result"
import { listenZmtp } from "../zmtp/listener"
import type { ZmtpFailure, ZmtpListener, ZmtpPeer } from "../zmtp/peer"
import { readStatusMessage } from "./engine-facts"

/** What happens at the handshake socket; `peer` is the connection it happened on. */
export interface FrontDoorPorts {
  /** Data-parallel ranks are below this. */
  readonly engines: number
  hello(rank: number, peer: ZmtpPeer): void
  ready(rank: number, peer: ZmtpPeer): void
  left(rank: number, peer: ZmtpPeer): void
  /** The answer to a PING. */
  pong(peer: ZmtpPeer): void
  log(line: string): void
}

/** An engine's identity is its rank in two bytes, little endian (ENGINE_PROTOCOL 1); -1 = no rank below `engines`. */
export function rankOf(identity: Uint8Array, engines: number): number {
  if (identity.length !== 2) return -1
  const rank = identity[0]! | (identity[1]! << 8)
  return rank < engines ? rank : -1
}

/**
 * Binds the handshake socket, where engines announce themselves. Whoever says something else is sent away. The failure
 * names the flags that say where it listens: a second server on the machine finds the usual port taken.
 */
export function openFrontDoor(address: string, ports: FrontDoorPorts): Result<ZmtpListener, ZmtpFailure> {
  const door = listenZmtp({
    address,
    socketType: "ROUTER",
    handler: {
      ready(peer) {
        if (rankOf(peer.identity, ports.engines) >= 0) return
        ports.log(
          `handshake: an engine with an unexpected data-parallel rank came; --data-parallel-size is ${ports.engines}`,
        )
        peer.close()
      },
      message(peer, frames) {
        const rank = rankOf(peer.identity, ports.engines)
        const message = readStatusMessage(frames[0] ?? new Uint8Array(0))
        if (!message.ok || rank < 0) {
          ports.log(`handshake: engine ${rank} sent a message that cannot be read`)
          return peer.close()
        }
        if (message.value.status === "HELLO") {
          if (!message.value.isHeadless) ports.log(`engine ${rank} was not started with --headless`)
          ports.hello(rank, peer)
        } else if (message.value.status === "READY") ports.ready(rank, peer)
        else ports.log(`handshake: engine ${rank} said ${JSON.stringify(message.value.status.slice(0, 40))}`)
      },
      pong: (peer) => ports.pong(peer),
      closed(peer) {
        const rank = rankOf(peer.identity, ports.engines)
        if (rank >= 0) ports.left(rank, peer)
      },
    },
  })
  if (door.ok) return door
  const flags = "--data-parallel-address and --data-parallel-rpc-port say where, port 0 is any free one"
  return err({ ...door.error, message: `cannot listen for engines on ${door.error.message}; ${flags}` })
}
