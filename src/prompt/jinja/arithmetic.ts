import { escaped } from "./markup"
import { formatPercent } from "./percent-format"
import { type Run, TemplateError } from "./run"
import {
  Float,
  integer,
  isNumber,
  isText,
  Markup,
  type NumberValue,
  plainText,
  Tuple,
  toFloat,
  toIndex,
  typeName,
  type Value,
} from "./value"

/** Python's binary operators on numbers, texts and lists. */
export type Operator = "+" | "-" | "*" | "/" | "//" | "%" | "**"

/** `left operator right` by Python's rules; the message of a failure is Python's. */
export function operate(operator: Operator, left: Value, right: Value, run: Run): Value {
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") {
      run.checkText(left.length + right.length)
      return left + right
    }
    if (typeof left === "number" && typeof right === "number") {
      const sum = left + right
      if (Number.isSafeInteger(sum)) return sum
    }
  }
  if (isNumber(left) && isNumber(right)) return numeric(operator, left, right)
  if (operator === "+") return joined(left, right, run)
  if (operator === "*") return repeated(left, right, run)
  if (operator === "%" && isText(left)) return formatPercent(left, right, run)
  throw unsupported(operator, left, right)
}

/** Python's unary minus and plus. */
export function signed(sign: "-" | "+", value: Value): Value {
  if (!isNumber(value)) throw new TemplateError(`bad operand type for unary ${sign}: '${typeName(value)}'`)
  if (value instanceof Float) return sign === "-" ? new Float(-value.value) : value
  return sign === "-" ? numeric("-", 0, value) : numeric("+", 0, value)
}

function numeric(operator: Operator, left: NumberValue, right: NumberValue): Value {
  if (
    operator === "/" &&
    (typeof left === "bigint" || typeof right === "bigint") &&
    !isFloat(left) &&
    !isFloat(right)
  ) {
    return new Float(bigQuotient(BigInt(left), BigInt(right)))
  }
  if (left instanceof Float || right instanceof Float || operator === "/") {
    return new Float(floatResult(operator, toFloat(left), toFloat(right)))
  }
  if (operator === "**" && Number(right) < 0) return new Float(floatResult("**", Number(left), Number(right)))
  if (typeof left !== "bigint" && typeof right !== "bigint") {
    const quick = smallResult(operator, Number(left), Number(right))
    // `+ 0` turns a negative zero into the only zero that integers have.
    if (Number.isSafeInteger(quick)) return quick + 0
  }
  const result = integer(bigResult(operator, BigInt(left), BigInt(right)))
  if (typeof result === "bigint" && operator === "*" && bitsOf(result) > integerBitsMax) {
    throw new TemplateError("the integer is too large")
  }
  return result
}

function isFloat(value: NumberValue): value is Float {
  return value instanceof Float
}

/** Bits of an integer: it is far more than can be printed, and one operation on so many takes no time. */
const integerBitsMax = 65_536n

/** Bits of the magnitude, at most three too many. */
function bitsOf(value: bigint): bigint {
  return BigInt((value < 0n ? -value : value).toString(16).length * 4)
}

/** Bits of a quotient beyond which only "more than nothing" matters for rounding it to a double. */
const quotientBits = 66

/** The double nearest to a quotient of integers that are no doubles themselves. */
function bigQuotient(left: bigint, right: bigint): number {
  if (right === 0n) throw new TemplateError("division by zero")
  const [a, b] = [left < 0n ? -left : left, right < 0n ? -right : right]
  const shift = Math.max(0, quotientBits + b.toString(2).length - a.toString(2).length)
  const shifted = a << BigInt(shift)
  // The last bit stands for all that the division left.
  const units = ((shifted / b) << 1n) | (shifted % b === 0n ? 0n : 1n)
  const quotient = Number(units) / 2 ** (shift + 1)
  if (!Number.isFinite(quotient)) throw new TemplateError("integer division result too large for a float")
  return left < 0n !== right < 0n ? -quotient : quotient
}

