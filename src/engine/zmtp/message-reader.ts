/** Received bytes → messages and commands. Knows framing and limits, nothing about sockets or what commands mean. */
import type { ZmtpLimits } from "./peer"

/** What a reader finds, in the order of the bytes. */
export interface MessageSink {
  /** The array is reused; the frames are the sink's to keep. */
  message(frames: readonly Uint8Array[]): void
  command(body: Uint8Array): void
  /** The bytes break the protocol or a limit; nothing follows. */
  malformed(reason: string): void
}

/** Flags of a frame, its first byte. Source: RFC 37, "framing". */
export const Flag = { more: 1, long: 2, command: 4 } as const
const knownFlags = Flag.more | Flag.long | Flag.command

/** Bytes of a header: flags and one byte of length, or flags and eight. */
const shortHeaderBytes = 2
const longHeaderBytes = 9

/** Longest command. The longest that mean something are subscriptions, which are short. */
const commandBytesMax = 65_536

/** Up to this length, a frame that spans chunks gets its memory at its beginning. */
const trustedBytesMax = 2 ** 20
/** Beyond that, memory grows with what came: a peer that only announces a large frame costs nothing. */
const growthFactor = 8

const emptyFrame = new Uint8Array(0)

/**
 * Hot (bench/zmtp.ts). A frame that lies in one chunk is a view into it; one that spans chunks is a buffer of its own
 * that is filled as the bytes come, so that a large frame costs time in proportion to its length.
 */
export class MessageReader {
  private readonly limits: ZmtpLimits
  private readonly sink: MessageSink
  /** Frames of the message that is coming in. */
  private frames: Uint8Array[] = []
  private messageBytes = 0
  /** A header that spans chunks. */
  private readonly header = new Uint8Array(longHeaderBytes)
  private headerFilled = 0
  /** The frame that spans chunks: its flags, its whole length (-1 = there is none), and what is there of it. */
  private flags = 0
  private bodyLength = -1
  private body: Uint8Array = emptyFrame
  private bodyFilled = 0
  private stopped = false

  constructor(limits: ZmtpLimits, sink: MessageSink) {
    this.limits = limits
    this.sink = sink
  }

  /** Ends it: nothing more is handed to the sink, not even from the chunk that is being read. */
  stop(): void {
    this.stopped = true
    this.frames = [] // not emptied: a message that is being handed over stays whole
    this.body = emptyFrame
  }

  /** Reads one chunk, from `from` on. The chunk must never change afterwards. */
  push(chunk: Uint8Array, from: number): void {
    let at = from
    if (this.bodyLength >= 0) at = this.fillBody(chunk, at)
    if (this.headerFilled > 0) at = this.fillHeader(chunk, at)
    while (at < chunk.length && !this.stopped) {
      const flags = chunk[at]!
      const bodyAt = at + ((flags & Flag.long) === 0 ? shortHeaderBytes : longHeaderBytes)
      if (bodyAt > chunk.length) {
        while (at < chunk.length) this.header[this.headerFilled++] = chunk[at++]!
        return
      }
      const length = (flags & Flag.long) === 0 ? chunk[at + 1]! : longLength(chunk, at + 1)
      at = this.begin(flags, length, chunk, bodyAt)
    }
  }

  /** Adds to a header that spans chunks; gives where the reading goes on. */
  private fillHeader(chunk: Uint8Array, from: number): number {
    let at = from
    const flags = this.header[0]!
    const needed = (flags & Flag.long) === 0 ? shortHeaderBytes : longHeaderBytes
    while (this.headerFilled < needed) {
      if (at === chunk.length) return at
      this.header[this.headerFilled++] = chunk[at++]!
    }
    this.headerFilled = 0
    const length = needed === shortHeaderBytes ? this.header[1]! : longLength(this.header, 1)
    return this.begin(flags, length, chunk, at)
  }

  /** A header is there: takes the body, or as much of it as the chunk has; gives where the reading goes on. */
  private begin(flags: number, length: number, chunk: Uint8Array, bodyAt: number): number {
    const broken = this.problem(flags, length)
    if (broken !== null) {
      this.stop()
      this.sink.malformed(broken)
      return chunk.length
    }
    const end = bodyAt + length
    if (end <= chunk.length) {
      this.deliver(flags, length === 0 ? emptyFrame : chunk.subarray(bodyAt, end))
      return end
    }
    this.flags = flags
    this.bodyLength = length
    this.body = new Uint8Array(Math.min(length, trustedBytesMax))
    this.bodyFilled = 0
    return this.fillBody(chunk, bodyAt)
  }

  /** Adds to the frame that spans chunks; gives where the reading goes on. */
  private fillBody(chunk: Uint8Array, from: number): number {
    const taken = Math.min(this.bodyLength - this.bodyFilled, chunk.length - from)
    const filled = this.bodyFilled + taken
    if (filled > this.body.length) {
      const grown = new Uint8Array(Math.min(this.bodyLength, Math.max(filled, this.body.length * growthFactor)))
      grown.set(this.body.subarray(0, this.bodyFilled))
      this.body = grown
    }
    this.body.set(taken === chunk.length ? chunk : chunk.subarray(from, from + taken), this.bodyFilled)
    this.bodyFilled = filled
    if (filled === this.bodyLength) {
      const body = this.body
      this.body = emptyFrame
      this.bodyLength = -1
      this.deliver(this.flags, body)
    }
    return from + taken
  }

  private deliver(flags: number, body: Uint8Array): void {
    if ((flags & Flag.command) !== 0) {
      this.sink.command(body)
      return
    }
    this.frames.push(body)
    if ((flags & Flag.more) !== 0) {
      this.messageBytes += body.length
      return
    }
    this.sink.message(this.frames)
    this.frames.length = 0
    this.messageBytes = 0
  }

  /**
   * What is wrong with a header, or null. A command between the frames of a message is taken: libzmq's heartbeats may
   * stand there.
   */
  private problem(flags: number, length: number): string | null {
    if ((flags & ~knownFlags) !== 0) return `a frame with reserved flags: ${flags}`
    if ((flags & Flag.command) !== 0) {
      if ((flags & Flag.more) !== 0) return "a command that wants to go on in another frame"
      return length > commandBytesMax ? `a command of ${length} bytes, ${commandBytesMax} are allowed` : null
    }
    const { frameBytesMax, messageBytesMax, messageFramesMax } = this.limits
    if (length > frameBytesMax) return `a frame of ${length} bytes, ${frameBytesMax} are allowed`
    if (this.messageBytes + length > messageBytesMax) return `a message of more than ${messageBytesMax} bytes`
    if (this.frames.length >= messageFramesMax) return `a message of more than ${messageFramesMax} frames`
    return null
  }
}

/** Eight bytes, big endian. Beyond 2^53 inexact, which only says "too long" about another number. */
function longLength(bytes: Uint8Array, at: number): number {
  let length = 0
  for (let i = 0; i < 8; i++) length = length * 256 + bytes[at + i]!
  return length
}
