/** Which socket types may talk, and in which direction. Source: RFC 37, "socket semantics". */
import type { SocketType } from "./peer"

/** What a socket type does. */
export interface Semantics {
  /** The types that a peer may have. */
  readonly peers: readonly string[]
  /** Whether messages may be sent to peers; SUB only sends subscriptions. */
  readonly sends: boolean
  /** Whether messages of peers are handed on; others are dropped, as libzmq does. */
  readonly receives: boolean
  /** Whether peers subscribe here. */
  readonly publishes: boolean
  /** Whether we subscribe at peers. */
  readonly subscribes: boolean
}

/** By our own type. */
export const semantics: { readonly [type in SocketType]: Semantics } = {
  ROUTER: { peers: ["DEALER", "REQ", "ROUTER"], sends: true, receives: true, publishes: false, subscribes: false },
  DEALER: { peers: ["ROUTER", "REP", "DEALER"], sends: true, receives: true, publishes: false, subscribes: false },
  PUSH: { peers: ["PULL"], sends: true, receives: false, publishes: false, subscribes: false },
  PULL: { peers: ["PUSH"], sends: false, receives: true, publishes: false, subscribes: false },
  PUB: { peers: ["SUB", "XSUB"], sends: true, receives: false, publishes: true, subscribes: false },
  XPUB: { peers: ["SUB", "XSUB"], sends: true, receives: true, publishes: true, subscribes: false },
  SUB: { peers: ["PUB", "XPUB"], sends: false, receives: true, publishes: false, subscribes: true },
  XSUB: { peers: ["PUB", "XPUB"], sends: true, receives: true, publishes: false, subscribes: true },
}
