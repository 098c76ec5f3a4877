/** Jinja's filters that make numbers. */
import { operate, signed } from "./arithmetic"
import { compare } from "./equality"
import { type Filter, filterEntry } from "./filter"
import { readFloat, readInteger } from "./number-text"
import { dividedHalfEven, scaled } from "./rounding"
import { type Run, TemplateError } from "./run"
import {
  Float,
  integer,
  isNumber,
  isText,
  length,
  type NumberValue,
  plainText,
  toFloat,
  toIndex,
  typeName,
  type Value,
} from "./value"

function undefinedNumber(): TemplateError {
  return new TemplateError("a value is undefined")
}

function toInteger(value: Value, [fallback, base]: readonly Value[]): Value {
  if (value === undefined) throw undefinedNumber()
  if (isText(value)) {
    const radix = toIndex(base)
    const read = radix === 0 || (radix >= 2 && radix <= 36) ? readInteger(plainText(value), radix) : null
    if (read !== null) return integer(read)
    const float = readFloat(plainText(value))
    return float !== null && Number.isFinite(float) ? integer(BigInt(Math.trunc(float))) : fallback
  }
  if (typeof value === "boolean") return Number(value)
  if (typeof value === "number" || typeof value === "bigint") return value
  if (!(value instanceof Float)) return fallback
  if (Number.isFinite(value.value)) return integer(BigInt(Math.trunc(value.value)))
  // An infinity is an error of a kind that Jinja does not catch; NaN falls back.
  if (Number.isNaN(value.value)) return fallback
  throw new TemplateError("cannot convert float infinity to integer")
}

function toFloatValue(value: Value, [fallback]: readonly Value[]): Value {
  if (value === undefined) throw undefinedNumber()
  if (isNumber(value)) return new Float(toFloat(value))
  const read = isText(value) ? readFloat(plainText(value)) : null
  return read === null ? fallback : new Float(read)
}

function round(value: Value, [precision, method]: readonly Value[], run: Run): Value {
  if (method !== "common" && method !== "ceil" && method !== "floor") {
    throw new TemplateError("method must be common, ceil or floor")
  }
  if (value === undefined) throw undefinedNumber()
  if (!isNumber(value)) throw new TemplateError(`type ${typeName(value)} doesn't define __round__ method`)
  if (method === "common") return commonRound(value, precision)
  const factor = operate("**", 10, precision, run)
  const product = operate("*", value, factor, run)
  if (!isNumber(product)) throw new TemplateError("must be real number")
  if (!(product instanceof Float)) return operate("/", product, factor, run)
  if (!Number.isFinite(product.value)) throw new TemplateError("cannot convert float infinity or NaN to integer")
  const whole = method === "ceil" ? Math.ceil(product.value) : Math.floor(product.value)
  return operate("/", integer(BigInt(whole)), factor, run)
}

/** Digits behind the point beyond which a float has none. */
const roundDigitsMax = 324

/** Python's `round`: halves to the even neighbour, integers stay integers. */
function commonRound(value: NumberValue, precision: Value): Value {
  const digits = precision === null ? 0 : toIndex(precision)
  if (!(value instanceof Float)) return roundInteger(value, digits)
  if (precision === null) return integer(scaled(value.value, 0))
  if (!Number.isFinite(value.value) || digits > roundDigitsMax) return value
  if (digits < -roundDigitsMax) return new Float(value.value < 0 ? -0 : 0)
  const units = scaled(value.value, digits)
  const rounded = Number(`${units}e${-digits}`)
  return new Float(units === 0n && (value.value < 0 || Object.is(value.value, -0)) ? -0 : rounded)
}

function roundInteger(value: number | bigint | boolean, digits: number): Value {
  const whole = BigInt(value)
  if (digits >= 0) return integer(whole)
  if (digits < -roundDigitsMax) return 0
  const unit = 10n ** BigInt(-digits)
  const magnitude = dividedHalfEven(whole < 0n ? -whole : whole, unit) * unit
  return integer(whole < 0n ? -magnitude : magnitude)
}

function absolute(value: Value, run: Run): Value {
  if (!isNumber(value)) throw new TemplateError(`bad operand type for abs(): '${typeName(value)}'`)
  if (value instanceof Float) return new Float(Math.abs(value.value))
  return compare(value, 0, run) < 0 ? signed("-", value) : signed("+", value)
}

/** Their table. */
export const numberFilters: readonly [string, Filter][] = [
  filterEntry("abs", [], (value, _args, run) => absolute(value, run)),
  filterEntry("count", [], length),
  filterEntry(
    "int",
    [
      ["default", 0],
      ["base", 10],
    ],
    toInteger,
  ),
  filterEntry("float", [["default", new Float(0)]], toFloatValue),
  filterEntry("length", [], length),
  filterEntry(
    "round",
    [
      ["precision", 0],
      ["method", "common"],
    ],
    round,
  ),
]
