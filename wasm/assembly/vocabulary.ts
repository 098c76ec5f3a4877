/**
 * The vocabulary's tables: token bytes → id, and pair of ids → rank of its merge. Built here, once, from one packed
 * buffer, so that the host makes no map.
 *
 * Sizes are powers of two, at most about half full, with linear probing. Only the vocabulary's file decides what stands
 * in them, so a text can make no probe longer than the longest cluster.
 */
import { makeJoints, noteJoint } from "./joints"
import { release, reserve, mark } from "./memory"
import { NONE, setTokens, tokenBytes, tokenCount, tokenLength, tokenStarts } from "./tokens"

/** An odd number without pattern (2^64 / golden ratio): the high half of a product with it is well mixed. */
const MIX: u64 = 0x9e37_79b9_7f4a_7c15

/** Bits that hold any id. */
export let idBits: u32 = 0

/** Tokens of up to 8 bytes: { bytes u64, id u32, length u32 } (length 0 = free). */
let shortTable: usize = 0
let shortShift: u64 = 0
let shortMask: u32 = 0
/** Longer tokens: { high half of the hash u32, id + 1 u32 }. */
let longTable: usize = 0
let longShift: u64 = 0
let longMask: u32 = 0

/** { rank u32, rest of the key u32 }; all ones = free. See `pairRank`. */
let pairTable: usize = 0
let pairShift: u64 = 0
let pairSlotMask: u32 = 0
let pairKeyMask: u64 = 0
let pairCount: u32 = 0
/** A bit for each value of the key's highest bits, two more than choose the slot: most pairs have no merge, and this says so. */
let pairFilter: usize = 0
let pairFilterShift: u64 = 0
/** u32 by rank: the id that the merge makes; 0 when the rank is the id. */
let mergedIds: usize = 0
/** u32 by (byte << 8 | byte): rank of the merge of two single-byte tokens. */
let bytePairs: usize = 0
/** u32 by byte: the id of the single-byte token, or NONE. */
export let byteIds: usize = 0

/**
 * u32 by id: the lowest rank of a merge that has the token on its right; and on its left, before a token that starts a
 * character. See `makeCharacters` (merge.ts).
 */
export let rightRanks: usize = 0
export let leftRanks: usize = 0

/** u8 by byte: 1 where a merge joins a token that ends in it to one that starts with a blank; see `markJoints`. */
export let jointBefore: usize = 0
/** The vocabulary spells blanks as themselves, not as `▁` (U+2581). */
export let blankIsSpace: bool = false

/** Finds out how the vocabulary spells a blank. False when it has no token for one. */
export function findBlank(): bool {
  const mark = memory.data<u8>([0xe2, 0x96, 0x81, 0, 0, 0, 0, 0])
  const space = memory.data<u8>([0x20, 0, 0, 0, 0, 0, 0, 0])
  blankIsSpace = tokenOf(mark, 3) == NONE
  return !blankIsSpace || tokenOf(space, 1) != NONE
}

/** True when the token starts with a blank. */
function startsWithBlank(id: u32): bool {
  const word = load<u32>(tokenBytes + load<u32>(tokenStarts + (<usize>id << 2)))
  return blankIsSpace ? tokenLength(id) >= 1 && (word & 0xff) == 0x20 : tokenLength(id) >= 3 && (word & 0xff_ffff) == 0x81_96e2
}

/**
 * Finds out before which bytes a text can be cut in front of a blank: where no merge has a token ending in that byte on
 * its left and one starting with a blank on its right, no merge will ever cross. False when tokens that stand for other
 * bytes than their own (fallback bytes, the unknown token) take part in such merges.
 */
export function markJoints(merges: usize, count: u32, fallbackIds: usize, unknown: u32): bool {
  jointBefore = reserve(256)
  if (jointBefore == 0) return false
  memory.fill(jointBefore, 0, 256)
  for (let rank: u32 = 0; rank < count; rank++) {
    const left = load<u32>(merges + (<usize>rank << 3))
    if (!startsWithBlank(load<u32>(merges + (<usize>rank << 3), 4))) continue
    if (left == unknown) return false
    for (let byte: usize = 0; byte < 256; byte++) {
      if (load<u32>(fallbackIds + (byte << 2)) == left) return false
    }
    const last = load<u8>(tokenBytes + load<u32>(tokenStarts + (<usize>left << 2), 4) - 1)
    store<u8>(jointBefore + <usize>last, 1)
  }
  return true
}

/** The first `length` (1 … 8) of eight bytes. */
// @ts-ignore: decorator
@inline
export function firstBytes(word: u64, length: u32): u64 {
  return word & (~(<u64>0) >> (64 - (<u64>length << 3)))
}

