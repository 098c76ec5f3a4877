/**
 * Byte pair encoding of one piece: units (bytes or characters), then the merge of lowest rank, the leftmost first where
 * ranks are equal, until none is left. Short pieces look for the lowest rank with SIMD. Long ones keep a list of places
 * for each rank, which takes linear time; it relies on merges that come in rising order, as they do in vocabularies that
 * were trained. Where they do not, a heap does the piece again: linear × log.
 */
import { reserve } from "./memory"
import { codePointAt, width } from "./unicode"
import { NONE, tokenBytes, tokenCount, tokenLength, tokenStarts } from "./tokens"
import { byteIds, bytePairRank, leftRanks, mergedId, pairRank, rightRanks, tokenOf } from "./vocabulary"

/** Units that the SIMD road takes. */
const SMALL_UNITS: u32 = 96
/** Length of its arrays: four lanes behind the last pair are overwritten. */
const SMALL_LANES: u32 = SMALL_UNITS + 4

/** i32 × 256: tokens for the bytes of a character without a token, -1 where there is none; 0 = units are bytes. */
let fallbackIds: usize = 0
let unknownId: u32 = NONE
let fusesUnknown: bool = false

/** One unit or what it was merged into: arrays by position. A dead position (merged into the one before) has no rank. */
let ids: usize = 0
/** Where its bytes start in the piece. */
let starts: usize = 0
/** Rank of the merge with the next one, or NONE. */
let ranks: usize = 0
let nexts: usize = 0
let befores: usize = 0

let smallAt: usize = 0
/** Scratch for long pieces: at the top of memory, its size in units. */
let largeAt: usize = 0
let largeUnits: u32 = 0

export function setUnits(fallback: usize, unknown: u32, fuses: bool, ranksBelow: u32): bool {
  fallbackIds = fallback
  unknownId = unknown
  fusesUnknown = fuses
  smallAt = reserve(<usize>SMALL_LANES * 20 + 64)
  return smallAt != 0 && makeLists(ranksBelow)
}

/** Bytes of scratch for a piece of `units`: five arrays and the heap, which holds at most two entries a unit. */
export function scratchBytes(units: u32): usize {
  return <usize>units * (5 * 4 + 2 * 8) + 128
}

/** The scratch may be anywhere; the host lays it behind the window. */
export function setScratch(at: usize, units: u32): void {
  largeAt = at
  largeUnits = units
}

function layArrays(at: usize, units: usize): void {
  ids = at
  starts = at + (units << 2)
  ranks = at + (units << 3)
  nexts = at + units * 12
  befores = at + (units << 4)
}

/**
 * The ids of the piece to `out`, one after another; where `ends` is not 0, also where each token ends, counted from
 * `base`. Gives the number of ids. The caller made sure that scratch for `length` units is there.
 */
export function mergeWhole(at: usize, length: u32, out: usize, ends: usize, base: u32): u32 {
  dropped = false
  const small = length <= SMALL_UNITS
  if (small) layArrays(smallAt, SMALL_LANES)
  else layArrays(largeAt, largeUnits)
  const count = fallbackIds == 0 ? byteUnits(at, length) : characterUnits(at, length)
  if (count > 1) {
    if (small) mergeSmall(count)
    else if (!mergeByLists(count)) {
      // From the units again: what was merged so far may be wrong.
      if (fallbackIds == 0) byteUnits(at, length)
      else characterUnits(at, length)
      mergeByHeap(count)
    }
  }
  return emit(count, length, out, ends, base)
}

/** Set where a byte or character has no token, not even the unknown one. */
let dropped: bool = false

/** Whether the last piece lost bytes that way. */
export function droppedUnits(): bool {
  return dropped
}

/** Units are characters, whose tokens may stand for other bytes than their own. */
export function mergesCharacters(): bool {
  return fallbackIds != 0
}

/** u32 by code point below 2^16: the token that its bytes are sure to become, or NONE. */
let characterIds: usize = 0
/** The highest rank that `mergeSmall` merged. */
let highestRank: u32 = 0

/**
 * Finds the characters of several bytes that merges can start from as a whole, with the same outcome. Alone its bytes
 * must become its token, by merges up to some rank; and all merges that could take a part of it together with something
 * outside, or the whole with something outside, must have higher ranks. Then, while it is not whole, a merge inside it is
 * always due before any of those, and none of them is due before it is whole.
 */
