import type { DeltaFrame } from "./delta-frame"
import { jsonString } from "./json-string"

/** What a stream that says little at a time needs; doubled when it is too small. */
const firstBytes = 1_024
/** A larger buffer is let go when it has been written. */
const keptBytesMax = 64 * 1_024
/** Shorter copies are faster byte by byte than through the array's own method. */
const loopBytesMax = 40

/** Frames of one stream as UTF-8, until they are written. The bytes stay in place; only growth allocates. */
export class FrameBuffer {
  /** Bytes of the frames that wait. */
  length = 0
  private bytes: Buffer = Buffer.alloc(0)

  /** Adds text as it is. */
  text(text: string): void {
    // UTF-8 has at most three bytes for a UTF-16 unit.
    this.reserve(text.length * 3)
    this.length += this.bytes.write(text, this.length)
  }

  /** Hot (bench/fold.ts): adds one frame; `number` -1 = not numbered. */
  delta(frame: DeltaFrame, text: string, number: number): void {
    const head = frame.head.bytes
    const tail = frame.tail.bytes
    const end = frame.end.bytes
    // A character becomes at most `\u0000`, a number has at most 10 digits.
    this.reserve(head.length + tail.length + end.length + text.length * 6 + 2 + 10)
    this.copy(head)
    this.json(text)
    this.copy(tail)
    if (number < 0) return
    this.digits(number)
    this.copy(end)
  }

  /** The bytes that wait. The view is the reader's until the next call of another method. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  /** Forgets the bytes. */
  clear(): void {
    this.length = 0
    if (this.bytes.length > keptBytesMax) this.bytes = Buffer.alloc(0)
  }

  private reserve(more: number): void {
    const needed = this.length + more
    if (needed <= this.bytes.length) return
    let size = Math.max(firstBytes, this.bytes.length * 2)
    while (size < needed) size *= 2
    const grown = Buffer.allocUnsafeSlow(size)
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
  }

  private copy(source: Uint8Array): void {
    const { bytes, length } = this
    if (source.length > loopBytesMax) bytes.set(source, length)
    else for (let i = 0; i < source.length; i++) bytes[length + i] = source[i]!
    this.length = length + source.length
  }

  /** The text as `jsonString` has it. What is neither plain nor a common escape leaves the loop to it. */
  private json(text: string): void {
    const { bytes } = this
    let at = this.length
    bytes[at++] = quote
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit < 0x80) {
        if (unit >= 0x20 && unit !== quote && unit !== backslash) {
          bytes[at++] = unit
        } else if (unit === lineFeed || unit >= 0x20) {
          bytes[at++] = backslash
          bytes[at++] = unit === lineFeed ? letterN : unit
        } else {
          this.whole(text)
          return
        }
      } else if (unit < 0x800 && unit !== nextLine) {
        bytes[at++] = 0xc0 | (unit >> 6)
        bytes[at++] = 0x80 | (unit & 0x3f)
      } else if (unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) && unit !== 0x2028 && unit !== 0x2029) {
        bytes[at++] = 0xe0 | (unit >> 12)
        bytes[at++] = 0x80 | ((unit >> 6) & 0x3f)
        bytes[at++] = 0x80 | (unit & 0x3f)
      } else {
        this.whole(text)
        return
      }
    }
    bytes[at++] = quote
    this.length = at
  }

  private whole(text: string): void {
    this.length += this.bytes.write(jsonString(text), this.length)
  }

  /** Numbers of events stay below 2^31. */
  private digits(number: number): void {
    const { bytes } = this
    let count = 1
    for (let bound = 10; number >= bound; bound *= 10) count += 1
    let rest = number | 0
    for (let at = this.length + count - 1; at >= this.length; at--) {
      const less = (rest / 10) | 0
      bytes[at] = 0x30 + rest - less * 10
      rest = less
    }
    this.length += count
  }
}

const quote = 0x22
const backslash = 0x5c
const lineFeed = 0x0a
const letterN = 0x6e
const nextLine = 0x85
