/**
 * A plain MessagePack writer for tests and benches: says exactly which bytes, whatever the product's own writer would
 * choose. Whole numbers become the smallest int; `Packed` stands for bytes that are packed already.
 */

/** A value that was packed in a chosen way. */
export class Packed {
  readonly bytes: readonly number[]

  constructor(bytes: readonly number[]) {
    this.bytes = bytes
  }
}

/** What `pack` takes. A `Map` may have keys of any type. */
export type Packable =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Packed
  | readonly Packable[]
  | ReadonlyMap<Packable, Packable>
  | { readonly [key: string]: Packable }

/** A float of 64 or 32 bits, also for whole numbers. */
export function float(value: number, bits: 32 | 64 = 64): Packed {
  const view = new DataView(new ArrayBuffer(8))
  if (bits === 64) view.setFloat64(0, value)
  else view.setFloat32(0, value)
  return new Packed([bits === 64 ? 0xcb : 0xca, ...new Uint8Array(view.buffer, 0, bits / 8)])
}

/** An integer under the tag 0xcc … 0xd3, whatever width it needs. */
export function intAs(tag: number, value: number | bigint): Packed {
  const width = 1 << ((tag - 0xcc) & 3)
  return new Packed([tag, ...bigEndian(BigInt.asUintN(64, BigInt(value)), width)])
}

/** An extension; sizes 1, 2, 4, 8 and 16 have tags of their own. */
export function extension(code: number, bytes: Uint8Array): Packed {
  const fixed = [1, 2, 4, 8, 16].indexOf(bytes.length)
  const header = fixed >= 0 ? [0xd4 + fixed] : sized(bytes.length, 0xc7, 1)
  return new Packed([...header, code & 0xff, ...bytes])
}

/** A `[dtype, shape, data]` with its data inline. */
export function inlineArray(dtype: string, shape: readonly number[], values: ArrayBufferView): Packed {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  return new Packed([...pack([dtype, shape, extension(3, bytes)])])
}

/** The bytes of a value. */
export function pack(value: Packable): Uint8Array {
  const bytes: number[] = []
  write(value, bytes)
  return Uint8Array.from(bytes)
}

function write(value: Packable, out: number[]): void {
  if (value === null) out.push(0xc0)
  else if (typeof value === "boolean") out.push(value ? 0xc3 : 0xc2)
  else if (typeof value === "number") append(out, Number.isSafeInteger(value) ? int(BigInt(value)) : float(value).bytes)
  else if (typeof value === "bigint") append(out, int(value))
  else if (typeof value === "string") {
    const utf8 = new TextEncoder().encode(value)
    append(out, utf8.length < 32 ? [0xa0 | utf8.length] : sized(utf8.length, 0xd9, 1))
    append(out, utf8)
  } else if (value instanceof Packed) append(out, value.bytes)
  else if (value instanceof Uint8Array) {
    append(out, sized(value.length, 0xc4, 1))
    append(out, value)
  } else if (isList(value)) {
    append(out, value.length < 16 ? [0x90 | value.length] : sized(value.length, 0xdc, 2))
    for (const each of value) write(each, out)
  } else {
    const entries: (readonly [Packable, Packable])[] = value instanceof Map ? [...value] : Object.entries(value)
    append(out, entries.length < 16 ? [0x80 | entries.length] : sized(entries.length, 0xde, 2))
    for (const [key, each] of entries) {
      write(key, out)
      write(each, out)
    }
  }
}

function isList(value: Packable): value is readonly Packable[] {
  return Array.isArray(value)
}

function append(out: number[], bytes: Iterable<number>): void {
  for (const byte of bytes) out.push(byte)
}

function int(value: bigint): readonly number[] {
  if (value >= -32n && value <= 0x7fn) return [Number(value & 0xffn)]
  for (let i = 0; i < 4; i++) {
    const bits = BigInt(8 << i)
    if (value >= 0n && value < 1n << bits) return intAs(0xcc + i, value).bytes
    if (value < 0n && value >= -(1n << (bits - 1n))) return intAs(0xd0 + i, value).bytes
  }
  throw new Error(`${value} has more than 64 bits`)
}

/** A tag and a size; `tag` is the one for sizes of `least` bytes, and the next ones follow it. */
function sized(size: number, tag: number, least: 1 | 2): number[] {
  const width = size <= 0xff && least === 1 ? 1 : size <= 0xffff ? 2 : 4
  return [tag + Math.log2(width / least), ...bigEndian(BigInt(size), width)]
}

function bigEndian(value: bigint, width: number): number[] {
  return Array.from({ length: width }, (_, i) => Number((value >> BigInt(8 * (width - 1 - i))) & 0xffn))
}