export function makeCharacters(): bool {
  characterIds = reserve(65536 * 4)
  if (characterIds == 0) return false
  memory.fill(characterIds, 0xff, 65536 * 4)
  if (fallbackIds != 0) return true
  // Until the table is filled, bytes are units for every character.
  const out = smallAt + <usize>SMALL_LANES * 20
  for (let id: u32 = 0; id < tokenCount; id++) {
    const length = tokenLength(id)
    if (length != 2 && length != 3) continue
    const at = tokenBytes + load<u32>(tokenStarts + (<usize>id << 2))
    const lead: u32 = load<u8>(at)
    if (lead < 0xc2 || lead >= 0xf0 || (lead < 0xe0 ? 2 : 3) != length || (load<u8>(at, 1) & 0xc0) != 0x80) continue
    if (length == 3 && (load<u8>(at, 2) & 0xc0) != 0x80) continue
    const point = codePointAt(at)
    // Spellings that are no character (too long, or half of a pair) do not stand in a text.
    if (point < (length == 2 ? <u32>0x80 : <u32>0x800) || (point >= 0xd800 && point < 0xe000)) continue
    if (isSure(at, length, id, out)) store<u32>(characterIds + (<usize>point << 2), id)
  }
  startsFromCharacters = true
  return true
}

/** False while `makeCharacters` asks what bytes become. */
let startsFromCharacters: bool = false

function isSure(at: usize, length: u32, id: u32, out: usize): bool {
  highestRank = 0
  if (mergeWhole(at, length, out, 0, 0) != 1 || load<u32>(out) != id) return false
  const limit = highestRank
  if (load<u32>(rightRanks + (<usize>id << 2)) <= limit || load<u32>(leftRanks + (<usize>id << 2)) <= limit) return false
  for (let cut: u32 = 1; cut < length; cut++) {
    const start = tokenOf(at, cut)
    if (start != NONE && load<u32>(rightRanks + (<usize>start << 2)) <= limit) return false
    const rest = tokenOf(at + cut, length - cut)
    if (rest != NONE && load<u32>(leftRanks + (<usize>rest << 2)) <= limit) return false
  }
  return true
}

/** Bytes as units, or characters that are sure; a byte without a token is unknown, or nothing if there is no such token. */
function byteUnits(at: usize, length: u32): u32 {
  let count: u32 = 0
  let last: u32 = 256
  for (let i: u32 = 0; i < length; i++) {
    const byte: u32 = load<u8>(at + i)
    if (byte >= 0xc2 && byte < 0xf0 && startsFromCharacters) {
      const id = load<u32>(characterIds + (<usize>codePointAt(at + i) << 2))
      if (id != NONE && i + <u32>width <= length) {
        count = addUnit(count, id, i)
        i += <u32>width - 1
        last = 256
        continue
      }
    }
    const id = load<u32>(byteIds + (<usize>byte << 2))
    if (id == NONE) {
      count = addUnknown(count, i)
      last = 256
      continue
    }
    const here = <usize>count << 2
    store<u32>(ids + here, id)
    store<u32>(starts + here, i)
    if (count > 0) {
      const rank = last < 256 ? bytePairRank(last, byte) : pairRank(load<u32>(ids + here - 4), id)
      store<u32>(ranks + here - 4, rank)
    }
    last = byte
    count++
  }
  return count
}

function addUnknown(count: u32, start: u32): u32 {
  if (unknownId == NONE) {
    dropped = true
    return count
  }
  const here = <usize>count << 2
  if (count > 0) {
    const before = load<u32>(ids + here - 4)
    if (fusesUnknown && before == unknownId) return count
    store<u32>(ranks + here - 4, pairRank(before, unknownId))
  }
  store<u32>(ids + here, unknownId)
  store<u32>(starts + here, start)
  return count + 1
}