function floatResult(operator: Operator, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b
    case "-":
      return a - b
    case "*":
      return a * b
    case "**":
      return power(a, b)
  }
  if (b === 0) throw new TemplateError(operator === "/" ? "division by zero" : "float floor division by zero")
  if (operator === "/") return a / b
  // JavaScript's remainder has the sign of the dividend, Python's that of the divisor.
  let remainder = a % b
  if (remainder === 0) remainder = b < 0 ? -0 : 0
  else if (b < 0 !== remainder < 0) remainder += b
  if (operator === "%") return remainder
  const quotient = (a - remainder) / b
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0
  const below = Math.floor(quotient)
  return quotient - below > 0.5 ? below + 1 : below
}

function power(a: number, b: number): number {
  if (a === 0 && b < 0) throw new TemplateError("0.0 cannot be raised to a negative power")
  if (a < 0 && Number.isFinite(a) && !Number.isInteger(b) && Number.isFinite(b)) {
    throw new TemplateError("complex numbers are not supported")
  }
  // Python says that one to any power is one, NaN included.
  const result = a === 1 || (a === -1 && !Number.isFinite(b) && !Number.isNaN(b)) ? 1 : a ** b
  if (!Number.isFinite(result) && Number.isFinite(a) && Number.isFinite(b)) {
    throw new TemplateError("(34, 'Numerical result out of range')")
  }
  return result
}

/** NaN where big integers must decide: they also know Python's words for a division by zero. */
function smallResult(operator: Operator, a: number, b: number): number {
  if (operator === "**") return Math.abs(a ** b) <= Number.MAX_SAFE_INTEGER ? a ** b : Number.NaN
  if (operator === "//") return b === 0 ? Number.NaN : Math.floor(a / b)
  if (operator === "%") return b === 0 ? Number.NaN : a - b * Math.floor(a / b)
  return floatResult(operator, a, b)
}

function bigResult(operator: Operator, a: bigint, b: bigint): bigint {
  switch (operator) {
    case "+":
      return a + b
    case "-":
      return a - b
    case "*":
      return a * b
    case "**":
      // Whatever the base, its powers stay below the limit.
      if ((a > 1n || a < -1n) && b * bitsOf(a) > integerBitsMax) throw new TemplateError("the exponent is too large")
      return a ** b
  }
  if (b === 0n) throw new TemplateError("integer division or modulo by zero")
  const quotient = a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n)
  return operator === "//" ? quotient : a - b * quotient
}

function joined(left: Value, right: Value, run: Run): Value {
  if (isText(left)) {
    if (isText(right)) {
      run.checkText(plainText(left).length + plainText(right).length)
      // Where one side is escaped, the other is escaped as well.
      return new Markup(escaped(left, run) + escaped(right, run))
    }
    if (left instanceof Markup) throw unsupported("+", left, right)
    throw new TemplateError(`can only concatenate str (not "${typeName(right)}") to str`)
  }
  if (Array.isArray(left)) {
    if (!Array.isArray(right)) throw new TemplateError(`can only concatenate list (not "${typeName(right)}") to list`)
    run.buildItems(left.length + right.length)
    return left.concat(right)
  }
  if (left instanceof Tuple && right instanceof Tuple) {
    run.buildItems(left.items.length + right.items.length)
    return new Tuple([...left.items, ...right.items])
  }
  throw unsupported("+", left, right)
}

function repeated(left: Value, right: Value, run: Run): Value {
  const [sequence, times] = isNumber(left) ? [right, left] : [left, right]
  if (!isNumber(times) || times instanceof Float) throw unsupported("*", left, right)
  if (typeof times === "bigint" && BigInt.asIntN(64, times) !== times) {
    throw new TemplateError("cannot fit 'int' into an index-sized integer")
  }
  const count = Math.max(0, toIndex(times))
  if (isText(sequence)) {
    const plain = plainText(sequence)
    run.build(plain.length * count)
    const made = plain === "" ? "" : plain.repeat(count)
    return sequence instanceof Markup ? new Markup(made) : made
  }
  if (Array.isArray(sequence)) return repeatedItems(sequence, count, run)
  if (sequence instanceof Tuple) return new Tuple(repeatedItems(sequence.items, count, run))
  throw unsupported("*", left, right)
}

function repeatedItems(items: readonly Value[], count: number, run: Run): Value[] {
  run.buildItems(items.length * count)
  const made: Value[] = []
  if (items.length > 0) for (let i = 0; i < count; i++) made.push(...items)
  return made
}

function unsupported(operator: string, left: Value, right: Value): TemplateError {
  return new TemplateError(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`)
}
