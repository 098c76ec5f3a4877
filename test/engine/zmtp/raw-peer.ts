import type { Socket } from "bun"
import { packReady } from "../../../src/engine/zmtp/command"
import { packGreeting } from "../../../src/engine/zmtp/greeting"
import { Flag } from "../../../src/engine/zmtp/message-reader"

/** One frame's bytes, by the plain reading of RFC 37. */
export function frameBytes(flags: number, body: Uint8Array, long = body.length > 255): Uint8Array {
  const header = Buffer.alloc(long ? 9 : 2)
  header[0] = flags | (long ? Flag.long : 0)
  if (long) header.writeBigUInt64BE(BigInt(body.length), 1)
  else header[1] = body.length
  return Buffer.concat([header, body])
}

/** A message's bytes. */
export function messageBytes(...frames: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(frames.map((frame, i) => frameBytes(i === frames.length - 1 ? 0 : Flag.more, frame)))
}

/** Text as a frame. */
export function text(characters: string): Uint8Array {
  return Buffer.from(characters, "latin1")
}

/** What a peer of this type sends to be ready. */
export function handshakeBytes(socketType: string, identity: Uint8Array | null = null): Uint8Array {
  return Buffer.concat([packGreeting(), frameBytes(Flag.command, packReady(socketType, identity))])
}

/** A plain socket at the other end: writes what it is told and keeps what comes. */
export class RawPeer {
  received: Uint8Array = new Uint8Array(0)
  isClosed = false
  private readonly socket: Socket
  private waiting: { readonly condition: () => boolean; readonly resolve: () => void }[] = []

  private constructor(socket: Socket) {
    this.socket = socket
  }

  /** Dials `tcp://127.0.0.1:port` or `ipc://path`. */
  static async dial(address: string): Promise<RawPeer> {
    let peer: RawPeer | undefined
    const early: Uint8Array[] = []
    const handler = {
      data: (_: Socket, chunk: Uint8Array) => (peer === undefined ? void early.push(chunk) : peer.came(chunk)),
      end: () => peer?.ended(),
      close: () => peer?.ended(),
    }
    const socket = address.startsWith("ipc://")
      ? await Bun.connect({ unix: address.slice(6).replace(/^@/, "\0"), socket: handler, allowHalfOpen: true })
      : await Bun.connect({
          hostname: "127.0.0.1",
          port: Number(address.slice(address.lastIndexOf(":") + 1)),
          socket: handler,
          allowHalfOpen: true,
        })
    peer = new RawPeer(socket)
    for (const chunk of early) peer.came(chunk)
    return peer
  }

  /** Small writes only: what the kernel does not take at once is an error. */
  write(...parts: readonly Uint8Array[]): void {
    const bytes = Buffer.concat(parts)
    const taken = this.socket.write(bytes)
    if (taken !== bytes.length) throw new Error(`${taken} of ${bytes.length} bytes were taken`)
  }

  /** Ends our side; theirs may go on. */
  shutdown(): void {
    this.socket.shutdown()
  }

  /** Stops and starts reading. */
  pause(): void {
    this.socket.pause()
  }
  resume(): void {
    this.socket.resume()
  }

  close(): void {
    this.socket.end()
  }

  /** Cuts the connection off, without a FIN. */
  reset(): void {
    this.socket.terminate()
  }

  until(condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ condition, resolve }))
  }

  /** Waits for so many bytes; gives them. */
  async bytes(count: number): Promise<Uint8Array> {
    await this.until(() => this.received.length >= count || this.isClosed)
    return this.received.slice(0, count)
  }

  private came(chunk: Uint8Array): void {
    this.received = Buffer.concat([this.received, chunk])
    this.look()
  }

  private ended(): void {
    this.isClosed = true
    this.look()
  }

  private look(): void {
    const held = this.waiting.filter(({ condition }) => condition())
    this.waiting = this.waiting.filter((each) => !held.includes(each))
    for (const { resolve } of held) resolve()
  }
}
