/** Jinja's filters that apply another filter or a test to each item. They are generators: nothing runs until read. */
import { type Filter, type Names, pathReader } from "./filter"
import { text } from "./repr"
import { type Run, TemplateError } from "./run"
import { type Arguments, iterate, Lazy, truthy, type Value } from "./value"

function* mapped(value: Value, given: Arguments, names: Names, run: Run): Generator<Value> {
  if (!truthy(value)) return
  const apply = mapping(given, names, run)
  for (const item of iterate(value, run)) {
    run.step()
    yield apply(item)
  }
}

function mapping(given: Arguments, names: Names, run: Run): (item: Value) => Value {
  const { positional, named } = given
  if (positional.length === 0 && named.has("attribute")) {
    const unknown = [...named.keys()].find((name) => name !== "attribute" && name !== "default")
    if (unknown !== undefined) throw new TemplateError(`Unexpected keyword argument '${unknown}'`)
    return pathReader(named.get("attribute"), run, named.has("default") ? named.get("default") : null)
  }
  if (positional.length === 0) throw new TemplateError("map requires a filter argument")
  const filter = names.filter(text(positional[0], run))
  const rest: Arguments = { positional: positional.slice(1), named }
  return (item) => filter(item, rest, run)
}

interface Choice {
  readonly keep: boolean
  /** The first argument is a path to what the test looks at. */
  readonly byAttribute: boolean
}

function* chosen(value: Value, given: Arguments, choice: Choice, names: Names, run: Run): Generator<Value> {
  if (!truthy(value)) return
  const accepts = acceptance(given, choice, names, run)
  for (const item of iterate(value, run)) {
    run.step()
    if (accepts(item) === choice.keep) yield item
  }
}

function acceptance(given: Arguments, { byAttribute }: Choice, names: Names, run: Run): (item: Value) => boolean {
  if (byAttribute && given.positional.length === 0) throw new TemplateError("Missing parameter for attribute name")
  const read = byAttribute ? pathReader(given.positional[0], run) : (item: Value): Value => item
  const [name, ...positional] = byAttribute ? given.positional.slice(1) : given.positional
  const isBare = given.positional.length === (byAttribute ? 1 : 0)
  if (isBare) return (item) => truthy(read(item))
  const test = names.test(text(name, run))
  const rest: Arguments = { positional, named: given.named }
  return (item) => test(read(item), rest, run)
}

/** Their table; `names` finds the filters and tests that arguments name. */
export function choiceFilters(names: Names): [string, Filter][] {
  const choose =
    (choice: Choice): Filter =>
    (value, given, run) =>
      new Lazy("generator", chosen(value, given, choice, names, run))
  return [
    ["map", (value, given, run) => new Lazy("generator", mapped(value, given, names, run))],
    ["reject", choose({ keep: false, byAttribute: false })],
    ["rejectattr", choose({ keep: false, byAttribute: true })],
    ["select", choose({ keep: true, byAttribute: false })],
    ["selectattr", choose({ keep: true, byAttribute: true })],
  ]
}
