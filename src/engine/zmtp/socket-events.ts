/** Bun's socket events → the connection that the socket carries. */
import type { Socket, SocketHandler } from "bun"
import type { Connection } from "./connection"

/** A socket of ours: its connection is there from `open` on. */
export type ZmtpSocket = Socket<Connection | undefined>

/** The events of sockets whose connection is made by `open`, which gives undefined to have the socket closed. */
export function socketEvents(
  open: (socket: ZmtpSocket) => Connection | undefined,
): SocketHandler<Connection | undefined> {
  return {
    binaryType: "uint8array", // plain ones: a Buffer's `slice` would share its bytes
    open(socket) {
      const connection = open(socket)
      socket.data = connection
      if (connection === undefined) socket.end()
      else connection.opened()
    },
    data: (socket, chunk) => socket.data?.received(chunk),
    drain: (socket) => socket.data?.drained(),
    end: (socket) => socket.data?.finish("the peer closed the connection"),
    close: (socket, error) => socket.data?.finish(`the connection was lost${error ? `: ${error.message}` : ""}`),
    error: (socket, error) => socket.data?.threw(error),
  }
}
