/**
 * One processed item of media, as a renderer of vLLM's gives it (RENDER 7): MessagePack of `{name: {data, field}}`, which
 * is also what an engine is sent (ENGINE_PROTOCOL 13). The engine's decoder dies of what it does not know, and an
 * extension of another kind would be code that it runs; so every byte is looked at here, and then sent as it came.
 */
import { err, ok, type Result } from "../../result"
import { MessagePackReader, rawBytesCode } from "./message-pack-reader"

/** Fields of an item by name, each the bytes of its value. They are views. */
export type MediaFields = ReadonlyMap<string, Uint8Array>

/** Fields of one item. */
const mediaFieldsMax = 256
/** Tensors and numbers of one field. */
const tensorsMax = 65_536
const nestingMax = 8
const dimensionsMax = 16
const slicesMax = 65_536
const fieldName = /^[\w.-]{1,128}$/

/** Bytes of an element, by torch's name for its type. */
const elementBytes: ReadonlyMap<string, number> = new Map([
  ["bool", 1],
  ["uint8", 1],
  ["int8", 1],
  ["int16", 2],
  ["int32", 4],
  ["int64", 8],
  ["float16", 2],
  ["bfloat16", 2],
  ["float32", 4],
  ["float64", 8],
])

/** The item's fields, or what the engine would not take about it. The bytes stay the caller's, and must stay as they are. */
export function readMediaItem(bytes: Uint8Array): Result<MediaFields, string> {
  const reader = new ItemReader(bytes)
  const fields = reader.read()
  return reader.fault === "" ? ok(fields) : err(reader.fault)
}

class ItemReader {
  private readonly reader = new MessagePackReader()
  private readonly bytes: Uint8Array
  private tensors = 0
  private told = ""

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.reader.reset(bytes)
  }

  get fault(): string {
    if (this.told !== "") return this.told
    return this.reader.failed ? this.reader.failure().message : ""
  }

  read(): MediaFields {
    const { reader } = this
    const fields = new Map<string, Uint8Array>()
    const count = reader.readMapSize()
    if (count === 0 || count > mediaFieldsMax) this.refuse(`it must have from 1 to ${mediaFieldsMax} fields`)
    for (let i = 0; i < count && !reader.failed; i++) {
      const name = reader.readString()
      if (!fieldName.test(name) || fields.has(name)) this.refuse("a field has no name of its own")
      const start = reader.at
      this.field()
      fields.set(name, this.bytes.subarray(start, reader.at))
    }
    if (!reader.failed && reader.at !== this.bytes.length) this.refuse("something follows the item")
    return fields
  }

  /** `{data, field}`, in either order. */
  private field(): void {
    const { reader } = this
    if (reader.readMapSize() !== 2) this.refuse("a field is {data, field}")
    const seen = new Set<string>()
    for (let i = 0; i < 2 && !reader.failed; i++) {
      const key = reader.readString()
      seen.add(key)
      if (key === "data") this.tensorsOf(0)
      else if (key === "field") this.batching()
      else this.refuse("a field is {data, field}")
    }
    if (seen.size !== 2) this.refuse("a field is {data, field}")
  }

  /** Tensors within lists, or plain numbers. */
  private tensorsOf(depth: number): void {
    const { reader } = this
    this.tensors += 1
    if (this.tensors > tensorsMax || depth > nestingMax) {
      this.refuse("it has too many tensors, or too deep")
      return
    }
    const tag = reader.peek()
    const isNumber = tag <= 0x7f || tag >= 0xe0 || (tag >= 0xca && tag <= 0xd3)
    if (isNumber) {
      reader.readNumber()
      return
    }
    const size = reader.readArraySize()
    const first = reader.peek()
    // A list that begins with a text is a tensor: that is how the engine tells them apart.
    if (size > 0 && first >= 0xa0 && first <= 0xbf) this.tensor(size)
    else for (let i = 0; i < size && !reader.failed; i++) this.tensorsOf(depth + 1)
  }

  /** `[type, shape, bytes]`, the bytes right here: there are no frames beside them. */
  private tensor(size: number): void {
    const { reader } = this
    if (size !== 3) {
      this.refuse("a tensor is [type, shape, bytes]")
      return
    }
    const each = elementBytes.get(reader.readString())
    if (each === undefined) {
      this.refuse("a tensor has a type that is not known")
      return
    }
    let expected = each
    const dimensions = reader.readArraySize()
    if (dimensions > dimensionsMax) {
      this.refuse("a tensor has too many dimensions")
      return
    }
    for (let i = 0; i < dimensions && !reader.failed; i++) {
      const length = this.integer()
      if (length < 0) {
        this.refuse("a tensor has a negative dimension")
        return
      }
      expected *= length
    }
    reader.readByteExtent()
    if (reader.failed) return
    if (reader.extensionCode !== rawBytesCode) {
      this.refuse("a tensor's bytes are not raw bytes")
      return
    }
    if (reader.byteEnd - reader.byteStart !== expected)
      this.refuse("a tensor's bytes are not as many as its shape says")
  }

  /** How the engine puts items together: `[kind, arguments]`. */
  private batching(): void {
    const { reader } = this
    if (reader.readArraySize() !== 2) {
      this.refuse("a field's kind is [kind, arguments]")
      return
    }
    const kind = reader.readString()
    const wanted = batchingArguments.get(kind)
    if (wanted === undefined) {
      this.refuse("a field has a kind that is not known")
      return
    }
    const seen = new Set<string>()
    const count = reader.readMapSize()
    for (let i = 0; i < count && !reader.failed; i++) {
      const name = reader.readString()
      if (!wanted.includes(name) || seen.has(name)) {
        this.refuse("a field's kind has other arguments")
        return
      }
      seen.add(name)
      if (name === "keep_on_cpu") reader.readBoolean()
      else if (name === "slices") this.slices(0)
      else this.integer()
    }
    if (seen.size !== wanted.length) this.refuse("a field's kind has other arguments")
  }

  /** `[start, stop, step]` each, or lists of those. */
  private slices(depth: number): void {
    const { reader } = this
    const count = reader.readArraySize()
    if (count > slicesMax || depth > 2) {
      this.refuse("a field has too many slices")
      return
    }
    for (let i = 0; i < count && !reader.failed; i++) {
      const before = reader.at
      const size = reader.readArraySize()
      const inner = reader.peek()
      const isSlice = size === 3 && !((inner >= 0x90 && inner <= 0x9f) || inner === 0xdc || inner === 0xdd)
      if (!isSlice) {
        reader.at = before
        this.slices(depth + 1)
        continue
      }
      for (let j = 0; j < 3; j++) if (!reader.takeNil()) this.integer()
    }
  }

  private integer(): number {
    const value = this.reader.readInteger()
    if (!Number.isSafeInteger(value)) this.refuse("a number is beyond 2^53")
    return value
  }

  private refuse(fault: string): void {
    if (this.fault === "") this.told = fault
    this.reader.fail(fault)
  }
}

/** Arguments of each kind; all must be there. */
const batchingArguments: ReadonlyMap<string, readonly string[]> = new Map([
  ["batched", ["keep_on_cpu"]],
  ["flat", ["keep_on_cpu", "slices", "dim"]],
  ["shared", ["keep_on_cpu", "batch_size"]],
])