/** Characters as units; one without a token falls apart into the tokens of its bytes if all of them are there. */
function characterUnits(at: usize, length: u32): u32 {
  let count: u32 = 0
  let i: u32 = 0
  while (i < length) {
    codePointAt(at + i)
    const bytes = <u32>width
    const id = tokenOf(at + i, bytes)
    if (id != NONE) {
      count = addUnit(count, id, i)
    } else {
      let all = true
      for (let k: u32 = 0; k < bytes; k++) {
        if (load<i32>(fallbackIds + (<usize>load<u8>(at + i + k) << 2)) < 0) all = false
      }
      if (all) {
        for (let k: u32 = 0; k < bytes; k++) {
          count = addUnit(count, load<u32>(fallbackIds + (<usize>load<u8>(at + i + k) << 2)), i + k)
        }
      } else {
        count = addUnknown(count, i)
      }
    }
    i += bytes
  }
  return count
}

function addUnit(count: u32, id: u32, start: u32): u32 {
  const here = <usize>count << 2
  if (count > 0) store<u32>(ranks + here - 4, pairRank(load<u32>(ids + here - 4), id))
  store<u32>(ids + here, id)
  store<u32>(starts + here, start)
  return count + 1
}

function link(count: u32): void {
  for (let i: u32 = 0; i < count; i++) {
    store<u32>(nexts + (<usize>i << 2), i + 1)
    store<u32>(befores + (<usize>i << 2), i - 1)
  }
}

/** Merges the unit at `i` with its next one and looks up the ranks on both sides. `count` = no next, -1 = none before. */
// @ts-ignore: decorator
@inline
function mergeAt(i: u32, rank: u32, count: u32): void {
  const here = <usize>i << 2
  const id = mergedId(rank)
  const dead = load<u32>(nexts + here)
  const next = load<u32>(nexts + (<usize>dead << 2))
  store<u32>(ids + here, id)
  store<u32>(nexts + here, next)
  store<u32>(ranks + (<usize>dead << 2), NONE)
  if (next < count) {
    store<u32>(befores + (<usize>next << 2), i)
    store<u32>(ranks + here, pairRank(id, load<u32>(ids + (<usize>next << 2))))
  } else {
    store<u32>(ranks + here, NONE)
  }
  const before = load<u32>(befores + here)
  if (before != NONE) {
    store<u32>(ranks + (<usize>before << 2), pairRank(load<u32>(ids + (<usize>before << 2)), id))
  }
}

function mergeSmall(count: u32): void {
  link(count)
  // Lanes behind the last pair never win.
  v128.store(ranks + (<usize>(count - 1) << 2), i32x4.splat(-1))
  const end = ranks + (<usize>(count - 1) << 2)
  while (true) {
    let least = v128.load(ranks)
    for (let at = ranks + 16; at < end; at += 16) least = i32x4.min_u(least, v128.load(at))
    least = i32x4.min_u(least, v128.shuffle<i32>(least, least, 2, 3, 0, 1))
    least = i32x4.min_u(least, v128.shuffle<i32>(least, least, 1, 0, 3, 2))
    const rank = <u32>i32x4.extract_lane(least, 0)
    if (rank == NONE) return
    if (rank > highestRank) highestRank = rank
    let at = ranks
    let lanes = i32x4.bitmask(i32x4.eq(v128.load(at), least))
    while (lanes == 0) {
      at += 16
      lanes = i32x4.bitmask(i32x4.eq(v128.load(at), least))
    }
    mergeAt(<u32>((at - ranks) >> 2) + <u32>ctz(lanes), rank, count)
  }
}

/** u32 by rank: the first place in its list, or NONE. Places are linked both ways. */
let heads: usize = 0
/** Which ranks have places: a bit a rank, a bit for each 64 of them, a bit for each 4096. */
let listed: usize = 0
let listed64: usize = 0
let listed4096: usize = 0
let listed4096End: usize = 0
/** u32 by place, behind the other arrays: its neighbours in the list. */
let laters: usize = 0
let earliers: usize = 0

function makeLists(ranksBelow: u32): bool {
  const bits = (<usize>ranksBelow >> 18) + 1
  heads = reserve((<usize>ranksBelow << 2) + 4)
  listed = reserve(bits << 15)
  listed64 = reserve(bits << 9)
  listed4096 = reserve(bits << 3)
  listed4096End = listed4096 + (bits << 3)
  if (heads == 0 || listed == 0 || listed64 == 0 || listed4096 == 0) return false
  memory.fill(heads, 0xff, (<usize>ranksBelow << 2) + 4)
  memory.fill(listed, 0, bits << 15)
  memory.fill(listed64, 0, bits << 9)
  memory.fill(listed4096, 0, bits << 3)
  return true
}

