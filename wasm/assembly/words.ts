/**
 * From a piece's bytes to ids: a cache of words met before, then the vocabulary's own whole words, then merges.
 *
 * The cache has a fixed size. A bucket holds two words of up to 15 bytes; a new word goes to the first place and pushes
 * the word there to the second. So a hostile text can only empty it: later texts then run as they did cold.
 */
import { reserve } from "./memory"
import { mergePiece } from "./merge"
import { idBits, NONE, tokenOf } from "./vocabulary"

const MIX_A: u64 = 0x9e37_79b9_7f4a_7c15
const MIX_B: u64 = 0xc2b2_ae3d_27d4_eb4f

/** Buckets of two entries of 32 bytes: { bytes 0-7, bytes 8-14 and length, packed ids, more packed ids }. */
const BUCKET_BITS: u64 = 14
const CACHED_BYTES_MAX: u32 = 15

let cache: usize = 0
/** u64 pairs by length: which of the first and the second eight bytes belong to a word. */
let lengthMasks: usize = 0
/** Whole words of the vocabulary are taken without looking at merges (`ignore_merges`, rank files). */
let takesWholeWords: bool = false
/** Bits of one id in packed ids, and their mask. */
let packedBits: u64 = 0
let packedMask: u32 = 0
/** Ids that fit beside the count in 64 bits. */
let packedMost: u32 = 0

export function setWords(wholeWords: bool): bool {
  takesWholeWords = wholeWords
  packedBits = idBits
  packedMask = (<u32>1 << idBits) - 1
  packedMost = idBits <= 20 ? 3 : 2
  cache = reserve(<usize>(<u64>64 << BUCKET_BITS))
  lengthMasks = reserve(256)
  if (cache == 0 || lengthMasks == 0) return false
  clearCache()
  for (let length: u32 = 0; length < 16; length++) {
    const low: u64 = length == 0 ? 0 : length >= 8 ? ~(<u64>0) : ~(<u64>0) >> (64 - (<u64>length << 3))
    const high: u64 = length <= 8 ? 0 : ~(<u64>0) >> (64 - (<u64>(length - 8) << 3))
    store<u64>(lengthMasks + (<usize>length << 4), low)
    store<u64>(lengthMasks + (<usize>length << 4), high, 8)
  }
  return true
}

export function clearCache(): void {
  memory.fill(cache, 0, <usize>(<u64>64 << BUCKET_BITS))
}

/**
 * Writes the ids of the piece and gives the address behind them. Up to 8 bytes behind that may be overwritten, and 16
 * bytes from `at` are read whatever the length.
 */
// @ts-ignore: decorator
@inline
export function encodePiece(at: usize, length: u32, out: usize): usize {
  if (length > CACHED_BYTES_MAX) return encodeUncached(at, length, out)
  const masks = lengthMasks + (<usize>length << 4)
  const low = load<u64>(at) & load<u64>(masks)
  const high = (load<u64>(at, 8) & load<u64>(masks, 8)) | (<u64>length << 56)
  const hash = (low ^ (high * MIX_B)) * MIX_A
  const bucket = cache + (<usize>(hash >> (64 - BUCKET_BITS)) << 6)
  let packed: u64
  if (((load<u64>(bucket) ^ low) | (load<u64>(bucket, 8) ^ high)) == 0) {
    packed = load<u64>(bucket, 16)
  } else if (((load<u64>(bucket, 32) ^ low) | (load<u64>(bucket, 40) ^ high)) == 0) {
    packed = load<u64>(bucket, 48)
  } else {
    return encodeNew(at, length, low, high, bucket, out)
  }
  store<u32>(out, <u32>packed & packedMask)
  store<u32>(out, <u32>(packed >> packedBits) & packedMask, 4)
  store<u32>(out, <u32>(packed >> (packedBits << 1)) & packedMask, 8)
  return out + (<usize>(packed >> 62) << 2)
}

/** A word that the cache does not have: encodes it and, if its ids fit, lets the cache have it. */
function encodeNew(at: usize, length: u32, low: u64, high: u64, bucket: usize, out: usize): usize {
  const end = encodeUncached(at, length, out)
  const count = <u32>((end - out) >> 2)
  if (count == 0 || count > packedMost) return end
  let packed: u64 = <u64>count << 62
  for (let i: u32 = 0; i < count; i++) packed |= <u64>load<u32>(out + (<usize>i << 2)) << (packedBits * i)
  v128.store(bucket, v128.load(bucket), 32)
  v128.store(bucket, v128.load(bucket, 16), 48)
  store<u64>(bucket, low)
  store<u64>(bucket, high, 8)
  store<u64>(bucket, packed, 16)
  return end
}

/** The ids of a piece by the tables alone. */
export function encodeUncached(at: usize, length: u32, out: usize): usize {
  if (takesWholeWords) {
    const id = tokenOf(at, length)
    if (id != NONE) {
      store<u32>(out, id)
      return out + 4
    }
  }
  return out + (<usize>mergePiece(at, length, out, 0, 0) << 2)
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
