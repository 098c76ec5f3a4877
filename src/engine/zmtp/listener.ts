/** Listening: every connection that is accepted becomes a peer. */

import { lstatSync, unlinkSync } from "node:fs"
import type { SocketHandler } from "bun"
import { err, ok, type Result } from "../../result"
import { formatAddress, parseAddress, type ZmtpAddress } from "./address"
import { Connection, type ConnectionOwner } from "./connection"
import {
  defaultZmtpLimits,
  type SocketType,
  type ZmtpFailure,
  type ZmtpHandler,
  type ZmtpLimits,
  type ZmtpListener,
} from "./peer"
import { socketEvents, type ZmtpSocket } from "./socket-events"

/** What `listenZmtp` is given. */
export interface ZmtpListenOptions {
  /** `tcp://host:port` (0 or `*` = any free port), `tcp://*:port`, `tcp://[::1]:port`, `ipc:///path`, `ipc://@abstract`. */
  readonly address: string
  readonly socketType: SocketType
  /** ROUTER and DEALER: told to peers. Absent = empty. */
  readonly identity?: Uint8Array
  readonly limits?: ZmtpLimits
  readonly handler: ZmtpHandler
}

/**
 * Listens; from then on the handler is called for each peer. A socket file that nobody answers on is replaced; one that
 * somebody answers on is a failure, as is a port that is taken.
 */
export function listenZmtp(options: ZmtpListenOptions): Result<ZmtpListener, ZmtpFailure> {
  const address = parseAddress(options.address, "listen")
  if (!address.ok) return address
  const listener = new Listener(options)
  if (address.value.kind === "ipc") removeStaleFile(address.value.path)
  try {
    listener.listen(address.value)
    return ok(listener)
  } catch (cause) {
    const { code, message } = cause as { code?: string; message: string } // Bun throws an Error, most with a code.
    return err({ kind: "zmtp_listen", message: `${options.address}: ${code === undefined ? message : code}` })
  }
}

class Listener implements ZmtpListener, ConnectionOwner {
  address = ""
  readonly socketType: SocketType
  readonly identity: Uint8Array
  readonly limits: ZmtpLimits
  readonly handler: ZmtpHandler
  private readonly connections = new Set<Connection>()
  private socket: { stop(closeActiveConnections: boolean): void } | null = null

  constructor(options: ZmtpListenOptions) {
    this.socketType = options.socketType
    this.identity = options.identity ?? new Uint8Array(0)
    this.limits = options.limits ?? defaultZmtpLimits
    this.handler = options.handler
  }

  /** Throws what Bun throws. */
  listen(address: ZmtpAddress): void {
    const socket = socketEvents((opened) => this.accept(opened))
    if (address.kind === "ipc") {
      this.socket = Bun.listen<Connection | undefined>({ unix: address.path, socket })
      this.address = formatAddress(address)
    } else {
      const listening = Bun.listen<Connection | undefined>({ hostname: address.hostname, port: address.port, socket })
      this.socket = listening
      this.address = formatAddress({ ...address, port: listening.port })
    }
  }

  left(connection: Connection): void {
    this.connections.delete(connection)
  }

  close(): void {
    const { socket } = this
    if (socket === null) return
    this.socket = null
    for (const connection of [...this.connections]) connection.finish("the listener was closed")
    socket.stop(true)
  }

  private accept(socket: ZmtpSocket): Connection | undefined {
    const connection = new Connection(this, socket)
    if (this.socket === null) return undefined
    if (this.connections.size >= this.limits.peersMax) {
      this.handler.fault?.(`${connection.remote}: there are ${this.connections.size} peers already`)
      return undefined
    }
    this.connections.add(connection)
    return connection
  }
}

/** Removes a socket file whose owner is gone: a refused connection says so, and is refused before `connect` returns. */
function removeStaleFile(path: string): void {
  if (path.startsWith("\0") || lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return
  let answered = true
  const socket: SocketHandler = {
    open(probe) {
      probe.end()
    },
    data() {},
    connectError(_, error: Error & { code?: string }) {
      if (error.code === "ECONNREFUSED") answered = false
    },
  }
  Bun.connect({ unix: path, socket }).catch(() => {})
  if (!answered) unlinkSync(path)
}
