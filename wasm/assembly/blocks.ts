/**
 * The fast road: 64 bytes at a time, starting where a piece starts. SIMD compares give a bit a byte for each class of
 * ASCII character; shifts of these masks give a bit for each byte where a piece starts.
 *
 * Characters of several bytes have their class bit at each byte, where they are letters or punctuation.
 *
 * Only what the block shows is believed. Behind the first character of another kind, or at the block's edge, where a
 * rule would look further than the block, and at the few rules that masks do not follow, start bits are not used: the
 * next block begins at the last start that is sure, and where there is none but the first the exact scanner (scan.ts) takes
 * one piece. A piece depends on nothing before it, so no state goes from block to block.
 */
import { CL100K, DEEPSEEK3, GPT2, GPT2_DIGITS, O200K, pieceEnd, QWEN2, QWEN35, TEKKEN } from "./scan"
import { classOf, clearSawEnd, LETTER, MARK, NUMBER, OTHER_LETTER, sawEnd, SPACE, UPPER } from "./unicode"
import { jointBefore } from "./vocabulary"
import { encodePiece } from "./words"

/** Where the last call stopped. */
export let blocksReached: usize = 0

/** What `foreignMasks` makes of a combining mark. */
const MARKS_END: i32 = 0
const MARKS_ARE_LETTERS: i32 = 1
const MARKS_ARE_OTHERS: i32 = 2
/** The same, and characters of four bytes end the masks. */
const SHORT_OTHERS: i32 = 3

/** What `foreignMasks` found: a bit for each byte of each character. */
let foreignLetters: u64 = 0
let foreignUpper: u64 = 0
/** Letters without case. */
let foreignCaseless: u64 = 0
/** Punctuation, symbols, controls. */
let foreignOthers: u64 = 0
/** Their bytes but the first. */
let foreignTails: u64 = 0
/** How far the masks are right: up to a character of another kind, or one that is not whole. */
let foreignSize: u32 = 0

/** The masks of the characters that are not ASCII, whose bytes are the bits of `foreign`, in the first `size` bytes. */
function foreignMasks(at: usize, foreign: u64, size: u32, marks: i32): void {
  let letters: u64 = 0
  let upper: u64 = 0
  let caseless: u64 = 0
  let others: u64 = 0
  let tails: u64 = 0
  while (foreign != 0) {
    const i = <u32>ctz(foreign)
    if (i >= size) break
    const here = at + i
    const lead: u32 = load<u8>(here)
    let point: u32
    let bytes: u32
    if (lead < 0xe0) {
      bytes = 2
      point = ((lead & 31) << 6) | (load<u8>(here, 1) & 63)
    } else if (lead < 0xf0) {
      bytes = 3
      point = ((lead & 15) << 12) | ((load<u8>(here, 1) & 63) << 6) | (load<u8>(here, 2) & 63)
    } else {
      bytes = 4
      point =
        ((lead & 7) << 18) | ((load<u8>(here, 1) & 63) << 12) | ((load<u8>(here, 2) & 63) << 6) | (load<u8>(here, 3) & 63)
    }
    if (i + bytes > size || (bytes == 4 && marks == SHORT_OTHERS)) {
      size = i
      break
    }
    const bits = (((<u64>1 << bytes) - 1) << i)
    let found = classOf(point)
    if ((found & MARK) != 0) {
      if (marks == MARKS_END) found = SPACE
      else if (marks == MARKS_ARE_LETTERS) found = OTHER_LETTER
    }
    if ((found & LETTER) != 0) {
      // `ſ` is an `s` in contractions.
      if (point == 0x17f) {
        size = i
        break
      }
      letters |= bits
      if ((found & UPPER) != 0) upper |= bits
      if ((found & OTHER_LETTER) != 0) caseless |= bits
    } else if ((found & (SPACE | NUMBER)) == 0) {
      others |= bits
      tails |= bits & (bits << 1)
    } else {
      size = i
      break
    }
    foreign &= ~bits
  }
  foreignLetters = letters
  foreignUpper = upper
  foreignCaseless = caseless
  foreignOthers = others
  foreignTails = tails
  foreignSize = size
}

