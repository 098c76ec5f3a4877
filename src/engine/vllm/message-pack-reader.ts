/**
 * Reads MessagePack from bytes that another process wrote. Nothing here throws, allocates by a length that the bytes
 * only claim, or recurses deeper than `depthMax`; the first fault sticks, and reads after it give empty values.
 */
import type { Json } from "../../ir/conversation"

/** A message that is not what the protocol says. `at` is the byte where reading stopped. */
export interface MalformedFrame {
  readonly kind: "malformed_frame"
  readonly message: string
  readonly at: number
}

/** A MessagePack extension: an application's own type. A class, so that no map is taken for one. */
export class Extension {
  readonly code: number
  /** A view into the message. */
  readonly bytes: Uint8Array

  constructor(code: number, bytes: Uint8Array) {
    this.code = code
    this.bytes = bytes
  }
}

/** What `readValue` gives. 64-bit integers beyond 2^53 are `bigint`; bytes are views into the message. */
export type MessagePackValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Extension
  | MessagePackValue[]
  | { [key: string]: MessagePackValue }

/** Nested arrays and maps that `readValue` follows. */
export const depthMax = 64

/** The extension code of raw array bytes (ENGINE_PROTOCOL 8). */
export const rawBytesCode = 3

/** Strings up to this size are read by hand where they are ASCII: faster than the decoder's call. */
const shortBytes = 32
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })
const scratchBytes = new Uint8Array(8)
const scratch = new DataView(scratchBytes.buffer)

/**
 * The offset behind the value at `at`, whatever it is; -1 when the bytes end before it does, or hold what MessagePack
 * does not know. Hot (bench/frames.ts, logprobs). One pass, no recursion: nesting only adds to what is still to come.
 */
export function skipValue(bytes: Uint8Array, at: number, end: number): number {
  let position = at
  let pending = 1
  while (pending > 0) {
    // Each value takes a byte at least, so a count beyond what is left is a lie.
    if (pending > end - position) return -1
    pending -= 1
    const tag = bytes[position]!
    position += 1
    if (tag <= 0x7f || tag >= 0xe0) continue
    if (tag <= 0x8f) pending += 2 * (tag & 0x0f)
    else if (tag <= 0x9f) pending += tag & 0x0f
    else if (tag <= 0xbf) position += tag & 0x1f
    else {
      const sizeBytes = lengthBytes[tag & 0x1f]!
      if (sizeBytes < 0) return -1
      if (sizeBytes === 0) {
        position += fixedBytes[tag & 0x1f]!
        continue
      }
      if (position + sizeBytes > end) return -1
      let size = 0
      for (let i = 0; i < sizeBytes; i++) size = size * 256 + bytes[position + i]!
      position += sizeBytes
      if (tag <= 0xc9) position += size + (tag >= 0xc7 ? 1 : 0)
      else if (tag <= 0xdb) position += size
      else pending += tag <= 0xdd ? size : 2 * size
    }
  }
  return position <= end ? position : -1
}

/** For tags 0xc0 + i: how many bytes of length follow; 0 = the size is fixed; -1 = no such tag. */
const lengthBytes = new Int8Array(32)
/** For tags 0xc0 + i without a length: how many bytes follow. */
const fixedBytes = new Uint8Array(32)
{
  lengthBytes[0x01] = -1 // 0xc1 is never used
  const lengths: readonly (readonly [number, number])[] = [
    [0xc4, 1],
    [0xc5, 2],
    [0xc6, 4],
    [0xc7, 1],
    [0xc8, 2],
    [0xc9, 4],
    [0xd9, 1],
    [0xda, 2],
    [0xdb, 4],
    [0xdc, 2],
    [0xdd, 4],
    [0xde, 2],
    [0xdf, 4],
  ]
  for (const [tag, size] of lengths) lengthBytes[tag & 0x1f] = size
  const sizes: readonly (readonly [number, number])[] = [
    [0xca, 4],
    [0xcb, 8],
    [0xcc, 1],
    [0xcd, 2],
    [0xce, 4],
    [0xcf, 8],
    [0xd0, 1],
    [0xd1, 2],
    [0xd2, 4],
    [0xd3, 8],
    [0xd4, 2],
    [0xd5, 3],
    [0xd6, 5],
    [0xd7, 9],
    [0xd8, 17],
  ]
  for (const [tag, size] of sizes) fixedBytes[tag & 0x1f] = size
}

/** Reads values one after the other; meant to be kept and `reset`. */
export class MessagePackReader {
  bytes: Uint8Array = new Uint8Array(0)
  at = 0
  private end = 0
  private fault = ""
  private faultAt = 0

  /** Starts over at `at`; the bytes are borrowed. */
  reset(bytes: Uint8Array, at = 0): void {
    this.bytes = bytes
    this.at = at
    this.end = bytes.length
    this.fault = ""
    this.faultAt = 0
  }

  /** True once something could not be read. */
  get failed(): boolean {
    return this.fault !== ""
  }

