import type { Json } from "../../ir/conversation"
import { formatTime } from "./clock"
import { Scope } from "./interpreter"
import {
  type Arguments,
  Attributes,
  argument,
  Callable,
  type Dictionary,
  Float,
  iterate,
  Namespace,
  TemplateError,
  text,
  type Value,
} from "./value"

/** Items a `range` may have. Source: the sandbox of Jinja, in which the reference runs templates. */
const rangeItemsMax = 100_000

/**
 * What every template can call: Jinja's globals and the two of transformers, `raise_exception` and `strftime_now`.
 * `now` is the clock.
 */
export function globalScope(now: () => Date): Scope {
  const scope = new Scope(null)
  const define = (name: string, call: (given: Arguments) => Value): void => scope.set(name, new Callable(call))
  define("range", range)
  define("dict", (given) => new Map([...pairsOf(given.positional[0]), ...given.named]))
  define("namespace", (given) => {
    const entries = [...pairsOf(given.positional[0])].map(([key, value]): [string, Value] => [text(key), value])
    return new Namespace(new Map([...entries, ...given.named]))
  })
  define("cycler", (given) => cycler(given.positional))
  define("joiner", (given) => joiner(text(argument(given, 0, "sep") ?? ", ")))
  define("raise_exception", (given) => {
    throw new TemplateError(text(given.positional[0]))
  })
  define("strftime_now", (given) => formatTime(now(), text(given.positional[0])))
  return scope
}

/** A value from a request or a model file as templates see it. Numbers with a fraction are floats. */
export function templateValue(json: Json | Float | undefined): Value {
  if (json instanceof Float) return json
  if (typeof json === "number") return Number.isInteger(json) ? json : new Float(json)
  if (typeof json !== "object" || json === null) return json
  if (Array.isArray(json)) return json.map(templateValue)
  const made: Dictionary = new Map()
  for (const key of Object.keys(json)) made.set(key, templateValue(json[key]))
  return made
}

function pairsOf(source: Value): Dictionary {
  if (source === undefined) return new Map()
  if (source instanceof Map) return source
  return new Map(iterate(source).map((pair): [Value, Value] => [iterate(pair)[0], iterate(pair)[1]]))
}

function range(given: Arguments): Value {
  const [first, second, third] = given.positional.map((value) => {
    if (typeof value === "number") return value
    if (typeof value === "boolean") return Number(value)
    throw new TemplateError("range() takes integers")
  })
  const start = second === undefined ? 0 : (first ?? 0)
  const stop = second ?? first ?? 0
  const step = third ?? 1
  if (step === 0) throw new TemplateError("range() arg 3 must not be zero")
  const count = Math.max(0, Math.ceil((stop - start) / step))
  if (count > rangeItemsMax) {
    throw new TemplateError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${rangeItemsMax}).`)
  }
  return Array.from({ length: count }, (_, i) => start + i * step)
}

function cycler(items: readonly Value[]): Value {
  let at = 0
  const next = new Callable(() => {
    const item = items[at % items.length]
    at += 1
    return item
  })
  const reset = new Callable(() => {
    at = 0
    return null
  })
  return new Attributes((name) => {
    if (name === "next") return next
    if (name === "reset") return reset
    return name === "current" ? items[at % items.length] : undefined
  })
}

function joiner(separator: string): Value {
  let used = false
  return new Callable(() => {
    const part = used ? separator : ""
    used = true
    return part
  })
}
