/** Dialing: one connection that is made again whenever it is lost. */
import { ok, type Result } from "../../result"
import { parseAddress, type ZmtpAddress } from "./address"
import { Connection, type ConnectionOwner } from "./connection"
import {
  defaultZmtpLimits,
  type SocketType,
  type ZmtpDialer,
  type ZmtpFailure,
  type ZmtpHandler,
  type ZmtpLimits,
} from "./peer"
import { socketEvents } from "./socket-events"

/** What `connectZmtp` is given. */
export interface ZmtpDialOptions {
  /** `tcp://host:port`, `ipc:///path` or `ipc://@abstract`. Nobody needs to listen there yet. */
  readonly address: string
  readonly socketType: SocketType
  /** ROUTER and DEALER: told to the peer. Absent = empty. */
  readonly identity?: Uint8Array
  readonly limits?: ZmtpLimits
  /** Between a loss, or a dial that failed, and the next dial. */
  readonly retryMs?: number
  readonly handler: ZmtpHandler
}

/** libzmq waits as long. */
const defaultRetryMs = 100

/** Dials, and dials again after a loss, until it is closed. Each connection is a new peer to the handler. */
export function connectZmtp(options: ZmtpDialOptions): Result<ZmtpDialer, ZmtpFailure> {
  const address = parseAddress(options.address, "dial")
  if (!address.ok) return address
  const dialer = new Dialer(options, address.value)
  dialer.dial()
  return ok(dialer)
}

class Dialer implements ZmtpDialer, ConnectionOwner {
  readonly socketType: SocketType
  readonly identity: Uint8Array
  readonly limits: ZmtpLimits
  readonly handler: ZmtpHandler
  readonly address: string
  private readonly target: ZmtpAddress
  private readonly retryMs: number
  private readonly events = socketEvents((socket) => {
    if (this.closed) return undefined
    this.connection = new Connection(this, socket)
    return this.connection
  })
  private connection: Connection | null = null
  private retry: Timer | undefined
  private closed = false

  constructor(options: ZmtpDialOptions, address: ZmtpAddress) {
    this.socketType = options.socketType
    this.identity = options.identity ?? new Uint8Array(0)
    this.limits = options.limits ?? defaultZmtpLimits
    this.handler = options.handler
    this.retryMs = options.retryMs ?? defaultRetryMs
    this.address = options.address
    this.target = address
  }

  dial(): void {
    const { target } = this
    // `connectError` hears of a failure; the promise says the same again.
    const socket = { ...this.events, connectError: (_: unknown, error: Error) => this.failed(error) }
    const dialing =
      target.kind === "ipc"
        ? Bun.connect<Connection | undefined>({ unix: target.path, socket })
        : Bun.connect<Connection | undefined>({ hostname: target.hostname, port: target.port, socket })
    dialing.catch(() => {})
  }

  left(): void {
    this.connection = null
    this.dialLater()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    clearTimeout(this.retry)
    this.connection?.finish("the dialer was closed")
  }

  private failed(error: Error & { code?: string }): void {
    if (this.closed) return
    this.handler.fault?.(`${this.address}: ${error.code ?? error.message}`)
    this.dialLater()
  }

  private dialLater(): void {
    if (!this.closed) this.retry = setTimeout(() => this.dial(), this.retryMs)
  }
}
