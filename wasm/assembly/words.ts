/**
 * From a piece's bytes to ids: a cache of words met before, then the vocabulary's own whole words, then merges.
 *
 * The caches have a fixed size. A bucket of the first holds four words of up to 7 bytes, one of the second two of up to
 * 15, where a new word takes the first place and pushes the others on; the third two pieces of up to 63 bytes, the last
 * two of up to 255. So a hostile text can only empty them: later texts then run as they did cold. What counts for texts
 * with many different words is how few cache lines of the processor they touch, hence a dense table for the short ones;
 * and how few words find their place taken, since a piece that is merged again takes as long as a hundred found. Of a
 * megabyte in many languages 3 in 1000 pieces are merged again; in half the room it was 16, and a tenth to a fifth slower.
 */
import { reserve } from "./memory"
import { nextCut } from "./joints"
import { clearBlocks, makeBlocks, mergePiece } from "./long"
import { NONE, tokenCount } from "./tokens"
import { codePointAt } from "./unicode"
import { firstBytes, hashLong, sameBytes, tokenOf } from "./vocabulary"

const MIX_A: u64 = 0x9e37_79b9_7f4a_7c15
const MIX_B: u64 = 0xc2b2_ae3d_27d4_eb4f

/** Four words: { bytes 0-6 and length } × 4, { ids 0-2 and count } × 4. */
const SHORT_BITS: u64 = 13
const SHORT_BYTES_MAX: u32 = 7
const SHORT_IDS_MAX: u32 = 3

/** Two entries of 32 bytes: { bytes 0-7, bytes 8-14 and length, ids 0-2 and count, ids 3-5 }. */
const BUCKET_BITS: u64 = 16
const WORD_BYTES_MAX: u32 = 15
/** An id in a packed word has 20 bits, three to a word; the count of ids stands above them. */
const ID_BITS: u64 = 20
const ID_MASK: u32 = 0xf_ffff
const WORD_IDS_MAX: u32 = 6

/** Two entries of 128 bytes: { 64 bytes of text, zeros behind; count | length << 8 u32; up to 15 ids u32 }. */
const LONG_BITS: u64 = 15
const LONG_ENTRY: usize = 128
const LONG_BYTES_MAX: u32 = 63
const LONG_IDS_MAX: u32 = 15

/** Two entries of 512 bytes: { count | length << 16 u32; up to 63 ids u32; 256 bytes of text }. */
const HUGE_BITS: u64 = 11
const HUGE_BYTES_MAX: u32 = 255
const HUGE_IDS_MAX: u32 = 63

let shorts: usize = 0
let huges: usize = 0
let words: usize = 0
let longs: usize = 0
/** u64 pairs by length: which of the first and the second eight bytes belong to a word. */
let lengthMasks: usize = 0
/** 64 bytes of ones, 64 of zeros: 64 bytes from `64 - length` on mask a long piece. */
let longMasks: usize = 0
/** Whole words of the vocabulary are taken without looking at merges (`ignore_merges`, rank files). */
let takesWholeWords: bool = false
/** u64 by code point below 2^16: what merges make of the character alone, packed as a short word; 0 = not known. */
let characters: usize = 0
let cutsPieces: bool = false
/** u8 by id: what merges make of the token's own bytes. UNTRIED at first. */
let selfMade: usize = 0
const UNTRIED: u8 = 0
const ITSELF: u8 = 1
const OTHERS: u8 = 2

/** `cuts`: pieces can be cut between characters that no merge joins. All memory is fresh, so the caches are empty. */
export function setWords(wholeWords: bool, cuts: bool): bool {
  takesWholeWords = wholeWords
  cutsPieces = cuts
  shorts = reserve(<usize>(<u64>64 << SHORT_BITS))
  words = reserve(<usize>(<u64>64 << BUCKET_BITS))
  longs = reserve(<usize>(<u64>256 << LONG_BITS))
  huges = reserve(<usize>(<u64>1024 << HUGE_BITS))
  characters = reserve(65536 * 8)
  lengthMasks = reserve(256)
  longMasks = reserve(128)
  selfMade = reserve(<usize>tokenCount)
  if (shorts == 0 || words == 0 || longs == 0 || huges == 0 || characters == 0) return false
  if (lengthMasks == 0 || longMasks == 0 || selfMade == 0 || !makeBlocks(cuts)) return false
  memory.fill(longMasks, 0xff, 64)
  for (let length: u32 = 0; length < 16; length++) {
    const low: u64 = length == 0 ? 0 : length >= 8 ? ~(<u64>0) : ~(<u64>0) >> (64 - (<u64>length << 3))
    const high: u64 = length <= 8 ? 0 : ~(<u64>0) >> (64 - (<u64>(length - 8) << 3))
    store<u64>(lengthMasks + (<usize>length << 4), low)
    store<u64>(lengthMasks + (<usize>length << 4), high, 8)
  }
  return true
}

