/**
 * Server-sent events over one direct stream a response (BUN: the number of writes decides what streaming costs).
 * Frames of one tick leave as one write, an event is never split between writes, and a client that does not read is
 * cut off rather than buffered without end.
 */

import type { DeltaFrame } from "./delta-frame"
import { FrameBuffer } from "./frame-buffer"

/** Why a stream ended before its writer ended it. */
export type StreamLoss = "client_left" | "client_too_slow"

/** Where frames go. Nothing here throws, whatever the client does. */
export interface SseWriter {
  /** Takes one or more whole frames, each with its blank line; they leave with all others of this tick. */
  write(frames: string): void
  /** Hot (bench/fold.ts): takes one whole frame that differs from others in a text; `number` -1 = not numbered. */
  writeDelta(frame: DeltaFrame, text: string, number: number): void
  /** No frame follows. What was written still goes out. */
  end(): void
  /** True once frames go nowhere: the client left, or was too slow. */
  readonly gone: boolean
}

/** One streamed response. */
export interface SseOptions {
  /** Beside the ones that every event stream has. */
  readonly headers: { readonly [name: string]: string }
  /** Bytes held for a client that does not read, beyond the kernel's buffers (about 4 MB on Linux). */
  readonly bufferedBytesMax: number
  /** Silence after which a comment is sent; 0 = never. It comes up to a quarter late. */
  readonly keepAliveSeconds: number
  /** Called once if the stream is lost before `end`, also when the client left before the response began. */
  onGone(loss: StreamLoss): void
  /** Called before this function returns; frames may be written at once and at any time later. */
  start(writer: SseWriter): void
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Proxies of the nginx family would otherwise hold events back.
  "x-accel-buffering": "no",
}

const keepAliveComment = ": keep-alive\n\n"

/** How long a client may take to read what is left after the end. */
const lastReadSecondsMax = 60

/** The response whose body is the stream. `Bun.serve` needs `idleTimeout: 0` for it, and `development: false`. */
export function sseResponse(options: SseOptions): Response {
  const stream = new SseStream(options)
  const response = new Response(
    directStream({
      type: "direct",
      pull: (controller) => stream.open(controller),
      cancel: () => stream.lose("client_left"),
    }),
    { headers: { ...streamHeaders, ...options.headers } },
  )
  options.start(stream)
  return response
}

function directStream(source: Bun.DirectUnderlyingSource): ReadableStream {
  // The DOM's types, which win over Bun's here, know no direct streams.
  return new ReadableStream(source as unknown as UnderlyingDefaultSource)
}

const State = { waiting: 0, open: 1, blocked: 2, closed: 3 } as const
type State = (typeof State)[keyof typeof State]

class SseStream implements SseWriter {
  gone = false
  /** Set while the stream stands in the queue of those to be flushed. */
  queued = false
  /** Quarters of the keep-alive time without a frame. */
  silentQuarters = 0
  private state: State = State.waiting
  private ended = false
  private readonly pending = new FrameBuffer()
  private controller: ReadableStreamDirectController | null = null
  private lastRead: ReturnType<typeof setTimeout> | null = null
  private readonly bufferedBytesMax: number
  private readonly onGone: (loss: StreamLoss) => void
  private readonly silence: SilenceWatch | null

  constructor(options: SseOptions) {
    this.bufferedBytesMax = options.bufferedBytesMax
    this.onGone = (loss) => options.onGone(loss)
    this.silence = options.keepAliveSeconds > 0 ? watchFor(options.keepAliveSeconds) : null
    this.silence?.add(this)
  }

  write(frames: string): void {
    if (this.ended || this.gone) return
    this.silentQuarters = 0
    this.pending.text(frames)
    if (!this.queued) flushSoon(this)
  }

  writeDelta(frame: DeltaFrame, text: string, number: number): void {
    if (this.ended || this.gone) return
    this.silentQuarters = 0
    this.pending.delta(frame, text, number)
    if (!this.queued) flushSoon(this)
  }

  end(): void {
    if (this.ended || this.gone) return
    this.ended = true
    this.silence?.remove(this)
    if (!this.queued) flushSoon(this)
  }

