/** Python's methods on texts. Places are code points. */
import { capitalize, caseFold, isLower, isTitle, isUpper, swapCase, titleCase } from "./letter-case"
import { escaped, unescapeHtml } from "./markup"
import { isPrintable } from "./repr"
import { type Run, TemplateError } from "./run"
import { bind, type Parameter } from "./signature"
import {
  type Arguments,
  codePoints,
  counted,
  Dictionary,
  hasSurrogates,
  isText,
  listed,
  Markup,
  plainText,
  Tuple,
  toIndex,
  toSmallInteger,
  typeName,
  type Value,
} from "./value"
import { isBlank, type Side, splitLines, strip, words, wordsFromBehind } from "./whitespace"

interface TextMethod {
  readonly parameters: readonly Parameter[]
  readonly apply: (value: string, args: readonly Value[], run: Run) => Value
}

function define(parameters: readonly Parameter[], apply: TextMethod["apply"]): TextMethod {
  return { parameters, apply }
}

/** A method without arguments. */
function plain(apply: (value: string) => Value): TextMethod {
  return { parameters: [], apply }
}

const window: readonly Parameter[] = [["/sub"], ["/start", null], ["/end", null]]
const splitting: readonly Parameter[] = [
  ["sep", null],
  ["maxsplit", -1],
]
const padding: readonly Parameter[] = [["/width"], ["/fillchar", " "]]

const methods = new Map<string, TextMethod>([
  ["capitalize", plain(capitalize)],
  ["casefold", plain(caseFold)],
  ["center", define(padding, (value, [width, fill], run) => padded(value, width, fill, "both", run))],
  ["count", define(window, count)],
  ["endswith", define(window, (value, args) => affixed(value, args, "endswith"))],
  ["expandtabs", define([["tabsize", 8]], (value, [size], run) => expandTabs(value, toIndex(size), run))],
  ["find", define(window, (value, args, run) => place(value, args, false, run))],
  ["index", define(window, (value, args, run) => foundPlace(place(value, args, false, run)))],
  ["isalnum", plain((value) => /^[\p{L}\p{N}]+$/u.test(value))],
  ["isalpha", plain((value) => /^\p{L}+$/u.test(value))],
  ["isascii", plain((value) => !/[^\0-\x7f]/.test(value))],
  ["isdecimal", plain((value) => /^\p{Nd}+$/u.test(value))],
  ["isdigit", plain((value) => digits.test(value))],
  ["isidentifier", plain((value) => /^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(value))],
  ["islower", plain(isLower)],
  ["isnumeric", plain((value) => numerals.test(value))],
  ["isprintable", plain((value) => Array.from(value).every(isPrintable))],
  ["isspace", plain(isBlank)],
  ["istitle", plain(isTitle)],
  ["isupper", plain(isUpper)],
  ["join", define([["/iterable"]], (value, [items], run) => joined(value, listed(items, run), run))],
  ["ljust", define(padding, (value, [width, fill], run) => padded(value, width, fill, "right", run))],
  ["lower", plain((value) => value.toLowerCase())],
  ["lstrip", define([["/chars", null]], (value, [chars]) => stripped(value, chars, "left"))],
  ["maketrans", define([["/x"], ["/y", null], ["/z", null]], (_value, args) => translationTable(args))],
  ["partition", define([["/sep"]], (value, [separator], run) => partition(value, separator, false, run))],
  ["removeprefix", define([["/prefix"]], (value, [prefix]) => withoutPrefix(value, asText(prefix)))],
  ["removesuffix", define([["/suffix"]], (value, [suffix]) => withoutSuffix(value, asText(suffix)))],
  [
    "replace",
    define([["/old"], ["/new"], ["/count", -1]], (value, [old, fresh, times], run) =>
      replaceText(value, asText(old), asText(fresh), toIndex(times), run),
    ),
  ],
  ["rfind", define(window, (value, args, run) => place(value, args, true, run))],
  ["rindex", define(window, (value, args, run) => foundPlace(place(value, args, true, run)))],
  ["rjust", define(padding, (value, [width, fill], run) => padded(value, width, fill, "left", run))],
  ["rpartition", define([["/sep"]], (value, [separator], run) => partition(value, separator, true, run))],
  ["rsplit", define(splitting, (value, [separator, times], run) => splitRight(value, separator, toIndex(times), run))],
  ["rstrip", define([["/chars", null]], (value, [chars]) => stripped(value, chars, "right"))],
  ["split", define(splitting, (value, [separator, times], run) => split(value, separator, toIndex(times), run))],
  ["splitlines", define([["keepends", false]], (value, [keep]) => splitLines(value, toSmallInteger(keep) !== 0))],
  ["startswith", define(window, (value, args) => affixed(value, args, "startswith"))],
  ["strip", define([["/chars", null]], (value, [chars]) => stripped(value, chars, "both"))],
  ["swapcase", plain(swapCase)],
  ["title", plain(titleCase)],
  ["translate", define([["/table"]], (value, [table], run) => translated(value, table, run))],
  ["upper", plain((value) => value.toUpperCase())],
  ["zfill", define([["/width"]], (value, [width], run) => zeroFilled(value, toIndex(width), run))],
])