export function clearCache(): void {
  clearBlocks()
  memory.fill(characters, 0, 65536 * 8)
  memory.fill(shorts, 0, <usize>(<u64>64 << SHORT_BITS))
  memory.fill(words, 0, <usize>(<u64>64 << BUCKET_BITS))
  memory.fill(longs, 0, <usize>(<u64>256 << LONG_BITS))
  memory.fill(huges, 0, <usize>(<u64>1024 << HUGE_BITS))
}

/**
 * Writes the ids of the piece and gives the address behind them. Up to 8 bytes behind that may be overwritten, and 64
 * bytes from `at` may be read whatever the length.
 */
// @ts-ignore: decorator
@inline
export function encodePiece(at: usize, length: u32, out: usize): usize {
  if (length > SHORT_BYTES_MAX) return encodeWord(at, length, out)
  const key = firstBytes(load<u64>(at), length) | (<u64>length << 56)
  const bucket = shorts + (<usize>((key * MIX_A) >> (64 - SHORT_BITS)) << 6)
  const keys = i64x2.splat(key)
  const same = i64x2.bitmask(i64x2.eq(keys, v128.load(bucket))) | (i64x2.bitmask(i64x2.eq(keys, v128.load(bucket, 16))) << 2)
  if (same == 0) return encodeNewShort(at, length, key, bucket, out)
  const packed = load<u64>(bucket + (<usize>ctz(same) << 3), 32)
  store<u32>(out, <u32>packed & ID_MASK)
  store<u32>(out, <u32>(packed >> ID_BITS) & ID_MASK, 4)
  store<u32>(out, <u32>(packed >> (2 * ID_BITS)) & ID_MASK, 8)
  return out + (<usize>(packed >> (3 * ID_BITS)) << 2)
}

/** A short word that the first cache does not have. One of many ids stands in the second. */
function encodeNewShort(at: usize, length: u32, key: u64, bucket: usize, out: usize): usize {
  const end = encodeWord(at, length, out)
  const count = <u32>((end - out) >> 2)
  if (count == 0 || count > SHORT_IDS_MAX) return end
  const packed = packedIds(out, count)
  memory.copy(bucket + 8, bucket, 24)
  memory.copy(bucket + 40, bucket + 32, 24)
  store<u64>(bucket, key)
  store<u64>(bucket, packed, 32)
  return end
}

/** Words of up to 15 bytes through the second cache. */
// @ts-ignore: decorator
@inline
function encodeWord(at: usize, length: u32, out: usize): usize {
  if (length > WORD_BYTES_MAX) return encodeLong(at, length, out)
  const masks = lengthMasks + (<usize>length << 4)
  const low = load<u64>(at) & load<u64>(masks)
  const high = (load<u64>(at, 8) & load<u64>(masks, 8)) | (<u64>length << 56)
  const hash = (low ^ (high * MIX_B)) * MIX_A
  let entry = words + (<usize>(hash >> (64 - BUCKET_BITS)) << 6)
  if (((load<u64>(entry) ^ low) | (load<u64>(entry, 8) ^ high)) != 0) {
    entry += 32
    if (((load<u64>(entry) ^ low) | (load<u64>(entry, 8) ^ high)) != 0) {
      return encodeNew(at, length, low, high, entry - 32, out)
    }
  }
  const packed = load<u64>(entry, 16)
  store<u32>(out, <u32>packed & ID_MASK)
  store<u32>(out, <u32>(packed >> ID_BITS) & ID_MASK, 4)
  store<u32>(out, <u32>(packed >> (2 * ID_BITS)) & ID_MASK, 8)
  const count = <usize>(packed >> (3 * ID_BITS))
  if (count > 3) writeMore(load<u64>(entry, 24), out)
  return out + (count << 2)
}

function writeMore(packed: u64, out: usize): void {
  store<u32>(out, <u32>packed & ID_MASK, 12)
  store<u32>(out, <u32>(packed >> ID_BITS) & ID_MASK, 16)
  store<u32>(out, <u32>(packed >> (2 * ID_BITS)) & ID_MASK, 20)
}

