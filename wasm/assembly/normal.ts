/**
 * Unicode normal forms of UTF-8. The host says which characters a form may touch, and which ones a touched character may
 * be joined to; a stretch is touched characters side by side, with the one before if they may be joined to it. Stretches
 * met before are looked up here, others asked for, so the tables of decompositions stay in JavaScript
 * (src/tokenizer/unicode-form.ts has the same rules).
 *
 * In JavaScript the question alone took a third of the time of English texts with curly quotes, and an answer a third of
 * that of multilingual ones.
 */
import { addByte, BYTE_SET_BYTES, bytesIn } from "./byte-set"
import { reserve } from "./memory"
import { codePointAt, width } from "./unicode"

const MIX_A: u64 = 0x9e37_79b9_7f4a_7c15
const MIX_B: u64 = 0xc2b2_ae3d_27d4_eb4f

/** Bytes of a bit for each code point. */
const SET_BYTES: usize = 0x11_0000 >> 3

/** 2^12 entries of 64 bytes: { 16 bytes of the stretch, zeros behind; 24 bytes; bytes of both, u8 each }. */
const KNOWN_BITS: u64 = 12
const STRETCH_BYTES_MAX: usize = 16
const CONTENT_BYTES_MAX: usize = 24

let touched: usize = 0
let firsts: usize = 0
let known: usize = 0
/** The lead bytes of characters that may be touched (byte-set.ts). */
let leads: usize = 0
/** 16 bytes of ones, 16 of zeros. */
let masks: usize = 0

/** Where text in its form is written, and where it has to end. */
let settledAt: usize = 0
let settledMost: usize = 0
/** The next byte of it. */
let write: usize = 0
/** What of the text is written already. */
let read: usize = 0
/** The stretch that is asked for, or that was looked up last. */
let stretchAt: usize = 0
let stretchEnd: usize = 0

/** Room for the sets, all empty. False without memory. */
export function layForm(): bool {
  touched = reserve(SET_BYTES)
  firsts = reserve(SET_BYTES)
  known = reserve(<usize>64 << <usize>KNOWN_BITS)
  leads = reserve(BYTE_SET_BYTES)
  masks = reserve(32)
  if (touched == 0 || firsts == 0 || known == 0 || leads == 0 || masks == 0) return false
  memory.fill(touched, 0, SET_BYTES)
  memory.fill(firsts, 0, SET_BYTES)
  memory.fill(known, 0, <usize>64 << <usize>KNOWN_BITS)
  memory.fill(leads, 0, BYTE_SET_BYTES)
  memory.fill(masks, 0xff, 16)
  memory.fill(masks + 16, 0, 16)
  return true
}

/** Room for `bytes` of text in its form, and some that may be written behind them. */
export function laySettled(bytes: usize): bool {
  settledAt = reserve(bytes + 80)
  settledMost = settledAt + bytes
  return settledAt != 0
}

/** Puts code points in the set of touched ones, or of those that these may be joined to. */
export function markCharacters(first: u32, last: u32, isTouched: bool): void {
  const set = isTouched ? touched : firsts
  for (let point = first; point <= last; point++) {
    const at = set + <usize>(point >> 3)
    store<u8>(at, load<u8>(at) | (<u8>1 << <u8>(point & 7)))
    if (!isTouched) continue
    const lead: u32 = point < 0x800 ? 0xc0 | (point >> 6) : point < 0x1_0000 ? 0xe0 | (point >> 12) : 0xf0 | (point >> 18)
    addByte(leads, lead)
  }
}

// @ts-ignore: decorator
@inline
function isIn(set: usize, point: u32): bool {
  return ((load<u8>(set + <usize>(point >> 3)) >> <u8>(point & 7)) & 1) != 0
}