// @ts-ignore: decorator
@inline
function hashShort(bytes: u64, length: u32): u64 {
  return (bytes ^ <u64>length) * MIX
}

/** Of more than 8 bytes. */
export function hashLong(at: usize, length: u32): u64 {
  let hash: u64 = <u64>length * MIX
  let i: u32 = 0
  for (; i + 8 <= length; i += 8) {
    hash = (hash ^ load<u64>(at + i)) * MIX
    hash ^= hash >> 32
  }
  // The last eight bytes, which may overlap the ones before: a long token has more than eight.
  hash = (hash ^ load<u64>(at + length - 8)) * MIX
  return hash ^ (hash >> 29)
}

/** For more than 8 bytes. */
export function sameBytes(a: usize, b: usize, length: u32): bool {
  let i: u32 = 0
  for (; i + 8 <= length; i += 8) if (load<u64>(a + i) != load<u64>(b + i)) return false
  return load<u64>(a + length - 8) == load<u64>(b + length - 8)
}

/** The id of the token that is exactly these bytes, or NONE. Reads up to 8 bytes from `at` whatever the length. */
export function tokenOf(at: usize, length: u32): u32 {
  if (length <= 8) return length == 0 ? NONE : shortTokenOf(firstBytes(load<u64>(at), length), length)
  const hash = hashLong(at, length)
  let slot = <u32>(hash >> longShift)
  const tag = <u32>hash
  while (true) {
    const entry = load<u64>(longTable + (<usize>slot << 3))
    if (entry == 0) return NONE
    if (<u32>entry == tag) {
      const id = <u32>(entry >> 32) - 1
      if (tokenLength(id) == length && sameBytes(tokenBytes + load<u32>(tokenStarts + (<usize>id << 2)), at, length)) {
        return id
      }
    }
    slot = (slot + 1) & longMask
  }
}

// @ts-ignore: decorator
@inline
function shortTokenOf(bytes: u64, length: u32): u32 {
  let slot = <u32>(hashShort(bytes, length) >> shortShift)
  while (true) {
    const entry = shortTable + (<usize>slot << 4)
    const has = load<u32>(entry, 12)
    if (has == length && load<u64>(entry) == bytes) return load<u32>(entry, 8)
    if (has == 0) return NONE
    slot = (slot + 1) & shortMask
  }
}

/**
 * The rank of the merge of two ids, or NONE. The key (left, right) is multiplied by an odd number modulo 2^(2 idBits),
 * which loses nothing; the high bits choose the slot and the low 32 stand in the entry. Both together give back the key,
 * as long as no entry stands 2^10 slots from its own (checked when the table is built), so that 8 bytes are exact.
 */
// @ts-ignore: decorator
@inline
export function pairRank(left: u32, right: u32): u32 {
  const key = (((<u64>left << <u64>idBits) | <u64>right) * MIX) & pairKeyMask
  const bit = <u32>(key >> pairFilterShift)
  if (((<u32>load<u8>(pairFilter + <usize>(bit >> 3)) >> (bit & 7)) & 1) == 0) return NONE
  let slot = <u32>(key >> pairShift)
  const rest = <u32>key
  while (true) {
    const entry = load<u64>(pairTable + (<usize>slot << 3))
    if (<u32>(entry >> 32) == rest) return <u32>entry
    if (<u32>entry == NONE) return NONE
    slot = (slot + 1) & pairSlotMask
  }
}

/** The same for two single-byte tokens. */
// @ts-ignore: decorator
@inline
export function bytePairRank(left: u32, right: u32): u32 {
  return load<u32>(bytePairs + (<usize>((left << 8) | right) << 2))
}

// @ts-ignore: decorator
@inline
export function mergedId(rank: u32): u32 {
  return mergedIds == 0 ? rank : load<u32>(mergedIds + (<usize>rank << 2))
}

/** Outcomes of the builders below; the host turns them into sentences. */
export const BUILT: i32 = 0
const NO_MEMORY: i32 = 1
const TWO_IDS: i32 = 2
const UNKNOWN_PART: i32 = 3
const UNKNOWN_WHOLE: i32 = 4
const CROWDED: i32 = 5
/** The id or merge that the outcome is about. */
export let culprit: u32 = 0

/** Bits of the smallest power of two that is not less than `count`. */
function bitsFor(count: u32): u32 {
  let bits: u32 = 1
  while (bits < 30 && <u32>1 << bits < count) bits++
  return bits
}

