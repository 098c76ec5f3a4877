/** Python's methods on dictionaries, lists, tuples and ranges; those that change them are not there (sandbox). */
import { equal } from "./equality"
import { repr } from "./repr"
import { type Run, TemplateError } from "./run"
import { bind } from "./signature"
import { type Arguments, Dictionary, listed, toIndex, type Value, View } from "./value"

type DictionaryMethod = (value: Dictionary, given: Arguments, run: Run) => Value
type ListMethod = (value: readonly Value[], given: Arguments, run: Run) => Value

const dictionaryMethods = new Map<string, DictionaryMethod>([
  ["copy", (value, given, run) => copied(value, bind("copy", [], given), run)],
  ["fromkeys", (_value, given, run) => fromKeys(given, run)],
  [
    "get",
    (value, given) => {
      const [key, fallback] = bind("get", [["/key"], ["/default", null]], given)
      return value.has(key) ? value.get(key) : fallback
    },
  ],
  ["items", (value, given) => viewed("items", value, given)],
  ["keys", (value, given) => viewed("keys", value, given)],
  ["values", (value, given) => viewed("values", value, given)],
])

const listMethods = new Map<string, ListMethod>([
  [
    "count",
    (value, given, run) => {
      const [item] = bind("count", [["/value"]], given)
      run.work(value.length)
      return value.filter((each) => equal(each, item, run)).length
    },
  ],
  [
    "index",
    (value, given, run) => {
      const [item, start, stop] = bind("index", [["/value"], ["/start", 0], ["/stop", null]], given)
      const at = (index: number): number => Math.max(0, index < 0 ? index + value.length : index)
      run.work(value.length)
      const end = stop === null ? value.length : Math.min(at(toIndex(stop)), value.length)
      for (let i = at(toIndex(start)); i < end; i++) if (equal(value[i], item, run)) return i
      throw new TemplateError(`${repr(item, run)} is not in list`)
    },
  ],
])

/** Names that change a dictionary or list in Python: to a template they are undefined, even where a key has them. */
const changing = {
  dictionary: new Set(["clear", "pop", "popitem", "setdefault", "update"]),
  list: new Set(["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"]),
}

/** True when the name is that of a method which changes such a value. */
export function isChanging(value: Value, name: string): boolean {
  if (Array.isArray(value)) return changing.list.has(name)
  return value instanceof Dictionary && changing.dictionary.has(name)
}

/** True when the name stands for a method of dictionaries, also one that is not to be had. */
export function isDictionaryMethod(name: string): boolean {
  return dictionaryMethods.has(name) || changing.dictionary.has(name)
}

/** The method of that name, or undefined when it is not to be had. */
export function dictionaryMethod(name: string): DictionaryMethod | undefined {
  return dictionaryMethods.get(name)
}

/** The method of lists (`copy` included) or of tuples and ranges, or undefined. */
export function listMethod(name: string, isList: boolean): ListMethod | undefined {
  if (isList && name === "copy") return (value, given, run) => copiedItems(value, bind("copy", [], given), run)
  return listMethods.get(name)
}

function copiedItems(items: readonly Value[], _none: readonly Value[], run: Run): Value[] {
  run.buildItems(items.length)
  return [...items]
}

function copied(value: Dictionary, _none: readonly Value[], run: Run): Dictionary {
  run.buildItems(value.size)
  const copy = new Dictionary()
  for (const [key, item] of value.entries()) copy.set(key, item)
  return copy
}

function viewed(kind: View["kind"], value: Dictionary, given: Arguments): View {
  bind(kind, [], given)
  return new View(kind, value)
}

/** Python's `dict.fromkeys`. */
export function fromKeys(given: Arguments, run: Run): Dictionary {
  const [keys, value] = bind("fromkeys", [["/iterable"], ["/value", null]], given)
  const made = new Dictionary()
  const items = listed(keys, run)
  run.buildItems(items.length)
  for (const key of items) made.set(key, value)
  return made
}
