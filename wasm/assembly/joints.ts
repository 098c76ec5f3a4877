/**
 * Where a piece may be cut before it is merged: between two characters that no merge ever joins. A merge joins two
 * characters when its left token ends in the one, or in its last bytes, and its right token begins with the other, or with
 * its first bytes. Vocabularies join few of all pairs of ideographs, emoji and the like, so texts without blanks fall into
 * short parts that the caches know.
 *
 * The set is a bit for each hash of a pair: what it does not hold no merge joins; what it holds by chance is not cut.
 * Pairs of ASCII characters are not in it, and never cut.
 */
import { mark, release, reserve } from "./memory"
import { NONE, tokenBytes, tokenCount, tokenLength, tokenStarts } from "./tokens"

const SET_BITS: u64 = 20
const MIX_LEFT: u64 = 0x9e37_79b9_7f4a_7c15
const MIX_RIGHT: u64 = 0xc2b2_ae3d_27d4_eb4f

let set: usize = 0
/** u8 by last byte: which lengths (1, 2, 3: bits 0, 1, 2) left tokens have that are just the end of a character. */
let tails: usize = 0
/** u8 by first byte: the same of right tokens that end within their first character. */
let heads: usize = 0

export function makeJoints(): bool {
  set = reserve(<usize>1 << <usize>(SET_BITS - 3))
  tails = reserve(256)
  heads = reserve(256)
  if (set == 0 || tails == 0 || heads == 0) return false
  memory.fill(set, 0, <usize>1 << <usize>(SET_BITS - 3))
  memory.fill(tails, 0, 256)
  memory.fill(heads, 0, 256)
  return true
}

/** Bytes of the character that begins with `lead`. */
// @ts-ignore: decorator
@inline
function sizeOf(lead: u32): u32 {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
}

/** The first `count` (1 … 4) bytes of four. */
// @ts-ignore: decorator
@inline
function firstOf(bytes: u32, count: u32): u32 {
  return bytes & (0xffff_ffff >> (32 - (count << 3)))
}

// @ts-ignore: decorator
@inline
function bitOf(left: u32, right: u32): u32 {
  return <u32>((((<u64>left * MIX_LEFT) ^ (<u64>right * MIX_RIGHT)) * MIX_LEFT) >> (64 - SET_BITS))
}

// @ts-ignore: decorator
@inline
function holds(left: u32, right: u32): bool {
  const bit = bitOf(left, right)
  return ((<u32>load<u8>(set + <usize>(bit >> 3)) >> (bit & 7)) & 1) != 0
}

/** Puts the merge of two tokens in. */
export function noteJoint(left: u32, right: u32): void {
  const tail = tailOf(left)
  const head = headOf(right)
  if (tail == NONE || head == NONE || (tail | head) < 0x80) return
  const bit = bitOf(tail, head)
  const at = set + <usize>(bit >> 3)
  store<u8>(at, load<u8>(at) | (<u8>1 << <u8>(bit & 7)))
}

/** The token's last character, or what it holds of it; NONE when the token does not end where a character does. */
function tailOf(id: u32): u32 {
  const start = tokenBytes + load<u32>(tokenStarts + (<usize>id << 2))
  const length = tokenLength(id)
  const last: u32 = load<u8>(start + length - 1)
  if (last < 0x80) return last
  let back: u32 = 1
  while (back < length && back < 4 && (load<u8>(start + length - back) & 0xc0) == 0x80) back++
  const bytes = firstOf(load<u32>(start + length - back), back)
  const lead = bytes & 0xff
  if ((lead & 0xc0) != 0x80) return lead >= 0xc0 && sizeOf(lead) == back ? bytes : NONE
  if (back > 3) return NONE
  const at = tails + <usize>last
  store<u8>(at, load<u8>(at) | (<u8>1 << <u8>(back - 1)))
  return bytes
}

/** The token's first character, or what it holds of it; NONE when the token does not begin where a character does. */
function headOf(id: u32): u32 {
  const start = tokenBytes + load<u32>(tokenStarts + (<usize>id << 2))
  const length = tokenLength(id)
  const lead: u32 = load<u8>(start)
  if (lead < 0x80) return lead
  if (lead < 0xc0) return NONE
  const size = sizeOf(lead)
  if (length >= size) return firstOf(load<u32>(start), size)
  const at = heads + <usize>lead
  store<u8>(at, load<u8>(at) | (<u8>1 << <u8>(length - 1)))
  return firstOf(load<u32>(start), length)
}

/** Whether some merge may join the characters, each given as its bytes. */
function areJoined(left: u32, right: u32): bool {
  if (holds(left, right)) return true
  const lead = right & 0xff
  const size = sizeOf(left & 0xff)
  const partsOfRight: u32 = load<u8>(heads + <usize>lead)
  const partsOfLeft: u32 = load<u8>(tails + <usize>(left >> ((size - 1) << 3)))
  if ((partsOfRight | partsOfLeft) == 0) return false
  return anyPart(left, right, size, partsOfLeft, partsOfRight)
}

function anyPart(left: u32, right: u32, size: u32, partsOfLeft: u32, partsOfRight: u32): bool {
  for (let length: u32 = 1; length <= 3; length++) {
    if (((partsOfRight >> (length - 1)) & 1) != 0 && holds(left, firstOf(right, length))) return true
  }
  for (let length: u32 = 1; length < size; length++) {
    if (((partsOfLeft >> (length - 1)) & 1) == 0) continue
    const tail = left >> ((size - length) << 3)
    if (holds(tail, right)) return true
    for (let other: u32 = 1; other <= 3; other++) {
      if (((partsOfRight >> (other - 1)) & 1) != 0 && holds(tail, firstOf(right, other))) return true
    }
  }
  return false
}

/** The first place behind `at`, which is a character's start, where the text may be cut; or its end. */
export function nextCut(at: usize, end: usize): usize {
  let left: u32 = 0
  let next = at
  while (next < end) {
    const lead: u32 = load<u8>(next)
    if (lead < 0x80) {
      if (left >= 0x80 && !areJoined(left, lead)) return next
      left = lead
      next++
      continue
    }
    const size = sizeOf(lead)
    const right = firstOf(load<u32>(next), size)
    if (next != at && !areJoined(left, right)) return next
    left = right
    next += size
  }
  return end
}

/**
 * Whether parts stand for themselves: a character that has no token and so becomes tokens of bytes, or the unknown one,
 * must take part in no merge, or the set says nothing about it. Memory is left as it was.
 */
export function joinsOnlyText(merges: usize, count: u32, fallbackIds: usize, unknown: u32): bool {
  const start = mark()
  const marked = reserve(<usize>tokenCount)
  if (marked == 0) return false
  memory.fill(marked, 0, <usize>tokenCount)
  let only = true
  for (let byte: usize = 0; byte < 256; byte++) {
    const id = load<i32>(fallbackIds + (byte << 2))
    if (id >= 0) store<u8>(marked + <usize>id, 1)
    // Unknown characters side by side may be one token.
    else if (byte >= 0x80) only = false
  }
  if (unknown < tokenCount) store<u8>(marked + <usize>unknown, 1)
  for (let rank: u32 = 0; rank < count && only; rank++) {
    const left = load<u32>(merges + (<usize>rank << 3))
    const right = load<u32>(merges + (<usize>rank << 3), 4)
    if ((load<u8>(marked + <usize>left) | load<u8>(marked + <usize>right)) != 0) only = false
  }
  memory.fill(marked, 0, <usize>tokenCount)
  release(start)
  return only
}