  /** What went wrong first; only meaningful when `failed`. */
  failure(): MalformedFrame {
    return { kind: "malformed_frame", message: this.fault, at: this.faultAt }
  }

  /** Notes a fault at this place; everything read from now on is empty. */
  fail(message: string): void {
    if (this.fault === "") {
      this.fault = message
      this.faultAt = this.at
    }
    this.at = this.end
  }

  /** The tag byte of the next value, -1 at the end. */
  peek(): number {
    return this.at < this.end ? this.bytes[this.at]! : -1
  }

  /** Whether the next value is nil, which is then consumed. */
  takeNil(): boolean {
    if (this.peek() !== 0xc0) return false
    this.at += 1
    return true
  }

  skip(): void {
    const next = skipValue(this.bytes, this.at, this.end)
    if (next < 0) this.fail("the message ends within a value")
    else this.at = next
  }

  /** Elements of the array that starts here; each takes a byte at least, so the number is bounded by the message. */
  readArraySize(): number {
    const tag = this.peek()
    if (tag >= 0x90 && tag <= 0x9f) return this.counted(1, tag & 0x0f, 1)
    if (tag === 0xdc) return this.counted(3, this.uint(this.at + 1, 2), 1)
    if (tag === 0xdd) return this.counted(5, this.uint(this.at + 1, 4), 1)
    this.fail("an array was expected")
    return 0
  }

  /** Pairs of the map that starts here. */
  readMapSize(): number {
    const tag = this.peek()
    if (tag >= 0x80 && tag <= 0x8f) return this.counted(1, tag & 0x0f, 2)
    if (tag === 0xde) return this.counted(3, this.uint(this.at + 1, 2), 2)
    if (tag === 0xdf) return this.counted(5, this.uint(this.at + 1, 4), 2)
    this.fail("a map was expected")
    return 0
  }

  /** An integer of any width, as the nearest number; exact within ±2^53. */
  readInteger(): number {
    const value = this.integer()
    return typeof value === "bigint" ? Number(value) : value
  }

  /** A float of either width, or an integer. */
  readNumber(): number {
    const tag = this.peek()
    if (tag !== 0xca && tag !== 0xcb) return this.readInteger()
    const size = tag === 0xca ? 4 : 8
    if (this.at + 1 + size > this.end) {
      this.fail("the message ends within a float")
      return 0
    }
    for (let i = 0; i < size; i++) scratchBytes[i] = this.bytes[this.at + 1 + i]!
    this.at += 1 + size
    return size === 4 ? scratch.getFloat32(0) : scratch.getFloat64(0)
  }

  readBoolean(): boolean {
    const tag = this.peek()
    if (tag !== 0xc2 && tag !== 0xc3) {
      this.fail("a boolean was expected")
      return false
    }
    this.at += 1
    return tag === 0xc3
  }

  /** A string; bytes that are no UTF-8 become U+FFFD. */
  readString(): string {
    this.readStringExtent()
    const { bytes, byteStart, byteEnd } = this
    const short = byteEnd - byteStart <= shortBytes ? asciiText(bytes, byteStart, byteEnd) : null
    return short ?? utf8.decode(bytes.subarray(byteStart, byteEnd))
  }

  /** Steps over a string and leaves the extent of its bytes in `byteStart` and `byteEnd`: to compare it without making it. */
  readStringExtent(): void {
    this.byteStart = 0
    this.byteEnd = 0
    const tag = this.peek()
    let size = -1
    let header = 1
    if (tag >= 0xa0 && tag <= 0xbf) size = tag & 0x1f
    else if (tag >= 0xd9 && tag <= 0xdb) {
      const width = 1 << (tag - 0xd9)
      size = this.uint(this.at + 1, width)
      header += width
    }
    const start = this.at + header
    if (size < 0) this.fail("a string was expected")
    else if (start + size > this.end) this.fail("the message ends within a string")
    else {
      this.byteStart = start
      this.byteEnd = start + size
      this.at = this.byteEnd
    }
  }

  /** Whether the next value is binary, or an extension. */
  isBytes(): boolean {
    const tag = this.peek()
    return (tag >= 0xc4 && tag <= 0xc9) || (tag >= 0xd4 && tag <= 0xd8)
  }

  /** The extent that was stepped over last; `extensionCode` is null for binary data. */
  byteStart = 0
  byteEnd = 0
  extensionCode: number | null = null

  /** Steps over bytes and leaves their extent in the fields above. */
  readByteExtent(): void {
    this.byteStart = 0
    this.byteEnd = 0
    this.extensionCode = null
    const tag = this.peek()
    let header = 2
    let size = 0
    let isExtension = true
    if (tag >= 0xd4 && tag <= 0xd8) size = 1 << (tag - 0xd4)
    else if (tag >= 0xc4 && tag <= 0xc9) {
      isExtension = tag >= 0xc7
      const width = 1 << (tag - (isExtension ? 0xc7 : 0xc4))
      size = this.uint(this.at + 1, width)
      header = 1 + width + (isExtension ? 1 : 0)
    } else {
      this.fail("bytes were expected")
      return
    }
    const start = this.at + header
    if (size < 0 || start + size > this.end) {
      this.fail("the message ends within bytes")
      return
    }
    if (isExtension) this.extensionCode = (this.bytes[start - 1]! << 24) >> 24
    this.byteStart = start
    this.byteEnd = start + size
    this.at = this.byteEnd
  }

