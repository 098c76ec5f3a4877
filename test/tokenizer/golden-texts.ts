/**
 * Texts that a seed decides, the same ones as `text_at` in scripts/tokenizer-golden.py makes: change both together, and
 * make the golden files again. Every script, combining marks, emoji, controls, unassigned and private code points, lone
 * surrogates, long runs, special tokens whole and cut, and heads of every length up to two blocks of 64.
 */
import pieces from "./golden/pieces.json"

/** mulberry32 in whole numbers, so that Python draws the same. */
export class Draw {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  private next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    const state = this.state
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  below(count: number): number {
    return this.next() % count
  }

  pick<T>(values: readonly T[]): T {
    return values[this.next() % values.length]!
  }
}

type Kind = (d: Draw) => string

/** `parts` times what `part` gives, one after another. */
function repeated(parts: number, part: () => string): string {
  let out = ""
  for (let i = 0; i < parts; i++) out += part()
  return out
}

function maybeGlue(d: Draw, oneIn: number): string {
  return d.below(oneIn) === 0 ? d.pick(pieces.glue) : ""
}

const words: Kind = (d) => {
  let out = d.pick(pieces.words)
  for (let left = d.below(8); left > 0; left--) {
    out += d.pick(pieces.separators)
    out += d.pick(pieces.words)
  }
  return out
}

const block: Kind = (d) => {
  const [first, count] = d.pick(pieces.blocks)
  return repeated(1 + d.below(12), () => {
    const blank = d.below(6) === 0 ? " " : ""
    return blank + String.fromCodePoint(first! + d.below(count!))
  })
}

const ascii: Kind = (d) => repeated(1 + d.below(24), () => String.fromCharCode(32 + d.below(95)))

const space: Kind = (d) =>
  repeated(1 + d.below(8), () => {
    const blank = d.pick(pieces.spaces)
    return blank + maybeGlue(d, 3)
  })

const combining: Kind = (d) =>
  repeated(1 + d.below(6), () => {
    const base = d.pick(pieces.bases)
    return base + repeated(d.below(4), () => d.pick(pieces.marks))
  })

const emoji: Kind = (d) =>
  repeated(1 + d.below(5), () => {
    const sign = d.pick(pieces.emoji)
    return sign + maybeGlue(d, 4)
  })

const anyPoint: Kind = (d) =>
  repeated(1 + d.below(8), () => {
    const point = d.below(2) === 0 ? d.below(0x110000) : d.below(0x3000)
    if (point >= 0xd800 && point < 0xe000) return "\udc00" // Alone, as no high one is ever made by itself.
    return d.below(40) === 0 ? "\udfff" : String.fromCodePoint(point)
  })

const runs: Kind = (d) =>
  repeated(1 + d.below(3), () => {
    const unit = d.pick(pieces.runUnits)
    return unit.repeat(1 + d.below(d.below(10) === 0 ? 300 : 20))
  })

const contractions: Kind = (d) =>
  repeated(1 + d.below(4), () => {
    const word = d.pick(pieces.words)
    const apostrophe = d.pick(pieces.apostrophes)
    const suffix = d.pick(pieces.suffixes)
    return word + apostrophe + suffix + d.pick(pieces.glue)
  })

const special: Kind = (d) =>
  repeated(1 + d.below(4), () => {
    const before = d.pick(pieces.glue)
    let token = d.pick(pieces.specials)
    if (d.below(6) === 0) token = token.slice(0, 1 + d.below(token.length))
    return before + token + d.pick(pieces.glue)
  })

const code: Kind = (d) => repeated(1 + d.below(6), () => d.pick(pieces.code))

const digits: Kind = (d) =>
  repeated(1 + d.below(3), () => {
    const before = d.pick(pieces.glue)
    const digit = (): string => (d.below(5) === 0 ? d.pick(pieces.digits) : String.fromCharCode(48 + d.below(10)))
    return before + repeated(1 + d.below(11), digit)
  })

const control: Kind = (d) =>
  repeated(1 + d.below(8), () => {
    const sign = d.pick(pieces.controls)
    return sign + maybeGlue(d, 3)
  })

const kinds: readonly Kind[] = [
  ...[words, block, ascii, space, combining, emoji, anyPoint, runs, contractions, special, code, digits, control],
]

