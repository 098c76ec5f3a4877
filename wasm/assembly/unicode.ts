/**
 * Classes of code points. The host writes a two-stage table (blocks of 256) made from the reference's own Unicode data;
 * each entry is a set of these bits.
 */
/** Lu, Lt */
export const UPPER: u32 = 1
/** Ll */
export const LOWER: u32 = 2
/** Lm, Lo */
export const OTHER_LETTER: u32 = 4
export const LETTER: u32 = 7
export const MARK: u32 = 8
export const NUMBER: u32 = 16
/** P, S */
export const PUNCT: u32 = 32
/** what `\s` matches, line breaks too */
export const SPACE: u32 = 64
export const HAN: u32 = 128
/** No character: behind the text. Never in the table. */
export const END: u32 = 256

/** u16 block number for each code point / 256. */
let blockOf: usize = 0
/** u8 entries, 256 a block. */
let blocks: usize = 0

/** Bytes of the character that `classAt` last looked at. */
export let width: usize = 1
/** Set when `classAt` was asked about the end of the text; the caller clears it. */
export let sawEnd: bool = false

export function setClassTable(at: usize): void {
  blockOf = at
  blocks = at + 4352 * 2
}

export function clearSawEnd(): void {
  sawEnd = false
}

/** The class bits of a code point. */
// @ts-ignore: decorator
@inline
export function classOf(point: u32): u32 {
  return load<u8>(blocks + (<usize>load<u16>(blockOf + ((point >> 8) << 1)) << 8) + <usize>(point & 255))
}

/** The class bits of the character at `at`; END behind the text. Sets `width`. Text is valid UTF-8. */
export function classAt(at: usize, end: usize): u32 {
  if (at >= end) {
    sawEnd = true
    width = 0
    return END
  }
  const first: u32 = load<u8>(at)
  if (first < 0x80) {
    width = 1
    return classOf(first)
  }
  const point = codePointAt(at)
  return classOf(point)
}

/** The code point at `at`, which is in the text. Sets `width`. */
export function codePointAt(at: usize): u32 {
  const first: u32 = load<u8>(at)
  if (first < 0x80) {
    width = 1
    return first
  }
  if (first < 0xe0) {
    width = 2
    return ((first & 31) << 6) | (load<u8>(at, 1) & 63)
  }
  if (first < 0xf0) {
    width = 3
    return ((first & 15) << 12) | ((load<u8>(at, 1) & 63) << 6) | (load<u8>(at, 2) & 63)
  }
  width = 4
  return (
    ((first & 7) << 18) | ((load<u8>(at, 1) & 63) << 12) | ((load<u8>(at, 2) & 63) << 6) | (load<u8>(at, 3) & 63)
  )
}