/** Digits in Python's sense: decimal ones, and those that stand above, below or in a circle. */
const otherDigits = "\\u00b2\\u00b3\\u00b9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468"
const moreDigits =
  "\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792"
const digits = new RegExp(`^[\\p{Nd}${otherDigits}${moreDigits}]+$`, "u")
/** Han numerals are letters by category and still numeric. */
const numerals = /^[\p{N}〇一二三四五六七八九十百千万亿兆零壱壹弐貳贰参叁肆伍陸陆漆柒捌玖拾陌佰阡仟廿卅卌億萬両两]+$/u

/** True when texts have a method of that name. */
export function isTextMethod(name: string): boolean {
  return methods.has(name)
}

/** Calls the method of that name; on an escaped text the result is escaped as well. */
export function callTextMethod(value: string | Markup, name: string, given: Arguments, run: Run): Value {
  const method = methods.get(name)
  if (method === undefined) throw new TemplateError(`'str' object has no attribute '${name}'`)
  const args = bind(name, method.parameters, given)
  run.work(plainText(value).length)
  if (typeof value !== "string") return markedUp(method.apply(value.text, escapedArguments(name, args, run), run))
  return counted(method.apply(value, args, run), run)
}

/** What goes into an escaped text is escaped. */
function escapedArguments(name: string, args: readonly Value[], run: Run): readonly Value[] {
  if (name === "replace" && isText(args[1])) return args.with(1, escaped(args[1], run))
  if (name === "join") return [listed(args[0], run).map((item) => escaped(item, run))]
  return args
}

/** What escaped texts have beside the methods of texts. */
export function markupMethod(value: Markup, name: string): Value {
  if (name === "unescape") return unescapeHtml(value.text)
  return name === "striptags" ? stripTags(value.text) : undefined
}

/** MarkupSafe's `striptags`: comments, then tags, then runs of white space, then entities. */
export function stripTags(markup: string): string {
  const untagged = without(without(markup, "<!--", "-->"), "<", ">")
  return unescapeHtml(words(untagged, -1).join(" "))
}

function without(text: string, opening: string, closing: string): string {
  let kept = ""
  let from = 0
  for (;;) {
    const start = text.indexOf(opening, from)
    const end = start < 0 ? -1 : text.indexOf(closing, start)
    if (end < 0) return kept + text.slice(from)
    kept += text.slice(from, start)
    from = end + closing.length
  }
}

function markedUp(value: Value): Value {
  if (typeof value === "string") return new Markup(value)
  if (value instanceof Tuple) return new Tuple(value.items.map(markedUp))
  return Array.isArray(value) ? value.map(markedUp) : value
}

function asText(value: Value): string {
  if (isText(value)) return plainText(value)
  throw new TemplateError(`must be str, not ${typeName(value)}`)
}