/** Something after a head of any length up to two blocks of 64 and a bit, and something behind it. */
const padded: Kind = (d) => {
  const pad = d.pick(pieces.pads)
  const length = d.below(140)
  const head = pad.repeat(length).slice(0, length)
  const body = kinds[d.below(kinds.length)]!(d)
  return head + body + d.pick(pieces.glue)
}

/** Where the draws of number `i` under a seed begin; `salt` tells different uses of one seed apart. */
export function drawAt(seed: number, i: number, salt = 0): Draw {
  return new Draw((Math.imul(seed, 0x9e3779b1) + salt + i) >>> 0)
}

/** Text number `i` of a seed. May hold lone surrogates, which stand for U+FFFD. */
export function textAt(seed: number, i: number): string {
  const d = drawAt(seed, i)
  const kind = d.below(kinds.length + 2)
  if (kind >= kinds.length) return padded(d)
  let out = kinds[kind]!(d)
  if (d.below(4) === 0) {
    out += repeated(1 + d.below(2), () => {
      const glue = d.pick(pieces.glue)
      return glue + kinds[d.below(kinds.length)]!(d)
    })
  }
  return out
}

/** A part of a text, and whether special tokens count in it. */
export interface TextPart {
  readonly text: string
  readonly control: boolean
}

/** Some texts one after another, some of them cut in two; `segments_at` in the script. Lone surrogates are U+FFFD. */
export function segmentsAt(seed: number, i: number, textCount: number, mixes: boolean): readonly TextPart[] {
  const d = drawAt(seed, i, 0x2545f491)
  const parts: TextPart[] = []
  for (let left = 1 + d.below(4); left > 0; left--) {
    const points = Array.from(textAt(seed, d.below(textCount)).toWellFormed())
    const cut = d.below(2) === 0 ? d.below(points.length + 1) : points.length
    for (const part of [points.slice(0, cut), points.slice(cut)]) {
      const control = d.below(2) === 1
      parts.push({ text: part.join(""), control: control && mixes })
    }
  }
  return parts
}

const longUnits: readonly string[] = [
  ...["a", " ", "\n", "1", "漢", "!", "é", "\r\n", "\t", "a ", " a", "ab", "😀", "<", "\u0301", "e\u0301", "'s", "क्"],
  ...["Aa", "$1"],
]
const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** Texts that slow tokenizers down, about `length` code points each, by name: `long_texts` in the script. */
export function longTexts(length: number): Map<string, string> {
  const texts = new Map<string, string>()
  for (const unit of longUnits) {
    texts.set(JSON.stringify(unit), unit.repeat(Math.floor(length / Array.from(unit).length)))
  }
  const d = new Draw(length)
  const drawn = (char: () => string): string => repeated(length, char)
  texts.set(
    "base64",
    drawn(() => base64Digits[d.below(64)]!),
  )
  const ranges: readonly (readonly [string, number, number])[] = [
    ["letters", 97, 26],
    ["bytes", 0, 256],
    ["ideographs", 0x4e00, 20_902],
    ["kana", 0x3041, 86],
    ["punctuation", 33, 15],
  ]
  for (const [name, first, count] of ranges) {
    texts.set(
      name,
      drawn(() => String.fromCharCode(first + d.below(count))),
    )
  }
  return texts
}

/** FNV-1a over 32-bit numbers with a shift, folded to 16 bits; `hashed` in the script. */
export function hashOf(numbers: ArrayLike<number>): number {
  let state = 0x811c9dc5
  for (let i = 0; i < numbers.length; i++) {
    state = Math.imul(state ^ numbers[i]!, 0x01000193) >>> 0
    state = (state ^ (state >>> 15)) >>> 0
  }
  return (state ^ (state >>> 16)) & 0xffff
}

/** The hash of a text's code points; a lone surrogate counts as U+FFFD. */
export function textHash(text: string): number {
  return hashOf(Array.from(text.toWellFormed(), (char) => char.codePointAt(0)!))
}

/** 16-bit hashes as the golden files hold them. */
export function unpackHashes(base64: string): Uint16Array {
  const bytes = Buffer.from(base64, "base64")
  return new Uint16Array(bytes.length / 2).map((_, i) => bytes[2 * i]! | (bytes[2 * i + 1]! << 8))
}
