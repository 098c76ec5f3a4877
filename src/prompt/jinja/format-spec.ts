/** Python's format specifications (`{:>8.2f}`), and the texts of numbers that `%` formatting shares with them. */
import { floatText, integerText, text } from "./repr"
import { fixedText, significant } from "./rounding"
import { type Run, TemplateError } from "./run"
import { codePoints, Float, isInteger, isNumber, isText, plainText, toFloat, typeName, type Value } from "./value"

interface Spec {
  readonly fill: string
  readonly align: string
  readonly sign: string
  /** `z`: a negative number that rounds to zero has no sign. */
  readonly noNegativeZero: boolean
  readonly alternate: boolean
  readonly zero: boolean
  readonly width: number
  readonly grouping: string
  readonly precision: number | null
  readonly type: string
}

const specPattern = /^(?:(.)?([<>=^]))?([-+ ])?(z)?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su

function readSpec(spelled: string, value: Value): Spec {
  const found = specPattern.exec(spelled)
  if (found === null) {
    throw new TemplateError(`Invalid format specifier '${spelled}' for object of type '${typeName(value)}'`)
  }
  const [, fill, align, sign, noNegativeZero, alternate, zero, width, grouping, precision, type] = found
  return {
    fill: fill ?? (zero === undefined ? " " : "0"),
    align: align ?? (zero === undefined ? "" : "="),
    sign: sign ?? "",
    noNegativeZero: noNegativeZero !== undefined,
    alternate: alternate !== undefined,
    zero: zero !== undefined,
    width: Number(width ?? "0"),
    grouping: grouping ?? "",
    precision: precision === undefined ? null : Number(precision),
    type: type ?? "",
  }
}

/** `format(value, spelled)`. */
export function formatValue(value: Value, spelled: string, run: Run): string {
  if (spelled === "") return text(value, run)
  const isPlainNumber = isNumber(value)
  if (!isPlainNumber && !isText(value)) {
    throw new TemplateError(`unsupported format string passed to ${typeName(value)}.__format__`)
  }
  const spec = readSpec(spelled, value)
  if (spec.type === "n" && spec.grouping !== "") throw new TemplateError(`Cannot specify '${spec.grouping}' with 'n'.`)
  run.build(spec.width + (spec.precision ?? 0))
  if (isText(value)) return formatText(plainText(value), spec)
  // A bool counts as a number only where the type asks for one.
  if (typeof value === "boolean" && spec.type === "s") throw unknownCode(spec.type, value)
  if (isInteger(value) || typeof value === "boolean") {
    if (!"eEfFgG%".includes(spec.type) || spec.type === "") return formatInteger(BigInt(value), spec, value)
  }
  return formatFloat(toFloat(value), spec, value)
}

function formatText(value: string, spec: Spec): string {
  if (spec.type !== "" && spec.type !== "s") throw unknownCode(spec.type, value)
  if (spec.sign !== "") throw new TemplateError("Sign not allowed in string format specifier")
  if (spec.noNegativeZero) throw new TemplateError("Negative zero coercion (z) not allowed in string format specifier")
  if (spec.alternate) throw new TemplateError("Alternate form (#) not allowed in string format specifier")
  if (spec.align === "=" && !spec.zero) throw new TemplateError("'=' alignment not allowed in string format specifier")
  if (spec.grouping !== "") throw new TemplateError(`Cannot specify '${spec.grouping}' with 's'.`)
  const cut = spec.precision === null ? value : Array.from(value).slice(0, spec.precision).join("")
  return padded("", cut, { ...spec, align: spec.align === "" || spec.align === "=" ? "<" : spec.align })
}

const integerBases: { readonly [type: string]: number } = { b: 2, o: 8, x: 16, X: 16 }

function formatInteger(value: bigint, spec: Spec, original: Value): string {
  if (spec.noNegativeZero)
    throw new TemplateError("Negative zero coercion (z) not allowed in format specifier with integer")
  if (spec.precision !== null) throw new TemplateError("Precision not allowed in integer format specifier")
  if (spec.type === "c") {
    if (spec.grouping !== "") throw new TemplateError(`Cannot specify '${spec.grouping}' with 'c'.`)
    if (spec.sign !== "") throw new TemplateError("Sign not allowed with integer format specifier 'c'")
    if (spec.alternate) throw new TemplateError("Alternate form (#) not allowed with integer format specifier 'c'")
    if (value < 0n || value > 0x10ffffn) throw new TemplateError("%c arg not in range(0x110000)")
    return padded("", String.fromCodePoint(Number(value)), { ...spec, align: spec.align === "" ? "<" : spec.align })
  }
  const base = integerBases[spec.type] ?? 10
  if (base === 10 && !["", "d", "n"].includes(spec.type)) throw unknownCode(spec.type, original)
  if (base !== 10 && spec.grouping === ",") throw new TemplateError(`Cannot specify ',' with '${spec.type}'.`)
  const magnitude = value < 0n ? -value : value
  let digits = magnitude.toString(base)
  if (spec.type === "X") digits = digits.toUpperCase()
  const prefix = spec.alternate && base !== 10 ? `0${spec.type}` : ""
  return aligned(signOf(value < 0n, spec.sign) + prefix, digits, "", spec, base === 10 ? 3 : 4)
}