// @ts-ignore: decorator
@inline
function setBit(bits: usize, index: u32): bool {
  const at = bits + (<usize>(index >> 6) << 3)
  const word = load<u64>(at)
  store<u64>(at, word | (<u64>1 << (index & 63)))
  return word == 0
}

// @ts-ignore: decorator
@inline
function clearBit(bits: usize, index: u32): bool {
  const at = bits + (<usize>(index >> 6) << 3)
  const word = load<u64>(at) & ~(<u64>1 << (index & 63))
  store<u64>(at, word)
  return word == 0
}

function enlist(rank: u32, place: u32): void {
  const headAt = heads + (<usize>rank << 2)
  const head = load<u32>(headAt)
  store<u32>(laters + (<usize>place << 2), head)
  store<u32>(earliers + (<usize>place << 2), NONE)
  store<u32>(headAt, place)
  if (head != NONE) store<u32>(earliers + (<usize>head << 2), place)
  else if (setBit(listed, rank) && setBit(listed64, rank >> 6)) setBit(listed4096, rank >> 12)
}

function delist(rank: u32, place: u32): void {
  const later = load<u32>(laters + (<usize>place << 2))
  const earlier = load<u32>(earliers + (<usize>place << 2))
  if (later != NONE) store<u32>(earliers + (<usize>later << 2), earlier)
  if (earlier != NONE) {
    store<u32>(laters + (<usize>earlier << 2), later)
    return
  }
  store<u32>(heads + (<usize>rank << 2), later)
  if (later == NONE && clearBit(listed, rank) && clearBit(listed64, rank >> 6)) clearBit(listed4096, rank >> 12)
}

/** The lowest rank that has a place, or NONE. */
function lowestRank(): u32 {
  for (let at = listed4096; at < listed4096End; at += 8) {
    const word = load<u64>(at)
    if (word == 0) continue
    const index4096 = (<u32>(at - listed4096) << 3) + <u32>ctz(word)
    const index64 = (index4096 << 6) + <u32>ctz(load<u64>(listed64 + (<usize>index4096 << 3)))
    return (index64 << 6) + <u32>ctz(load<u64>(listed + (<usize>index64 << 3)))
  }
  return NONE
}

/**
 * Merges rank by rank. Places of one rank may be taken in any order but where they touch (`aaa` with the merge of `a`
 * and `a`): there from the left. That is the order of the rule as long as no merge makes room for one of a lower or the
 * same rank; false when one does, and all lists are empty again.
 */
function mergeByLists(count: u32): bool {
  link(count)
  store<u32>(ranks + (<usize>(count - 1) << 2), NONE)
  laters = largeAt + <usize>largeUnits * 20
  earliers = laters + (<usize>largeUnits << 2)
  for (let i: u32 = 0; i + 1 < count; i++) {
    const rank = load<u32>(ranks + (<usize>i << 2))
    if (rank != NONE) enlist(rank, i)
  }
  let rank = lowestRank()
  while (rank != NONE) {
    const id = mergedId(rank)
    let i = load<u32>(heads + (<usize>rank << 2))
    while (i != NONE) {
      // To the first of the places that touch this one.
      let before = load<u32>(befores + (<usize>i << 2))
      while (before != NONE && load<u32>(ranks + (<usize>before << 2)) == rank) {
        i = before
        before = load<u32>(befores + (<usize>i << 2))
      }
      while (i < count && load<u32>(ranks + (<usize>i << 2)) == rank) {
        const here = <usize>i << 2
        const dead = load<u32>(nexts + here)
        const next = load<u32>(nexts + (<usize>dead << 2))
        delist(rank, i)
        const deadRank = load<u32>(ranks + (<usize>dead << 2))
        if (deadRank != NONE) {
          delist(deadRank, dead)
          store<u32>(ranks + (<usize>dead << 2), NONE)
        }
        store<u32>(ids + here, id)
        store<u32>(nexts + here, next)
        let newRank = NONE
        if (next < count) {
          store<u32>(befores + (<usize>next << 2), i)
          newRank = pairRank(id, load<u32>(ids + (<usize>next << 2)))
          if (newRank != NONE) enlist(newRank, i)
        }
        store<u32>(ranks + here, newRank)
        let rankBefore = NONE
        before = load<u32>(befores + here)
        if (before != NONE) {
          const there = ranks + (<usize>before << 2)
          const old = load<u32>(there)
          rankBefore = pairRank(load<u32>(ids + (<usize>before << 2)), id)
          if (old != rankBefore) {
            if (old != NONE) delist(old, before)
            if (rankBefore != NONE) enlist(rankBefore, before)
            store<u32>(there, rankBefore)
          }
        }
        if (newRank <= rank || rankBefore <= rank) {
          emptyLists(count)
          return false
        }
        i = next
      }
      i = load<u32>(heads + (<usize>rank << 2))
    }
    rank = lowestRank()
  }
  return true
}

