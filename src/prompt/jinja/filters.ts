/** Jinja's filters and tests over template values. Names and arguments are Jinja 3.1's; `tojson` is transformers'. */
import { formatPercent, integer, operate } from "./arithmetic"
import { writeJson } from "./json"
import { capitalize, joinTexts, method, replaceText, splitLines, strip } from "./methods"
import {
  type Arguments,
  Attributes,
  argument,
  Callable,
  codePoints,
  compare,
  contains,
  equal,
  Float,
  isNumber,
  iterate,
  length,
  Namespace,
  noArguments,
  repr,
  TemplateError,
  Tuple,
  text,
  toFloat,
  truthy,
  typeName,
  type Value,
} from "./value"

/** A filter: the value before the bar and the arguments behind the name. */
export type Filter = (value: Value, given: Arguments) => Value

/** A test: the value before `is` and the arguments behind the name. */
export type Test = (value: Value, given: Arguments) => boolean

/** Jinja's getattr and getitem for a path such as `function.name` or `0`. */
function attributeAt(value: Value, path: Value): Value {
  let current = value
  for (const part of text(path).split(".")) {
    if (current instanceof Map) current = current.get(part)
    else if (current instanceof Namespace) current = current.entries.get(part)
    else if (current instanceof Attributes) current = current.attribute(part)
    else if (/^\d+$/.test(part) && (Array.isArray(current) || current instanceof Tuple)) {
      current = iterate(current)[Number(part)]
    } else return undefined
  }
  return current
}

/** The texts of a filter's operand: what is no text is turned into one, as Jinja's `soft_str` does. */
function asText(value: Value): string {
  return text(value)
}

