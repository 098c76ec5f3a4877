/**
 * Byte pair encoding of long pieces, block by block.
 *
 * What holds for any merges: let X and Y be two texts, x the last token of X encoded alone and y the first one of Y
 * encoded alone. If the text of x and y together becomes just these two again, then XY becomes X's tokens and Y's. (Until
 * a first merge crosses the cut, both sides go as they would alone. That merge would join an end of x to a start of y,
 * and it would be due at the same time within xy alone.) And no merge ever crosses the end of a token that stays, so what
 * stands before such an end can be encoded alone.
 *
 * So a block is encoded, cut at the end of one of its last tokens, and the next block begins there, if the pair at the cut
 * holds; else the cut is tried one token earlier, then the block twice as large, and at last the whole piece at once.
 * Blocks and pairs met before are remembered, so runs cost next to nothing.
 */
import { reserve } from "./memory"
import { droppedUnits, mergesCharacters, mergeWhole } from "./merge"
import { NONE, tokenLength } from "./tokens"
import { hashLong, sameBytes } from "./vocabulary"

/** Bytes of a block. Small ones are merged faster a byte; large ones lose less at their ends. */
const BLOCK_BYTES: u32 = 64
/** Up to here a piece is merged in one. */
const WHOLE_BYTES_MAX: u32 = 96
const BLOCK_BYTES_MAX: u32 = 1024
/** How many cuts of a block are tried. */
const CUTS_MAX: u32 = 4

/**
 * Blocks met before, two places a bucket: { length u32, count u32, 8 bytes free, 64 bytes, 64 ids u32, 64 ends u8 }, and
 * the same with 512 bytes, 64 ids and 64 ends u32 for larger ones.
 */
const KEPT_BITS: u64 = 12
const KEPT_IDS_MAX: u32 = 64
const KEPT_ENTRY: usize = 16 + 64 + 256 + 64
const LARGE_BITS: u64 = 6
const LARGE_BYTES_MAX: u32 = 512
const LARGE_ENTRY: usize = 16 + 512 + 256 + 256
let kept: usize = 0
let keptLarge: usize = 0

const MIX: u64 = 0x9e37_79b9_7f4a_7c15

/** Pairs met before: left id + 1, right id, and a bit that says whether they stay: one u64. */
const PAIR_BITS: u64 = 12
let pairs: usize = 0

/** Ids and ends of two blocks, the one at hand and the one behind it. */
let firstBlock: usize = 0
let secondBlock: usize = 0
/** No merge takes a token of a byte or the unknown one. */
let substitutesStay: bool = false
/** And of two tokens side by side. */
let pairBlock: usize = 0

export function makeBlocks(substitutesAreNotMerged: bool): bool {
  substitutesStay = substitutesAreNotMerged
  kept = reserve((2 * KEPT_ENTRY) << <usize>KEPT_BITS)
  keptLarge = reserve(LARGE_ENTRY << <usize>LARGE_BITS)
  pairs = reserve(<usize>8 << <usize>PAIR_BITS)
  firstBlock = reserve(<usize>BLOCK_BYTES_MAX * 8)
  secondBlock = reserve(<usize>BLOCK_BYTES_MAX * 8)
  pairBlock = reserve(<usize>BLOCK_BYTES_MAX * 8)
  if (kept == 0 || keptLarge == 0 || pairs == 0 || firstBlock == 0 || secondBlock == 0 || pairBlock == 0) return false
  return true
}

export function clearBlocks(): void {
  memory.fill(kept, 0, (2 * KEPT_ENTRY) << <usize>KEPT_BITS)
  memory.fill(keptLarge, 0, LARGE_ENTRY << <usize>LARGE_BITS)
  memory.fill(pairs, 0, <usize>8 << <usize>PAIR_BITS)
}

/**
 * The ids of the piece to `out`, one after another; where `ends` is not 0, also where each token ends, counted from
 * `base`. Gives the number of ids. The caller made sure that scratch for `length` units is there.
 */