// @ts-ignore: decorator
@inline
function bitsOf(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | ((<u32>i8x16.bitmask(b)) << 16)) |
    (<u64>(<u32>i8x16.bitmask(c) | ((<u32>i8x16.bitmask(d)) << 16)) << 32)
  )
}

/** Lanes that equal the byte. */
// @ts-ignore: decorator
@inline
function equal(a: v128, b: v128, c: v128, d: v128, byte: i8): u64 {
  const to = i8x16.splat(byte)
  return bitsOf(i8x16.eq(a, to), i8x16.eq(b, to), i8x16.eq(c, to), i8x16.eq(d, to))
}

/**
 * Lanes from `first` to `last`, for lanes that are ASCII: adding moves `last` to 127, so that what is above wraps to
 * negative numbers and one signed comparison is enough.
 */
// @ts-ignore: decorator
@inline
function within(a: v128, b: v128, c: v128, d: v128, first: i32, last: i32): u64 {
  const move = i8x16.splat(<i8>(127 - last))
  const below = i8x16.splat(<i8>(first - 1 + 127 - last))
  return bitsOf(
    i8x16.gt_s(i8x16.add(a, move), below),
    i8x16.gt_s(i8x16.add(b, move), below),
    i8x16.gt_s(i8x16.add(c, move), below),
    i8x16.gt_s(i8x16.add(d, move), below),
  )
}

/** Bits from the first bit of each run of `runs` that begins at a bit of `starts`, to the run's end. */
// @ts-ignore: decorator
@inline
function runsFrom(runs: u64, starts: u64): u64 {
  return runs & ~(runs + starts)
}

/** `s t m d re ve ll` at `at` where a letter is known to stand: its bytes, or 0. */
// @ts-ignore: decorator
@inline
function contractionBytes(at: usize, anyCase: bool): u32 {
  const two: u32 = anyCase ? load<u16>(at) | 0x2020 : load<u16>(at)
  const first = two & 0xff
  if (first == 0x73 || first == 0x74 || first == 0x6d || first == 0x64) return 1
  if (two == 0x6572 || two == 0x6576 || two == 0x6c6c) return 2
  return 0
}

/** The tables' road for pieces of the scalar scanner: not inlined, so that the block loops stay small. */
function encodeOne(at: usize, length: u32, out: usize): usize {
  return encodePiece(at, length, out)
}

/**
 * Encodes [at, end) and gives the address behind the ids; `blocksReached` says how far it came. Stops once `out` is past
 * `outEnd`. `family` is a constant, so each exported function below is this with one family's rules only: the engine's
 * best compiler takes small functions soon, large ones late.
 */
