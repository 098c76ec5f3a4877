import {
  digitsSplitOff,
  han,
  letters,
  lowerCaseLetters,
  marks,
  modifierLetters,
  numbers,
  otherLetters,
  punctuation,
  symbols,
  titleCaseLetters,
  upperCaseLetters,
  whiteSpace,
} from "./unicode-ranges"

/** Bits of a class entry, as wasm/assembly/unicode.ts reads them. */
const classes: readonly (readonly [Uint32Array, number])[] = [
  [upperCaseLetters, 1],
  [titleCaseLetters, 1],
  [lowerCaseLetters, 2],
  [modifierLetters, 4],
  [otherLetters, 4],
  [marks, 8],
  [numbers, 16],
  [punctuation, 32],
  [symbols, 32],
  [whiteSpace, 64],
  [han, 128],
]

const blockCount = 0x110000 >> 8
let packed: Uint8Array | null = null

/**
 * The classes of all code points as WebAssembly reads them: for each block of 256 code points the number of its entries
 * (4352 × u16, little end first), then the entries, a byte a code point, equal blocks once. Made on first use, then shared.
 */
export function unicodeClasses(): Uint8Array {
  packed ??= packClasses()
  return packed
}

function packClasses(): Uint8Array {
  const entries = new Uint8Array(0x110000)
  for (const [ranges, bit] of classes) {
    for (let i = 0; i < ranges.length; i += 2) {
      for (let point = ranges[i]!; point <= ranges[i + 1]!; point++) entries[point]! |= bit
    }
  }
  checkLetters(entries)
  checkDigits(entries)
  const blockOf = new Uint16Array(blockCount)
  const blocks: Uint8Array[] = []
  const known = new Map<string, number>()
  for (let block = 0; block < blockCount; block++) {
    const of = entries.subarray(block << 8, (block + 1) << 8)
    const key = isUniform(of) ? String(of[0]) : of.join()
    let at = known.get(key)
    if (at === undefined) {
      at = blocks.push(of) - 1
      known.set(key, at)
    }
    blockOf[block] = at
  }
  const result = new Uint8Array(blockCount * 2 + blocks.length * 256)
  const view = new DataView(result.buffer)
  blockOf.forEach((at, block) => {
    view.setUint16(block * 2, at, true)
  })
  blocks.forEach((of, at) => {
    result.set(of, blockCount * 2 + at * 256)
  })
  return result
}

/** The digits that `gpt2_digits` knows beside N (wasm/assembly/scan.ts, `isNewDigit`). */
const newDigits: readonly (readonly [number, number])[] = [
  [0x11de0, 0x11de9],
  [0x16ff4, 0x16ff6],
]

function checkDigits(entries: Uint8Array): void {
  let count = 0
  for (let i = 0; i < digitsSplitOff.length; i += 2) {
    for (let point = digitsSplitOff[i]!; point <= digitsSplitOff[i + 1]!; point++) {
      if ((entries[point]! & 16) !== 0) continue
      count += 1
      if (!newDigits.some(([first, last]) => point >= first && point <= last)) {
        throw new Error(`the digit ${point.toString(16)} is not known to the scanner`)
      }
    }
  }
  if (count !== newDigits.reduce((sum, [first, last]) => sum + last - first + 1, 0)) {
    throw new Error("a digit of the scanner is none in the tables")
  }
}

/** `\p{L}` is nothing but its five kinds; the scanners rely on that. */
function checkLetters(entries: Uint8Array): void {
  for (let i = 0; i < letters.length; i += 2) {
    for (let point = letters[i]!; point <= letters[i + 1]!; point++) {
      if ((entries[point]! & 7) === 0) throw new Error(`the letter ${point.toString(16)} is of no kind`)
    }
  }
}

function isUniform(block: Uint8Array): boolean {
  for (let i = 1; i < 256; i++) if (block[i] !== block[0]) return false
  return true
}
