/** Jinja's filters over sequences that look at all items. */

import { operate } from "./arithmetic"
import { Group } from "./attribute"
import { compare, equal } from "./equality"
import { type Filter, filterEntry, ignoreCase, pathReader } from "./filter"
import { type Run, TemplateError } from "./run"
import {
  Dictionary,
  isInteger,
  isNumber,
  isText,
  iterate,
  Lazy,
  listed,
  Markup,
  plainText,
  Range,
  sizeOf,
  Tuple,
  toFloat,
  toIndex,
  truthy,
  typeName,
  type Value,
  View,
} from "./value"

/** The key by which an item is compared: read from it, in lower case where case does not count. */
function keyReader(attribute: Value, caseSensitive: Value, run: Run, fallback: Value = null): (item: Value) => Value {
  const read = pathReader(attribute, run, fallback)
  return truthy(caseSensitive) ? read : (item) => ignoreCase(read(item))
}

/** Python's flag of a sort, which must be a number. */
function backwards(reverse: Value): boolean {
  if (typeof reverse === "boolean" || isInteger(reverse)) return truthy(reverse)
  throw new TemplateError(`'${typeName(reverse)}' object cannot be interpreted as an integer`)
}

/** Sorts by keys and keeps equal items in order, also when reversed. */
function sortedBy(items: readonly Value[], key: (item: Value) => Value, reverse: boolean, run: Run): Value[] {
  const keyed = items.map((item): [Value, Value] => [key(item), item])
  const sign = reverse ? -1 : 1
  keyed.sort(([a], [b]) => {
    run.step()
    return sign * compare(a, b, run)
  })
  return keyed.map(([, item]) => item)
}

function sort(value: Value, [reverse, caseSensitive, attribute]: readonly Value[], run: Run): Value {
  // Several attributes with commas between sort by the first, then the next.
  const paths = isText(attribute) ? plainText(attribute).split(",") : [attribute]
  const readers = paths.map((path) => keyReader(path, caseSensitive, run))
  return sortedBy(listed(value, run), (item) => readers.map((read) => read(item)), backwards(reverse), run)
}