// @ts-ignore: decorator
@inline
function encodeBlocks(family: i32, at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  const cased = family == O200K || family == TEKKEN
  while (at < end && out <= outEnd) {
    const known = <u32>min<usize>(end - at, 0x7fff_ffff)
    const a = v128.load(at)
    const b = v128.load(at, 16)
    const c = v128.load(at, 32)
    const d = v128.load(at, 48)
    const foreign = bitsOf(a, b, c, d)
    let size = min<u32>(64, known)
    let wide = false
    if (foreign != 0 && <u32>ctz(foreign) < size) {
      if (family == DEEPSEEK3) {
        size = <u32>ctz(foreign)
      } else {
        let marks = cased ? MARKS_END : family == QWEN35 ? MARKS_ARE_LETTERS : MARKS_ARE_OTHERS
        if (family == GPT2_DIGITS) marks = SHORT_OTHERS
        foreignMasks(at, foreign, size, marks)
        size = foreignSize
        wide = true
      }
    }
    let sure: u64 = 0
    let starts: u64 = 1
    const atEnd = final && size == known
    if (size > 1 || atEnd) {
      const inside: u64 = ~(<u64>0) >> (64 - <u64>size)
      const small = i8x16.splat(0x20)
      const ascii = inside & ~foreign
      let letters = ascii & within(v128.or(a, small), v128.or(b, small), v128.or(c, small), v128.or(d, small), 0x61, 0x7a)
      const numbers = ascii & within(a, b, c, d, 0x30, 0x39)
      const blanks = inside & equal(a, b, c, d, 0x20)
      const spaces = ascii & (within(a, b, c, d, 0x09, 0x0d) | blanks)
      let tails: u64 = 0
      if (wide) {
        letters |= inside & foreignLetters
        tails = inside & foreignTails
      }
      const others = inside & ~(letters | numbers | spaces)
      const quotes = inside & equal(a, b, c, d, 0x27)

      // A start at i depends on what stands up to i + 1.
      sure = atEnd ? inside : inside >> 1
      const letterRuns = letters & ~(letters << 1)
      const otherRuns = others & ~(others << 1)
      const alone = otherRuns & ~(blanks << 1)

      if (family == GPT2 || family == GPT2_DIGITS) {
        starts |= (letterRuns & ~(blanks << 1)) | alone
        if (family == GPT2) {
          starts |= numbers & ~(numbers << 1) & ~(blanks << 1)
          starts |= spaces & (~(spaces << 1) | ((letters | numbers | others) >> 1))
        } else {
          starts |= numbers | (spaces & (~(spaces << 1) | ((letters | others) >> 1)))
        }
        let quoted = quotes & alone & (letters >> 1)
        while (quoted != 0) {
          const i = <u32>ctz(quoted)
          quoted &= quoted - 1
          const suffix = contractionBytes(at + i + 1, false)
          if (suffix == 0 || i + 1 + suffix > known) continue
          starts &= ~(<u64>2 << i)
          if (i + suffix < 63) starts |= (<u64>2 << (i + suffix)) & letters
        }
        // The last letters of a contraction may lie behind the window.
        if (!final && known < 68) sure >>= 3
      } else {
        const breaks = inside & (equal(a, b, c, d, 0x0a) | equal(a, b, c, d, 0x0d))
        // Line breaks behind punctuation belong to it.
        const taken = runsFrom(breaks, (others << 1) & breaks)
        const freeSpaces = spaces & ~taken
        const freeBreaks = breaks & ~taken
        const gaps = freeSpaces & ~freeBreaks
        // One punctuation character without a blank before it goes with the letters behind it.
        const behindAlone = alone << 1
        // Behind a character of several bytes: the sum carries past its tail.
        const joined = (behindAlone | (tails + (behindAlone & tails))) & ~tails & letters
        starts |= alone | (letterRuns & ~(gaps << 1) & ~joined)
        // White space: a run's start, what follows its last line break, and its last character before a word.
        let behindBreaks = gaps & (freeBreaks << 1)
        const sum = gaps + behindBreaks
        const gapEnds = sum & ~gaps
        if ((gapEnds & freeBreaks) != 0) {
          // Another line break follows: that one is not the last. Seldom, so the exact scanner does it.
          sure &= (behindBreaks & -behindBreaks) - 1
        } else if (!atEnd && (sum < gaps || (gapEnds & ~inside) != 0)) {
          // The block ends before it is known whether another line break follows.
          behindBreaks &= ~(<u64>1 << (63 - clz(behindBreaks)))
        }
        starts |= (freeSpaces & ~(freeSpaces << 1)) | behindBreaks
        // Numbers are cut out before words in DeepSeek's pattern: white space before them is at the end of its part.
        starts |= gaps & ((family == DEEPSEEK3 ? letters | others : letters | numbers | others) >> 1)
        if (family == QWEN2 || family == QWEN35 || family == TEKKEN) {
          starts |= numbers
        } else {
          let threes = numbers & ~(numbers << 1)
          starts |= threes
          const fourth = numbers & (numbers << 1) & (numbers << 2) & (numbers << 3)
          if (fourth != 0) {
            for (threes = (threes << 3) & fourth; threes != 0; threes = (threes << 3) & fourth) starts |= threes
          }
        }
        if (cased) {
          let upper = ascii & within(a, b, c, d, 0x41, 0x5a)
          if (wide) {
            upper |= inside & foreignUpper
            const caseless = inside & foreignCaseless
            // A capital behind a letter without case starts a word if no small one follows: left to the exact scanner.
            const doubtful = upper & (caseless << 1)
            sure &= (doubtful & -doubtful) - 1
            starts |= upper & ((letters & ~upper & ~caseless) << 1)
          } else {
            starts |= upper & ((letters & ~upper) << 1)
          }
          // Slashes behind the line breaks behind punctuation belong to it too. Seldom: left to the exact scanner.
          let slashes = (taken << 1) & others
          while (slashes != 0) {
            if (load<u8>(at + <usize>ctz(slashes)) == 0x2f) {
              sure &= (slashes & -slashes) - 1
              break
            }
            slashes &= slashes - 1
          }
        }
        if (family == O200K) {
          let quoted = quotes & (letters << 1) & (letters >> 1)
          let behind: u32 = 0
          while (quoted != 0) {
            const i = <u32>ctz(quoted)
            quoted &= quoted - 1
            // A word takes one contraction; the next one starts a word.
            if (i == behind) continue
            const suffix = contractionBytes(at + i + 1, true)
            if (suffix == 0 || i + 1 + suffix > known) continue
            behind = i + 1 + suffix
            // Neither the apostrophe nor a capital second letter starts anything.
            starts &= ~((suffix == 2 ? <u64>5 : <u64>1) << i)
            if (behind < 64) starts |= (<u64>1 << behind) & letters
          }
          if (!final && known < 68) sure >>= 3
        }
        if (family == CL100K || family == QWEN2 || family == QWEN35) {
          let quoted = quotes & alone & (letters >> 1)
          while (quoted != 0) {
            const i = <u32>ctz(quoted)
            quoted &= quoted - 1
            const suffix = contractionBytes(at + i + 1, true)
            if (suffix == 0 || i + 1 + suffix >= 64) continue
            starts |= (<u64>1 << (i + 1 + suffix)) & letters
          }
        }
        if (family == DEEPSEEK3) {
          // Controls match nothing by themselves: left to the exact scanner. (Without any, 0 - 1 has all bits.)
          const controls = others & ~within(a, b, c, d, 0x21, 0x7e)
          sure &= (controls & -controls) - 1
        }
      }
    }
    starts &= sure
    let from: u32 = 0
    for (let rest = starts & ~(<u64>1); rest != 0; rest &= rest - 1) {
      const to = <u32>ctz(rest)
      out = encodePiece(at + from, to - from, out)
      from = to
    }
    if (atEnd && sure == ~(<u64>0) >> (64 - <u64>size)) {
      out = encodePiece(at + from, size - from, out)
      at += size
      continue
    }
    at += from
    if (from != 0) continue
    // Nothing sure: one piece by the exact scanner.
    clearSawEnd()
    const next = pieceEnd(family, at, end)
    if (sawEnd && !final) break
    out = encodeOne(at, <u32>(next - at), out)
    at = next
  }
  blocksReached = at
  return out
}

