/**
 * Decimal digits of floats, exactly: JavaScript's `toFixed` takes halves up and gives up at 1e21, Python takes the even
 * neighbour at any size.
 */

/** The integer nearest to `value · 10^digits`, halves to even. `value` is finite. */
export function scaled(value: number, digits: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, Math.abs(value))
  const bits = view.getBigUint64(0)
  const biased = Number(bits >> 52n)
  const fraction = bits & ((1n << 52n) - 1n)
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n)
  const exponent = Math.max(biased, 1) - 1075
  let numerator = mantissa
  let denominator = 1n
  if (digits >= 0) numerator *= 10n ** BigInt(digits)
  else denominator = 10n ** BigInt(-digits)
  if (exponent >= 0) numerator <<= BigInt(exponent)
  else denominator <<= BigInt(-exponent)
  const rounded = dividedHalfEven(numerator, denominator)
  return value < 0 ? -rounded : rounded
}

/** `numerator / denominator` (both positive) as the nearest integer, halves to even. */
export function dividedHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  const twice = 2n * (numerator % denominator)
  if (twice < denominator || (twice === denominator && quotient % 2n === 0n)) return quotient
  return quotient + 1n
}

/** Digits beyond which a float has only zeros: the smallest one has so many behind the point, a few more before it. */
const exactDigitsMax = 1100

/** The magnitude with `digits` behind the point: no sign. */
export function fixedText(value: number, digits: number): string {
  const exact = Math.min(digits, exactDigitsMax)
  return placed(scaled(Math.abs(value), exact), exact) + "0".repeat(digits - exact)
}

/** An integer of units of `10^-digits` with its point. */
function placed(units: bigint, digits: number): string {
  if (digits <= 0) return String(units)
  const spelled = String(units).padStart(digits + 1, "0")
  return `${spelled.slice(0, -digits)}.${spelled.slice(-digits)}`
}

/** Significant digits (`precision` of them, at least one) and the exponent of the first, of a finite magnitude. */
export function significant(value: number, precision: number): { readonly digits: string; readonly exponent: number } {
  if (precision > exactDigitsMax) {
    const { digits, exponent } = significant(value, exactDigitsMax)
    return { digits: digits.padEnd(precision, "0"), exponent }
  }
  const magnitude = Math.abs(value)
  if (magnitude === 0) return { digits: "0".repeat(precision), exponent: 0 }
  let exponent = Number(magnitude.toExponential().split("e")[1])
  let units = scaled(magnitude, precision - 1 - exponent)
  if (String(units).length > precision) {
    // Rounding carried into a new digit: 9.99 becomes 1.00e1.
    exponent += 1
    units = scaled(magnitude, precision - 1 - exponent)
  }
  return { digits: String(units), exponent }
}