  /** Any value. Keys of maps may be strings or integers (written in decimal); `__proto__` is a key like others. */
  readValue(depth = 0): MessagePackValue {
    const tag = this.peek()
    if (tag < 0) {
      this.fail("the message ends where a value was expected")
      return null
    }
    if (tag === 0xc0) {
      this.at += 1
      return null
    }
    if (tag === 0xc2 || tag === 0xc3) return this.readBoolean()
    if (tag === 0xca || tag === 0xcb) return this.readNumber()
    if (tag <= 0x7f || tag >= 0xe0 || (tag >= 0xcc && tag <= 0xd3)) return this.integer()
    if ((tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb)) return this.readString()
    if (this.isBytes()) {
      this.readByteExtent()
      const bytes = this.bytes.subarray(this.byteStart, this.byteEnd)
      return this.extensionCode === null ? bytes : new Extension(this.extensionCode, bytes)
    }
    if (tag === 0xc1) {
      this.fail("0xc1 is no MessagePack value")
      return null
    }
    if (depth >= depthMax) {
      this.fail(`values nest deeper than ${depthMax} levels`)
      return null
    }
    const isArray = (tag >= 0x90 && tag <= 0x9f) || tag === 0xdc || tag === 0xdd
    return isArray ? this.array(depth) : this.map(depth)
  }

  /** A value that JSON can say; bytes and extensions are faults. */
  readJson(): Json {
    const value = this.readValue()
    if (!this.failed && holdsBytes(value)) this.fail("bytes stand where JSON was expected")
    return this.failed ? null : (value as Json) // without bytes and extensions, these are the types of Json
  }

  private array(depth: number): MessagePackValue[] {
    const size = this.readArraySize()
    const values: MessagePackValue[] = []
    for (let i = 0; i < size && !this.failed; i++) values.push(this.readValue(depth + 1))
    return values
  }

  private map(depth: number): { [key: string]: MessagePackValue } {
    const size = this.readMapSize()
    const values: { [key: string]: MessagePackValue } = {}
    for (let i = 0; i < size && !this.failed; i++) {
      const key = this.key()
      const value = this.readValue(depth + 1)
      if (key !== "__proto__") values[key] = value
      else Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true })
    }
    return values
  }

  private key(): string {
    const tag = this.peek()
    return (tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb) ? this.readString() : String(this.integer())
  }

  private integer(): number | bigint {
    const tag = this.peek()
    if (tag >= 0 && tag <= 0x7f) {
      this.at += 1
      return tag
    }
    if (tag >= 0xe0) {
      this.at += 1
      return tag - 256
    }
    if (tag < 0xcc || tag > 0xd3) {
      this.fail("an integer was expected")
      return 0
    }
    const isSigned = tag >= 0xd0
    const width = 1 << (tag - (isSigned ? 0xd0 : 0xcc))
    if (this.at + 1 + width > this.end) {
      this.fail("the message ends within an integer")
      return 0
    }
    const from = this.at + 1
    this.at = from + width
    if (width < 8) {
      const unsigned = this.uint(from, width)
      if (!isSigned) return unsigned
      const bits = 32 - 8 * width
      return (unsigned << bits) >> bits
    }
    for (let i = 0; i < 8; i++) scratchBytes[i] = this.bytes[from + i]!
    const exact = isSigned ? scratch.getBigInt64(0) : scratch.getBigUint64(0)
    const near = Number(exact)
    return Number.isSafeInteger(near) ? near : exact
  }

  /** A big-endian unsigned number of 1, 2 or 4 bytes; -1 when the message ends before it. */
  private uint(at: number, width: number): number {
    if (at + width > this.end) return -1
    let value = 0
    for (let i = 0; i < width; i++) value = value * 256 + this.bytes[at + i]!
    return value
  }

  private counted(header: number, count: number, bytesEach: number): number {
    if (count < 0 || count * bytesEach > this.end - this.at - header) {
      this.fail("the message is shorter than its counts say")
      return 0
    }
    this.at += header
    return count
  }
}

/** Whether bytes or an extension stand anywhere in a value. */
function holdsBytes(value: MessagePackValue): boolean {
  if (value === null || typeof value !== "object") return false
  if (value instanceof Uint8Array || value instanceof Extension) return true
  return (Array.isArray(value) ? value : Object.values(value)).some(holdsBytes)
}

function asciiText(bytes: Uint8Array, start: number, end: number): string | null {
  let text = ""
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte > 0x7f) return null
    text += String.fromCharCode(byte)
  }
  return text
}
