/**
 * The exact scanners: from the start of a piece to its end, one function per family of split patterns. A piece depends
 * on nothing before it, so any piece's start is a place to begin. They decide wherever the block scanner does not.
 */
import { blankIsSpace, jointBefore } from "./vocabulary"
import {
  classAt,
  codePointAt,
  END,
  LETTER,
  LOWER,
  MARK,
  NUMBER,
  OTHER_LETTER,
  PUNCT,
  SPACE,
  UPPER,
  width,
} from "./unicode"

/** Split patterns; the host knows the same numbers (bpe-core.ts). */
export const WHOLE: i32 = 0
export const GPT2: i32 = 1
export const CL100K: i32 = 2
export const QWEN2: i32 = 3
export const QWEN35: i32 = 4
export const O200K: i32 = 5
export const TEKKEN: i32 = 6
export const DEEPSEEK3: i32 = 7
/** Not a pattern: WHOLE, cut where no merge can cross. */
export const BLANKS: i32 = 8
export const GPT2_DIGITS: i32 = 9

/** The end of the piece that starts at `at` (before `end`), which is the end of the text or of what is known of it. */
// @ts-ignore: decorator
@inline
export function pieceEnd(family: i32, at: usize, end: usize): usize {
  switch (family) {
    case GPT2:
      return gpt2(at, end)
    case CL100K:
      return words(at, end, 3, LETTER, true)
    case QWEN2:
      return words(at, end, 1, LETTER, true)
    case QWEN35:
      return words(at, end, 1, LETTER | MARK, true)
    case O200K:
      return cased(at, end, 3, true)
    case TEKKEN:
      return cased(at, end, 1, false)
    case DEEPSEEK3:
      return deepseek3(at, end)
    case GPT2_DIGITS:
      return gpt2Digits(at, end)
    case BLANKS:
      return nextBlank(at, end)
  }
  // Nothing but the whole text: its end must have been seen.
  classAt(end, end)
  return end
}

/** The next blank behind `at` that no merge joins to what stands before it. */
function nextBlank(at: usize, end: usize): usize {
  const lead = i8x16.splat(blankIsSpace ? <i8>0x20 : <i8>0xe2)
  const size: usize = blankIsSpace ? 1 : 3
  // Sixteen bytes at a time; what is read behind the text does not count.
  for (let from = at + 1; from < end; from += 16) {
    let found = <u32>i8x16.bitmask(i8x16.eq(v128.load(from), lead))
    while (found != 0) {
      const here = from + <usize>ctz(found)
      found &= found - 1
      if (here + size > end) break
      if (!blankIsSpace && (load<u8>(here, 1) != 0x96 || load<u8>(here, 2) != 0x81)) continue
      if (load<u8>(jointBefore + <usize>load<u8>(here - 1)) == 0) return here
    }
  }
  classAt(end, end)
  return end
}

/** Past the characters of the classes. */
function past(at: usize, end: usize, classes: u32): usize {
  while ((classAt(at, end) & classes) != 0) at += width
  return at
}

/** Past the characters of none of the classes. */
function pastOthers(at: usize, end: usize, classes: u32): usize {
  while ((classAt(at, end) & (classes | END)) == 0) at += width
  return at
}

function isBreak(at: usize, end: usize): bool {
  if (classAt(at, end) == END) return false
  const byte = load<u8>(at)
  return byte == 0x0a || byte == 0x0d
}

/** Bytes of `s t m d re ve ll` at `at`, 0 if none. Without case `ſ` is an `s` too (Unicode's simple case folding). */
function contraction(at: usize, end: usize, anyCase: bool): usize {
  if (classAt(at, end) == END) return 0
  let first: u32 = load<u8>(at)
  if (first == 0xc5) return anyCase && load<u8>(at, 1) == 0xbf ? 2 : 0
  if (anyCase && first >= 0x41 && first <= 0x5a) first |= 0x20
  if (first == 0x73 || first == 0x74 || first == 0x6d || first == 0x64) return 1
  if (first != 0x72 && first != 0x76 && first != 0x6c) return 0
  if (classAt(at + 1, end) == END) return 0
  let second: u32 = load<u8>(at, 1)
  if (anyCase && second >= 0x41 && second <= 0x5a) second |= 0x20
  return second == (first == 0x6c ? 0x6c : 0x65) ? 2 : 0
}

function digits(at: usize, end: usize, most: u32): usize {
  for (let count: u32 = 0; count < most && (classAt(at, end) & NUMBER) != 0; count++) at += width
  return at
}