function emptyLists(count: u32): void {
  for (let i: u32 = 0; i < count; i = load<u32>(nexts + (<usize>i << 2))) {
    const rank = load<u32>(ranks + (<usize>i << 2))
    if (rank != NONE) delist(rank, i)
  }
}

/** Heap of (rank << 32 | position), behind the arrays. */
let heap: usize = 0
let heapCount: u32 = 0

function push(rank: u32, position: u32): void {
  const item = (<u64>rank << 32) | <u64>position
  let i = heapCount++
  while (i > 0) {
    const parent = (i - 1) >> 1
    const above = load<u64>(heap + (<usize>parent << 3))
    if (above <= item) break
    store<u64>(heap + (<usize>i << 3), above)
    i = parent
  }
  store<u64>(heap + (<usize>i << 3), item)
}

function pop(): u64 {
  const first = load<u64>(heap)
  heapCount--
  const item = load<u64>(heap + (<usize>heapCount << 3))
  let i: u32 = 0
  while (true) {
    let child = i * 2 + 1
    if (child >= heapCount) break
    let below = load<u64>(heap + (<usize>child << 3))
    if (child + 1 < heapCount) {
      const other = load<u64>(heap + (<usize>(child + 1) << 3))
      if (other < below) {
        below = other
        child++
      }
    }
    if (item <= below) break
    store<u64>(heap + (<usize>i << 3), below)
    i = child
  }
  store<u64>(heap + (<usize>i << 3), item)
  return first
}

function mergeByHeap(count: u32): void {
  link(count)
  store<u32>(ranks + (<usize>(count - 1) << 2), NONE)
  heap = (largeAt + <usize>largeUnits * 20 + 15) & ~7
  heapCount = 0
  for (let i: u32 = 0; i + 1 < count; i++) {
    const rank = load<u32>(ranks + (<usize>i << 2))
    if (rank != NONE) push(rank, i)
  }
  // Each merge takes one entry and adds at most two while one unit goes: never more than two entries a unit.
  while (heapCount > 0) {
    const top = pop()
    const rank = <u32>(top >> 32)
    const i = <u32>top
    // The pair changed since: what stands there now has an entry of its own.
    if (load<u32>(ranks + (<usize>i << 2)) != rank) continue
    mergeAt(i, rank, count)
    const here = load<u32>(ranks + (<usize>i << 2))
    if (here != NONE) push(here, i)
    const before = load<u32>(befores + (<usize>i << 2))
    if (before == NONE) continue
    const there = load<u32>(ranks + (<usize>before << 2))
    if (there != NONE) push(there, before)
  }
}

function emit(count: u32, length: u32, out: usize, ends: usize, base: u32): u32 {
  let written: usize = 0
  if (count == 1) {
    store<u32>(out, load<u32>(ids))
    if (ends != 0) store<u32>(ends, base + length)
    return 1
  }
  for (let i: u32 = 0; i < count; ) {
    const here = <usize>i << 2
    const next = load<u32>(nexts + here)
    store<u32>(out + written, load<u32>(ids + here))
    if (ends != 0) store<u32>(ends + written, base + (next < count ? load<u32>(starts + (<usize>next << 2)) : length))
    written += 4
    i = next
  }
  return <u32>(written >> 2)
}
