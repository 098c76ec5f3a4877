/**
 * What the engine link sees of ZMTP (the wire protocol of ZeroMQ, RFC 37): peers that are connected and ready, and
 * messages of whole frames. `listener.ts` accepts peers and `dialer.ts` calls them; routing is the caller's, who holds
 * the peers: a ROUTER picks one by identity, an XPUB sends to those that subscribed.
 */

/** The socket types that we can be. A peer may be any type that fits (`socket-type.ts`), REQ and REP included. */
export type SocketType = "ROUTER" | "DEALER" | "PUSH" | "PULL" | "SUB" | "XSUB" | "XPUB" | "PUB"

/** Bounds of one listener or dialer. */
export interface ZmtpLimits {
  /** A longer frame closes its connection before memory is taken for it. */
  readonly frameBytesMax: number
  /** All frames of one message. */
  readonly messageBytesMax: number
  readonly messageFramesMax: number
  /** What may wait for one peer that reads slowly; `send` refuses what would go beyond. */
  readonly sendBufferBytesMax: number
  /** From the connection's opening to the end of its handshake. */
  readonly handshakeMs: number
  /** Connections of one listener, those in their handshake included; more are closed at once. */
  readonly peersMax: number
}

/** Frames as large as the largest tensors of an engine; a send buffer for some hundred multimodal requests. */
export const defaultZmtpLimits: ZmtpLimits = {
  frameBytesMax: 2 ** 30,
  messageBytesMax: 2 ** 31,
  messageFramesMax: 4_096,
  sendBufferBytesMax: 2 ** 28,
  handshakeMs: 10_000,
  peersMax: 1_024,
}

/** A connected peer that ended its handshake. Objects are never reused: a peer that comes back is another one. */
export interface ZmtpPeer {
  /** The `Identity` that the peer gave, 0–255 bytes; empty when it gave none. Not checked for being unique. */
  readonly identity: Uint8Array
  /** What the peer said it is, for instance `DEALER`. */
  readonly socketType: string
  /** Where the peer is: `127.0.0.1:5555`, `[::1]:5555`, or the address of the socket file. */
  readonly remote: string
  /** Our own end of the connection, written alike. */
  readonly local: string
  /** Bytes that were accepted and that the kernel has not taken yet. */
  readonly bufferedBytes: number
  /**
   * Sends one message of at least one frame. False = nothing of it was or will be sent: the peer is closed, or more
   * than `sendBufferBytesMax` would wait. The frames' bytes (not the array) must stay as they are until they are
   * written. What is sent in one turn of the event loop leaves together.
   */
  send(frames: readonly Uint8Array[]): boolean
  /** SUB and XSUB: subscribes to messages that begin with `topic`, or takes that back. False as with `send`. */
  subscribe(topic: Uint8Array, on: boolean): boolean
  /** Asks the peer for a PONG with these 0–16 bytes, which `pong` then gets. False as with `send`. */
  ping(context: Uint8Array): boolean
  /** Closes the connection; what the kernel does not take at once is lost. May be called again. */
  close(): void
}

/**
 * What happens to the peers of one listener or dialer. All calls are made from the event loop, never from within
 * `send`; only `closed` and `fault` may also come from within a `close`. A call that throws costs the peer its
 * connection, with the exception as the reason; `fault` must not throw.
 */
export interface ZmtpHandler {
  ready(peer: ZmtpPeer): void
  /**
   * One message. The array is reused and only valid during the call; the frames stay as they are for as long as they
   * are held (each keeps alive the chunk it was received in).
   */
  message(peer: ZmtpPeer, frames: readonly Uint8Array[]): void
  /** Once for each peer that was `ready`, whoever closed it. */
  closed(peer: ZmtpPeer, reason: string): void
  /** XPUB and PUB: the peer subscribed to a topic or took that back. A topic is the beginning of a message. */
  subscribed?(peer: ZmtpPeer, topic: Uint8Array, on: boolean): void
  /** After sends had to wait or were refused: the kernel took everything, `bufferedBytes` is 0 again. */
  drained?(peer: ZmtpPeer): void
  /** The answer to a `ping`. */
  pong?(peer: ZmtpPeer, context: Uint8Array): void
  /** For a log: a connection that failed before it was ready, a dial that failed, an exception from `closed`. */
  fault?(reason: string): void
}

/** Why nothing listens or dials: an address that cannot be used, or one that the system refuses. */
export interface ZmtpFailure {
  readonly kind: "zmtp_address" | "zmtp_listen"
  readonly message: string
}

/** What a listener and a dialer are given. */
export interface ZmtpOptions {
  /**
   * To listen: `tcp://host:port` (port 0 or `*` = any that is free), `tcp://*:port`, `tcp://[::1]:port`, `ipc:///path`,
   * `ipc://@abstract`. To dial: the same, with a host and a port; nobody needs to listen there yet.
   */
  readonly address: string
  readonly socketType: SocketType
  /** ROUTER and DEALER: told to peers, at most 255 bytes. Absent = empty. */
  readonly identity?: Uint8Array
  readonly limits?: ZmtpLimits
  readonly handler: ZmtpHandler
}

/** Something that listens (`listener.ts`). */
export interface ZmtpListener {
  /** The address that peers dial, with the port that was chosen. A host of `*` reads 0.0.0.0. */
  readonly address: string
  /** Closes the listener and all its peers, and removes its socket file. May be called again. */
  close(): void
}

/** Something that dials, and dials again after a loss (`dialer.ts`). */
export interface ZmtpDialer {
  /** Closes the connection and dials no more. May be called again. */
  close(): void
}
