/** Python's methods on texts, dictionaries, lists and tuples, as far as templates may call them (nothing that mutates). */
import {
  type Arguments,
  argument,
  Callable,
  type Dictionary,
  equal,
  iterate,
  repr,
  TemplateError,
  Tuple,
  text,
  typeName,
  type Value,
} from "./value"

/** Python's white space for texts; JavaScript's lacks U+001C–U+001F and U+0085 and has U+FEFF. */
const space = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
const leadingSpace = new RegExp(`^[${space}]+`)
const spaceUnit = new RegExp(`[${space}]`)
const spaceRun = new RegExp(`[${space}]+`, "g")
const onlySpace = new RegExp(`^[${space}]+$`)
const breaks = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
const lineBreak = new RegExp(`\r\n|[${breaks}]`, "g")

/** The method of that name, bound to the value; undefined where the value has none. */
export function method(value: Value, name: string): Callable | undefined {
  if (typeof value === "string") {
    const found = textMethods.get(name)
    return found === undefined ? undefined : new Callable((given) => found(value, given))
  }
  if (value instanceof Map) {
    const found = dictionaryMethods.get(name)
    return found === undefined ? undefined : new Callable((given) => found(value, given))
  }
  if (Array.isArray(value) || value instanceof Tuple) {
    const found = listMethods.get(name)
    return found === undefined ? undefined : new Callable((given) => found(iterate(value), given))
  }
  return undefined
}

/** Python's `str.strip`; `sides` is 0 for both, -1 for the left one, 1 for the right one. */
export function strip(value: string, chars: Value, sides: number): string {
  let start = 0
  let end = value.length
  if (typeof chars === "string") {
    if (sides <= 0) while (start < end && chars.includes(value[start] ?? "")) start += 1
    if (sides >= 0) while (end > start && chars.includes(value[end - 1] ?? "")) end -= 1
    return value.slice(start, end)
  }
  if (sides <= 0) start = leadingSpace.exec(value)?.[0].length ?? 0
  if (sides >= 0) while (end > start && spaceUnit.test(value[end - 1] ?? "")) end -= 1
  return value.slice(start, end)
}

/** Python's `str.title`: a capital after anything that is no letter. */
function titleCase(value: string): string {
  return value.replace(/\p{L}+/gu, (word) => capitalize(word))
}

/** Python's `str.capitalize`. */
export function capitalize(value: string): string {
  const [first = ""] = value
  return first.toUpperCase() + value.slice(first.length).toLowerCase()
}

/** Python's `str.replace`; `count` below 0 = all. */
export function replaceText(value: string, old: string, fresh: string, count: number): string {
  if (count < 0) return value.replaceAll(old, () => fresh)
  const parts = value.split(old)
  const cut = Math.min(count, parts.length - 1)
  return (
    parts.slice(0, cut + 1).join(fresh) +
    parts
      .slice(cut + 1)
      .map((part) => old + part)
      .join("")
  )
}

/** Python's `str.splitlines` without ends. */
export function splitLines(value: string): string[] {
  const lines = value.split(lineBreak)
  if (lines.at(-1) === "") lines.pop()
  return lines
}

type TextMethod = (value: string, given: Arguments) => Value
type DictionaryMethod = (value: Dictionary, given: Arguments) => Value
type ListMethod = (value: readonly Value[], given: Arguments) => Value

