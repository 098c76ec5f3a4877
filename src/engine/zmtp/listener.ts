/** Listening: every connection that is accepted becomes a peer. */

import { lstatSync, unlinkSync } from "node:fs"
import type { SocketHandler } from "bun"
import { err, ok, type Result } from "../../result"
import { formatAddress, parseAddress, type ZmtpAddress } from "./address"
import { Connection, Endpoint } from "./connection"
import type { ZmtpFailure, ZmtpListener, ZmtpOptions } from "./peer"
import { socketEvents, type ZmtpSocket } from "./socket-events"

/**
 * Listens; from then on the handler is called for each peer. A socket file that nobody answers on is replaced; one that
 * somebody answers on is a failure, as is a port that is taken.
 */
export function listenZmtp(options: ZmtpOptions): Result<ZmtpListener, ZmtpFailure> {
  const address = parseAddress(options.address, "listen")
  if (!address.ok) return address
  const listener = new Listener(options)
  try {
    if (address.value.kind === "ipc") removeStaleFile(address.value.path)
    listener.listen(address.value)
    return ok(listener)
  } catch (cause) {
    const { code, message } = cause as { code?: string; message: string } // Bun and node:fs throw Errors, most with a code.
    return err({ kind: "zmtp_listen", message: `${options.address}: ${code === undefined ? message : code}` })
  }
}

class Listener implements ZmtpListener {
  address = ""
  private readonly endpoint: Endpoint
  private readonly connections = new Set<Connection>()
  private socket: { stop(closeActiveConnections: boolean): void } | null = null

  constructor(options: ZmtpOptions) {
    this.endpoint = new Endpoint(options, (connection) => this.connections.delete(connection))
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

  close(): void {
    const { socket } = this
    if (socket === null) return
    this.socket = null
    for (const connection of [...this.connections]) connection.finish("the listener was closed")
    socket.stop(true)
  }

  private accept(socket: ZmtpSocket): Connection | undefined {
    const connection = new Connection(this.endpoint, socket)
    const { limits, handler } = this.endpoint
    if (this.socket === null) return undefined
    if (this.connections.size >= limits.peersMax) {
      handler.fault?.(`${connection.remote}: there are ${this.connections.size} peers already`)
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