/** Bytes → id; for the arrays see `setTokens`. */
export function buildTokens(starts: usize, bytes: usize, count: u32): i32 {
  setTokens(starts, bytes, count)
  idBits = bitsFor(count)
  let shorts: u32 = 0
  let longs: u32 = 0
  for (let id: u32 = 0; id < count; id++) {
    const length = tokenLength(id)
    if (length > 8) longs++
    else if (length > 0) shorts++
  }
  const shortBits = bitsFor(shorts * 2)
  shortShift = 64 - <u64>shortBits
  shortMask = (<u32>1 << shortBits) - 1
  shortTable = reserve(<usize>16 << shortBits)
  const longBits = bitsFor(longs * 2)
  longShift = 64 - <u64>longBits
  longMask = (<u32>1 << longBits) - 1
  longTable = reserve(<usize>8 << longBits)
  byteIds = reserve(1024)
  bytePairs = reserve(65536 * 4)
  rightRanks = reserve(<usize>count << 2)
  leftRanks = reserve(<usize>count << 2)
  if (rightRanks == 0 || leftRanks == 0 || !makeJoints() || shortTable == 0 || longTable == 0 || byteIds == 0 || bytePairs == 0) return NO_MEMORY
  memory.fill(shortTable, 0, <usize>16 << shortBits)
  memory.fill(longTable, 0, <usize>8 << longBits)
  memory.fill(byteIds, 0xff, 1024)
  memory.fill(bytePairs, 0xff, 65536 * 4)
  for (let id: u32 = 0; id < count; id++) {
    const at = bytes + load<u32>(starts + (<usize>id << 2))
    const length = tokenLength(id)
    if (length == 0) continue
    culprit = id
    if (length > 8) {
      if (tokenOf(at, length) != NONE) return TWO_IDS
      const hash = hashLong(at, length)
      let slot = <u32>(hash >> longShift)
      while (load<u64>(longTable + (<usize>slot << 3)) != 0) slot = (slot + 1) & longMask
      store<u64>(longTable + (<usize>slot << 3), (<u64>(id + 1) << 32) | <u64>(<u32>hash))
    } else {
      const word = firstBytes(load<u64>(at), length)
      let slot = <u32>(hashShort(word, length) >> shortShift)
      while (true) {
        const entry = shortTable + (<usize>slot << 4)
        const has = load<u32>(entry, 12)
        if (has == 0) {
          store<u64>(entry, word)
          store<u32>(entry, id, 8)
          store<u32>(entry, length, 12)
          break
        }
        if (has == length && load<u64>(entry) == word) return TWO_IDS
        slot = (slot + 1) & shortMask
      }
      if (length == 1) store<u32>(byteIds + (<usize>load<u8>(at) << 2), id)
    }
  }
  return BUILT
}

function makePairTable(expected: u32): bool {
  // At least this many bits, so that slot and rest give back the key within 2^10 slots.
  const least = idBits > 11 ? idBits * 2 - 22 : 8
  let bits = bitsFor(expected)
  if (bits < least) bits = least
  if (bits < 8) bits = 8
  // With few ids the key itself is shorter than that: then more bits of it than there are would be asked for.
  const keyBits = idBits * 2 < bits ? bits : idBits * 2
  pairKeyMask = (<u64>1 << <u64>keyBits) - 1
  pairShift = <u64>(keyBits - bits)
  pairSlotMask = (<u32>1 << bits) - 1
  pairCount = 0
  memory.fill(rightRanks, 0xff, <usize>tokenCount << 2)
  memory.fill(leftRanks, 0xff, <usize>tokenCount << 2)
  pairTable = reserve(<usize>8 << bits)
  const filterBits = min<u32>(bits + 2, keyBits)
  pairFilterShift = <u64>(keyBits - filterBits)
  pairFilter = reserve(<usize>1 << (filterBits - 3))
  if (pairTable == 0 || pairFilter == 0) return false
  memory.fill(pairTable, 0xff, <usize>8 << bits)
  memory.fill(pairFilter, 0, <usize>1 << (filterBits - 3))
  return true
}

/** Adds a merge; a later one for the same pair replaces it, as in the reference. */
function addPair(left: u32, right: u32, rank: u32): bool {
  const key = (((<u64>left << <u64>idBits) | <u64>right) * MIX) & pairKeyMask
  let slot = <u32>(key >> pairShift)
  const rest = <u32>key
  for (let away = 0; away < 1000; away++) {
    const entry = pairTable + (<usize>slot << 3)
    const has = load<u64>(entry)
    if (<u32>has == NONE || <u32>(has >> 32) == rest) {
      if (<u32>has == NONE) pairCount++
      const bit = <u32>(key >> pairFilterShift)
      const filterAt = pairFilter + <usize>(bit >> 3)
      store<u8>(filterAt, load<u8>(filterAt) | (<u8>1 << <u8>(bit & 7)))
      store<u64>(entry, (<u64>rest << 32) | <u64>rank)
      noteRank(left, right, rank)
      return true
    }
    slot = (slot + 1) & pairSlotMask
  }
  return false
}