/** `\s*[\r\n]+|\s+(?!\S)|\s+`; without `breaks` only the last two. */
function spaces(at: usize, end: usize, breaks: bool): usize {
  let last = at
  let behindBreak: usize = 0
  let next = at
  while ((classAt(next, end) & SPACE) != 0) {
    last = next
    const byte = load<u8>(next)
    next += width
    if (byte == 0x0a || byte == 0x0d) behindBreak = next
  }
  if (breaks && behindBreak != 0) return behindBreak
  if (next == end || last == at) return next
  return last
}

/** `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` */
function gpt2(at: usize, end: usize): usize {
  const first = load<u8>(at)
  if (first == 0x27) {
    const suffix = contraction(at + 1, end, false)
    if (suffix != 0) return at + 1 + suffix
  }
  const next = first == 0x20 ? at + 1 : at
  const found = classAt(next, end)
  if ((found & LETTER) != 0) return past(next, end, LETTER)
  if ((found & NUMBER) != 0) return past(next, end, NUMBER)
  if ((found & (SPACE | END)) == 0) return pastOthers(next, end, SPACE | LETTER | NUMBER)
  return spaces(at, end, false)
}

/**
 * Two steps: each digit is cut out, then GPT-2's pattern in each part, whose ends are like ends of text. Digits are N
 * and what newer Unicode calls so (the `Digits` pre-tokenizer knows a newer version than the patterns do).
 */
function gpt2Digits(at: usize, end: usize): usize {
  if (classApart(at, end) == END) {
    classAt(at, end)
    return at + width
  }
  const first = load<u8>(at)
  if (first == 0x27) {
    const suffix = contraction(at + 1, end, false)
    if (suffix != 0) return at + 1 + suffix
  }
  let next = first == 0x20 ? at + 1 : at
  const found = classApart(next, end)
  if ((found & LETTER) != 0) {
    while ((classApart(next, end) & LETTER) != 0) next += width
    return next
  }
  if ((found & (SPACE | END)) == 0) {
    while ((classApart(next, end) & (SPACE | LETTER | END)) == 0) next += width
    return next
  }
  let last = at
  next = at
  while ((classApart(next, end) & SPACE) != 0) {
    last = next
    next += width
  }
  return classApart(next, end) == END || last == at ? next : last
}

/** The class, with END at digits. */
function classApart(at: usize, end: usize): u32 {
  const found = classAt(at, end)
  if ((found & (END | NUMBER)) != 0) return END
  return width == 4 && isNewDigit(codePointAt(at)) ? END : found
}

/** Digits that the patterns' Unicode version does not have (checked in unicode-classes.ts). All of them take four bytes. */
function isNewDigit(point: u32): bool {
  return (point >= 0x11de0 && point <= 0x11de9) || (point >= 0x16ff4 && point <= 0x16ff6)
}

/**
 * `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
 * `letters` is L, or L and M: then no mark is punctuation either.
 */
function words(at: usize, end: usize, digitsMost: u32, letters: u32, contractions: bool): usize {
  const first = load<u8>(at)
  if (contractions && first == 0x27) {
    const suffix = contraction(at + 1, end, true)
    if (suffix != 0) return at + 1 + suffix
  }
  const found = classAt(at, end)
  const behind = at + width
  if ((found & letters) != 0) return past(behind, end, letters)
  if ((found & NUMBER) != 0) return digits(at, end, digitsMost)
  if (first != 0x0a && first != 0x0d && (classAt(behind, end) & letters) != 0) return past(behind, end, letters)
  const next = first == 0x20 ? at + 1 : at
  if ((classAt(next, end) & (SPACE | letters | NUMBER | END)) == 0) {
    let rest = pastOthers(next, end, SPACE | letters | NUMBER)
    while (isBreak(rest, end)) rest++
    return rest
  }
  return spaces(at, end, true)
}

/**
 * Words by case: `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|…)?`, the same
 * with `…+…*`, then `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`.
 */