/** Python's `str.join`. */
export function joined(separator: string, items: readonly Value[], run: Run): string {
  const texts = items.map((item, i) => {
    if (isText(item)) return plainText(item)
    throw new TemplateError(`sequence item ${i}: expected str instance, ${typeName(item)} found`)
  })
  let units = separator.length * texts.length
  for (const each of texts) units += each.length
  run.build(units)
  return texts.join(separator)
}

/** Python's `str.replace`; `times` below 0 = all. */
export function replaceText(value: string, old: string, fresh: string, times: number, run: Run): string {
  run.search(value, old)
  if (!value.includes(old)) return value
  const parts = old === "" ? ["", ...Array.from(value), ""] : value.split(old)
  const cuts = times < 0 ? parts.length - 1 : Math.min(times, parts.length - 1)
  run.build(value.length + cuts * fresh.length)
  return [parts.slice(0, cuts + 1).join(fresh), ...parts.slice(cuts + 1)].join(old)
}

function stripped(value: string, chars: Value, side: Side): string {
  if (chars === null) return strip(value, null, side)
  if (isText(chars)) return strip(value, plainText(chars), side)
  throw new TemplateError("strip arg must be None or str")
}

/** The text between two places, what to look for in it, and how many code points stand before it. */
function within(value: string, [sub, start, end]: readonly Value[]): [string, string, number] {
  const wanted = asText(sub)
  if (start === null && end === null) return [value, wanted, 0]
  const points = hasSurrogates(value) ? Array.from(value) : value
  const place = (at: Value, fallback: number): number => {
    if (at === null) return fallback
    const index = toIndex(at)
    return Math.max(0, index < 0 ? index + points.length : index)
  }
  const from = place(start, 0)
  const to = Math.min(place(end, points.length), points.length)
  // Behind the end nothing is found, not even the empty text.
  if (from > points.length || from > to) return ["", wanted === "" ? "\0" : wanted, from]
  const part = points.slice(from, to)
  return [typeof part === "string" ? part : part.join(""), wanted, from]
}

function count(value: string, args: readonly Value[], run: Run): number {
  const [part, sub] = within(value, args)
  run.search(part, sub)
  return sub === "" ? codePoints(part) + 1 : part.split(sub).length - 1
}

function place(value: string, args: readonly Value[], last: boolean, run: Run): number {
  const [part, sub, offset] = within(value, args)
  run.search(part, sub)
  const at = last ? part.lastIndexOf(sub) : part.indexOf(sub)
  return at < 0 ? -1 : offset + codePoints(part.slice(0, at))
}

function foundPlace(at: number): number {
  if (at < 0) throw new TemplateError("substring not found")
  return at
}

function affixed(value: string, [affix, start, end]: readonly Value[], name: "startswith" | "endswith"): boolean {
  if (typeof affix === "string" && start === null && end === null) {
    return name === "startswith" ? value.startsWith(affix) : value.endsWith(affix)
  }
  const affixes = affix instanceof Tuple ? affix.items : [affix]
  const bad = affixes.find((each) => !isText(each))
  if (affixes.some((each) => !isText(each))) {
    throw new TemplateError(`${name} first arg must be str or a tuple of str, not ${typeName(bad)}`)
  }
  return affixes.some((each) => {
    const [part, sub] = within(value, [each, start, end])
    return name === "startswith" ? part.startsWith(sub) : part.endsWith(sub)
  })
}

function withoutPrefix(value: string, prefix: string): string {
  return value.startsWith(prefix) ? value.slice(prefix.length) : value
}

function withoutSuffix(value: string, suffix: string): string {
  return suffix !== "" && value.endsWith(suffix) ? value.slice(0, -suffix.length) : value
}

function separatorText(value: string, separator: Value, run: Run): string {
  const plainSeparator = asText(separator)
  if (plainSeparator === "") throw new TemplateError("empty separator")
  run.search(value, plainSeparator)
  return plainSeparator
}

function split(value: string, separator: Value, times: number, run: Run): Value {
  if (separator === null) return words(value, times)
  const between = separatorText(value, separator, run)
  const parts = value.split(between)
  if (times < 0 || parts.length <= times + 1) return parts
  return [...parts.slice(0, times), parts.slice(times).join(between)]
}

