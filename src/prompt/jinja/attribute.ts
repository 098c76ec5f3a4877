/**
 * How templates reach into values: Jinja's `a.b` (attribute first), `a[b]` (item first) and slices, as its sandbox lets
 * them. Nothing here looks at a JavaScript object's own properties: every name is looked up in a table or a dictionary.
 */
import { formatBraces, formatMap, type Lookup } from "./brace-format"
import { dictionaryMethod, isChanging, isDictionaryMethod, listMethod } from "./container-methods"
import { repr } from "./repr"
import { type Run, TemplateError } from "./run"
import { callTextMethod, isTextMethod, markupMethod } from "./text-methods"
import {
  type Arguments,
  Callable,
  counted,
  Dictionary,
  Float,
  hasSurrogates,
  isInteger,
  isNumber,
  isText,
  Markup,
  Namespace,
  plainText,
  Range,
  Special,
  sizeOf,
  Tuple,
  toIndex,
  typeName,
  type Value,
} from "./value"

/** Jinja's `object.name`. The object is defined: the caller tells what is not in its own words. */
export function attributeOf(object: Value, name: string, run: Run): Value {
  if (object instanceof Dictionary) {
    return isDictionaryMethod(name) || isInternal(name) ? pythonAttribute(object, name, run) : object.get(name)
  }
  if (object === undefined) throw undefinedObject(name)
  return pythonAttribute(object, name, run)
}

/** Jinja's `object[key]`, for keys that are no slices. */
export function itemOf(object: Value, key: Value, run: Run): Value {
  if (object instanceof Dictionary) {
    if (typeof key === "string") return object.has(key) ? object.get(key) : pythonAttribute(object, key, run)
    return hashable(key) ? object.get(key) : undefined
  }
  if (object === undefined) throw undefinedObject("")
  if (isText(key)) return pythonAttribute(object, plainText(key), run)
  if (!isInteger(key) && typeof key !== "boolean") return undefined
  const index = toIndex(key)
  if (Array.isArray(object)) return object.at(index)
  if (object instanceof Tuple) return object.items.at(index)
  if (object instanceof Range) {
    const at = index < 0 ? index + object.length : index
    return at >= 0 && at < object.length ? object.start + at * object.step : undefined
  }
  return isText(object) ? characterAt(object, index, run) : undefined
}

const lookup: Lookup = { attribute: attributeOf, item: itemOf }

function hashable(key: Value): boolean {
  return !Array.isArray(key) && !(key instanceof Dictionary)
}

/** Names with two underscores are Python's inner ones: the sandbox gives nothing for them. */
function isInternal(name: string): boolean {
  return name.startsWith("__") && name.endsWith("__")
}

/** What Python's `getattr` finds and the sandbox lets through. */
function pythonAttribute(object: Value, name: string, run: Run): Value {
  if (name.startsWith("_")) return undefined
  if (isText(object)) return textAttribute(object, name)
  if (object instanceof Dictionary) {
    const method = dictionaryMethod(name)
    return method === undefined ? undefined : bound(name, (given, run) => method(object, given, run))
  }
  if (Array.isArray(object)) return sequenceMethod(object, name, true)
  if (object instanceof Namespace) return object.entries.get(name)
  if (object instanceof Special) return object.attribute(name)
  if (object instanceof Group && (name === "grouper" || name === "list")) {
    return object.items[name === "grouper" ? 0 : 1]
  }
  if (object instanceof Tuple) return sequenceMethod(object.items, name, false)
  if (object instanceof Range) {
    if (name === "start" || name === "stop" || name === "step") return object[name]
    run.work(object.length)
    return sequenceMethod(object.spelledOut(), name, false)
  }
  return isNumber(object) ? numberAttribute(object, name) : undefined
}

/** A group of `groupby`: a pair whose parts have names too. */
export class Group extends Tuple {}

function bound(name: string, call: (given: Arguments, run: Run) => Value): Callable {
  return new Callable(`built-in method ${name}`, call)
}

function textAttribute(object: string | Markup, name: string): Value {
  if (name === "format") return bound(name, (given, run) => formatBraces(object, given, lookup, run))
  if (name === "format_map") {
    return bound(name, (given, run) => formatMap(object, given.positional[0], lookup, run))
  }
  if (object instanceof Markup && (name === "striptags" || name === "unescape")) {
    return bound(name, () => markupMethod(object, name))
  }
  return isTextMethod(name) ? bound(name, (given, run) => callTextMethod(object, name, given, run)) : undefined
}