/** The first character in [at, end) that the form may touch, or `end`. No ASCII character is one. */
export function firstTouched(at: usize, end: usize): usize {
  const low = v128.load(leads)
  const high = v128.load(leads, 16)
  for (let from = at; from < end; from += 16) {
    const bytes = v128.load(from)
    if (i8x16.bitmask(bytes) == 0) continue
    for (let lanes = bytesIn(low, high, bytes); lanes != 0; lanes &= lanes - 1) {
      const here = from + <usize>ctz(lanes)
      if (here >= end) return end
      if (isIn(touched, codePointAt(here))) return here
    }
  }
  return end
}

/** The start of the last character in [at, end) that the form does not touch, or `at`. */
export function lastUntouched(at: usize, end: usize): usize {
  let here = end
  while (here > at) {
    here--
    if ((load<u8>(here) & 0xc0) == 0x80) continue
    if (!isIn(touched, codePointAt(here))) return here
  }
  return at
}

/** Begins with the text from `at` on, which stands behind nothing that it could be joined to. */
export function beginSettling(at: usize): void {
  read = at
  write = settledAt
}

/** Outcomes of `settle`. */
export const SETTLED: i32 = 0
export const ASKS: i32 = 1
export const NO_ROOM: i32 = 2

/**
 * Writes the text up to `end` in its form. ASKS: the stretch of `askedAddress` is not known; the host writes its form to
 * `answerAddress`, says `answer`, and this is called again.
 */
export function settle(end: usize): i32 {
  while (true) {
    const at = firstTouched(read, end)
    let start = at
    if (at < end && at > read) {
      do start--
      while ((load<u8>(start) & 0xc0) == 0x80)
      if (!isIn(firsts, codePointAt(start))) start = at
    }
    if (write + (start - read) > settledMost) return NO_ROOM
    copy(write, read, start - read)
    write += start - read
    read = start
    if (at == end) return SETTLED
    let next = at
    do {
      codePointAt(next)
      next += width
    } while (next < end && isIn(touched, codePointAt(next)))
    stretchAt = start
    stretchEnd = next
    // Its form has three times as many bytes at most.
    if (write + 3 * (next - start) > settledMost) return NO_ROOM
    if (next - start > STRETCH_BYTES_MAX) return ASKS
    const text = v128.and(v128.load(start), v128.load(masks + STRETCH_BYTES_MAX - (next - start)))
    const entry = entryOf(text)
    if (load<u8>(entry, 40) != <u8>(next - start) || v128.any_true(v128.xor(text, v128.load(entry)))) return ASKS
    v128.store(write, v128.load(entry, 16))
    store<u64>(write, load<u64>(entry, 32), 16)
    write += <usize>load<u8>(entry, 41)
    read = next
  }
}

// @ts-ignore: decorator
@inline
function entryOf(text: v128): usize {
  const hash = <u64>((i64x2.extract_lane(text, 0) * MIX_A) ^ (i64x2.extract_lane(text, 1) * MIX_B)) * MIX_A
  return known + (<usize>(hash >> (64 - KNOWN_BITS)) << 6)
}

/** Copies whole lanes: up to fifteen bytes behind the last one are overwritten. */
// @ts-ignore: decorator
@inline
function copy(to: usize, from: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 16) v128.store(to + i, v128.load(from + i))
}

export function askedAddress(): usize {
  return stretchAt
}
export function askedBytes(): u32 {
  return <u32>(stretchEnd - stretchAt)
}
export function answerAddress(): usize {
  return write
}

/** The host has written the form of what was asked for. Remembers it if both are short. */
export function answer(bytes: u32): void {
  const size = stretchEnd - stretchAt
  if (size <= STRETCH_BYTES_MAX && <usize>bytes <= CONTENT_BYTES_MAX) {
    const text = v128.and(v128.load(stretchAt), v128.load(masks + STRETCH_BYTES_MAX - size))
    const entry = entryOf(text)
    v128.store(entry, text)
    v128.store(entry, v128.load(write), 16)
    store<u64>(entry, load<u64>(write, 16), 32)
    store<u8>(entry, <u8>size, 40)
    store<u8>(entry, <u8>bytes, 41)
  }
  write += <usize>bytes
  read = stretchEnd
}

export function settledStart(): usize {
  return settledAt
}
export function settledEnd(): usize {
  return write
}
