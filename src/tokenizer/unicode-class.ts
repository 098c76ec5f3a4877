/** Unicode classes by the names that patterns use. A name without a table is refused by whoever asked. */
import { type CharRanges, unionOf } from "./char-set"
import type { ClassTable } from "./regex-syntax"
import * as ranges from "./unicode-ranges"

const tables: { readonly [name: string]: CharRanges } = {
  L: ranges.letters,
  Lu: ranges.upperCaseLetters,
  Ll: ranges.lowerCaseLetters,
  Lt: ranges.titleCaseLetters,
  Lm: ranges.modifierLetters,
  Lo: ranges.otherLetters,
  M: ranges.marks,
  N: ranges.numbers,
  Nd: ranges.decimalDigits,
  P: ranges.punctuation,
  S: ranges.symbols,
  Z: ranges.separators,
  C: ranges.others,
  White_Space: ranges.whiteSpace,
  Han: ranges.han,
  Hiragana: ranges.hiragana,
  Katakana: ranges.katakana,
  Hangul: ranges.hangul,
  /** `\w` of HF tokenizers' engine. */
  Word: ranges.wordCharacters,
  /** What the `Digits` and `Punctuation` pre-tokenizers and `WhitespaceSplit` look for. */
  Digits: ranges.digitsSplitOff,
  Punctuation: ranges.punctuationSplitOff,
  WhiteSpaceSplit: ranges.whiteSpaceSplitOff,
}

/** The table of a class, as probed from the reference engines; null for a class that was not probed. */
export const unicodeClass: ClassTable = (name) => {
  if (name === "LC" || name === "L&") return unionOf([tables.Lu!, tables.Ll!, tables.Lt!])
  return Object.hasOwn(tables, name) ? tables[name]! : null
}