export function mergePiece(at: usize, length: u32, out: usize, ends: usize, base: u32): u32 {
  return length <= WHOLE_BYTES_MAX ? mergeWhole(at, length, out, ends, base) : mergeLong(at, length, out, ends, base)
}

function mergeLong(at: usize, length: u32, out: usize, ends: usize, base: u32): u32 {
  let written: u32 = 0
  let from: u32 = 0
  let size = BLOCK_BYTES
  let block = firstBlock
  let next = secondBlock
  let to = blockEnd(at, 0, size, length)
  let count = encodeBlock(at, to, block)
  if (count == 0) return mergeWhole(at, length, out, ends, base)
  // What stands before `from`: its last token's id and start.
  let before = NONE
  let beforeStart: u32 = 0
  while (to < length) {
    let cuts: u32 = 0
    let nextTo: u32 = 0
    let nextCount: u32 = 0
    let last = count
    while (cuts < CUTS_MAX && last > 1) {
      last--
      const cut = from + endOf(block, last - 1)
      // Tokens of bytes may end inside a character, which is a unit.
      if (mergesCharacters() && (load<u8>(at + cut) & 0xc0) == 0x80) continue
      cuts++
      nextTo = blockEnd(at, cut, BLOCK_BYTES, length)
      nextCount = encodeBlock(at + cut, nextTo - cut, next)
      if (nextCount == 0) return mergeWhole(at, length, out, ends, base)
      const start = last == 1 ? from : from + endOf(block, last - 2)
      if (holds(at + start, cut - start, endOf(next, 0), idOf(block, last - 1), idOf(next, 0))) break
      nextCount = 0
    }
    if (nextCount == 0) {
      size <<= 1
      if (size > BLOCK_BYTES_MAX) return mergeWhole(at, length, out, ends, base)
      to = blockEnd(at, from, size, length)
      count = encodeBlock(at + from, to - from, block)
      if (count == 0) return mergeWhole(at, length, out, ends, base)
      // The block's first token may be another one now.
      if (from > 0 && !holds(at + beforeStart, from - beforeStart, endOf(block, 0), before, idOf(block, 0))) {
        return mergeWhole(at, length, out, ends, base)
      }
      continue
    }
    written = copyTokens(block, last, out, ends, base + from, written)
    before = idOf(block, last - 1)
    beforeStart = last == 1 ? from : from + endOf(block, last - 2)
    from += endOf(block, last - 1)
    const other = block
    block = next
    next = other
    to = nextTo
    count = nextCount
    size = BLOCK_BYTES
  }
  return copyTokens(block, count, out, ends, base + from, written)
}

// @ts-ignore: decorator
@inline
function idOf(block: usize, i: u32): u32 {
  return load<u32>(block + (<usize>i << 2))
}

/** Where the block's token `i` ends, from the block's start. */
// @ts-ignore: decorator
@inline
function endOf(block: usize, i: u32): u32 {
  return load<u32>(block + (<usize>i << 2), <usize>BLOCK_BYTES_MAX * 4)
}

/** Copies whole lanes: up to three ids behind the last one are overwritten. */
function copyTokens(block: usize, count: u32, out: usize, ends: usize, base: u32, written: u32): u32 {
  const to = out + (<usize>written << 2)
  for (let i: usize = 0; i < <usize>count << 2; i += 16) v128.store(to + i, v128.load(block + i))
  const endsTo = ends + (<usize>written << 2)
  if (ends != 0) for (let i: u32 = 0; i < count; i++) store<u32>(endsTo + (<usize>i << 2), base + endOf(block, i))
  return written + count
}

/** The end of a block of about `size` bytes: not inside a character. */
function blockEnd(at: usize, from: u32, size: u32, length: u32): u32 {
  let end = from + size
  if (end >= length) return length
  while ((load<u8>(at + end) & 0xc0) == 0x80) end--
  return end
}

