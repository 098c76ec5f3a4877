/**
 * Ids under which the engine knows sequences: `<public id>-<instance>-<slot><serial>`. The tail has a fixed width, so
 * that an output finds its sequence by integer arithmetic on the id's last bytes, without a string or a map.
 */

/** Hex digits of the tail: `-` instance `-` slot serial. */
const instanceDigits = 8
const slotDigits = 5
const serialDigits = 7
const tailBytes = 1 + instanceDigits + 1 + slotDigits + serialDigits

/** Sequences that can run at once through one front end. */
export const slotsMax = 16 ** slotDigits
/** Serials count up to here and start over; only ids that live at the same time must differ, and those differ by slot. */
export const serialsMax = 16 ** serialDigits
/** Characters of the public id that the engine's logs show. */
export const publicIdCharactersMax = 128

const dash = 0x2d

/** Hex digits of a number, at a fixed width. */
function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0")
}

/**
 * Makes and recognises request ids of one process. `instance` is this process's random 32-bit number: sequences that a
 * front end left behind when it died never meet those of the next one (ENGINE_PROTOCOL 15, trap 1: a second live id
 * kills the engine).
 */
export class RequestIds {
  private readonly tail: string
  /** The instance's eight digits, as two 32-bit words of their characters. */
  private readonly instanceHigh: number
  private readonly instanceLow: number

  constructor(instance: number) {
    const digits = hex(instance >>> 0, instanceDigits)
    this.tail = `-${digits}-`
    const word = (from: number): number =>
      (digits.charCodeAt(from) << 24) |
      (digits.charCodeAt(from + 1) << 16) |
      (digits.charCodeAt(from + 2) << 8) |
      digits.charCodeAt(from + 3)
    this.instanceHigh = word(0)
    this.instanceLow = word(4)
  }

  /**
   * The id of a sequence; `slot` below `slotsMax`, `serial` below `serialsMax`. The public id is cut, and characters
   * other than printable ASCII become `_`: it only helps people who read the engine's log.
   */
  make(publicId: string, slot: number, serial: number): string {
    const shown = publicId.slice(0, publicIdCharactersMax).replace(/[^\x21-\x7e]/g, "_")
    return `${shown}${this.tail}${hex(slot, slotDigits)}${hex(serial, serialDigits)}`
  }

  /** Hot (bench/frames.ts): whether the id in `bytes[start, end)` is of this process; `slotAt` and `serialAt` then read it. */
  isOurs(bytes: Uint8Array, start: number, end: number): boolean {
    return (
      end - start >= tailBytes &&
      word(bytes, end - 21) === this.instanceHigh &&
      word(bytes, end - 17) === this.instanceLow &&
      bytes[end - 22] === dash &&
      bytes[end - 13] === dash
    )
  }
}

/**
 * Whether an id that is not ours is one that another process of this server made, by its form alone: that process is
 * dead or gone, since an engine's outputs come to us.
 */
export function isOfAnotherProcess(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < tailBytes || bytes[end - tailBytes] !== dash || bytes[end - 13] !== dash) return false
  for (let at = end - tailBytes + 1; at < end; at += 4) {
    if (at === end - 13) at += 1
    if (hexValue(word(bytes, at)) < 0) return false
  }
  return true
}

/** Slot of the id that ends at `end`; negative when it is damaged. Small functions, so that the compiler inlines them. */
export function slotAt(bytes: Uint8Array, end: number): number {
  return (hexValue(word(bytes, end - 12)) << 4) | (hexValue(word(bytes, end - 8)) >> 12)
}

/** Serial of the id that ends at `end`; negative when it is damaged. */
export function serialAt(bytes: Uint8Array, end: number): number {
  const high = hexValue(word(bytes, end - 8))
  return high < 0 ? -1 : ((high & 0xfff) << 16) | hexValue(word(bytes, end - 4))
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/**
 * Value of four lower-case hex digits that stand in one word, -1 if one of them is none. All four at once: a letter
 * differs from a digit in bit 6, and writing the value back must give the same characters.
 */
function hexValue(characters: number): number {
  const letters = (characters >>> 6) & 0x0101_0101
  const values = ((characters & 0x0f0f_0f0f) + Math.imul(letters, 9)) & 0x0f0f_0f0f
  const above9 = ((values + 0x0606_0606) >>> 4) & 0x0101_0101
  if (((values + 0x3030_3030 + Math.imul(above9, 0x27)) | 0) !== characters) return -1
  const pairs = (values | (values >>> 4)) & 0x00ff_00ff
  return (pairs | (pairs >>> 8)) & 0xffff
}
