/**
 * The values a chat template computes with, as Python sees them: an integer and a float are two kinds, lists and
 * dictionaries print as Python prints them, filters give generators that can be read once. Texts, booleans, arrays
 * (lists) and `null` are JavaScript's own; `number` and `bigint` are integers; `undefined` is Jinja's undefined.
 */
import type { Json } from "../../ir/conversation"
import { type Run, TemplateError } from "./run"

/** A Python float: 14.0 is not 14 where a template prints it. */
export class Float {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** A text that counts as escaped HTML (`escape`, `safe`): adding a plain text to it escapes that text. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A Python tuple; differs from a list in how it prints and in being a possible key. */
export class Tuple {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** A Python range, not spelled out. */
export class Range {
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number

  constructor(start: number, stop: number, step: number) {
    this.start = start
    this.stop = stop
    this.step = step
    this.length = Math.max(0, Math.ceil((stop - start) / step))
  }

  /** All its numbers. */
  spelledOut(): number[] {
    return Array.from({ length: this.length }, (_, i) => this.start + i * this.step)
  }
}

/** A Python generator or iterator: it is true even when empty, has no length, and can be read once. */
export class Lazy {
  readonly typeName: string
  readonly items: Iterator<Value>

  constructor(typeName: string, items: Iterator<Value>) {
    this.typeName = typeName
    this.items = items
  }

  [Symbol.iterator](): Iterator<Value> {
    return this.items
  }
}

/** UTF-16 units of a tuple's spelling as a key. */
const tupleSpellingMax = 65_536

/** What a `Dictionary` files a value under: equal keys (1, 1.0 and true) have one. */
type Key = null | undefined | number | bigint | string | object

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json
}

/** A Python dictionary: keys of any hashable kind, in the order they came. */
export class Dictionary {
  /** The JSON object that it stands for, if it does: those are only looked through when something asks. */
  readonly source: JsonObject | null
  private readonly filed = new Map<Key, Value>()
  private fill: ((from: JsonObject, into: Dictionary) => void) | null
  /** Keys that are not what they are filed under. */
  private originals: Map<Key, Value> | null = null
  /** The first of equal tuples and ranges, under which all of them are filed. */
  private spelled: Map<string, Tuple | Range> | null = null

  /** An empty one, or one that `fill` will fill from a JSON object. */
  constructor(source: JsonObject | null = null, fill: ((from: JsonObject, into: Dictionary) => void) | null = null) {
    this.source = source
    this.fill = fill
  }

  private read(): Map<Key, Value> {
    const { fill, source } = this
    if (fill === null || source === null) return this.filed
    this.fill = null
    fill(source, this)
    return this.filed
  }

  get size(): number {
    return this.read().size
  }

  get(key: Value): Value {
    return this.read().get(typeof key === "string" ? key : this.file(key))
  }

  has(key: Value): boolean {
    return this.read().has(typeof key === "string" ? key : this.file(key))
  }

  /** A key that is there keeps its place and its first form, as in Python. */
  set(key: Value, value: Value): this {
    if (typeof key === "string") {
      this.filed.set(key, value)
      return this
    }
    const filedUnder = this.file(key)
    if (filedUnder !== key && !this.filed.has(filedUnder)) {
      this.originals ??= new Map()
      this.originals.set(filedUnder, key)
    }
    this.filed.set(filedUnder, value)
    return this
  }

  keys(): Value[] {
    // What is filed under itself is a value.
    if (this.originals === null) return [...this.read().keys()] as Value[]
    return Array.from(this.filed.keys(), (key) => this.original(key))
  }

  values(): Value[] {
    return [...this.read().values()]
  }

  entries(): [Value, Value][] {
    if (this.originals === null) return [...this.read()] as [Value, Value][]
    return Array.from(this.filed, ([key, value]) => [this.original(key), value])
  }

  /** Visits all entries in order, making no list of them. */
  forEach(visit: (value: Value, key: Value) => void): void {
    // What is filed under itself is a value.
    const filed = this.read()
    if (this.originals === null) filed.forEach(visit as (value: Value, key: Key) => void)
    else for (const [key, value] of filed) visit(value, this.original(key))
  }

  private original(key: Key): Value {
    // What is filed under itself is a value; the others are looked up.
    if (this.originals === null) return key as Value
    return this.originals.has(key) ? this.originals.get(key) : (key as Value)
  }