/** Ids and ends of the bytes, as if nothing stood around them. 0: a byte was dropped, and ends say nothing. */
function encodeBlock(at: usize, length: u32, block: usize): u32 {
  if (length <= 8) return mergeBlock(at, length, block)
  if (length > BLOCK_BYTES) return length > LARGE_BYTES_MAX ? mergeBlock(at, length, block) : encodeLarge(at, length, block)
  const bucket = kept + <usize>((hashLong(at, length) * MIX) >> (64 - KEPT_BITS)) * (2 * KEPT_ENTRY)
  let entry = bucket
  if (!isKept(entry, at, length)) {
    entry += KEPT_ENTRY
    if (!isKept(entry, at, length)) {
      const count = mergeBlock(at, length, block)
      if (count != 0) keep(bucket, at, length, block, count)
      return count
    }
  }
  const count = load<u32>(entry, 4)
  for (let i: usize = 0; i < <usize>count << 2; i += 16) {
    v128.store(block + i, v128.load(entry + i, 80))
    // A byte to each of four lanes.
    const few = v128.load32_zero(entry + (i >> 2), 336)
    const two = i16x8.extend_low_i8x16_u(few)
    v128.store(block + i, i32x4.extend_low_i16x8_u(two), <usize>BLOCK_BYTES_MAX * 4)
  }
  return count
}

// @ts-ignore: decorator
@inline
function isKept(entry: usize, at: usize, length: u32): bool {
  return load<u32>(entry) == length && sameBytes(entry + 16, at, length)
}

/** Takes the first place of the bucket; what stood there moves to the second. */
function keep(bucket: usize, at: usize, length: u32, block: usize, count: u32): void {
  memory.copy(bucket + KEPT_ENTRY, bucket, KEPT_ENTRY)
  store<u32>(bucket, length)
  store<u32>(bucket, count, 4)
  memory.copy(bucket + 16, at, length)
  memory.copy(bucket + 80, block, <usize>count << 2)
  for (let i: u32 = 0; i < count; i++) store<u8>(bucket + <usize>i, <u8>endOf(block, i), 336)
}

/** Blocks that were made larger: of runs, so there are few different ones. */
function encodeLarge(at: usize, length: u32, block: usize): u32 {
  const entry = keptLarge + <usize>((hashLong(at, length) * MIX) >> (64 - LARGE_BITS)) * LARGE_ENTRY
  const ends = block + <usize>BLOCK_BYTES_MAX * 4
  if (isKept(entry, at, length)) {
    const count = load<u32>(entry, 4)
    memory.copy(block, entry + 528, <usize>count << 2)
    memory.copy(ends, entry + 784, <usize>count << 2)
    return count
  }
  const count = mergeBlock(at, length, block)
  if (count > KEPT_IDS_MAX || count == 0) return count
  store<u32>(entry, length)
  store<u32>(entry, count, 4)
  memory.copy(entry + 16, at, length)
  memory.copy(entry + 528, block, <usize>count << 2)
  memory.copy(entry + 784, ends, <usize>count << 2)
  return count
}

/** The same without looking at what is kept. */
function mergeBlock(at: usize, length: u32, block: usize): u32 {
  const count = mergeWhole(at, length, block, block + <usize>BLOCK_BYTES_MAX * 4, 0)
  return droppedUnits() ? 0 : count
}

/** Whether two tokens side by side, of `left` and `right` bytes from `at` on, become just these two. */
function holds(at: usize, left: u32, right: u32, leftId: u32, rightId: u32): bool {
  // With characters as units, these stand for other bytes than their own: tokens of bytes, or the unknown one.
  if (mergesCharacters() && (tokenLength(leftId) != left || tokenLength(rightId) != right)) return substitutesStay
  const key = (<u64>(leftId + 1) << 32) | (<u64>rightId << 1)
  const entry = pairs + (<usize>((key * MIX) >> (64 - PAIR_BITS)) << 3)
  const found = load<u64>(entry)
  if ((found & ~(<u64>1)) == key) return (found & 1) != 0
  const stays =
    left + right <= BLOCK_BYTES_MAX &&
    mergeBlock(at, left + right, pairBlock) == 2 &&
    idOf(pairBlock, 0) == leftId &&
    idOf(pairBlock, 1) == rightId &&
    endOf(pairBlock, 0) == left
  store<u64>(entry, key | <u64>stays)
  return stays
}
