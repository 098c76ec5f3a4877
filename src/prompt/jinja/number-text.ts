/** Numbers in texts, as Python reads them. */
import { strip } from "./whitespace"

const radixDigits = "0123456789abcdefghijklmnopqrstuvwxyz"
const radixPrefixes: { readonly [base: number]: RegExp } = { 2: /^0[bB]/, 8: /^0[oO]/, 16: /^0[xX]/ }

/** Digits of an integer that Python reads and prints at most. In bases that are powers of two it reads more, unlike us. */
export const integerDigitsMax = 4300

/** Python's `int(text, base)`, or null when it is none. */
export function readInteger(spelling: string, base: number): bigint | null {
  const [, sign = "", body = ""] = /^([-+]?)(.*)$/s.exec(strip(spelling, null, "both")) ?? []
  let radix = base
  let digits = body.toLowerCase()
  for (const [each, prefix] of Object.entries(radixPrefixes)) {
    if ((base === 0 || base === Number(each)) && prefix.test(digits)) {
      radix = Number(each)
      digits = digits.replace(prefix, "").replace(/^_/, "")
      break
    }
  }
  if (radix === 0) {
    if (/^0[0_]*[1-9]/.test(digits)) return null
    radix = 10
  }
  if (!/^[^_]+(?:_[^_]+)*$/.test(digits)) return null
  const bare = digits.replaceAll("_", "")
  if (bare.length > integerDigitsMax) return null
  let value = 0n
  if (radix === 10) {
    const plain = asciiDigits(bare)
    if (!/^\d+$/.test(plain)) return null
    value = BigInt(plain)
  } else {
    for (const char of bare) {
      const digit = radixDigits.indexOf(char)
      if (digit < 0 || digit >= radix) return null
      value = value * BigInt(radix) + BigInt(digit)
    }
  }
  return sign === "-" ? -value : value
}

/** Decimal digits of other scripts as ASCII ones: Python reads them all. */
function asciiDigits(digits: string): string {
  return digits.replace(/[^\0-\x7f]/gu, (char) => {
    if (!/\p{Nd}/u.test(char)) return char
    // Each script's ten digits stand together, and begin behind a code point that is no digit.
    let zero = char.codePointAt(0) ?? 0
    let value = 0
    while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) {
      zero -= 1
      value += 1
    }
    return String(value)
  })
}

/** Python's `float(text)`, or null: no hexadecimal, but underscores between digits. */
export function readFloat(spelling: string): number | null {
  const plain = asciiDigits(strip(spelling, null, "both")).replace(/(?<=\d)_(?=\d)/g, "")
  if (/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(plain)) return Number(plain)
  const [, sign, word] = /^([-+]?)(inf|infinity|nan)$/i.exec(plain) ?? []
  if (word === undefined) return null
  return word.toLowerCase() === "nan" ? Number.NaN : sign === "-" ? -Infinity : Infinity
}
