/** One connection: handshake, commands, messages, and its end. Both sides of ZMTP are alike, so listener and dialer share it. */
import type { Socket } from "bun"
import {
  identityBytesMax,
  packCommand,
  packError,
  packReady,
  pingContextBytesMax,
  unpackCommand,
  unpackError,
  unpackReady,
} from "./command"
import { greetingBytes, packGreeting, unpackGreeting } from "./greeting"
import { Flag, MessageReader, type MessageSink } from "./message-reader"
import {
  defaultZmtpLimits,
  type SocketType,
  type ZmtpHandler,
  type ZmtpLimits,
  type ZmtpOptions,
  type ZmtpPeer,
} from "./peer"
import { frameWireBytes, SendQueue } from "./send-queue"
import { type Semantics, semantics } from "./socket-type"

const nothing = new Uint8Array(0)

/** What the connections of one listener or dialer have in common. */
export class Endpoint {
  readonly address: string
  readonly socketType: SocketType
  readonly semantics: Semantics
  readonly identity: Uint8Array
  readonly limits: ZmtpLimits
  readonly handler: ZmtpHandler
  /** A connection is over; called once for each that was opened, before the handler's `closed`. */
  readonly left: (connection: Connection) => void

  constructor(options: ZmtpOptions, left: (connection: Connection) => void) {
    this.address = options.address
    this.socketType = options.socketType
    this.semantics = semantics[options.socketType]
    this.identity = options.identity ?? nothing
    if (this.identity.length > identityBytesMax) throw new Error(`an identity of ${this.identity.length} bytes`)
    this.limits = options.limits ?? defaultZmtpLimits
    this.handler = options.handler
    this.left = left
  }
}

const State = { greeting: 0, handshake: 1, ready: 2, closed: 3 } as const

/** As much is gathered in a turn of the event loop before it is written without waiting for the turn's end. */
const flushBytes = 65_536

/** See `ZmtpPeer` for the part that the handler sees; the rest is for the socket's events. */
export class Connection implements ZmtpPeer, MessageSink {
  identity: Uint8Array = nothing
  socketType = ""
  readonly remote: string
  readonly local: string
  private readonly endpoint: Endpoint
  private readonly socket: Socket<Connection | undefined>
  private readonly queue: SendQueue
  private readonly reader: MessageReader
  private state: number = State.greeting
  private readonly greeting = new Uint8Array(greetingBytes)
  private greetingFilled = 0
  /** The version that both speak: 3.0 has no SUBSCRIBE and CANCEL. */
  private minorVersion = 0
  private flushPlanned = false
  private readonly planned = (): void => {
    this.flushPlanned = false
    if (this.state !== State.closed && !this.queue.blocked) this.queue.flush()
  }
  private handshakeTimer: Timer | undefined

  constructor(endpoint: Endpoint, socket: Socket<Connection | undefined>) {
    this.endpoint = endpoint
    this.socket = socket
    const isTcp = endpoint.address.startsWith("tcp:")
    this.remote = isTcp ? hostAndPort(socket.remoteAddress, socket.remotePort) : endpoint.address
    this.local = isTcp ? hostAndPort(socket.localAddress, socket.localPort) : endpoint.address
    this.queue = new SendQueue(socket)
    this.reader = new MessageReader(endpoint.limits, this)
  }

  get bufferedBytes(): number {
    return this.queue.bufferedBytes
  }

  /** The socket is connected: greets the peer. */
  opened(): void {
    this.socket.setNoDelay(true)
    const { handshakeMs } = this.endpoint.limits
    this.handshakeTimer = setTimeout(() => this.finish(`no handshake within ${handshakeMs} ms`), handshakeMs)
    this.queue.addRaw(packGreeting())
    this.queue.flush()
  }

  /** Hot: one chunk from the socket, which is ours from now on. */
  received(chunk: Uint8Array): void {
    if (this.state === State.closed) return
    try {
      const from = this.state === State.greeting ? this.readGreeting(chunk) : 0
      if (from < chunk.length) this.reader.push(chunk, from)
    } catch (cause) {
      this.threw(cause)
    }
  }

  /** The socket takes bytes again. */
  drained(): void {
    if (this.state === State.closed) return
    this.queue.flush()
    if (this.queue.blocked || this.state !== State.ready) return
    try {
      this.endpoint.handler.drained?.(this)
    } catch (cause) {
      this.threw(cause)
    }
  }

  /** Something of ours, or of the handler's, threw: the bug is told and costs this connection alone. */
  threw(cause: unknown): void {
    this.finish(`an exception: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`)
  }

  /** Ends the connection for a reason; nothing happens when it has ended already. */
  finish(reason: string): void {
    if (this.state === State.closed) return
    const wasReady = this.state === State.ready
    this.state = State.closed
    clearTimeout(this.handshakeTimer)
    this.reader.stop()
    if (!this.queue.blocked) this.queue.flush()
    this.queue.clear()
    this.socket.end()
    this.endpoint.left(this)
    const { handler } = this.endpoint
    if (!wasReady) {
      handler.fault?.(`${this.remote}: ${reason}`)
      return
    }
    try {
      handler.closed(this, reason)
    } catch (cause) {
      handler.fault?.(`${this.remote}: closed() threw: ${cause instanceof Error ? cause.stack : String(cause)}`)
    }
  }