function sequenceMethod(items: readonly Value[], name: string, isList: boolean): Value {
  const method = listMethod(name, isList)
  return method === undefined ? undefined : bound(name, (given, run) => method(items, given, run))
}

function numberAttribute(value: Value, name: string): Value {
  switch (name) {
    case "real":
      return typeof value === "boolean" ? Number(value) : value
    case "imag":
      return value instanceof Float ? new Float(0) : 0
    case "is_integer":
      return value instanceof Float ? bound(name, () => Number.isInteger(value.value)) : undefined
    case "numerator":
      return value instanceof Float ? undefined : typeof value === "boolean" ? Number(value) : value
    case "denominator":
      return value instanceof Float ? undefined : 1
    default:
      return undefined
  }
}

function characterAt(object: string | Markup, index: number, run: Run): Value {
  const plain = plainText(object)
  run.work(plain.length)
  const char = hasSurrogates(plain) ? Array.from(plain).at(index) : plain.at(index)
  return char !== undefined && object instanceof Markup ? new Markup(char) : char
}

/** Jinja's `object[start:stop:step]`; parts that are left out are null. */
export function sliceOf(object: Value, parts: readonly [Value, Value, Value], run: Run): Value {
  const bounds = parts.map((part) => {
    if (part === null) return null
    if (isInteger(part) || typeof part === "boolean") return toIndex(part)
    throw new TemplateError("slice indices must be integers or None or have an __index__ method")
  })
  const [start = null, stop = null, step = null] = bounds
  if (step === 0) throw new TemplateError("slice step cannot be zero")
  const by = step ?? 1
  run.work(sizeOf(object))
  if (isText(object)) {
    const plain = plainText(object)
    const cut = hasSurrogates(plain)
      ? sliced(Array.from(plain), start, stop, by).join("")
      : by === 1
        ? plain.slice(start ?? 0, stop ?? plain.length)
        : sliced(plain.split(""), start, stop, by).join("")
    return object instanceof Markup ? new Markup(cut) : cut
  }
  if (Array.isArray(object)) return counted(sliced(object, start, stop, by), run)
  if (object instanceof Tuple) return new Tuple(counted(sliced(object.items, start, stop, by), run))
  if (object instanceof Range) return slicedRange(object, start, stop, by)
  if (object instanceof Dictionary) throw new TemplateError("unhashable type: 'slice'")
  if (object === undefined) throw undefinedObject("")
  throw new TemplateError(`'${typeName(object)}' object is not subscriptable`)
}

/** First and last place of a slice in a sequence of that size, as Python counts them. */
function places(size: number, start: number | null, stop: number | null, step: number): readonly [number, number] {
  const clamp = (index: number, low: number, high: number): number =>
    Math.min(Math.max(index < 0 ? index + size : index, low), high)
  if (step > 0) return [clamp(start ?? 0, 0, size), clamp(stop ?? size, 0, size)]
  return [clamp(start ?? size - 1, -1, size - 1), stop === null ? -1 : clamp(stop, -1, size - 1)]
}

function sliced<Item>(items: readonly Item[], start: number | null, stop: number | null, step: number): Item[] {
  const [from, to] = places(items.length, start, stop, step)
  if (step === 1) return items.slice(from, Math.max(from, to))
  const made: Item[] = []
  // Every place is inside: `places` sees to it.
  for (let i = from; step > 0 ? i < to : i > to; i += step) made.push(items[i]!)
  return made
}

function slicedRange(range: Range, start: number | null, stop: number | null, step: number): Range {
  const [from, to] = places(range.length, start, stop, step)
  return new Range(range.start + from * range.step, range.start + to * range.step, range.step * step)
}

function undefinedObject(name: string): TemplateError {
  return new TemplateError(name === "" ? "a value is undefined" : `the value before '.${name}' is undefined`)
}

function isUnsafe(object: Value, name: string): boolean {
  return isInternal(name) || isChanging(object, name)
}

/** Jinja's words for an attribute or item that is not there. */
export function missingMessage(object: Value, key: Value, run: Run): string {
  if (isText(key) && isUnsafe(object, plainText(key))) {
    return `access to attribute ${repr(plainText(key), run)} of '${typeName(object)}' object is unsafe.`
  }
  const kind = object === null ? "None" : `${typeName(object)} object`
  return isText(key)
    ? `'${kind}' has no attribute ${repr(plainText(key), run)}`
    : `${kind} has no element ${repr(key, run)}`
}