function splitRight(value: string, separator: Value, times: number, run: Run): Value {
  if (separator === null) return wordsFromBehind(value, times)
  const between = separatorText(value, separator, run)
  const parts = splitFromBehind(value, between)
  if (times < 0 || parts.length <= times + 1) return parts
  const cut = parts.length - times
  return [parts.slice(0, cut).join(between), ...parts.slice(cut)]
}

/** Where separators overlap (`aaa` at `aa`), the last one wins. */
function splitFromBehind(value: string, between: string): string[] {
  const parts: string[] = []
  let end = value.length
  for (;;) {
    const at = end < between.length ? -1 : value.lastIndexOf(between, end - between.length)
    if (at < 0) break
    parts.push(value.slice(at + between.length, end))
    end = at
  }
  parts.push(value.slice(0, end))
  return parts.reverse()
}

function partition(value: string, separator: Value, last: boolean, run: Run): Tuple {
  const between = separatorText(value, separator, run)
  const at = last ? value.lastIndexOf(between) : value.indexOf(between)
  if (at < 0) return new Tuple(last ? ["", "", value] : [value, "", ""])
  return new Tuple([value.slice(0, at), between, value.slice(at + between.length)])
}

/** Pads a text; `side` tells where the filling goes. The odd one of `both` stands on the left where the width is odd. */
function padded(value: string, width: Value, fill: Value, side: Side, run: Run): string {
  const wide = toIndex(width)
  if (!isText(fill) || codePoints(plainText(fill)) !== 1) {
    throw new TemplateError("The fill character must be exactly one character long")
  }
  const missing = wide - codePoints(value)
  if (missing <= 0) return value
  run.build(value.length + missing)
  const filling = plainText(fill)
  const left = side === "left" ? missing : side === "right" ? 0 : (missing >> 1) + (missing & wide & 1)
  return filling.repeat(left) + value + filling.repeat(missing - left)
}

function zeroFilled(value: string, wide: number, run: Run): string {
  const sign = /^[-+]/.test(value) ? value.slice(0, 1) : ""
  const missing = wide - codePoints(value)
  if (missing <= 0) return value
  run.build(wide)
  return sign + "0".repeat(missing) + value.slice(sign.length)
}

function expandTabs(value: string, size: number, run: Run): string {
  let made = ""
  let column = 0
  for (const char of value) {
    if (char === "\t") {
      const blanks = size > 0 ? size - (column % size) : 0
      run.build(blanks)
      made += " ".repeat(blanks)
      column += blanks
    } else {
      made += char
      column = char === "\n" || char === "\r" ? 0 : column + 1
    }
  }
  return made
}

function translationTable([from, to, dropped]: readonly Value[]): Dictionary {
  const table = new Dictionary()
  if (to === null) {
    if (!(from instanceof Dictionary)) throw new TemplateError("maketrans() with one argument takes a dict")
    for (const [key, value] of from.entries()) table.set(isText(key) ? plainText(key).codePointAt(0) : key, value)
    return table
  }
  const [left, right] = [Array.from(asText(from)), Array.from(asText(to))]
  if (left.length !== right.length) {
    throw new TemplateError("the first two maketrans arguments must have equal length")
  }
  left.forEach((char, i) => {
    table.set(char.codePointAt(0), right[i]!.codePointAt(0))
  })
  if (dropped !== null) for (const char of asText(dropped)) table.set(char.codePointAt(0), null)
  return table
}

function translated(value: string, table: Value, run: Run): string {
  if (!(table instanceof Dictionary)) throw new TemplateError(`'${typeName(table)}' object is not subscriptable`)
  return Array.from(value, (char) => {
    const code = char.codePointAt(0)
    if (!table.has(code)) return char
    const fresh = table.get(code)
    if (fresh === null) return ""
    if (!isText(fresh)) return String.fromCodePoint(toIndex(fresh))
    run.build(plainText(fresh).length)
    return plainText(fresh)
  }).join("")
}
