import type { MessagePackReader } from "./message-pack-reader"
import { rawBytesCode } from "./message-pack-reader"

/** What the elements of an array are; numpy's and torch's names for the same thing are one here. */
type ElementKind = "int32" | "int64" | "float32" | "float64" | "float16" | "bfloat16"

const kinds: readonly (readonly [string, ElementKind])[] = [
  ["<i4", "int32"],
  ["<f4", "float32"],
  ["<i8", "int64"],
  ["<f8", "float64"],
  ["<f2", "float16"],
  ["int32", "int32"],
  ["int64", "int64"],
  ["float32", "float32"],
  ["float64", "float64"],
  ["float16", "float16"],
  ["bfloat16", "bfloat16"],
]
/** The names as bytes, so that none is made into a string for an array. */
const kindNames = kinds.map(([name]) => new TextEncoder().encode(name))
const elementBytes: { readonly [kind in ElementKind]: number } = {
  int32: 4,
  int64: 8,
  float32: 4,
  float64: 8,
  float16: 2,
  bfloat16: 2,
}

const scratchBytes = new Uint8Array(8)
const scratchFloat32 = new Float32Array(scratchBytes.buffer)
const scratchFloat64 = new Float64Array(scratchBytes.buffer)
const int32Max = 0x7fff_ffff

/**
 * One `[dtype, shape, data]` of a message (ENGINE_PROTOCOL 8), of one or two dimensions; its bytes stand in the body or
 * in a frame of their own, at any alignment. Meant to be kept: nothing is made for an array.
 */
export class ArrayReader {
  rows = 0
  /** 1 where the array has one dimension. */
  columns = 0
  private kind: ElementKind = "int32"
  private bytes: Uint8Array = scratchBytes
  private offset = 0

  private bytesEnd = 0

  /** Reads the triple's header from `reader`; afterwards the elements can be asked for. Faults go to the reader. */
  open(reader: MessagePackReader, frames: readonly Uint8Array[]): void {
    this.rows = 0
    this.columns = 0
    const fault = this.openTriple(reader, frames)
    if (fault !== "") reader.fail(fault)
  }

  /** Gives what is wrong, "" = nothing. */
  private openTriple(reader: MessagePackReader, frames: readonly Uint8Array[]): string {
    if (reader.readArraySize() !== 3) return "an array is dtype, shape and data"
    reader.readStringExtent()
    const kind = kindAt(reader.bytes, reader.byteStart, reader.byteEnd)
    if (kind === null) return "an array of numbers of a known type was expected"
    this.kind = kind
    const dimensions = reader.readArraySize()
    if (dimensions !== 1 && dimensions !== 2) return "an array of one or two dimensions was expected"
    const rows = reader.readInteger()
    const columns = dimensions === 2 ? reader.readInteger() : 1
    const fault = this.openData(reader, frames)
    if (fault !== "") return fault
    // Sizes below 2^31 each keep the product exact enough to be told from the length.
    const isShape = rows >= 0 && columns >= 0 && rows <= int32Max && columns <= int32Max
    if (!isShape || rows * columns * elementBytes[kind] !== this.bytesEnd - this.offset) {
      return "an array's shape does not fit its data"
    }
    this.rows = rows
    this.columns = columns
    return ""
  }

  private openData(reader: MessagePackReader, frames: readonly Uint8Array[]): string {
    if (reader.isBytes()) {
      reader.readByteExtent()
      const code = reader.extensionCode
      if (code !== null && code !== rawBytesCode) return `an array's data has the unknown extension code ${code}`
      this.bytes = reader.bytes
      this.offset = reader.byteStart
      this.bytesEnd = reader.byteEnd
      return ""
    }
    const index = reader.readInteger()
    const frame = index >= 1 ? frames[index] : undefined
    if (frame === undefined) return "an array's data is in a frame that did not come"
    this.bytes = frame
    this.offset = 0
    this.bytesEnd = frame.length
    return ""
  }

  /** Element `i` (row by row) as an integer, clamped to 32 bits. */
  integer(i: number): number {
    const { bytes } = this
    if (this.kind === "int32") return int32(bytes, this.offset + 4 * i)
    if (this.kind === "int64") {
      const at = this.offset + 8 * i
      const low = int32(bytes, at)
      const high = int32(bytes, at + 4)
      if (high === low >> 31) return low
      return high < 0 ? -int32Max - 1 : int32Max
    }
    return Math.max(-int32Max - 1, Math.min(int32Max, Math.trunc(this.float(i))))
  }

  /** Element `i` (row by row) as a number. */
  float(i: number): number {
    const { bytes, offset } = this
    switch (this.kind) {
      case "float32":
        return float32(int32(bytes, offset + 4 * i))
      case "float64": {
        for (let byte = 0; byte < 8; byte++) scratchBytes[byte] = bytes[offset + 8 * i + byte]!
        return scratchFloat64[0]!
      }
      case "bfloat16":
        return float32(int16(bytes, offset + 2 * i) << 16)
      case "float16":
        return float16(int16(bytes, offset + 2 * i))
      default:
        return this.integer(i)
    }
  }
}

function kindAt(bytes: Uint8Array, start: number, end: number): ElementKind | null {
  for (let i = 0; i < kinds.length; i++) {
    const name = kindNames[i]!
    if (name.length !== end - start) continue
    let same = 0
    while (same < name.length && bytes[start + same] === name[same]) same += 1
    if (same === name.length) return kinds[i]![1]
  }
  return null
}

function int32(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

function int16(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8)
}

function float32(bits: number): number {
  scratchBytes[0] = bits
  scratchBytes[1] = bits >> 8
  scratchBytes[2] = bits >> 16
  scratchBytes[3] = bits >> 24
  return scratchFloat32[0]!
}

function float16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}
