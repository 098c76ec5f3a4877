/**
 * Sets of bytes, to be asked for sixteen bytes at once: two tables of 16 bytes, by the low and by the high half of a byte.
 * Where both share a bit, the byte is in the set, or by chance is not: sixteen high halves have eight bits between them, so
 * a byte passes too whose high half is eight off from that of one with the same low half, where both high halves occur.
 */

/** Bytes of both tables; all zeros is the empty set. */
export const BYTE_SET_BYTES: usize = 32

export function addByte(set: usize, byte: u32): void {
  const bit = <u8>1 << <u8>((byte >> 4) & 7)
  store<u8>(set + <usize>(byte & 15), load<u8>(set + <usize>(byte & 15)) | bit)
  store<u8>(set + <usize>(byte >> 4), bit, 16)
}

/** A bit for each of sixteen bytes that may be in the set, whose tables are `low` and `high`. */
// @ts-ignore: decorator
@inline
export function bytesIn(low: v128, high: v128, bytes: v128): u32 {
  const both = v128.and(
    i8x16.swizzle(low, v128.and(bytes, i8x16.splat(15))),
    i8x16.swizzle(high, i8x16.shr_u(bytes, 4)),
  )
  if (!v128.any_true(both)) return 0
  return ~<u32>i8x16.bitmask(i8x16.eq(both, i8x16.splat(0))) & 0xffff
}
