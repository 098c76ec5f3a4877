/** MessagePack with its types kept: whether a number was an int or a float, a key a string or an int. For judging bytes. */

/** One value of a message as it stands there. */
export type WireValue =
  | { readonly type: "nil" }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "int"; readonly value: bigint }
  | { readonly type: "float"; readonly value: number; readonly bits: 32 | 64 }
  | { readonly type: "str"; readonly value: string }
  | { readonly type: "bin"; readonly value: Uint8Array }
  | { readonly type: "ext"; readonly code: number; readonly value: Uint8Array }
  | { readonly type: "array"; readonly value: readonly WireValue[] }
  | { readonly type: "map"; readonly value: readonly (readonly [WireValue, WireValue])[] }

/** Levels at which Python's decoder gives up, about. */
const depthMax = 900

/** Decodes a whole message; throws with the reason when it is malformed, truncated, followed by more, or no UTF-8. */
export function readWire(bytes: Uint8Array): WireValue {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  let at = 0
  const take = (size: number): number => {
    if (at + size > bytes.length) throw new Error("Input data was truncated")
    at += size
    return at - size
  }
  const size = (width: number): number => {
    const from = take(width)
    return width === 1 ? view.getUint8(from) : width === 2 ? view.getUint16(from) : view.getUint32(from)
  }
  const slice = (length: number): Uint8Array => {
    const from = take(length)
    return bytes.subarray(from, from + length)
  }
  const str = (length: number): WireValue => ({ type: "str", value: utf8.decode(slice(length)) })
  const ext = (length: number): WireValue => {
    const code = view.getInt8(take(1))
    return { type: "ext", code, value: slice(length) }
  }
  const array = (length: number, depth: number): WireValue => {
    const value: WireValue[] = []
    for (let i = 0; i < length; i++) value.push(one(depth + 1))
    return { type: "array", value }
  }
  const map = (length: number, depth: number): WireValue => {
    const value: (readonly [WireValue, WireValue])[] = []
    for (let i = 0; i < length; i++) value.push([one(depth + 1), one(depth + 1)])
    return { type: "map", value }
  }
  const int = (value: number | bigint): WireValue => ({ type: "int", value: BigInt(value) })
  const one = (depth: number): WireValue => {
    if (depth > depthMax) throw new Error("maximum recursion depth exceeded")
    const tag = view.getUint8(take(1))
    if (tag <= 0x7f) return int(tag)
    if (tag >= 0xe0) return int(tag - 256)
    if (tag <= 0x8f) return map(tag & 0x0f, depth)
    if (tag <= 0x9f) return array(tag & 0x0f, depth)
    if (tag <= 0xbf) return str(tag & 0x1f)
    switch (tag) {
      case 0xc0:
        return { type: "nil" }
      case 0xc2:
      case 0xc3:
        return { type: "bool", value: tag === 0xc3 }
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return { type: "bin", value: slice(size(1 << (tag - 0xc4))) }
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return ext(size(1 << (tag - 0xc7)))
      case 0xca:
        return { type: "float", value: view.getFloat32(take(4)), bits: 32 }
      case 0xcb:
        return { type: "float", value: view.getFloat64(take(8)), bits: 64 }
      case 0xcc:
        return int(view.getUint8(take(1)))
      case 0xcd:
        return int(view.getUint16(take(2)))
      case 0xce:
        return int(view.getUint32(take(4)))
      case 0xcf:
        return int(view.getBigUint64(take(8)))
      case 0xd0:
        return int(view.getInt8(take(1)))
      case 0xd1:
        return int(view.getInt16(take(2)))
      case 0xd2:
        return int(view.getInt32(take(4)))
      case 0xd3:
        return int(view.getBigInt64(take(8)))
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return ext(1 << (tag - 0xd4))
      case 0xd9:
      case 0xda:
      case 0xdb:
        return str(size(1 << (tag - 0xd9)))
      case 0xdc:
      case 0xdd:
        return array(size(tag === 0xdc ? 2 : 4), depth)
      case 0xde:
      case 0xdf:
        return map(size(tag === 0xde ? 2 : 4), depth)
      default:
        throw new Error(`MessagePack data is malformed: invalid opcode 0x${tag.toString(16)} (byte ${at - 1})`)
    }
  }
  const value = one(0)
  if (at !== bytes.length) throw new Error(`MessagePack data is malformed: trailing characters (byte ${at})`)
  return value
}
