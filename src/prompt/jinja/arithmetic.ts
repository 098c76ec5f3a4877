import { Float, isNumber, repr, TemplateError, Tuple, text, toFloat, typeName, type Value } from "./value"

/** UTF-16 units or items that one operation may build: a template must not fill the memory by `'x' * 10 ** 10`. */
export const builtSizeMax = 64 * 1024 * 1024

/** Python's binary operators on template values; the message of a failure is Python's. */
export function operate(operator: string, left: Value, right: Value): Value {
  if (operator === "~") return text(left) + text(right)
  if (isNumber(left) && isNumber(right)) return numeric(operator, left, right)
  if (operator === "+") return joined(left, right)
  if (operator === "*") return repeated(left, right)
  if (operator === "%" && typeof left === "string") return formatPercent(left, right)
  throw unsupported(operator, left, right)
}

/** Python's unary minus and plus. */
export function signed(sign: string, value: Value): Value {
  if (!isNumber(value)) throw new TemplateError(`bad operand type for unary ${sign}: '${typeName(value)}'`)
  return sign === "-" ? numeric("-", 0, value) : numeric("+", 0, value)
}

/** Brings a big integer back to a plain number where it fits, so that equal integers have one form. */
export function integer(value: bigint): number | bigint {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

function numeric(
  operator: string,
  left: number | bigint | boolean | Float,
  right: number | bigint | boolean | Float,
): Value {
  if (left instanceof Float || right instanceof Float || operator === "/") {
    return new Float(floatResult(operator, toFloat(left), toFloat(right)))
  }
  if (operator === "**" && Number(right) < 0) return new Float(floatResult("**", Number(left), Number(right)))
  if (typeof left !== "bigint" && typeof right !== "bigint") {
    const quick = smallResult(operator, Number(left), Number(right))
    if (Number.isSafeInteger(quick)) return quick
  }
  return integer(bigResult(operator, BigInt(left), BigInt(right)))
}

function floatResult(operator: string, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b
    case "-":
      return a - b
    case "*":
      return a * b
    case "**":
      if (a === 0 && b < 0) throw new TemplateError("0.0 cannot be raised to a negative power")
      return a ** b
  }
  if (b === 0) throw new TemplateError("division by zero")
  switch (operator) {
    case "/":
      return a / b
    case "//":
      return Math.floor(a / b)
    case "%":
      return a - b * Math.floor(a / b)
    default:
      throw new TemplateError(`unknown operator ${operator}`)
  }
}

/** NaN where big integers must decide: they also know Python's words for a division by zero. */
function smallResult(operator: string, a: number, b: number): number {
  return b === 0 && (operator === "//" || operator === "%") ? Number.NaN : floatResult(operator, a, b)
}

function bigResult(operator: string, a: bigint, b: bigint): bigint {
  switch (operator) {
    case "+":
      return a + b
    case "-":
      return a - b
    case "*":
      return a * b
    case "**":
      if (b > 10_000n) throw new TemplateError("the exponent is too large")
      return a ** b
  }
  if (b === 0n) throw new TemplateError("integer division or modulo by zero")
  const quotient = a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n)
  return operator === "//" ? quotient : a - b * quotient
}

function joined(left: Value, right: Value): Value {
  if (typeof left === "string") {
    if (typeof right === "string") return left + right
    throw new TemplateError(`can only concatenate str (not "${typeName(right)}") to str`)
  }
  if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right]
  if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items])
  throw unsupported("+", left, right)
}

function repeated(left: Value, right: Value): Value {
  const [sequence, times] = isNumber(left) ? [right, left] : [left, right]
  if (!isNumber(times) || times instanceof Float) throw unsupported("*", left, right)
  const count = Math.max(0, Number(times))
  if (typeof sequence === "string") {
    if (sequence.length * count > builtSizeMax) throw new TemplateError("the repeated text is too long")
    return sequence.repeat(count)
  }
  if (Array.isArray(sequence)) {
    if (sequence.length * count > builtSizeMax) throw new TemplateError("the repeated list is too long")
    return Array.from({ length: count }, () => sequence).flat(1)
  }
  throw unsupported("*", left, right)
}

function unsupported(operator: string, left: Value, right: Value): TemplateError {
  return new TemplateError(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`)
}

/** Python's `'%s of %d' % (a, b)` for the codes s, r, d, i, f and %, with a width and a precision. */
export function formatPercent(format: string, given: Value): string {
  const values = given instanceof Tuple ? [...given.items] : [given]
  let next = 0
  return format.replace(
    /%(?:\((\w+)\))?([-0]?)(\d*)(?:\.(\d+))?([srdif%])/g,
    (_whole: string, name: string | undefined, flag: string, width: string, digits: string | undefined, code) => {
      if (code === "%") return "%"
      const value = name === undefined ? values[next++] : given instanceof Map ? given.get(name) : undefined
      if (name === undefined && next > values.length) throw new TemplateError("not enough arguments for format string")
      const plain = percentText(value, String(code), digits)
      const wide = Math.min(Number(width || "0"), 10_000)
      return flag === "-" ? plain.padEnd(wide) : plain.padStart(wide, flag === "0" ? "0" : " ")
    },
  )
}

function percentText(value: Value, code: string, digits: string | undefined): string {
  if (code === "s") return value === undefined ? "" : text(value)
  if (code === "r") return repr(value)
  if (!isNumber(value)) throw new TemplateError(`%${code} format: a real number is required, not ${typeName(value)}`)
  if (code === "f") return toFloat(value).toFixed(Math.min(Number(digits ?? "6"), 100))
  return value instanceof Float ? String(Math.trunc(value.value)) : String(typeof value === "boolean" ? +value : value)
}
