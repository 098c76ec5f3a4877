/** libzmq in a process of its own (libzmq.py), for interoperation: sockets that are told what to do. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import type { FileSink, Subprocess } from "bun"
import { prepareEnvironment } from "../../support/python-environment"

const environment = join(import.meta.dir, ".venv")

/** The Python that has pyzmq, in an environment that is made once. */
export async function libzmqPython(): Promise<string> {
  await prepareEnvironment(environment, join(import.meta.dir, "requirements.txt"))
  return join(environment, "bin/python")
}

/** A frame that both sides can make: its length and what it is filled with. */
export type FrameSpec = readonly [length: number, fill: number]
/** What libzmq got of a frame: its length and the SHA-1 of its bytes. */
export type FrameDigest = readonly [length: number, digest: string]

/** The frame that a specification tells of; the same rule as in libzmq.py. */
export function frameOf([length, fill]: FrameSpec): Uint8Array {
  const block = Uint8Array.from({ length: 256 }, (_, i) => (i * 31 + fill) & 255)
  const frame = new Uint8Array(length)
  for (let at = 0; at < length; at += 256) frame.set(block.subarray(0, Math.min(256, length - at)), at)
  return frame
}

/** What libzmq.py would tell of a frame. */
export function digestOf(frame: Uint8Array): FrameDigest {
  return [frame.length, createHash("sha1").update(frame).digest("hex")]
}

/** Longer than any of this takes; a message that has not come by then is missing in the answer. */
const timeoutMs = 20_000

/** The process. Orders are answered one after the other. */
export class Libzmq {
  private readonly child: Subprocess<"pipe", "pipe", "inherit">
  private readonly input: FileSink
  private readonly lines: AsyncGenerator<string>
  private last: Promise<unknown> = Promise.resolve()
  private sockets = 0

  private constructor(python: string) {
    this.child = Bun.spawn([python, "-B", join(import.meta.dir, "libzmq.py")], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    })
    this.input = this.child.stdin
    this.lines = linesOf(this.child.stdout)
  }

  static async start(): Promise<Libzmq> {
    return new Libzmq(await libzmqPython())
  }

  /** A new socket. Options as libzmq names them; bytes as hexadecimal text. */
  async socket(type: string, options: { readonly [name: string]: number | string } = {}): Promise<LibzmqSocket> {
    this.sockets += 1
    const socket = new LibzmqSocket(this, `${this.sockets}`)
    await socket.order("open", { type, options })
    return socket
  }

  order(order: object): Promise<unknown> {
    this.input.write(`${JSON.stringify(order)}\n`)
    this.input.flush()
    this.last = this.last.then(async () => {
      const { value, done } = await this.lines.next()
      if (done) throw new Error("libzmq.py ended")
      return JSON.parse(value)
    })
    return this.last
  }

  /** Ends the process; gives its exit code. */
  async end(): Promise<number> {
    this.input.end()
    return this.child.exited
  }
}

/** One socket of it. */
export class LibzmqSocket {
  private readonly process: Libzmq
  private readonly name: string

  constructor(process: Libzmq, name: string) {
    this.process = process
    this.name = name
  }

  order(what: string, more: object = {}): Promise<unknown> {
    return this.process.order({ do: what, socket: this.name, ...more })
  }

  /** Gives the address with its port. */
  async bind(address: string): Promise<string> {
    return `${await this.order("bind", { address })}`
  }

  async connect(address: string): Promise<void> {
    await this.order("connect", { address })
  }

  async send(...messages: readonly (readonly FrameSpec[])[]): Promise<void> {
    await this.order("send", { messages })
  }

  /** One message of short frames. */
  async sendBytes(...frames: readonly Uint8Array[]): Promise<void> {
    await this.order("send_hex", { frames: frames.map((frame) => Buffer.from(frame).toString("hex")) })
  }

  /** The next messages. */
  async receive(count: number): Promise<FrameDigest[][]> {
    return (await this.order("receive", { count, timeoutMs })) as FrameDigest[][] // As libzmq.py writes them.
  }

  /** Sends so many messages back as they come; gives how many came. */
  async echo(count: number): Promise<number> {
    return (await this.order("echo", { count, timeoutMs })) as number
  }

  async close(): Promise<void> {
    await this.order("close")
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ""
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n")) {
      yield text.slice(0, end)
      text = text.slice(end + 1)
    }
  }
}