const textMethods = new Map<string, TextMethod>([
  ["upper", (value) => value.toUpperCase()],
  ["lower", (value) => value.toLowerCase()],
  ["casefold", (value) => value.toLowerCase()],
  ["title", titleCase],
  ["capitalize", capitalize],
  [
    "swapcase",
    (value) => Array.from(value, (c) => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase())).join(""),
  ],
  ["strip", (value, given) => strip(value, argument(given, 0, "chars"), 0)],
  ["lstrip", (value, given) => strip(value, argument(given, 0, "chars"), -1)],
  ["rstrip", (value, given) => strip(value, argument(given, 0, "chars"), 1)],
  ["startswith", (value, given) => affixes(given).some((affix) => value.startsWith(affix))],
  ["endswith", (value, given) => affixes(given).some((affix) => value.endsWith(affix))],
  ["removeprefix", (value, given) => removed(value, textArgument(given, 0, "prefix"), true)],
  ["removesuffix", (value, given) => removed(value, textArgument(given, 0, "suffix"), false)],
  ["split", (value, given) => split(value, argument(given, 0, "sep"), count(given, 1, "maxsplit"))],
  ["rsplit", (value, given) => splitRight(value, argument(given, 0, "sep"), count(given, 1, "maxsplit"))],
  ["splitlines", (value) => splitLines(value)],
  ["partition", (value, given) => partition(value, textArgument(given, 0, "sep"), false)],
  ["rpartition", (value, given) => partition(value, textArgument(given, 0, "sep"), true)],
  [
    "replace",
    (value, given) =>
      replaceText(value, textArgument(given, 0, "old"), textArgument(given, 1, "new"), count(given, 2, "count")),
  ],
  ["join", (value, given) => joinTexts(value, iterate(argument(given, 0, "iterable")))],
  ["count", (value, given) => value.split(textArgument(given, 0, "sub")).length - 1],
  ["find", (value, given) => codePointIndex(value, value.indexOf(textArgument(given, 0, "sub")))],
  ["rfind", (value, given) => codePointIndex(value, value.lastIndexOf(textArgument(given, 0, "sub")))],
  ["index", (value, given) => indexOrRaise(value, textArgument(given, 0, "sub"))],
  ["isdigit", (value) => /^\p{Nd}+$/u.test(value)],
  ["isnumeric", (value) => /^\p{N}+$/u.test(value)],
  ["isdecimal", (value) => /^\p{Nd}+$/u.test(value)],
  ["isalpha", (value) => /^\p{L}+$/u.test(value)],
  ["isalnum", (value) => /^[\p{L}\p{N}]+$/u.test(value)],
  ["isspace", (value) => onlySpace.test(value)],
  ["isupper", (value) => value === value.toUpperCase() && value !== value.toLowerCase()],
  ["islower", (value) => value === value.toLowerCase() && value !== value.toUpperCase()],
  ["zfill", (value, given) => zeroFilled(value, width(given))],
  ["ljust", (value, given) => value.padEnd(width(given), fill(given))],
  ["rjust", (value, given) => value.padStart(width(given), fill(given))],
  ["center", (value, given) => centered(value, width(given))],
  ["format", formatBraces],
  ["encode", (value) => value],
])

const dictionaryMethods = new Map<string, DictionaryMethod>([
  [
    "get",
    (value, given) => (value.has(given.positional[0]) ? value.get(given.positional[0]) : (given.positional[1] ?? null)),
  ],
  ["items", (value) => Array.from(value, ([key, item]) => new Tuple([key, item]))],
  ["keys", (value) => [...value.keys()]],
  ["values", (value) => [...value.values()]],
  ["copy", (value) => new Map(value)],
])

const listMethods = new Map<string, ListMethod>([
  ["count", (value, given) => value.filter((item) => equal(item, given.positional[0])).length],
  [
    "index",
    (value, given) => {
      const found = value.findIndex((item) => equal(item, given.positional[0]))
      if (found >= 0) return found
      throw new TemplateError(`${repr(given.positional[0])} is not in list`)
    },
  ],
  ["copy", (value) => [...value]],
])

/** Python's `str.join`. */
export function joinTexts(separator: string, items: readonly Value[]): string {
  return items
    .map((item, i) => {
      if (typeof item === "string") return item
      throw new TemplateError(`sequence item ${i}: expected str instance, ${typeName(item)} found`)
    })
    .join(separator)
}

/** Centres a text as Python does: the odd blank goes to the left where the width is odd. */
export function centered(value: string, wide: number): string {
  const missing = wide - value.length
  if (missing <= 0) return value
  const left = (missing >> 1) + (missing & wide & 1)
  return " ".repeat(left) + value + " ".repeat(missing - left)
}

