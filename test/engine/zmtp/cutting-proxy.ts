/** A TCP proxy that cuts what passes at random places, so that everything spans chunks somewhere. */
import type { Socket, TCPSocketListener } from "bun"
import { seededRandom } from "../../support/random"

/** What is still to be written to one end, in pieces. */
class Pipe {
  private readonly random: () => number
  private waiting: Uint8Array[] = []
  private target: Socket<Ends> | undefined
  private ended = false
  private planned = false
  readonly watch: (bytes: Uint8Array) => void

  constructor(random: () => number, watch: (bytes: Uint8Array) => void) {
    this.random = random
    this.watch = watch
  }

  /** The socket to write to is open. */
  open(target: Socket<Ends>): void {
    target.setNoDelay(true)
    this.target = target
    this.go()
  }

  push(bytes: Uint8Array): void {
    this.watch(bytes)
    this.waiting.push(bytes)
    this.go()
  }

  end(): void {
    this.ended = true
    this.go()
  }

  /** One piece a turn of the event loop, so that the other end reads it as a chunk of its own. */
  readonly go = (): void => {
    if (this.target === undefined || this.planned) return
    const first = this.waiting[0]
    if (first === undefined) {
      if (this.ended) this.target.end()
      return
    }
    const length = Math.min(first.length, 1 + Math.floor(this.random() ** 4 * 400_000))
    const taken = Math.max(0, this.target.write(first, 0, length))
    if (taken === first.length) this.waiting.shift()
    else this.waiting[0] = first.subarray(taken)
    if (taken < length) return // goes on with the drain
    this.planned = true
    setImmediate(() => {
      this.planned = false
      this.go()
    })
  }
}

interface Ends {
  readonly out: Pipe
  readonly in: Pipe
}

/** A proxy in front of `tcp://127.0.0.1:port`. */
export class CuttingProxy {
  /** Where it listens. */
  readonly address: string
  private readonly listener: TCPSocketListener<Ends>

  /** `watch` sees what comes from the target, uncut. */
  constructor(target: string, seed: number, watch: (bytes: Uint8Array) => void = () => {}) {
    const random = seededRandom(seed)
    const port = Number(target.slice(target.lastIndexOf(":") + 1))
    this.listener = Bun.listen<Ends>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open(client) {
          const ends: Ends = { out: new Pipe(random, () => {}), in: new Pipe(random, watch) }
          client.data = ends
          ends.in.open(client)
          const socket = {
            open: (server: Socket<Ends>) => ends.out.open(server),
            data: (_: Socket<Ends>, bytes: Uint8Array) => ends.in.push(bytes),
            drain: () => ends.out.go(),
            close: () => ends.in.end(),
            connectError: () => ends.in.end(),
          }
          Bun.connect<Ends>({ hostname: "127.0.0.1", port, data: ends, socket }).catch(() => {})
        },
        data: (client, bytes) => client.data.out.push(bytes),
        drain: (client) => client.data.in.go(),
        close: (client) => client.data.out.end(),
      },
    })
    this.address = `tcp://127.0.0.1:${this.listener.port}`
  }

  close(): void {
    this.listener.stop(true)
  }
}