  private file(key: Value): Key {
    if (typeof key === "boolean") return Number(key)
    if (key instanceof Float) return floatKey(key.value)
    if (key instanceof Markup) return key.text
    if (Array.isArray(key) || key instanceof Dictionary || (key instanceof View && key.kind !== "values")) {
      throw new TemplateError(`unhashable type: '${typeName(key)}'`)
    }
    if (!(key instanceof Tuple) && !(key instanceof Range)) return key
    const spelling = key instanceof Tuple ? tupleSpelling(key) : rangeSpelling(key)
    this.spelled ??= new Map()
    const known = this.spelled.get(spelling)
    if (known === undefined) this.spelled.set(spelling, key)
    return known ?? key
  }
}

/** Floats equal integers: beyond 2^53 those are big ones. */
function floatKey(value: number): number | bigint {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value + 0
}

/** Ranges are equal when their numbers are. */
function rangeSpelling({ start, step, length }: Range): string {
  return length === 0 ? "range" : `range ${start} ${length} ${length === 1 ? 0 : step}`
}

/** A text that tuples have in common when they are equal. */
function tupleSpelling(tuple: Tuple): string {
  const parts = tuple.items.map((item) => {
    if (item instanceof Tuple) return tupleSpelling(item)
    if (isText(item)) return JSON.stringify(plainText(item))
    if (isNumber(item)) return String(item instanceof Float ? floatKey(item.value) : Number(item))
    if (Array.isArray(item) || item instanceof Dictionary) {
      throw new TemplateError(`unhashable type: '${typeName(item)}'`)
    }
    return typeName(item)
  })
  const spelling = `(${parts.join()})`
  // A tuple of a tuple twice, and so on, would grow without end.
  if (spelling.length > tupleSpellingMax) throw new TemplateError("the tuple is too large for a key")
  return spelling
}

/** What `keys`, `values` and `items` of a dictionary give: it can be read again and again, but not indexed. */
export class View {
  readonly kind: "keys" | "values" | "items"
  private readonly dictionary: Dictionary

  constructor(kind: "keys" | "values" | "items", dictionary: Dictionary) {
    this.kind = kind
    this.dictionary = dictionary
  }

  get size(): number {
    return this.dictionary.size
  }

  /** Whether keys have it: a look-up, so an item that cannot be a key is an error. */
  hasKey(item: Value): boolean {
    return this.dictionary.has(item)
  }

  spelledOut(): Value[] {
    if (this.kind === "keys") return this.dictionary.keys()
    if (this.kind === "values") return this.dictionary.values()
    return this.dictionary.entries().map((pair) => new Tuple(pair))
  }
}

/** Jinja's `namespace`: the only thing whose attributes a template may set. */
export class Namespace {
  readonly entries: Dictionary

  constructor(entries: Dictionary) {
    this.entries = entries
  }
}

/** Arguments of a call, filter or test. */
export interface Arguments {
  readonly positional: readonly Value[]
  readonly named: ReadonlyMap<string, Value>
}

/** No arguments. */
export const noArguments: Arguments = { positional: [], named: new Map() }

/** Something a template can call: a global, a method or a macro. */
export class Callable {
  /** As Python prints it, without the address. */
  readonly name: string
  readonly call: (given: Arguments, run: Run) => Value

  constructor(name: string, call: (given: Arguments, run: Run) => Value) {
    this.name = name
    this.call = call
  }
}

/** An object of the language itself with computed attributes (`loop`, `cycler`, macros). */
export abstract class Special {
  abstract readonly typeName: string
  /** `undefined` for names it does not have. */
  abstract attribute(name: string): Value
  /** Python's `repr`. */
  abstract repr(): string
  /** Python's `len`; null for those that have none. */
  get size(): number | null {
    return null
  }

  /** Most cannot be called. */
  call(_given: Arguments, _run: Run): Value {
    throw new TemplateError(`'${this.typeName}' object is not callable`)
  }
}

/** Any value. */
export type Value =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Markup
  | Tuple
  | Range
  | Lazy
  | Namespace
  | Callable
  | Special
  | View
  | Dictionary
  | Value[]

/** What Python counts as a number. */
export type NumberValue = number | bigint | boolean | Float

/** True for what Python counts as a number: int, float, bool. */
export function isNumber(value: Value): value is NumberValue {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean" || value instanceof Float
}

/** True for Python's `int`, without `bool`. */
export function isInteger(value: Value): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint"
}

/** True for texts, escaped or not. */
export function isText(value: Value): value is string | Markup {
  return typeof value === "string" || value instanceof Markup
}