function noteRank(left: u32, right: u32, rank: u32): void {
  noteJoint(left, right)
  const b = <u32>load<u8>(tokenBytes + load<u32>(tokenStarts + (<usize>right << 2)))
  if (tokenLength(left) == 1 && tokenLength(right) == 1) {
    const a = <u32>load<u8>(tokenBytes + load<u32>(tokenStarts + (<usize>left << 2)))
    store<u32>(bytePairs + (<usize>((a << 8) | b) << 2), rank)
  }
  const rightAt = rightRanks + (<usize>right << 2)
  if (rank < load<u32>(rightAt)) store<u32>(rightAt, rank)
  const leftAt = leftRanks + (<usize>left << 2)
  if ((b & 0xc0) != 0x80 && rank < load<u32>(leftAt)) store<u32>(leftAt, rank)
}

/**
 * Whether every byte is a token. Where some are not, the reference drops them, and what stood around them then stands
 * side by side.
 */
export function hasAllBytes(): bool {
  for (let byte: usize = 0; byte < 256; byte++) if (load<u32>(byteIds + (byte << 2)) == NONE) return false
  return true
}

/** Merges as listed: { left id u32, right id u32 } × count, in rank order. `merges` may be released afterwards. */
export function buildMerges(merges: usize, count: u32, joined: usize): i32 {
  // An empty list still needs an address that is not 0: 0 says that ranks are ids.
  mergedIds = reserve((<usize>count << 2) + 4)
  if (mergedIds == 0 || !makePairTable(count + (count >> 1))) return NO_MEMORY
  for (let rank: u32 = 0; rank < count; rank++) {
    const left = load<u32>(merges + (<usize>rank << 3))
    const right = load<u32>(merges + (<usize>rank << 3), 4)
    culprit = rank
    if (left >= tokenCount || right >= tokenCount) return UNKNOWN_PART
    const leftLength = tokenLength(left)
    const rightLength = tokenLength(right)
    if (leftLength == 0 || rightLength == 0) return UNKNOWN_PART
    memory.copy(joined, tokenBytes + load<u32>(tokenStarts + (<usize>left << 2)), leftLength)
    memory.copy(joined + leftLength, tokenBytes + load<u32>(tokenStarts + (<usize>right << 2)), rightLength)
    const whole = tokenOf(joined, leftLength + rightLength)
    if (whole == NONE) return UNKNOWN_WHOLE
    store<u32>(mergedIds + (<usize>rank << 2), whole)
    if (!addPair(left, right, rank)) return CROWDED
  }
  return BUILT
}

/** Merges of a rank file: any two tokens that together are a token merge with that token's id as their rank. */
export function buildMergesFromRanks(): i32 {
  mergedIds = 0
  const start = mark()
  // Real vocabularies have 2.2 splits a token; a table that fills up is made again, twice as large.
  for (let expected: u32 = tokenCount * 3; expected < 0x1000_0000; expected <<= 1) {
    release(start)
    if (!makePairTable(expected)) return NO_MEMORY
    if (addAllSplits()) return BUILT
  }
  return CROWDED
}

function addAllSplits(): bool {
  const most = (pairSlotMask >> 2) * 3
  for (let id: u32 = 0; id < tokenCount; id++) {
    const at = tokenBytes + load<u32>(tokenStarts + (<usize>id << 2))
    const length = tokenLength(id)
    if (length < 2) continue
    if (length <= 8) {
      const word = load<u64>(at)
      for (let cut: u32 = 1; cut < length; cut++) {
        const left = shortTokenOf(firstBytes(word, cut), cut)
        if (left == NONE) continue
        const rest = length - cut
        const right = shortTokenOf(firstBytes(word >> (<u64>cut << 3), rest), rest)
        if (right != NONE && !addPair(left, right, id)) return false
      }
    } else {
      for (let cut: u32 = 1; cut < length; cut++) {
        const left = tokenOf(at, cut)
        if (left == NONE) continue
        const right = tokenOf(at + cut, length - cut)
        if (right != NONE && !addPair(left, right, id)) return false
      }
    }
    if (pairCount > most) return false
  }
  return true
}