function sortDictionary(value: Value, [caseSensitive, by, reverse]: readonly Value[], run: Run): Value {
  if (by !== "key" && by !== "value") throw new TemplateError('You can only sort by either "key" or "value"')
  if (!(value instanceof Dictionary)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'items'`)
  const place = by === "key" ? 0 : 1
  const pairs = value.entries().map((pair) => new Tuple(pair))
  return sortedBy(pairs, keyReader(place, caseSensitive, run), backwards(reverse), run)
}

function* unique(value: Value, [caseSensitive, attribute]: readonly Value[], run: Run): Generator<Value> {
  const read = keyReader(attribute, caseSensitive, run)
  const seen = new Dictionary()
  for (const item of iterate(value, run)) {
    run.step()
    const key = read(item)
    if (seen.has(key)) continue
    seen.set(key, true)
    yield item
  }
}

function extreme(name: string, sign: number): [string, Filter] {
  const parameters = [
    ["case_sensitive", false],
    ["attribute", null],
  ] as const
  return filterEntry(name, parameters, (value, [caseSensitive, attribute], run) => {
    const read = keyReader(attribute, caseSensitive, run)
    const [first, ...rest] = listed(value, run)
    let best = first
    let bestKey = rest.length === 0 ? undefined : read(first)
    for (const item of rest) {
      const key = read(item)
      if (sign * compare(key, bestKey, run) <= 0) continue
      best = item
      bestKey = key
    }
    return best
  })
}

function groupBy(value: Value, [attribute, fallback, caseSensitive]: readonly Value[], run: Run): Value {
  const read = keyReader(attribute, caseSensitive, run, fallback)
  const groups: { readonly key: Value; readonly items: Value[] }[] = []
  for (const item of sortedBy(listed(value, run), read, false, run)) {
    const key = read(item)
    const last = groups.at(-1)
    if (last !== undefined && equal(last.key, key, run)) last.items.push(item)
    else groups.push({ key, items: [item] })
  }
  // Where case does not count, the group has the key of its first item as it is written.
  const written = pathReader(attribute, run, fallback)
  return groups.map(({ items }) => new Group([written(items[0]), items]))
}

function sum(value: Value, [attribute, start]: readonly Value[], run: Run): Value {
  const read = pathReader(attribute, run)
  if (isText(start)) throw new TemplateError("sum() can't sum strings [use ''.join(seq) instead]")
  let total: Value = start
  for (const item of listed(value, run)) total = operate("+", total, read(item), run)
  return total
}

function* batch(value: Value, [size, fill]: readonly Value[], run: Run): Generator<Value> {
  let row: Value[] = []
  for (const item of iterate(value, run)) {
    run.step()
    if (equal(row.length, size, run)) {
      yield row
      row = []
    }
    row.push(item)
  }
  if (row.length === 0) return
  if (fill === null || (isNumber(size) && toFloat(size) <= row.length)) {
    yield row
    return
  }
  const missing = toIndex(size) - row.length
  run.buildItems(Math.max(0, missing))
  for (let i = 0; i < missing; i++) row.push(fill)
  yield row
}

function* slices(value: Value, [count, fill]: readonly Value[], run: Run): Generator<Value> {
  const items = listed(value, run)
  const parts = toIndex(count)
  if (parts === 0) throw new TemplateError("integer division or modulo by zero")
  const size = Math.floor(items.length / parts)
  const larger = items.length - parts * size
  let start = 0
  for (let i = 0; i < parts; i++) {
    run.step()
    const end = start + size + (i < larger ? 1 : 0)
    const part = items.slice(start, end)
    yield fill !== null && i >= larger ? [...part, fill] : part
    start = end
  }
}

function reversed(value: Value, run: Run): Value {
  if (isText(value)) {
    run.buildItems(sizeOf(value))
    const turned = Array.from(plainText(value)).reverse().join("")
    return value instanceof Markup ? new Markup(turned) : turned
  }
  if (value instanceof Lazy || value === undefined) return [...listed(value, run)].reverse()
  const name = reversedNames.find(([kind]) => value instanceof kind)?.[1] ?? "reversed"
  return new Lazy(name, [...listed(value, run)].reverse().values())
}

const reversedNames = [
  [Array, "list_reverseiterator"],
  [Dictionary, "dict_reversekeyiterator"],
  [View, "dict_reverseitemiterator"],
  [Range, "range_iterator"],
] as const

function first(value: Value, run: Run): Value {
  const items = iterate(value, run)
  run.step()
  if (!(items instanceof Lazy)) return items[0]
  const next = items.items.next()
  return next.done === true ? undefined : next.value
}

function last(value: Value, run: Run): Value {
  const items = iterate(value, run)
  if (items instanceof Lazy) throw new TemplateError(`'${typeName(value)}' object is not reversible`)
  return items.at(-1)
}

function random(value: Value, run: Run): Value {
  const items = iterate(value, run)
  if (items instanceof Lazy || value instanceof Dictionary) throw new TemplateError("random needs a sequence")
  return items[Math.floor(Math.random() * items.length)]
}

function* pairs(value: Value): Generator<Value> {
  if (value === undefined) return
  if (!(value instanceof Dictionary)) throw new TemplateError("Can only get item pairs from a mapping.")
  for (const pair of value.entries()) yield new Tuple(pair)
}

function generator(items: Generator<Value>): Lazy {
  return new Lazy("generator", items)
}

/** Their table. */
export const sequenceFilters: readonly [string, Filter][] = [
  filterEntry("batch", [["linecount"], ["fill_with", null]], (value, args, run) => generator(batch(value, args, run))),
  filterEntry(
    "dictsort",
    [
      ["case_sensitive", false],
      ["by", "key"],
      ["reverse", false],
    ],
    sortDictionary,
  ),
  filterEntry("first", [], (value, _args, run) => first(value, run)),
  filterEntry("groupby", [["attribute"], ["default", null], ["case_sensitive", false]], groupBy),
  filterEntry("items", [], (value) => generator(pairs(value))),
  filterEntry("last", [], (value, _args, run) => last(value, run)),
  filterEntry("list", [], (value, _args, run) => [...listed(value, run)]),
  extreme("max", 1),
  extreme("min", -1),
  filterEntry("random", [], (value, _args, run) => random(value, run)),
  filterEntry("reverse", [], (value, _args, run) => reversed(value, run)),
  filterEntry("slice", [["slices"], ["fill_with", null]], (value, args, run) => generator(slices(value, args, run))),
  filterEntry(
    "sort",
    [
      ["reverse", false],
      ["case_sensitive", false],
      ["attribute", null],
    ],
    sort,
  ),
  filterEntry(
    "sum",
    [
      ["attribute", null],
      ["start", 0],
    ],
    sum,
  ),
  filterEntry(
    "unique",
    [
      ["case_sensitive", false],
      ["attribute", null],
    ],
    (value, args, run) => generator(unique(value, args, run)),
  ),
]
