/** Messages → bytes on a socket: few copies, few writes, nothing lost or reordered behind a partial write. */
import { Flag } from "./message-reader"

/** Where bytes go. Gives how many were taken, or -1 when the connection is gone. */
export interface ByteSink {
  write(bytes: Uint8Array, offset: number, length: number): number
}

/** Headers and small bodies are gathered in buffers of this length, so that many leave in one write. */
const stagingBytes = 65_536
/** A longer body is written from where it lies: from here on, a copy costs more than another write. */
const copiedBytesMax = 16_384

const headerBytesMax = 9
const nothing = new Uint8Array(0)

/** Bytes that a frame takes on the wire. */
export function frameWireBytes(bodyBytes: number): number {
  return bodyBytes + (bodyBytes > 255 ? headerBytesMax : 2)
}

/**
 * Hot (bench/zmtp.ts). The order on the wire is: `segments`, then the staged bytes [stagedFrom, stagedTo). Memory: one
 * staging buffer while the socket takes everything, more only behind a reader that is slower than we are.
 */
export class SendQueue {
  /** Bytes added and not yet taken by the sink. */
  bufferedBytes = 0
  /** The last write was partial: the next one waits for the socket's drain. */
  blocked = false
  private readonly sink: ByteSink
  /** Written ones become empty and are dropped when all are written, or when there are many of them. */
  private readonly segments: Uint8Array[] = []
  private segmentFirst = 0
  private writtenOfFirst = 0
  private staging: Uint8Array = nothing
  private stagedFrom = 0
  private stagedTo = 0

  constructor(sink: ByteSink) {
    this.sink = sink
  }

  /** Adds one frame. A body of more than 16 KB is kept as it is until it is written; a smaller one is copied. */
  add(flags: number, body: Uint8Array): void {
    const length = body.length
    const copied = length <= copiedBytesMax
    this.makeRoom(copied ? headerBytesMax + length : headerBytesMax)
    const { staging } = this
    let at = this.stagedTo
    if (length > 255) {
      staging[at] = flags | Flag.long
      // Lengths are below 2^53; both halves as unsigned 32-bit numbers, big endian.
      putUint32(staging, at + 1, Math.floor(length / 2 ** 32))
      putUint32(staging, at + 5, length)
      at += 9
    } else {
      staging[at] = flags
      staging[at + 1] = length
      at += 2
    }
    this.bufferedBytes += at - this.stagedTo + length
    if (copied) {
      staging.set(body, at)
      this.stagedTo = at + length
    } else {
      this.stagedTo = at
      this.seal()
      this.segments.push(body)
    }
  }

  /** Adds bytes that are no frame (the greeting). */
  addRaw(bytes: Uint8Array): void {
    this.makeRoom(bytes.length)
    this.staging.set(bytes, this.stagedTo)
    this.stagedTo += bytes.length
    this.bufferedBytes += bytes.length
  }

  /** Writes what the socket takes. */
  flush(): void {
    while (this.segmentFirst < this.segments.length) {
      const segment = this.segments[this.segmentFirst]!
      const left = segment.length - this.writtenOfFirst
      const taken = this.sink.write(segment, this.writtenOfFirst, left)
      if (taken > 0) this.bufferedBytes -= taken
      if (taken < left) {
        if (taken > 0) this.writtenOfFirst += taken
        this.blocked = true
        return
      }
      this.segments[this.segmentFirst] = nothing
      this.segmentFirst += 1
      this.writtenOfFirst = 0
    }
    this.segments.length = 0
    this.segmentFirst = 0
    const left = this.stagedTo - this.stagedFrom
    if (left > 0) {
      const taken = this.sink.write(this.staging, this.stagedFrom, left)
      if (taken > 0) {
        this.bufferedBytes -= taken
        this.stagedFrom += taken
      }
      if (taken < left) {
        this.blocked = true
        return
      }
    }
    this.stagedFrom = 0
    this.stagedTo = 0
    this.blocked = false
  }

  /** Forgets everything that is not written. */
  clear(): void {
    this.segments.length = 0
    this.segmentFirst = 0
    this.writtenOfFirst = 0
    this.staging = nothing
    this.stagedFrom = 0
    this.stagedTo = 0
    this.bufferedBytes = 0
  }

  /** Sees to it that so many bytes can be staged in one piece. */
  private makeRoom(bytes: number): void {
    if (this.staging.length - this.stagedTo >= bytes) return
    if (!this.blocked) this.flush()
    if (this.stagedTo === 0 && this.staging.length >= bytes) return
    this.seal()
    this.staging = new Uint8Array(stagingBytes)
    this.stagedFrom = 0
    this.stagedTo = 0
  }

  /** Staged bytes become a segment, behind which others can stand. */
  private seal(): void {
    if (this.stagedTo > this.stagedFrom) this.segments.push(this.staging.subarray(this.stagedFrom, this.stagedTo))
    this.stagedFrom = this.stagedTo
    if (this.segmentFirst > 1_024) {
      this.segments.splice(0, this.segmentFirst)
      this.segmentFirst = 0
    }
  }
}

function putUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}