function textArgument(given: Arguments, index: number, name: string): string {
  const value = argument(given, index, name)
  if (typeof value === "string") return value
  throw new TemplateError(`must be str, not ${typeName(value)}`)
}

function count(given: Arguments, index: number, name: string): number {
  const value = argument(given, index, name)
  return typeof value === "number" ? value : -1
}

function width(given: Arguments): number {
  const value = given.positional[0]
  return typeof value === "number" ? Math.min(value, 100_000) : 0
}

function zeroFilled(value: string, wide: number): string {
  const sign = /^[-+]/.test(value) ? value.slice(0, 1) : ""
  return sign + value.slice(sign.length).padStart(wide - sign.length, "0")
}

function fill(given: Arguments): string {
  const value = given.positional[1]
  return typeof value === "string" ? value : " "
}

function affixes(given: Arguments): readonly string[] {
  const value = given.positional[0]
  if (typeof value === "string") return [value]
  if (value instanceof Tuple) return value.items.map(text)
  throw new TemplateError(`startswith first arg must be str or a tuple of str, not ${typeName(value)}`)
}

function removed(value: string, affix: string, front: boolean): string {
  if (front) return value.startsWith(affix) ? value.slice(affix.length) : value
  return affix !== "" && value.endsWith(affix) ? value.slice(0, -affix.length) : value
}

function split(value: string, separator: Value, times: number): Value {
  if (typeof separator === "string") {
    if (separator === "") throw new TemplateError("empty separator")
    const parts = value.split(separator)
    if (times < 0 || parts.length <= times + 1) return parts
    return [...parts.slice(0, times), parts.slice(times).join(separator)]
  }
  const words: string[] = []
  let rest = strip(value, undefined, -1)
  spaceRun.lastIndex = 0
  if (times < 0) return rest === "" ? [] : strip(rest, undefined, 1).split(spaceRun)
  while (rest !== "" && words.length < times) {
    const at = rest.search(spaceUnit)
    if (at < 0) break
    words.push(rest.slice(0, at))
    rest = strip(rest.slice(at), undefined, -1)
  }
  if (rest !== "") words.push(rest)
  return words
}

function splitRight(value: string, separator: Value, times: number): Value {
  if (times < 0) return split(value, separator, -1)
  if (typeof separator !== "string") {
    const words = iterate(split(value, separator, -1)).map(text)
    return words.length <= times + 1 ? words : [words.slice(0, words.length - times).join(" "), ...words.slice(-times)]
  }
  const parts = iterate(split(value, separator, -1)).map(text)
  if (parts.length <= times + 1) return parts
  const cut = parts.length - times
  return [parts.slice(0, cut).join(separator), ...parts.slice(cut)]
}

function partition(value: string, separator: string, last: boolean): Tuple {
  const at = last ? value.lastIndexOf(separator) : value.indexOf(separator)
  if (at < 0) return new Tuple(last ? ["", "", value] : [value, "", ""])
  return new Tuple([value.slice(0, at), separator, value.slice(at + separator.length)])
}

function codePointIndex(value: string, at: number): number {
  return at <= 0 ? at : Array.from(value.slice(0, at)).length
}

function indexOrRaise(value: string, part: string): number {
  const at = value.indexOf(part)
  if (at < 0) throw new TemplateError("substring not found")
  return codePointIndex(value, at)
}

/** `'{} {0} {name}'.format(…)`, without format specifications. */
function formatBraces(value: string, given: Arguments): string {
  let next = 0
  return value.replace(/\{\{|\}\}|\{(\w*)\}/g, (whole: string, field: string | undefined) => {
    if (field === undefined) return whole[0] ?? ""
    if (field === "") return text(given.positional[next++])
    return text(/^\d+$/.test(field) ? given.positional[Number(field)] : given.named.get(field))
  })
}
