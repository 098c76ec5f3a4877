/**
 * The values a chat template computes with, as Python sees them: an integer and a float are two kinds, lists and
 * dictionaries print as Python prints them, a text's length counts code points. Strings, booleans, arrays and `null`
 * are JavaScript's own; `number` and `bigint` are integers; `undefined` is Jinja's undefined.
 */

/** A Python float: 14.0 is not 14 where a template prints it. */
export class Float {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** A Python tuple; differs from a list in how it prints. */
export class Tuple {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** Jinja's `namespace`: the only thing whose attributes a template may set. */
export class Namespace {
  readonly entries: Map<string, Value>

  constructor(entries: Map<string, Value>) {
    this.entries = entries
  }
}

/** Arguments of a call, filter or test. */
export interface Arguments {
  readonly positional: readonly Value[]
  readonly named: ReadonlyMap<string, Value>
}

/** Something a template can call: a global, a method or a macro. */
export class Callable {
  readonly call: (given: Arguments) => Value

  constructor(call: (given: Arguments) => Value) {
    this.call = call
  }
}

/** An object with computed attributes (`loop`, `cycler`). */
export class Attributes {
  readonly attribute: (name: string) => Value

  constructor(attribute: (name: string) => Value) {
    this.attribute = attribute
  }
}

/** A dictionary, in the order its keys came. */
export type Dictionary = Map<Value, Value>

/** Any value. */
export type Value =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Tuple
  | Namespace
  | Callable
  | Attributes
  | Value[]
  | Dictionary

/** A failure of the template itself: its message is Python's or Jinja's wording as near as it is known. */
export class TemplateError extends Error {}

/** No arguments. */
export const noArguments: Arguments = { positional: [], named: new Map() }

/** The argument at a place or under a name, or `undefined`. */
export function argument(given: Arguments, index: number, name: string): Value {
  return index < given.positional.length ? given.positional[index] : given.named.get(name)
}

/** Python's name of the value's type, for error messages. */
export function typeName(value: Value): string {
  if (value === undefined) return "Undefined"
  if (value === null) return "NoneType"
  if (typeof value === "boolean") return "bool"
  if (typeof value === "number" || typeof value === "bigint") return "int"
  if (typeof value === "string") return "str"
  if (value instanceof Float) return "float"
  if (value instanceof Tuple) return "tuple"
  if (value instanceof Namespace) return "Namespace"
  if (value instanceof Callable) return "function"
  if (value instanceof Attributes) return "LoopContext"
  return Array.isArray(value) ? "list" : "dict"
}

/** Python's truth of a value. */
export function truthy(value: Value): boolean {
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Tuple) return value.items.length > 0
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof Map) return value.size > 0
  return Boolean(value)
}

/** True for what Python counts as a number: int, float, bool. */
export function isNumber(value: Value): value is number | bigint | boolean | Float {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean" || value instanceof Float
}

/** The number as JavaScript counts; big integers lose digits, so only floats may go through here. */
export function toFloat(value: number | bigint | boolean | Float): number {
  return value instanceof Float ? value.value : Number(value)
}

/** The items that iteration gives: keys of a dictionary, characters of a text, nothing for undefined. */
export function iterate(value: Value): readonly Value[] {
  if (value === undefined) return []
  if (Array.isArray(value)) return value
  if (value instanceof Tuple) return value.items
  if (value instanceof Map) return [...value.keys()]
  if (typeof value === "string") return Array.from(value)
  throw new TemplateError(`'${typeName(value)}' object is not iterable`)
}

/** Python's `len`. */
export function length(value: Value): number {
  if (value === undefined) return 0
  if (typeof value === "string") return codePoints(value)
  if (Array.isArray(value)) return value.length
  if (value instanceof Tuple) return value.items.length
  if (value instanceof Map) return value.size
  throw new TemplateError(`object of type '${typeName(value)}' has no len()`)
}