function cased(at: usize, end: usize, digitsMost: u32, contractions: bool): usize {
  const first = load<u8>(at)
  const found = classAt(at, end)
  const behind = at + width
  let wordEnd: usize = 0
  if ((found & LETTER) != 0) {
    wordEnd = lowerEnded(at, end)
    if (wordEnd == 0) wordEnd = past(at, end, UPPER | OTHER_LETTER | MARK)
  } else if ((found & NUMBER) != 0) {
    return digits(at, end, digitsMost)
  } else if (first != 0x0a && first != 0x0d) {
    wordEnd = lowerEnded(behind, end)
    // A mark is a word by itself.
    if (wordEnd == 0 && (found & MARK) != 0) wordEnd = lowerEnded(at, end)
    if (wordEnd == 0 && (classAt(behind, end) & UPPER) != 0) wordEnd = past(behind, end, UPPER)
  }
  if (wordEnd != 0) {
    if (contractions && classAt(wordEnd, end) != END && load<u8>(wordEnd) == 0x27) {
      const suffix = contraction(wordEnd + 1, end, true)
      if (suffix != 0) wordEnd += 1 + suffix
    }
    return wordEnd
  }
  const next = first == 0x20 ? at + 1 : at
  if ((classAt(next, end) & (SPACE | LETTER | NUMBER | END)) == 0) {
    let rest = pastOthers(next, end, SPACE | LETTER | NUMBER)
    while (isBreak(rest, end) || (classAt(rest, end) != END && load<u8>(rest) == 0x2f)) rest++
    return rest
  }
  return spaces(at, end, true)
}

/**
 * `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` from `at`: its end, or 0. Where no small letter follows
 * the first run, the run gives back up to its last character that may be either.
 */
function lowerEnded(at: usize, end: usize): usize {
  let either: usize = 0
  let next = at
  while (true) {
    const found = classAt(next, end)
    if ((found & (UPPER | OTHER_LETTER | MARK)) == 0) {
      if ((found & LOWER) != 0) return past(next, end, LOWER | OTHER_LETTER | MARK)
      return either
    }
    next += width
    if ((found & (OTHER_LETTER | MARK)) != 0) either = next
  }
  return 0
}

/** `[一-龥぀-ゟ゠-ヿ]`, which is cut out before words are looked for. */
// @ts-ignore: decorator
@inline
function isCjk(point: u32): bool {
  return (point >= 0x4e00 && point <= 0x9fa5) || (point >= 0x3040 && point <= 0x30ff)
}

/**
 * Three steps: `\p{N}{1,3}` are cut out, then runs of CJK, then
 * `[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` in each part,
 * whose ends are like ends of text. What matches nothing is a piece up to the next match.
 */
function deepseek3(at: usize, end: usize): usize {
  const found = classAt(at, end)
  if ((found & NUMBER) != 0) return digits(at, end, 3)
  const cjk = isCjk(codePointAt(at))
  const matched = deepseekMatch(at, end, cjk)
  if (matched != at) return matched
  let next = at
  do {
    partClass(next, end, cjk)
    next += width
    if (partClass(next, end, cjk) == END) return next
  } while (deepseekMatch(next, end, cjk) == next)
  return next
}

/** The class, with END at the end of the part: at numbers, and where CJK starts or ends. */
function partClass(at: usize, end: usize, cjk: bool): u32 {
  const found = classAt(at, end)
  if (found == END) return END
  if ((found & NUMBER) != 0) return END
  return isCjk(codePointAt(at)) == cjk ? found : END
}

/** The end of the match at `at`, or `at` when there is none. */
function deepseekMatch(at: usize, end: usize, cjk: bool): usize {
  const first: u32 = load<u8>(at)
  const found = partClass(at, end, cjk)
  const behind = at + width
  if (first < 0x80 && (found & PUNCT) != 0) {
    let letters = behind
    while (partClass(letters, end, cjk) != END && isAsciiLetter(load<u8>(letters))) letters++
    if (letters != behind) return letters
  }
  if ((found & (LETTER | MARK)) != 0) return pastPart(behind, end, cjk, LETTER | MARK)
  if (first != 0x0a && first != 0x0d && (found & PUNCT) == 0) {
    const letters = pastPart(behind, end, cjk, LETTER | MARK)
    if (letters != behind) return letters
  }
  const next = first == 0x20 ? at + 1 : at
  let rest = pastPart(next, end, cjk, PUNCT)
  if (rest != next) {
    while (isBreak(rest, end)) rest++
    return rest
  }
  if ((found & SPACE) == 0) return at
  let last = at
  let behindBreak: usize = 0
  let space = at
  while ((partClass(space, end, cjk) & SPACE) != 0) {
    last = space
    const byte = load<u8>(space)
    space += width
    if (byte == 0x0a || byte == 0x0d) behindBreak = space
  }
  if (behindBreak != 0) return behindBreak
  if (last == at || partClass(space, end, cjk) == END) return space
  return last
}

function pastPart(at: usize, end: usize, cjk: bool, classes: u32): usize {
  while ((partClass(at, end, cjk) & classes) != 0) at += width
  return at
}

function isAsciiLetter(byte: u32): bool {
  const small = byte | 0x20
  return small >= 0x61 && small <= 0x7a
}