/**
 * A word that the cache does not have: encodes it and, if its ids fit, lets the cache have it. What has more ids, as words
 * of scripts that the vocabulary hardly knows, is for the caches of longer pieces.
 */
function encodeNew(at: usize, length: u32, low: u64, high: u64, bucket: usize, out: usize): usize {
  const end = encodeLong(at, length, out)
  const count = <u32>((end - out) >> 2)
  if (count > WORD_IDS_MAX || (length <= SHORT_BYTES_MAX && count <= SHORT_IDS_MAX) || count == 0) return end
  let packed: u64 = <u64>count << (3 * ID_BITS)
  let more: u64 = 0
  for (let i: u32 = 0; i < count; i++) {
    const id = <u64>load<u32>(out + (<usize>i << 2))
    if (i < 3) packed |= id << (ID_BITS * i)
    else more |= id << (ID_BITS * (i - 3))
  }
  v128.store(bucket, v128.load(bucket), 32)
  v128.store(bucket, v128.load(bucket, 16), 48)
  store<u64>(bucket, low)
  store<u64>(bucket, high, 8)
  store<u64>(bucket, packed, 16)
  store<u64>(bucket, more, 24)
  return end
}

/** Pieces that are no short words: white space, rules, long identifiers, text without blanks. */
function encodeLong(at: usize, length: u32, out: usize): usize {
  if (length > LONG_BYTES_MAX) return encodeHuge(at, length, out)
  const masks = longMasks + 64 - length
  const a = v128.and(v128.load(at), v128.load(masks))
  const b = v128.and(v128.load(at, 16), v128.load(masks, 16))
  const c = v128.and(v128.load(at, 32), v128.load(masks, 32))
  const d = v128.and(v128.load(at, 48), v128.load(masks, 48))
  let hash = (i64x2.extract_lane(a, 0) * MIX_A) ^ (i64x2.extract_lane(b, 0) * MIX_B)
  hash ^= (i64x2.extract_lane(c, 0) ^ (i64x2.extract_lane(d, 0) << 7)) * (MIX_A ^ 0x55_5500)
  hash = (hash ^ (hash >> 31)) * MIX_B
  hash ^= (i64x2.extract_lane(a, 1) * MIX_B) ^ ((i64x2.extract_lane(b, 1) ^ length) * MIX_A)
  hash ^= (i64x2.extract_lane(c, 1) ^ (i64x2.extract_lane(d, 1) << 7)) * (MIX_B ^ 0x55_5500)
  hash *= MIX_A
  const bucket = longs + (<usize>(<u64>hash >> (64 - LONG_BITS)) << 8)
  let entry = bucket
  while (true) {
    const differs = v128.or(
      v128.or(v128.xor(a, v128.load(entry)), v128.xor(b, v128.load(entry, 16))),
      v128.or(v128.xor(c, v128.load(entry, 32)), v128.xor(d, v128.load(entry, 48))),
    )
    const head = load<u32>(entry, 64)
    if (head >> 8 == length && !v128.any_true(differs)) {
      const count = <usize>(head & 0xff)
      let i: usize = 0
      do {
        store<u32>(out + i, load<u32>(entry + i, 68))
        i += 4
      } while (i < count << 2)
      return out + i
    }
    if (entry != bucket) break
    entry += LONG_ENTRY
  }
  const end = encodeHuge(at, length, out)
  const count = <u32>((end - out) >> 2)
  // Short words with few ids are for the caches of words.
  if (count > LONG_IDS_MAX || count == 0 || (length <= WORD_BYTES_MAX && count <= WORD_IDS_MAX)) return end
  memory.copy(bucket + LONG_ENTRY, bucket, LONG_ENTRY)
  entry = bucket
  v128.store(entry, a)
  v128.store(entry, b, 16)
  v128.store(entry, c, 32)
  v128.store(entry, d, 48)
  store<u32>(entry, count | (length << 8), 64)
  memory.copy(entry + 68, out, end - out)
  return end
}