function formatFloat(value: number, spec: Spec, original: Value): string {
  const negative = value < 0 || Object.is(value, -0)
  const percent = spec.type === "%"
  if (!"eEfFgGn%".includes(spec.type)) throw unknownCode(spec.type, original)
  if (!Number.isFinite(value)) {
    const word = Number.isNaN(value) ? "nan" : "inf"
    const spelled = "EFG".includes(spec.type) && spec.type !== "" ? word.toUpperCase() : word
    return padded(signOf(!Number.isNaN(value) && negative, spec.sign), spelled + (percent ? "%" : ""), spec)
  }
  const plain = percent
    ? `${fixedText(value * 100, spec.precision ?? 6)}%`
    : floatDigits(Math.abs(value), spec.type, spec.precision, spec.alternate)
  const [whole = "", rest = ""] = splitWhole(plain)
  const isZero = spec.noNegativeZero && !/[1-9]/.test(plain.split(/e/i)[0] ?? "")
  return aligned(signOf(negative && !isZero, spec.sign), whole, rest, spec, 3)
}

/** The digits before the point, which grouping and zeros reach, and all behind them. */
function splitWhole(plain: string): [string, string] {
  const digits = /^\d+/.exec(plain)?.[0] ?? ""
  return [digits, plain.slice(digits.length)]
}

/** A finite magnitude in one of Python's float notations; `type` "" is that of `str`. */
export function floatDigits(magnitude: number, type: string, precision: number | null, alternate: boolean): string {
  if (type === "" && precision === null) {
    const plain = floatText(magnitude)
    return alternate && !plain.includes(".") ? plain.replace("e", ".e") : plain
  }
  const upper = "EFG".includes(type) && type !== ""
  const lower = type.toLowerCase()
  const places = precision ?? 6
  if (lower === "f") return fixedText(magnitude, places) + (alternate && places === 0 ? "." : "")
  let plain: string
  if (lower === "e") plain = exponential(magnitude, places, alternate)
  else plain = general(magnitude, places === 0 ? 1 : places, alternate, type === "")
  return upper ? plain.toUpperCase() : plain
}

function exponential(magnitude: number, places: number, alternate: boolean): string {
  const { digits, exponent } = significant(magnitude, places + 1)
  const fraction = digits.slice(1)
  const point = fraction !== "" || alternate ? "." : ""
  return `${digits.slice(0, 1)}${point}${fraction}${exponentText(exponent)}`
}

function exponentText(exponent: number): string {
  return `e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`
}

/** `g`: so many digits, zeros at the end dropped. Without a type one digit behind the point stays. */
function general(magnitude: number, precision: number, alternate: boolean, untyped: boolean): string {
  const { digits, exponent } = significant(magnitude, precision)
  const kept = alternate ? digits : digits.replace(/0+$/, "")
  // Without a type the switch to exponents comes one digit earlier, so that one stands behind the point.
  if (exponent < -4 || exponent >= (untyped ? precision - 1 : precision)) {
    const fraction = kept.slice(1)
    const point = fraction !== "" || alternate ? "." : ""
    return `${digits.slice(0, 1)}${point}${fraction}${exponentText(exponent)}`
  }
  if (exponent < 0) {
    return kept === "" ? (untyped ? "0.0" : "0") : `0.${"0".repeat(-exponent - 1)}${kept}`
  }
  const whole = digits.slice(0, exponent + 1)
  const fraction = kept.slice(exponent + 1)
  if (fraction !== "") return `${whole}.${fraction}`
  return untyped ? `${whole}.0` : alternate ? `${whole}.` : whole
}

function signOf(negative: boolean, sign: string): string {
  if (negative) return "-"
  return sign === "-" ? "" : sign
}

/** Groups the whole digits and pads, with zeros between sign and digits where the width asks for them. */
function aligned(sign: string, whole: string, rest: string, spec: Spec, groupSize: number): string {
  if (spec.fill !== "0" || spec.align !== "=" || spec.grouping === "") {
    return padded(sign, grouped(whole, spec.grouping, groupSize) + rest, spec)
  }
  const room = spec.width - sign.length - rest.length
  // The fewest digits that fill the room with the separators between them; a separator never stands first.
  const digits = whole.padStart(room - Math.floor((room - 1) / (groupSize + 1)), "0")
  return sign + grouped(digits, spec.grouping, groupSize) + rest
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === "") return digits
  const parts: string[] = []
  for (let end = digits.length; end > 0; end -= size) parts.push(digits.slice(Math.max(0, end - size), end))
  return parts.reverse().join(separator)
}

function padded(sign: string, body: string, spec: Spec): string {
  const missing = spec.width - codePoints(sign + body)
  if (missing <= 0) return sign + body
  if (spec.align === "<") return sign + body + spec.fill.repeat(missing)
  if (spec.align === "^") {
    const left = missing >> 1
    return spec.fill.repeat(left) + sign + body + spec.fill.repeat(missing - left)
  }
  return spec.align === "=" ? sign + spec.fill.repeat(missing) + body : spec.fill.repeat(missing) + sign + body
}

function unknownCode(type: string, value: Value): TemplateError {
  return new TemplateError(`Unknown format code '${type}' for object of type '${typeName(value)}'`)
}

/** The integer that `%d` prints: floats are cut off, other kinds are refused with the code's name. */
export function percentInteger(value: Value, code: string): string {
  if (!isNumber(value)) throw new TemplateError(`%${code} format: a real number is required, not ${typeName(value)}`)
  if (!(value instanceof Float)) return integerText(typeof value === "boolean" ? Number(value) : value)
  if (!Number.isFinite(value.value)) throw new TemplateError("cannot convert float infinity or NaN to integer")
  return BigInt(Math.trunc(value.value)).toString()
}