/** The characters of a text. */
export function plainText(value: string | Markup): string {
  return typeof value === "string" ? value : value.text
}

/** Brings a big integer back to a plain number where it fits, so that equal integers have one form. */
export function integer(value: bigint): number | bigint {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

/** A number as a float. An integer too large for one is the template's error. */
export function toFloat(value: NumberValue): number {
  if (value instanceof Float) return value.value
  const float = Number(value)
  if (!Number.isFinite(float)) throw new TemplateError("int too large to convert to float")
  return float
}

/** An integer that Python keeps in a C `int`. */
export function toSmallInteger(value: Value): number {
  const index = toIndex(value)
  if (Math.abs(index) < 2 ** 31) return index
  throw new TemplateError("Python int too large to convert to C int")
}

/** An integer for a place in a list or a count: what Python's `__index__` takes. Values beyond 2^53 are cut to it. */
export function toIndex(value: Value): number {
  if (typeof value === "number") return value
  if (typeof value === "boolean") return Number(value)
  if (typeof value === "bigint") return value > 0n ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
  throw new TemplateError("an integer is required")
}

/** Python's name of the value's type, for error messages. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case "undefined":
      return "Undefined"
    case "boolean":
      return "bool"
    case "number":
    case "bigint":
      return "int"
    case "string":
      return "str"
  }
  if (value === null) return "NoneType"
  if (Array.isArray(value)) return "list"
  if (value instanceof Dictionary) return "dict"
  if (value instanceof Float) return "float"
  if (value instanceof Markup) return "Markup"
  if (value instanceof Tuple) return "tuple"
  if (value instanceof Range) return "range"
  if (value instanceof View) return `dict_${value.kind}`
  if (value instanceof Namespace) return "TemplateNamespace"
  if (value instanceof Callable) return "function"
  return value.typeName
}

/** Python's truth of a value. */
export function truthy(value: Value): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value)
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof Dictionary || value instanceof View) return value.size > 0
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Markup) return value.text !== ""
  if (value instanceof Tuple) return value.items.length > 0
  if (value instanceof Range) return value.length > 0
  if (value instanceof Special) return value.size !== 0
  return true
}

/** Units that an operation on a value goes through, near enough for counting: what is looked through only in parts is little. */
export function sizeOf(value: Value): number {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 1
  if (Array.isArray(value) || value instanceof Range) return value.length
  if (value instanceof Markup) return value.text.length
  if (value instanceof Tuple) return value.items.length
  return value instanceof View || (value instanceof Dictionary && value.source === null) ? value.size : 1
}

/** A value that an operation made, its text or its items counted. */
export function counted<Made extends Value>(made: Made, run: Run): Made {
  if (isText(made)) run.build(plainText(made).length)
  else if (Array.isArray(made)) run.buildItems(made.length)
  return made
}

/** What can be gone through, as an array or an iterator: keys of a dictionary, characters of a text. */
export function iterate(value: Value, run: Run): readonly Value[] | Lazy {
  if (isText(value)) run.buildItems(sizeOf(value))
  else if (!Array.isArray(value)) run.work(sizeOf(value))
  if (Array.isArray(value) || value instanceof Lazy) return value
  if (value === undefined) return []
  if (typeof value === "string") return Array.from(value)
  if (value instanceof Dictionary) return value.keys()
  if (value instanceof Tuple) return value.items
  if (value instanceof View || value instanceof Range) return value.spelledOut()
  if (value instanceof Markup) return Array.from(value.text)
  throw new TemplateError(`'${typeName(value)}' object is not iterable`)
}

/** All items at once; an iterator is read to its end, each item a step. */
export function listed(value: Value, run: Run): readonly Value[] {
  const items = iterate(value, run)
  if (!(items instanceof Lazy)) return items
  const list: Value[] = []
  for (const item of items) {
    run.step()
    list.push(item)
  }
  return list
}

/** Python's `len`. */
export function length(value: Value): number {
  if (value === undefined) return 0
  if (typeof value === "string") return codePoints(value)
  if (value instanceof Markup) return codePoints(value.text)
  if (Array.isArray(value) || value instanceof Range) return value.length
  if (value instanceof Tuple) return value.items.length
  if (value instanceof Dictionary || value instanceof View) return value.size
  if (value instanceof Special && value.size !== null) return value.size
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

/** True when some character takes two UTF-16 units, so that places are not code points. */
export function hasSurrogates(text: string): boolean {
  return /[\ud800-\udfff]/.test(text)
}
