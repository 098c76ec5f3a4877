import type { Json } from "../../ir/conversation"

/** The buffer that a writer keeps between messages; larger ones are given back. */
const keptBytesMax = 1_048_576
const utf8 = new TextEncoder()

/**
 * Writes MessagePack into a buffer of its own that grows and is reused. The caller decides the type of every number,
 * since the engine's decoder does not forgive a float for an int (ENGINE_PROTOCOL 4); integers take the smallest width.
 */
export class MessagePackWriter {
  private bytes = new Uint8Array(4_096)
  private view = new DataView(this.bytes.buffer)
  private at = 0

  /** Starts a message; what was written before is gone. */
  reset(): void {
    this.at = 0
    if (this.bytes.length > keptBytesMax) this.resize(keptBytesMax)
  }

  /** The message so far, in bytes of its own that are the caller's. */
  finish(): Uint8Array {
    return this.bytes.slice(0, this.at)
  }

  nil(): void {
    this.byte(0xc0)
  }

  boolean(value: boolean): void {
    this.byte(value ? 0xc3 : 0xc2)
  }

  /** A whole number within ±2^53. */
  int(value: number): void {
    this.reserve(9)
    const { view } = this
    if (value >= 0) {
      if (value <= 0x7f) this.bytes[this.at++] = value
      else if (value <= 0xffff_ffff) this.unsigned(value)
      else {
        this.bytes[this.at] = 0xcf
        view.setUint32(this.at + 1, Math.floor(value / 0x1_0000_0000))
        view.setUint32(this.at + 5, value >>> 0)
        this.at += 9
      }
      return
    }
    if (value >= -32) {
      this.bytes[this.at++] = value
    } else if (value >= -128) {
      this.bytes[this.at] = 0xd0
      view.setInt8(this.at + 1, value)
      this.at += 2
    } else if (value >= -32_768) {
      this.bytes[this.at] = 0xd1
      view.setInt16(this.at + 1, value)
      this.at += 3
    } else if (value >= -0x8000_0000) {
      this.bytes[this.at] = 0xd2
      view.setInt32(this.at + 1, value)
      this.at += 5
    } else {
      this.bytes[this.at] = 0xd3
      view.setBigInt64(this.at + 1, BigInt(value))
      this.at += 9
    }
  }

  /** A whole number within -2^63 … 2^64 - 1. */
  bigint(value: bigint): void {
    if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) {
      this.int(Number(value))
      return
    }
    this.reserve(9)
    this.bytes[this.at] = value >= 0n ? 0xcf : 0xd3
    this.view.setBigUint64(this.at + 1, BigInt.asUintN(64, value))
    this.at += 9
  }

  /** A float of 64 bits, also where the value is whole. */
  float(value: number): void {
    this.reserve(9)
    this.bytes[this.at] = 0xcb
    this.view.setFloat64(this.at + 1, value)
    this.at += 9
  }

  /** A string; lone surrogates go out as U+FFFD, so that the bytes are always UTF-8. */
  string(value: string): void {
    // A UTF-16 unit takes three bytes at most.
    this.reserve(5 + 3 * value.length)
    const header = stringHeaderBytes(value.length)
    const { written } = utf8.encodeInto(value, this.bytes.subarray(this.at + header))
    const needed = stringHeaderBytes(written)
    if (needed !== header) this.bytes.copyWithin(this.at + needed, this.at + header, this.at + header + written)
    if (needed === 1) this.bytes[this.at] = 0xa0 | written
    else {
      this.bytes[this.at] = needed === 2 ? 0xd9 : needed === 3 ? 0xda : 0xdb
      this.size(this.at + 1, written, needed - 1)
    }
    this.at += needed + written
  }

  /** A whole value, packed elsewhere. */
  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.bytes.set(bytes, this.at)
    this.at += bytes.length
  }

  /** The header of an array; its elements follow. */
  array(size: number): void {
    this.container(size, 0x90, 0xdc)
  }

  /** The header of a map; its keys and values follow. */
  map(size: number): void {
    this.container(size, 0x80, 0xde)
  }

  /** The header of a map whose size is known only at its end; give what this returns to `endMap`. */
  beginMap(): number {
    this.reserve(3)
    this.bytes[this.at] = 0xde
    this.at += 3
    return this.at - 2
  }

  /** Sets the size of a map that `beginMap` began: below 65,536 pairs. */
  endMap(begun: number, size: number): void {
    this.view.setUint16(begun, size)
  }

  /** An array of token ids. Hot (bench/frames.ts): prompts have up to a million. */
  ids(ids: ArrayLike<number>): void {
    const { length } = ids
    this.array(length)
    this.reserve(5 * length)
    const { bytes } = this
    let { at } = this
    for (let i = 0; i < length; i++) {
      const id = ids[i]!
      if (id <= 0x7f) {
        bytes[at++] = id
      } else if (id <= 0xff) {
        bytes[at] = 0xcc
        bytes[at + 1] = id
        at += 2
      } else if (id <= 0xffff) {
        bytes[at] = 0xcd
        bytes[at + 1] = id >> 8
        bytes[at + 2] = id
        at += 3
      } else {
        bytes[at] = 0xce
        bytes[at + 1] = id >>> 24
        bytes[at + 2] = id >> 16
        bytes[at + 3] = id >> 8
        bytes[at + 4] = id
        at += 5
      }
    }
    this.at = at
  }

  /**
   * A value as a client wrote it: whole numbers as ints, other numbers as floats, `bigint` within 64 bits (the caller
   * has checked that, and the depth).
   */
  json(value: Json): void {
    if (value === null) this.nil()
    else if (typeof value === "boolean") this.boolean(value)
    else if (typeof value === "number") {
      if (Number.isSafeInteger(value)) this.int(value)
      else this.float(value)
    } else if (typeof value === "bigint") this.bigint(value)
    else if (typeof value === "string") this.string(value)
    else if (Array.isArray(value)) {
      this.array(value.length)
      for (const each of value) this.json(each)
    } else {
      const entries = Object.entries(value)
      this.map(entries.length)
      for (const [key, each] of entries) {
        this.string(key)
        this.json(each)
      }
    }
  }

  private unsigned(value: number): void {
    const width = value <= 0xff ? 1 : value <= 0xffff ? 2 : 4
    this.bytes[this.at] = width === 1 ? 0xcc : width === 2 ? 0xcd : 0xce
    this.size(this.at + 1, value, width)
    this.at += 1 + width
  }

  private container(size: number, small: number, large: number): void {
    this.reserve(5)
    if (size <= 15) {
      this.bytes[this.at++] = small | size
      return
    }
    const width = size <= 0xffff ? 2 : 4
    this.bytes[this.at] = width === 2 ? large : large + 1
    this.size(this.at + 1, size, width)
    this.at += 1 + width
  }

  private size(at: number, value: number, width: number): void {
    if (width === 1) this.bytes[at] = value
    else if (width === 2) this.view.setUint16(at, value)
    else this.view.setUint32(at, value)
  }

  private byte(value: number): void {
    this.reserve(1)
    this.bytes[this.at++] = value
  }

  private reserve(more: number): void {
    const needed = this.at + more
    if (needed > this.bytes.length) this.resize(Math.max(needed, 2 * this.bytes.length))
  }

  private resize(size: number): void {
    const grown = new Uint8Array(size)
    grown.set(this.bytes.subarray(0, this.at))
    this.bytes = grown
    this.view = new DataView(grown.buffer)
  }
}

function stringHeaderBytes(size: number): number {
  return size <= 31 ? 1 : size <= 0xff ? 2 : size <= 0xffff ? 3 : 5
}
