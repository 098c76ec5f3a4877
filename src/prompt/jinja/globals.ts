import { formatTime } from "./clock"
import { fromKeys } from "./container-methods"
import { text } from "./repr"
import { type Run, type TemplateClock, TemplateError } from "./run"
import { bind } from "./signature"
import {
  type Arguments,
  Callable,
  Dictionary,
  isText,
  listed,
  Namespace,
  plainText,
  Range,
  Special,
  Tuple,
  toIndex,
  typeName,
  type Value,
} from "./value"

/** Items a `range` may have. Source: the sandbox of Jinja, in which the reference runs templates. */
const rangeItemsMax = 100_000

/**
 * What every template can call: Jinja's globals and the two of transformers, `raise_exception` and `strftime_now`.
 * `lipsum` is left out: no prompt is random text.
 */
export function globalVariables(clock: TemplateClock): ReadonlyMap<string, Value> {
  const callable = (name: string, call: (given: Arguments, run: Run) => Value): [string, Value] => [
    name,
    new Callable(`function ${name}`, call),
  ]
  return new Map<string, Value>([
    callable("range", range),
    ["dict", new DictionaryMaker()],
    callable("namespace", namespace),
    callable("cycler", (given) => new Cycler(given)),
    callable("joiner", (given) => {
      const [separator] = bind("joiner", [["sep", ", "]], given)
      return new Joiner(separator)
    }),
    callable("raise_exception", (given, run) => {
      const [message] = bind("raise_exception", [["message"]], given)
      throw new TemplateError(text(message, run))
    }),
    callable("strftime_now", (given) => {
      const [format] = bind("strftime_now", [["format"]], given)
      if (isText(format)) return formatTime(clock.now(), plainText(format))
      throw new TemplateError(`strftime() argument 1 must be str, not ${typeName(format)}`)
    }),
  ])
}

/** What `dict(pairs, name=value)` makes. */
function dictionaryOf(callee: string, given: Arguments, run: Run): Dictionary {
  if (given.positional.length > 1) {
    throw new TemplateError(`${callee} expected at most 1 argument, got ${given.positional.length}`)
  }
  const made = new Dictionary()
  const [source] = given.positional
  if (source instanceof Dictionary) {
    run.buildItems(source.size)
    for (const [key, value] of source.entries()) made.set(key, value)
  } else if (given.positional.length > 0) {
    if (source === undefined) throw new TemplateError("a value is undefined")
    const pairs = listed(source, run)
    run.buildItems(pairs.length)
    for (const pair of pairs) {
      const items = listed(pair, run)
      if (items.length !== 2) {
        throw new TemplateError(`dictionary update sequence element has length ${items.length}; 2 is required`)
      }
      made.set(items[0], items[1])
    }
  }
  given.named.forEach((value, name) => {
    made.set(name, value)
  })
  return made
}

class DictionaryMaker extends Special {
  readonly typeName = "TemplateDict"

  override attribute(name: string): Value {
    return name === "fromkeys" ? new Callable("function fromkeys", fromKeys) : undefined
  }

  override repr(): string {
    return "<TemplateDict object>"
  }

  override call(given: Arguments, run: Run): Value {
    return dictionaryOf("dict", given, run)
  }
}

function namespace(given: Arguments, run: Run): Namespace {
  const entries = dictionaryOf("dict", given, run)
  entries.forEach((_, key) => {
    checkField(isText(key) ? plainText(key) : "")
  })
  return new Namespace(entries)
}

/** Names with an underscore in front are Python's own affair. Source: transformers' `TemplateNamespace`. */
export function checkField(name: string): void {
  if (!name.startsWith("_")) return
  throw new TemplateError(
    `Chat templates cannot store underscore-prefixed attributes on a namespace, but got '${name}'. Please rename the attribute.`,
  )
}

function range(given: Arguments): Value {
  if (given.named.size > 0) throw new TemplateError("range() takes no keyword arguments")
  if (given.positional.length < 1 || given.positional.length > 3) {
    throw new TemplateError(`range expected 1 to 3 arguments, got ${given.positional.length}`)
  }
  const [first = 0, second, step = 1] = given.positional.map((value) => {
    if (typeof value === "number" || typeof value === "boolean") return toIndex(value)
    if (typeof value === "bigint") throw new TemplateError("Python int too large to convert to C ssize_t")
    throw new TemplateError(`'${typeName(value)}' object cannot be interpreted as an integer`)
  })
  if (step === 0) throw new TemplateError("range() arg 3 must not be zero")
  const made = second === undefined ? new Range(0, first, step) : new Range(first, second, step)
  if (made.length <= rangeItemsMax) return made
  throw new TemplateError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${rangeItemsMax}).`)
}

class Cycler extends Special {
  readonly typeName = "Cycler"
  private readonly items: readonly Value[]
  private at = 0

  constructor(given: Arguments) {
    super()
    if (given.named.size > 0) throw new TemplateError("Cycler() takes no keyword arguments")
    if (given.positional.length === 0) throw new TemplateError("at least one item has to be provided")
    this.items = given.positional
  }

  override attribute(name: string): Value {
    switch (name) {
      case "next":
        return new Callable("bound method Cycler.next", () => this.next())
      case "reset":
        return new Callable("bound method Cycler.reset", () => this.reset())
      case "current":
        return this.items[this.at]
      case "pos":
        return this.at
      case "items":
        return new Tuple(this.items)
      default:
        return undefined
    }
  }

  override repr(): string {
    return "<Cycler object>"
  }

  private next(): Value {
    const item = this.items[this.at]
    this.at = (this.at + 1) % this.items.length
    return item
  }

  private reset(): Value {
    this.at = 0
    return null
  }
}

class Joiner extends Special {
  readonly typeName = "Joiner"
  private readonly separator: Value
  private used = false

  constructor(separator: Value) {
    super()
    this.separator = separator
  }

  override attribute(name: string): Value {
    if (name === "sep") return this.separator
    return name === "used" ? this.used : undefined
  }

  override repr(): string {
    return "<Joiner object>"
  }

  override call(): Value {
    if (this.used) return this.separator
    this.used = true
    return ""
  }
}