/** Sentences of text without blanks, most of all; and shorter pieces of many ids. */
function encodeHuge(at: usize, length: u32, out: usize): usize {
  if (length > HUGE_BYTES_MAX || length <= 8) return encodeUncached(at, length, out)
  const bucket = huges + (<usize>((hashLong(at, length) * MIX_B) >> (64 - HUGE_BITS)) << 10)
  for (let entry = bucket; entry <= bucket + 512; entry += 512) {
    const head = load<u32>(entry)
    if (head >> 16 == length && sameBytes(entry + 256, at, length)) {
      const bytes = <usize>(head & 0xffff) << 2
      memory.copy(out, entry + 4, bytes)
      return out + bytes
    }
  }
  const end = encodeUncached(at, length, out)
  const count = <u32>((end - out) >> 2)
  if (count > HUGE_IDS_MAX || (length <= LONG_BYTES_MAX && count <= LONG_IDS_MAX)) return end
  memory.copy(bucket + 512, bucket, 512)
  memory.copy(bucket + 256, at, length)
  memory.copy(bucket + 4, out, end - out)
  store<u32>(bucket, count | (length << 16))
  return end
}

/** The ids of a piece by the tables alone. */
export function encodeUncached(at: usize, length: u32, out: usize): usize {
  const id = tokenOf(at, length)
  if (id == NONE) return encodeParts(at, length, out)
  if (!takesWholeWords && load<u8>(selfMade + <usize>id) != ITSELF) return encodeTried(at, length, id, out)
  store<u32>(out, id)
  return out + 4
}

/** A piece that is no token: part by part, where it can be cut. */
function encodeParts(at: usize, length: u32, out: usize): usize {
  if (!cutsPieces) return out + (<usize>mergePiece(at, length, out, 0, 0) << 2)
  const end = at + length
  let cut = nextCut(at, end)
  if (cut == end) return out + (<usize>mergePiece(at, length, out, 0, 0) << 2)
  while (true) {
    out = encodePart(at, <u32>(cut - at), out)
    if (cut == end) return out
    at = cut
    cut = nextCut(at, end)
  }
}

/** A part is not a word: where it is a token, merges still have to come to it. */
function encodePart(at: usize, length: u32, out: usize): usize {
  const lead: u32 = load<u8>(at)
  if (lead < 0xf0 && lead >= 0x80 && length == (lead < 0xe0 ? 2 : 3)) return encodeCharacter(at, length, out)
  const id = tokenOf(at, length)
  if (id == NONE) return length > HUGE_BYTES_MAX ? out + (<usize>mergePiece(at, length, out, 0, 0) << 2) : encodeCached(at, length, out)
  if (load<u8>(selfMade + <usize>id) != ITSELF) return encodeTried(at, length, id, out)
  store<u32>(out, id)
  return out + 4
}

/** One character, by a table: a text without blanks falls into many of these. */
function encodeCharacter(at: usize, length: u32, out: usize): usize {
  const entry = characters + (<usize>codePointAt(at) << 3)
  const packed = load<u64>(entry)
  if (packed != 0) {
    store<u32>(out, <u32>packed & ID_MASK)
    store<u32>(out, <u32>(packed >> ID_BITS) & ID_MASK, 4)
    store<u32>(out, <u32>(packed >> (2 * ID_BITS)) & ID_MASK, 8)
    return out + (<usize>(packed >> (3 * ID_BITS)) << 2)
  }
  const count = mergePiece(at, length, out, 0, 0)
  if (count != 0) store<u64>(entry, packedIds(out, count))
  return out + (<usize>count << 2)
}

/** Up to three ids and their count. */
function packedIds(ids: usize, count: u32): u64 {
  let packed: u64 = <u64>count << (3 * ID_BITS)
  for (let i: u32 = 0; i < count; i++) packed |= <u64>load<u32>(ids + (<usize>i << 2)) << (ID_BITS * i)
  return packed
}

/** `encodePiece` once more, not inlined. */
function encodeCached(at: usize, length: u32, out: usize): usize {
  return encodePiece(at, length, out)
}

/** A piece that is a token, which merges may or may not come to: remembers which. */
function encodeTried(at: usize, length: u32, id: u32, out: usize): usize {
  const count = mergePiece(at, length, out, 0, 0)
  store<u8>(selfMade + <usize>id, count == 1 && load<u32>(out) == id ? ITSELF : OTHERS)
  return out + (<usize>count << 2)
}

/** The same, saying where each token ends too. */
export function encodeWithEnds(at: usize, length: u32, out: usize, ends: usize, base: u32): usize {
  if (takesWholeWords) {
    const id = tokenOf(at, length)
    if (id != NONE) {
      store<u32>(out, id)
      store<u32>(ends, base + length)
      return out + 4
    }
  }
  return out + (<usize>mergePiece(at, length, out, ends, base) << 2)
}