  send(frames: readonly Uint8Array[]): boolean {
    if (!this.endpoint.semantics.sends) throw new Error(`a ${this.endpoint.socketType} sends no messages`)
    if (frames.length === 0) throw new Error("a message has at least one frame")
    let bytes = 0
    for (let i = 0; i < frames.length; i++) bytes += frameWireBytes(frames[i]!.length)
    if (!this.takes(bytes)) return false
    const last = frames.length - 1
    for (let i = 0; i < last; i++) this.queue.add(Flag.more, frames[i]!)
    this.queue.add(0, frames[last]!)
    this.planFlush()
    return true
  }

  subscribe(topic: Uint8Array, on: boolean): boolean {
    if (!this.endpoint.semantics.subscribes) throw new Error(`a ${this.endpoint.socketType} subscribes to nothing`)
    if (this.minorVersion > 0) return this.sendFrame(Flag.command, packCommand(on ? "SUBSCRIBE" : "CANCEL", topic))
    const message = new Uint8Array(1 + topic.length)
    message[0] = on ? 1 : 0
    message.set(topic, 1)
    return this.sendFrame(0, message)
  }

  ping(context: Uint8Array): boolean {
    if (context.length > pingContextBytesMax)
      throw new Error(`a PING's context has at most ${pingContextBytesMax} bytes`)
    return this.sendFrame(Flag.command, packCommand("PING", new Uint8Array(2), context))
  }

  close(): void {
    this.finish("closed by this side")
  }

  message(frames: readonly Uint8Array[]): void {
    if (this.state !== State.ready) {
      this.malformed("a message before READY")
      return
    }
    const { publishes, receives } = this.endpoint.semantics
    if (publishes && frames.length === 1 && frames[0]!.length > 0 && frames[0]![0]! <= 1) {
      // How subscriptions are written in ZMTP 3.0, and how an XSUB may write them in any version.
      this.endpoint.handler.subscribed?.(this, frames[0]!.subarray(1), frames[0]![0] === 1)
    } else if (receives) {
      this.endpoint.handler.message(this, frames)
    }
  }

  malformed(reason: string): void {
    this.finish(`the peer broke the protocol: ${reason}`)
  }

  command(body: Uint8Array): void {
    const command = unpackCommand(body)
    if (!command.ok) {
      this.malformed(command.error)
      return
    }
    const { name, rest } = command.value
    if (name === "ERROR") {
      this.finish(`the peer says: ${unpackError(rest)}`)
    } else if (this.state === State.handshake) {
      if (name === "READY") this.readReady(rest)
      else this.malformed(`${name} before READY`)
    } else if (name === "PING") {
      if (rest.length < 2 || rest.length > 2 + pingContextBytesMax) this.malformed(`a PING of ${rest.length} bytes`)
      else this.sendFrame(Flag.command, packCommand("PONG", rest.subarray(2)))
    } else if (name === "PONG") {
      this.endpoint.handler.pong?.(this, rest)
    } else if (name === "READY") {
      this.malformed("READY twice")
    } else if ((name === "SUBSCRIBE" || name === "CANCEL") && this.endpoint.semantics.publishes) {
      this.endpoint.handler.subscribed?.(this, rest, name === "SUBSCRIBE")
    }
    // Others are commands that we do not know; newer versions may have some.
  }

  /** Reads on in the greeting; gives where the chunk's frames begin. */
  private readGreeting(chunk: Uint8Array): number {
    const taken = Math.min(greetingBytes - this.greetingFilled, chunk.length)
    this.greeting.set(chunk.subarray(0, taken), this.greetingFilled)
    this.greetingFilled += taken
    const greeting = unpackGreeting(this.greeting, this.greetingFilled)
    if (!greeting.ok) {
      this.finish(greeting.error)
      return chunk.length
    }
    if (greeting.value !== null) {
      this.minorVersion = greeting.value
      this.state = State.handshake
      const { socketType, identity } = this.endpoint
      const hasIdentity = socketType === "ROUTER" || socketType === "DEALER"
      this.queue.add(Flag.command, packReady(socketType, hasIdentity ? identity : null))
      this.queue.flush()
    }
    return taken
  }

  private readReady(rest: Uint8Array): void {
    const ready = unpackReady(rest)
    if (!ready.ok) {
      this.refuse(ready.error)
      return
    }
    const { socketType, identity } = ready.value
    if (!this.endpoint.semantics.peers.includes(socketType)) {
      this.refuse(`a ${this.endpoint.socketType} does not talk with a ${socketType}`)
      return
    }
    clearTimeout(this.handshakeTimer)
    this.socketType = socketType
    this.identity = identity
    this.state = State.ready
    this.endpoint.handler.ready(this)
  }

  /** Ends the handshake and tells the peer why. */
  private refuse(reason: string): void {
    this.queue.add(Flag.command, packError(reason))
    this.finish(reason)
  }

  private sendFrame(flags: number, body: Uint8Array): boolean {
    if (!this.takes(frameWireBytes(body.length))) return false
    this.queue.add(flags, body)
    this.planFlush()
    return true
  }

  private takes(bytes: number): boolean {
    return this.state === State.ready && this.queue.bufferedBytes + bytes <= this.endpoint.limits.sendBufferBytesMax
  }

  /** What is sent in one turn of the event loop leaves in one write, as long as it is not much. */
  private planFlush(): void {
    if (this.queue.blocked) return
    if (this.queue.bufferedBytes >= flushBytes) {
      this.queue.flush()
    } else if (!this.flushPlanned) {
      this.flushPlanned = true
      queueMicrotask(this.planned)
    }
  }
}

/** `host:port`, with the host of IPv6 in brackets. */
function hostAndPort(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`
}