export function encodeGpt2(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(GPT2, at, end, final, out, outEnd)
}
export function encodeGpt2Digits(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(GPT2_DIGITS, at, end, final, out, outEnd)
}
export function encodeCl100k(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(CL100K, at, end, final, out, outEnd)
}
export function encodeQwen2(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(QWEN2, at, end, final, out, outEnd)
}
export function encodeQwen35(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(QWEN35, at, end, final, out, outEnd)
}
export function encodeO200k(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(O200K, at, end, final, out, outEnd)
}
export function encodeTekken(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(TEKKEN, at, end, final, out, outEnd)
}
export function encodeDeepseek3(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  return encodeBlocks(DEEPSEEK3, at, end, final, out, outEnd)
}

/** A text of words that begin with a blank, of a vocabulary that spells blanks as themselves. */
export function encodeBlanks(at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  let from = at
  for (let block = at; block < end && out <= outEnd; block += 64) {
    const bits = equal(v128.load(block), v128.load(block, 16), v128.load(block, 32), v128.load(block, 48), 0x20)
    const size = min<usize>(64, end - block)
    let starts = bits & (~(<u64>0) >> (64 - <u64>size))
    if (block == at) starts &= ~(<u64>1)
    for (; starts != 0; starts &= starts - 1) {
      const here = block + <usize>ctz(starts)
      if (load<u8>(jointBefore + <usize>load<u8>(here - 1)) != 0) continue
      out = encodePiece(from, <u32>(here - from), out)
      from = here
    }
  }
  if (final && from < end && out <= outEnd) {
    out = encodeOne(from, <u32>(end - from), out)
    from = end
  }
  blocksReached = from
  return out
}
