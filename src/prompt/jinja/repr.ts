/** How Python prints values. */
import { integerDigitsMax } from "./number-text"
import { type Run, TemplateError } from "./run"
import { Callable, Dictionary, Float, Lazy, Markup, Namespace, Range, Tuple, type Value, View } from "./value"

/** What `{{ value }}` prints: Python's `str`, with nothing for undefined. */
export function text(value: Value, run: Run): string {
  if (typeof value === "string") return value
  if (value === undefined) return ""
  return value instanceof Markup ? value.text : repr(value, run)
}

/** Python's `repr`. What it makes counts, since lists that share their parts can print far larger than they are. */
export function repr(value: Value, run: Run): string {
  switch (typeof value) {
    case "undefined":
      return "Undefined"
    case "boolean":
      return value ? "True" : "False"
    case "number":
    case "bigint":
      return integerText(value)
    case "string":
      run.build(value.length)
      return quoted(value)
  }
  if (value === null) return "None"
  run.step()
  if (Array.isArray(value)) return `[${reprItems(value, run)}]`
  if (value instanceof Dictionary) {
    const parts = value.entries().map(([key, item]) => `${repr(key, run)}: ${repr(item, run)}`)
    return `{${parts.join(", ")}}`
  }
  if (value instanceof Float) return floatText(value.value)
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`
  if (value instanceof Tuple) {
    const inner = reprItems(value.items, run)
    return value.items.length === 1 ? `(${inner},)` : `(${inner})`
  }
  if (value instanceof Range) {
    return `range(${value.start}, ${value.stop}${value.step === 1 ? "" : `, ${value.step}`})`
  }
  if (value instanceof View) return `dict_${value.kind}([${reprItems(value.spelledOut(), run)}])`
  if (value instanceof Namespace) return `<Namespace ${repr(value.entries, run)}>`
  if (value instanceof Callable) return `<${value.name}>`
  return value instanceof Lazy ? `<${value.typeName} object>` : value.repr()
}

/** Python's `ascii`: its `repr` with everything beyond ASCII escaped. */
export function ascii(value: Value, run: Run): string {
  return repr(value, run).replace(/[^\0-\x7f]/gu, (char) => escapedCodePoint(char.codePointAt(0) ?? 0))
}

function reprItems(items: readonly Value[], run: Run): string {
  return items.map((item) => repr(item, run)).join(", ")
}

/** Python's text of an integer; JavaScript would write large ones with an exponent. */
export function integerText(value: number | bigint): string {
  if (Number.isSafeInteger(value)) return String(value)
  const digits = BigInt(value).toString()
  if (digits.length <= integerDigitsMax) return digits
  throw new TemplateError(`Exceeds the limit (${integerDigitsMax} digits) for integer string conversion`)
}

/** Python's shortest text of a float: always with a point or an exponent. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan"
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf"
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0"
  const [mantissa = "", exponentText = "0"] = value.toExponential().split("e")
  const exponent = Number(exponentText)
  if (exponent >= -4 && exponent < 16) {
    const plain = String(value)
    // Small magnitudes: JavaScript goes to exponents only below 1e-6, so this is plain here.
    return plain.includes(".") ? plain : `${plain}.0`
  }
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`
}

const plainAscii = /^[ !#-&(-[\]-~]*$/

function quoted(value: string): string {
  if (plainAscii.test(value)) return `'${value}'`
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'"
  let inner = ""
  for (const char of value) {
    if (char === quote || char === "\\") inner += `\\${char}`
    else if (char === "\n") inner += "\\n"
    else if (char === "\r") inner += "\\r"
    else if (char === "\t") inner += "\\t"
    else if (isPrintable(char)) inner += char
    else inner += escapedCodePoint(char.codePointAt(0) ?? 0)
  }
  return quote + inner + quote
}

/** Python's `str.isprintable` of one character. */
export function isPrintable(char: string): boolean {
  return char === " " || !/[\p{C}\p{Z}]/u.test(char)
}

function escapedCodePoint(code: number): string {
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`
  return `\\U${code.toString(16).padStart(8, "0")}`
}