const htmlEscapes: { readonly [char: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
}

function escapeHtml(value: Value): string {
  return asText(value).replace(/[&<>"']/g, (char) => htmlEscapes[char] ?? char)
}

function toJson(value: Value, given: Arguments): string {
  const indentation = argument(given, 1, "indent")
  const separators = argument(given, 2, "separators")
  const indent =
    typeof indentation === "number"
      ? " ".repeat(Math.min(indentation, 64))
      : typeof indentation === "string"
        ? indentation
        : null
  const [item, key] = separators === undefined || separators === null ? [] : iterate(separators)
  return writeJson(value, {
    ensureAscii: truthy(argument(given, 0, "ensure_ascii")),
    indent,
    itemSeparator: typeof item === "string" ? item : indent === null ? ", " : ",",
    keySeparator: typeof key === "string" ? key : ": ",
    sortKeys: truthy(argument(given, 3, "sort_keys")),
  })
}

function indented(value: Value, given: Arguments): string {
  const by = argument(given, 0, "width") ?? 4
  const prefix = typeof by === "string" ? by : " ".repeat(Math.min(Number(typeof by === "number" ? by : 4), 1000))
  const first = truthy(argument(given, 1, "first"))
  const blank = truthy(argument(given, 2, "blank"))
  const source = asText(value)
  const lines = splitLines(`${source}\n`)
  return lines
    .map((line, i) => ((i === 0 && !first) || (line === "" && !blank && i > 0) ? line : prefix + line))
    .join("\n")
}

function toInteger(value: Value, given: Arguments): Value {
  const fallback = argument(given, 0, "default") ?? 0
  if (typeof value === "boolean") return Number(value)
  if (typeof value === "number" || typeof value === "bigint") return value
  if (value instanceof Float) return Number.isFinite(value.value) ? integer(BigInt(Math.trunc(value.value))) : fallback
  if (typeof value !== "string") return fallback
  const plain = strip(value, undefined, 0).replace(/(?<=\d)_(?=\d)/g, "")
  if (/^[-+]?\d+$/.test(plain)) return integer(BigInt(plain.replace(/^\+/, "")))
  const float = readNumber(plain)
  return float !== null && Number.isFinite(float) ? integer(BigInt(Math.trunc(float))) : fallback
}

function toFloatValue(value: Value, given: Arguments): Value {
  const fallback = argument(given, 0, "default") ?? new Float(0)
  if (isNumber(value)) return new Float(toFloat(value))
  if (typeof value !== "string") return fallback
  const float = readNumber(value)
  return float === null ? fallback : new Float(float)
}

/** Python's `round`: half to even, through the decimal text where digits are asked for. */
function rounded(value: Value, given: Arguments): Value {
  if (!isNumber(value)) throw new TemplateError(`type ${typeName(value)} doesn't define __round__ method`)
  const precision = argument(given, 0, "precision")
  const how = argument(given, 1, "method") ?? "common"
  const digits = typeof precision === "number" ? precision : 0
  const scale = 10 ** digits
  const number = toFloat(value)
  if (how === "floor") return new Float(Math.floor(number * scale) / scale)
  if (how === "ceil") return new Float(Math.ceil(number * scale) / scale)
  if (!(value instanceof Float)) return digits >= 0 ? value : Math.round(number * scale) / scale
  return new Float(halfEven(number, digits))
}

function halfEven(value: number, digits: number): number {
  if (digits < 0 || digits > 15) {
    const scale = 10 ** digits
    return Math.round(value * scale) / scale
  }
  const nearest = Number(value.toFixed(digits))
  // `toFixed` rounds the exact binary value and takes exact halves up, where Python takes the even neighbour.
  const [, fraction = ""] = value.toFixed(60).split(".")
  if (!/^50*$/.test(fraction.slice(digits))) return nearest
  const scale = 10 ** digits
  const below = Math.floor(value * scale)
  return (below % 2 === 0 ? below : below + 1) / scale
}

/** A number in Python's spelling, or null: no hexadecimal, but underscores between digits. */
function readNumber(spelling: string): number | null {
  const plain = strip(spelling, undefined, 0).replace(/(?<=\d)_(?=\d)/g, "")
  if (/^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(plain)) return Number(plain)
  const word = /^([-+]?)(inf|infinity|nan)$/i.exec(plain)
  if (word === null) return null
  return word[2]?.toLowerCase() === "nan" ? Number.NaN : word[1] === "-" ? -Infinity : Infinity
}

/** The key by which sort, unique, min, max and groupby look at an item. */
function keyOf(attribute: Value, caseSensitive: boolean): (item: Value) => Value {
  return (item) => {
    const value = attribute === undefined || attribute === null ? item : attributeAt(item, attribute)
    return typeof value === "string" && !caseSensitive ? value.toLowerCase() : value
  }
}

function sorted(value: Value, given: Arguments): Value {
  const key = keyOf(argument(given, 2, "attribute"), truthy(argument(given, 1, "case_sensitive")))
  const items = iterate(value).map((item): [Value, Value] => [key(item), item])
  const sign = truthy(argument(given, 0, "reverse")) ? -1 : 1
  return items.sort(([a], [b]) => sign * compare(a, b)).map(([, item]) => item)
}

function unique(value: Value, given: Arguments): Value {
  const key = keyOf(argument(given, 1, "attribute"), truthy(argument(given, 0, "case_sensitive")))
  const seen: Value[] = []
  const known = new Set<Value>()
  return iterate(value).filter((item) => {
    const mark = key(item)
    if (known.has(mark) || (typeof mark === "object" && seen.some((each) => equal(each, mark)))) return false
    known.add(mark)
    if (typeof mark === "object") seen.push(mark)
    return true
  })
}

function extreme(sign: number): Filter {
  return (value, given) => {
    const key = keyOf(argument(given, 1, "attribute"), truthy(argument(given, 0, "case_sensitive")))
    const items = iterate(value)
    return items.slice(1).reduce((best, item) => (sign * compare(key(item), key(best)) > 0 ? item : best), items[0])
  }
}

function groupBy(value: Value, given: Arguments): Value {
  const attribute = argument(given, 0, "attribute")
  const fallback = argument(given, 1, "default")
  const groups: { key: Value; items: Value[] }[] = []
  const items = iterate(value).map((item): [Value, Value] => [attributeAt(item, attribute) ?? fallback, item])
  items.sort(([a], [b]) => compare(a, b))
  for (const [key, item] of items) {
    const last = groups.at(-1)
    if (last !== undefined && equal(last.key, key)) last.items.push(item)
    else groups.push({ key, items: [item] })
  }
  return groups.map((group) => new Tuple([group.key, group.items]))
}

function dictSorted(value: Value, given: Arguments): Value {
  if (!(value instanceof Map)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'items'`)
  const caseSensitive = truthy(argument(given, 0, "case_sensitive"))
  const position = argument(given, 1, "by") === "value" ? 1 : 0
  const sign = truthy(argument(given, 2, "reverse")) ? -1 : 1
  const key = keyOf(undefined, caseSensitive)
  return [...value]
    .sort((a, b) => sign * compare(key(a[position]), key(b[position])))
    .map(([name, item]) => new Tuple([name, item]))
}

function mapped(value: Value, given: Arguments): Value {
  const attribute = given.named.get("attribute")
  if (attribute !== undefined) {
    const fallback = given.named.get("default")
    return iterate(value).map((item) => attributeAt(item, attribute) ?? fallback)
  }
  const filter = filterNamed(text(given.positional[0]))
  const rest: Arguments = { positional: given.positional.slice(1), named: given.named }
  return iterate(value).map((item) => filter(item, rest))
}

/** select, reject and their attr forms; `byAttribute` takes the first argument as a path. */
function chosen(keep: boolean, byAttribute: boolean): Filter {
  return (value, given) => {
    const [path, ...behind] = byAttribute ? given.positional : [undefined, ...given.positional]
    const [testName, ...rest] = behind
    const test = testName === undefined ? null : testNamed(text(testName))
    const operands: Arguments = { positional: rest, named: given.named }
    return iterate(value).filter((item) => {
      const operand = byAttribute ? attributeAt(item, path) : item
      return (test === null ? truthy(operand) : test(operand, operands)) === keep
    })
  }
}

function sum(value: Value, given: Arguments): Value {
  const attribute = argument(given, 0, "attribute")
  const start = argument(given, 1, "start") ?? 0
  return iterate(value).reduce<Value>(
    (total, item) =>
      operate("+", total, attribute === undefined || attribute === null ? item : attributeAt(item, attribute)),
    start,
  )
}

function joinedItems(value: Value, given: Arguments): string {
  const separator = argument(given, 0, "d") ?? ""
  const attribute = argument(given, 1, "attribute")
  const items = iterate(value).map((item) =>
    text(attribute === undefined || attribute === null ? item : attributeAt(item, attribute)),
  )
  return joinTexts(text(separator), items)
}

function batched(value: Value, given: Arguments): Value {
  const size = argument(given, 0, "linecount")
  const fillWith = argument(given, 1, "fill_with")
  if (typeof size !== "number" || size < 1) throw new TemplateError("batch needs a positive size")
  const items = iterate(value)
  const rows: Value[][] = []
  for (let i = 0; i < items.length; i += size) rows.push(items.slice(i, i + size))
  const last = rows.at(-1)
  if (last !== undefined && fillWith !== undefined && fillWith !== null) while (last.length < size) last.push(fillWith)
  return rows
}

function truncated(value: Value, given: Arguments): string {
  const size = Number(argument(given, 0, "length") ?? 255)
  const killWords = truthy(argument(given, 1, "killwords"))
  const end = text(argument(given, 2, "end") ?? "...")
  const leeway = Number(argument(given, 3, "leeway") ?? 5)
  const chars = Array.from(asText(value))
  if (chars.length <= size + leeway) return chars.join("")
  const kept = chars.slice(0, Math.max(0, size - codePoints(end))).join("")
  if (killWords) return kept + end
  const blank = kept.lastIndexOf(" ")
  return (blank < 0 ? kept : kept.slice(0, blank)) + end
}

function xmlAttributes(value: Value): string {
  if (!(value instanceof Map)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'items'`)
  const parts = Array.from(value, ([key, item]) =>
    item === null || item === undefined ? "" : ` ${text(key)}="${escapeHtml(item)}"`,
  )
  return parts.join("")
}

function fileSize(value: Value, given: Arguments): string {
  const bytes = isNumber(value) ? toFloat(value) : Number(text(value))
  const base = truthy(argument(given, 0, "binary")) ? 1024 : 1000
  const units = base === 1024 ? ["KiB", "MiB", "GiB", "TiB", "PiB"] : ["kB", "MB", "GB", "TB", "PB"]
  if (bytes === 1) return "1 Byte"
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`
  const step = Math.min(units.length, Math.floor(Math.log(bytes) / Math.log(base)))
  return `${(bytes / base ** step).toFixed(1)} ${units[step - 1] ?? ""}`
}

function reversed(value: Value): Value {
  return typeof value === "string" ? Array.from(value).reverse().join("") : [...iterate(value)].reverse()
}

/** Jinja's own `title`: words begin behind blanks, hyphens and opening brackets, not behind an apostrophe. */
function titled(value: Value): string {
  return asText(value)
    .split(/([-\s({[<]+)/)
    .map(capitalize)
    .join("")
}

function absolute(value: Value): Value {
  if (!isNumber(value)) throw new TemplateError(`bad operand type for abs(): '${typeName(value)}'`)
  if (value instanceof Float) return new Float(Math.abs(value.value))
  return Number(value) < 0 ? operate("-", 0, value) : value
}

/** A filter that is the text method of the same name. */
function textMethod(name: string): Filter {
  return (value, given) => method(asText(value), name)?.call(given)
}

const items: Filter = (value) => {
  if (value === undefined) return []
  if (value instanceof Map) return Array.from(value, ([key, item]) => new Tuple([key, item]))
  throw new TemplateError("Can only get item pairs from a mapping.")
}

const fallbackTo: Filter = (value, given) =>
  value === undefined || (truthy(argument(given, 1, "boolean")) && !truthy(value))
    ? (argument(given, 0, "default_value") ?? "")
    : value

const filters = new Map<string, Filter>([
  ["abs", absolute],
  ["attr", (value, given) => attributeAt(value, given.positional[0])],
  ["batch", batched],
  ["capitalize", (value) => capitalize(asText(value))],
  [
    "center",
    (value, given) =>
      method(asText(value), "center")?.call({ positional: [argument(given, 0, "width") ?? 80], named: new Map() }),
  ],
  ["count", length],
  ["d", fallbackTo],
  ["default", fallbackTo],
  ["dictsort", dictSorted],
  ["e", escapeHtml],
  ["escape", escapeHtml],
  ["filesizeformat", fileSize],
  ["first", (value) => iterate(value)[0]],
  ["float", toFloatValue],
  ["forceescape", escapeHtml],
  ["format", (value, given) => formatPercent(asText(value), new Tuple(given.positional))],
  ["groupby", groupBy],
  ["indent", indented],
  ["int", toInteger],
  ["items", items],
  ["join", joinedItems],
  ["last", (value) => iterate(value).at(-1)],
  ["length", length],
  ["list", (value) => [...iterate(value)]],
  ["lower", textMethod("lower")],
  ["map", mapped],
  ["max", extreme(1)],
  ["min", extreme(-1)],
  ["pprint", repr],
  ["reject", chosen(false, false)],
  ["rejectattr", chosen(false, true)],
  [
    "replace",
    (value, given) => {
      const count = argument(given, 2, "count")
      const times = typeof count === "number" ? count : -1
      return replaceText(asText(value), text(argument(given, 0, "old")), text(argument(given, 1, "new")), times)
    },
  ],
  ["reverse", reversed],
  ["round", rounded],
  ["safe", (value) => value],
  ["select", chosen(true, false)],
  ["selectattr", chosen(true, true)],
  ["sort", sorted],
  ["string", text],
  ["striptags", (value) => strip(asText(value).replace(/<!--[\s\S]*?-->|<[^>]*>/g, ""), undefined, 0)],
  ["sum", sum],
  ["title", titled],
  ["tojson", toJson],
  ["trim", (value, given) => strip(asText(value), argument(given, 0, "chars"), 0)],
  ["truncate", truncated],
  ["unique", unique],
  ["upper", textMethod("upper")],
  ["urlencode", (value) => encodeURIComponent(asText(value)).replace(/%2F/g, "/")],
  ["wordcount", (value) => asText(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0],
  ["xmlattr", xmlAttributes],
])

const order =
  (accepts: (sign: number) => boolean): Test =>
  (value, given) =>
    accepts(compare(value, given.positional[0]))
const same: Test = (value, given) => equal(value, given.positional[0])
const different: Test = (value, given) => !equal(value, given.positional[0])

const tests = new Map<string, Test>([
  ["boolean", (value) => typeof value === "boolean"],
  ["callable", (value) => value instanceof Callable],
  ["defined", (value) => value !== undefined],
  ["divisibleby", (value, given) => equal(operate("%", value, given.positional[0]), 0)],
  ["eq", same],
  ["==", same],
  ["equalto", same],
  ["even", (value) => equal(operate("%", value, 2), 0)],
  ["false", (value) => value === false],
  ["filter", (value) => filters.has(text(value))],
  ["float", (value) => value instanceof Float],
  ["ge", order((sign) => sign >= 0)],
  ["gt", order((sign) => sign > 0)],
  ["greaterthan", order((sign) => sign > 0)],
  ["in", (value, given) => contains(given.positional[0], value)],
  ["integer", (value) => typeof value === "number" || typeof value === "bigint"],
  ["iterable", (value) => value === undefined || typeof value === "string" || isContainer(value)],
  ["le", order((sign) => sign <= 0)],
  ["lower", (value) => method(text(value), "islower")?.call(noArguments) === true],
  ["lt", order((sign) => sign < 0)],
  ["lessthan", order((sign) => sign < 0)],
  ["mapping", (value) => value instanceof Map],
  ["ne", different],
  ["!=", different],
  ["none", (value) => value === null],
  ["number", isNumber],
  ["odd", (value) => equal(operate("%", value, 2), 1)],
  ["sameas", (value, given) => value === given.positional[0]],
  ["sequence", (value) => value === undefined || typeof value === "string" || isContainer(value)],
  ["string", (value) => typeof value === "string"],
  ["true", (value) => value === true],
  ["undefined", (value) => value === undefined],
  ["upper", (value) => method(text(value), "isupper")?.call(noArguments) === true],
])

function isContainer(value: Value): boolean {
  return Array.isArray(value) || value instanceof Tuple || value instanceof Map
}

/** The filter of that name; an unknown one is the template's error. */
export function filterNamed(name: string): Filter {
  const found = filters.get(name)
  if (found === undefined) throw new TemplateError(`No filter named '${name}'.`)
  return found
}

/** The test of that name; an unknown one is the template's error. */
export function testNamed(name: string): Test {
  const found = tests.get(name)
  if (found === undefined) throw new TemplateError(`No test named '${name}'.`)
  return found
}