/** Code points of a text; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = text.length
  for (let i = 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0xdc00 || unit > 0xdfff) continue
    const before = text.charCodeAt(i - 1)
    if (before >= 0xd800 && before <= 0xdbff) count -= 1
  }
  return count
}

/** Python's order of texts: by code point, not by UTF-16 unit. */
export function compareTexts(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i++) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left === right) continue
    // Surrogates stand for code points above all other units.
    const leftHigh = left >= 0xd800 && left <= 0xdfff
    const rightHigh = right >= 0xd800 && right <= 0xdfff
    if (leftHigh !== rightHigh) return leftHigh ? 1 : -1
    return left - right
  }
  return a.length - b.length
}

/** Python's `==`. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true
  if (isNumber(a) && isNumber(b)) {
    const left = a instanceof Float ? a.value : typeof a === "boolean" ? Number(a) : a
    const right = b instanceof Float ? b.value : typeof b === "boolean" ? Number(b) : b
    // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number compare by value only this way.
    return left == right
  }
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b)
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items)
  if (!(a instanceof Map) || !(b instanceof Map) || a.size !== b.size) return false
  for (const [key, value] of a) {
    if (!b.has(key) || !equal(value, b.get(key))) return false
  }
  return true
}

function equalItems(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i]))
}

/** Python's order, as -1, 0 or 1 in sign; kinds that have none are an error. */
export function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) {
    const left = a instanceof Float ? a.value : typeof a === "boolean" ? Number(a) : a
    const right = b instanceof Float ? b.value : typeof b === "boolean" ? Number(b) : b
    return left < right ? -1 : left > right ? 1 : 0
  }
  if (typeof a === "string" && typeof b === "string") return compareTexts(a, b)
  const left = Array.isArray(a) ? a : a instanceof Tuple ? a.items : null
  const right = Array.isArray(b) ? b : b instanceof Tuple ? b.items : null
  if (left === null || right === null || typeName(a) !== typeName(b)) {
    throw new TemplateError(`'<' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`)
  }
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = equal(left[i], right[i]) ? 0 : compare(left[i], right[i])
    if (order !== 0) return order
  }
  return left.length - right.length
}

/** Python's `in`. */
export function contains(container: Value, item: Value): boolean {
  if (typeof container === "string") {
    if (typeof item === "string") return container.includes(item)
    throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`)
  }
  if (container instanceof Map) return container.has(item)
  return iterate(container).some((each) => equal(each, item))
}

/** What `{{ value }}` prints: Python's `str`, with nothing for undefined. */
export function text(value: Value): string {
  if (typeof value === "string") return value
  if (value === undefined) return ""
  return repr(value)
}

/** Python's `repr`. */
export function repr(value: Value): string {
  if (value === undefined) return "Undefined"
  if (value === null) return "None"
  if (value === true) return "True"
  if (value === false) return "False"
  if (typeof value === "number" || typeof value === "bigint") return String(value)
  if (typeof value === "string") return quoted(value)
  if (value instanceof Float) return floatText(value.value)
  if (value instanceof Tuple) {
    const inner = value.items.map(repr).join(", ")
    return value.items.length === 1 ? `(${inner},)` : `(${inner})`
  }
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`
  if (value instanceof Map) {
    return `{${Array.from(value, ([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`
  }
  return `<${typeName(value)}>`
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

function quoted(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'"
  let inner = ""
  for (const char of value) {
    if (char === quote || char === "\\") inner += `\\${char}`
    else if (char === "\n") inner += "\\n"
    else if (char === "\r") inner += "\\r"
    else if (char === "\t") inner += "\\t"
    else if (char !== " " && /[\p{C}\p{Z}]/u.test(char)) inner += escapedCodePoint(char.codePointAt(0) ?? 0)
    else inner += char
  }
  return quote + inner + quote
}

function escapedCodePoint(code: number): string {
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`
  return `\\U${code.toString(16).padStart(8, "0")}`
}