  /** The server is ready to take bytes. Called once, or never when the client left first. */
  open(controller: ReadableStreamDirectController): void {
    if (this.state !== State.waiting) return
    this.controller = controller
    this.state = State.open
    this.flush()
  }

  /** Writes all that is pending; a blocked stream keeps it, up to its limit. */
  flush(): void {
    if (this.state === State.closed) return
    if (this.state !== State.open) {
      if (this.pending.length > this.bufferedBytesMax) this.lose("client_too_slow")
      else if (this.ended && this.state === State.blocked) this.limitLastRead()
      return
    }
    if (this.pending.length > 0) {
      const frames = this.pending.view()
      // A direct stream has copied or sent them when its `write` returns, so the buffer may go on meanwhile.
      this.send(frames)
      this.pending.clear()
    }
    // `send` may have changed it.
    if (this.ended && (this.state as State) === State.open) this.close(null)
    else if (this.ended) this.limitLastRead()
  }

  /** A comment when the stream was silent for four quarters; one that is blocked has something to say. */
  quarterPassed(): void {
    this.silentQuarters += 1
    if (this.silentQuarters >= 4 && this.state === State.open) this.write(keepAliveComment)
  }

  /** The client is gone, or is cut off; whoever writes is told unless it had ended. */
  lose(loss: StreamLoss): void {
    if (this.state === State.closed) return
    this.gone = true
    // Ending a stalled stream would wait for its reader; an error resets the connection.
    this.close(loss === "client_too_slow" ? new Error(loss) : null)
    if (!this.ended) this.onGone(loss)
  }

  private send(frames: Uint8Array): void {
    let taken: number | Promise<number>
    try {
      taken = this.controller!.write(frames)
    } catch {
      // A sink that was closed under us: the client left.
      taken = 0
    }
    if (taken === 0) {
      this.lose("client_left")
    } else if (typeof taken === "object") {
      this.state = State.blocked
      taken.then(
        () => this.unblock(),
        () => this.lose("client_left"),
      )
    }
  }

  private unblock(): void {
    if (this.state !== State.blocked) return
    this.state = State.open
    this.flush()
  }

  private close(error: Error | null): void {
    this.state = State.closed
    this.pending.clear()
    this.silence?.remove(this)
    if (this.lastRead !== null) clearTimeout(this.lastRead)
    const { controller } = this
    this.controller = null
    try {
      if (error === null) controller?.end()
      else controller?.close(error)
    } catch {
      // It was closed already.
    }
  }

  private limitLastRead(): void {
    if (this.state === State.closed || this.lastRead !== null) return
    this.lastRead = setTimeout(() => this.lose("client_too_slow"), lastReadSecondsMax * 1_000)
    this.lastRead.unref()
  }
}

/** Streams with frames of this tick. One microtask empties it, so that an engine step costs each stream one write. */
let flushQueue: SseStream[] = []

function flushSoon(stream: SseStream): void {
  stream.queued = true
  if (flushQueue.push(stream) === 1) queueMicrotask(flushAll)
}

function flushAll(): void {
  const streams = flushQueue
  flushQueue = []
  for (const stream of streams) {
    stream.queued = false
    stream.flush()
  }
}

/** One timer for all streams that ask for the same keep-alive time; it only runs while there are any. */
class SilenceWatch {
  private readonly streams = new Set<SseStream>()
  private readonly quarterMs: number
  private timer: ReturnType<typeof setInterval> | null = null

  constructor(keepAliveSeconds: number) {
    this.quarterMs = (keepAliveSeconds * 1_000) / 4
  }

  add(stream: SseStream): void {
    this.streams.add(stream)
    this.timer ??= setInterval(() => {
      for (const each of this.streams) each.quarterPassed()
    }, this.quarterMs)
  }

  remove(stream: SseStream): void {
    this.streams.delete(stream)
    if (this.streams.size > 0 || this.timer === null) return
    clearInterval(this.timer)
    this.timer = null
  }
}

/** By keep-alive seconds; a server has one. */
const watches = new Map<number, SilenceWatch>()

function watchFor(keepAliveSeconds: number): SilenceWatch {
  const known = watches.get(keepAliveSeconds)
  if (known !== undefined) return known
  const watch = new SilenceWatch(keepAliveSeconds)
  watches.set(keepAliveSeconds, watch)
  return watch
}
