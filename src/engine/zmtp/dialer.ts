/** Dialing: one connection that is made again whenever it is lost. */
import type { SocketHandler } from "bun"
import { ok, type Result } from "../../result"
import { parseAddress, type ZmtpAddress } from "./address"
import { Connection, Endpoint } from "./connection"
import type { ZmtpDialer, ZmtpFailure, ZmtpOptions } from "./peer"
import { socketEvents, type ZmtpSocket } from "./socket-events"

/** What `connectZmtp` is given. */
export interface ZmtpDialOptions extends ZmtpOptions {
  /** Between a loss, or a dial that failed, and the next dial. Absent = 100, as libzmq waits. */
  readonly retryMs?: number
}

const defaultRetryMs = 100

/** Dials, and dials again after a loss, until it is closed. Each connection is a new peer to the handler. */
export function connectZmtp(options: ZmtpDialOptions): Result<ZmtpDialer, ZmtpFailure> {
  const address = parseAddress(options.address, "dial")
  return address.ok ? ok(new Dialer(options, address.value)) : address
}

class Dialer implements ZmtpDialer {
  private readonly endpoint: Endpoint
  private readonly target: ZmtpAddress
  private readonly retryMs: number
  private readonly events: SocketHandler<Connection | undefined>
  private connection: Connection | null = null
  private retry: Timer | undefined
  private closed = false

  constructor(options: ZmtpDialOptions, target: ZmtpAddress) {
    this.endpoint = new Endpoint(options, () => this.lost())
    this.target = target
    this.retryMs = options.retryMs ?? defaultRetryMs
    this.events = {
      ...socketEvents((socket) => this.open(socket)),
      connectError: (_, error) => this.failed(error),
    }
    // Not at once: a socket file's refusal comes before Bun's call returns, and nobody has this dialer yet.
    queueMicrotask(() => this.dial())
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    clearTimeout(this.retry)
    this.connection?.finish("the dialer was closed")
  }

  private dial(): void {
    if (this.closed) return
    const { target, events: socket } = this
    const dialing =
      target.kind === "ipc"
        ? Bun.connect<Connection | undefined>({ unix: target.path, socket })
        : Bun.connect<Connection | undefined>({ hostname: target.hostname, port: target.port, socket })
    dialing.catch(() => {}) // `connectError` hears of a failure; the promise says the same again.
  }

  /** Undefined when this was closed while it dialed. */
  private open(socket: ZmtpSocket): Connection | undefined {
    if (this.closed) return undefined
    this.connection = new Connection(this.endpoint, socket)
    return this.connection
  }

  private lost(): void {
    this.connection = null
    this.dialLater()
  }

  private failed(error: Error & { code?: string }): void {
    if (this.closed) return
    this.endpoint.handler.fault?.(`${this.endpoint.address}: ${error.code ?? error.message}`)
    this.dialLater()
  }

  private dialLater(): void {
    if (!this.closed) this.retry = setTimeout(() => this.dial(), this.retryMs)
  }
}
