/** Jinja's filters that make texts. */
import { operate } from "./arithmetic"
import { type Filter, filterEntry, pathReader } from "./filter"
import { toJson } from "./json"
import { capitalize } from "./letter-case"
import { escaped, escapeHtml } from "./markup"
import { readFloat } from "./number-text"
import { formatPercent } from "./percent-format"
import { prettyPrinted } from "./pretty-print"
import { repr, text } from "./repr"
import { fixedText } from "./rounding"
import { type Run, TemplateError } from "./run"
import { callTextMethod, replaceText, stripTags } from "./text-methods"
import {
  type Arguments,
  Callable,
  codePoints,
  Dictionary,
  isNumber,
  isText,
  iterate,
  Lazy,
  listed,
  Markup,
  Namespace,
  noArguments,
  plainText,
  Special,
  Tuple,
  toFloat,
  toIndex,
  truthy,
  typeName,
  type Value,
} from "./value"
import { splitLines } from "./whitespace"
import { wrapLines } from "./word-wrap"

/** Jinja's `soft_str`: escaped texts stay escaped, what is no text is printed. */
function softText(value: Value, run: Run): string | Markup {
  return isText(value) ? value : text(value, run)
}

function method(name: string, value: Value, args: readonly Value[], run: Run): Value {
  const given: Arguments = args.length === 0 ? noArguments : { positional: args, named: noArguments.named }
  return callTextMethod(softText(value, run), name, given, run)
}

function indent(value: Value, [width, first, blank]: readonly Value[], run: Run): Value {
  const indention = isText(width) ? plainText(width) : " ".repeat(indentWidth(width, run))
  if (!isText(value)) return operate("+", value, "\n", run)
  const isEscaped = value instanceof Markup
  const lines = splitLines(`${plainText(value)}\n`)
  const prefix = isEscaped && isText(width) && !(width instanceof Markup) ? plainText(width) : indention
  run.build(plainText(value).length + lines.length * prefix.length)
  const indented = lines.map((line, i) => (i > 0 && (line !== "" || truthy(blank)) ? prefix + line : line)).join("\n")
  const made = truthy(first) ? prefix + indented : indented
  return isEscaped ? new Markup(made) : made
}

function indentWidth(width: Value, run: Run): number {
  const blanks = Math.max(0, toIndex(width))
  run.build(blanks)
  return blanks
}

function truncate(value: Value, [size, killWords, ending, leeway]: readonly Value[], run: Run): Value {
  if (!isText(ending)) throw new TemplateError(`object of type '${typeName(ending)}' has no len()`)
  const end = plainText(ending)
  const most = toIndex(size)
  const slack = leeway === null ? 5 : toIndex(leeway)
  if (most < codePoints(end)) throw new TemplateError(`expected length >= ${codePoints(end)}, got ${most}`)
  if (slack < 0) throw new TemplateError(`expected leeway >= 0, got ${slack}`)
  if (!isText(value)) {
    // Whatever has a length and is short enough comes back as it is.
    if (value === undefined || lengthOf(value, run) <= most + slack) return value
    throw new TemplateError(`can only concatenate ${typeName(value)}, not str`)
  }
  const chars = Array.from(plainText(value))
  if (chars.length <= most + slack) return value
  const kept = chars.slice(0, most - codePoints(end)).join("")
  const blank = truthy(killWords) ? -1 : kept.lastIndexOf(" ")
  const cut = blank < 0 ? kept : kept.slice(0, blank)
  return operate("+", value instanceof Markup ? new Markup(cut) : cut, ending, run)
}

function lengthOf(value: Value, run: Run): number {
  const items = isNumber(value) || value === null ? null : iterate(value, run)
  if (items === null || items instanceof Lazy)
    throw new TemplateError(`object of type '${typeName(value)}' has no len()`)
  return items.length
}

function join(value: Value, [separator, attribute]: readonly Value[], run: Run): string {
  const between = text(separator, run)
  const items = listed(value, run)
  const read = pathReader(attribute, run)
  let units = between.length * items.length
  const texts = items.map((item) => {
    const spelled = text(read(item), run)
    units += spelled.length
    return spelled
  })
  run.build(units)
  return texts.join(between)
}

/** Jinja's own `title`: words begin behind blanks, hyphens and opening brackets, not behind an apostrophe. */
function title(value: Value, run: Run): string {
  return plainText(softText(value, run))
    .split(/([-\s({[<]+)/)
    .map(capitalize)
    .join("")
}

function xmlAttributes(value: Value, [autospace]: readonly Value[], run: Run): string {
  if (!(value instanceof Dictionary)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'items'`)
  const parts: string[] = []
  for (const [key, item] of value.entries()) {
    if (item === null || item === undefined) continue
    if (!isText(key)) throw new TemplateError("expected string or bytes-like object")
    if (/[\s/>=]/.test(plainText(key))) {
      throw new TemplateError(`Invalid character in attribute name: ${repr(key, run)}`)
    }
    parts.push(`${escaped(key, run)}="${escaped(item, run)}"`)
  }
  const made = parts.join(" ")
  return truthy(autospace) && made !== "" ? ` ${made}` : made
}

/** Python's `float(value)`. */
function floatOf(value: Value): number {
  if (isNumber(value)) return toFloat(value)
  const read = isText(value) ? readFloat(plainText(value)) : null
  if (read !== null) return read
  if (isText(value)) throw new TemplateError("could not convert string to float")
  throw new TemplateError(`float() argument must be a string or a real number, not '${typeName(value)}'`)
}

const binaryUnits = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
const decimalUnits = ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]

function fileSize(bytes: number, binary: boolean): string {
  const base = binary ? 1024 : 1000
  const units = binary ? binaryUnits : decimalUnits
  if (bytes === 1) return "1 Byte"
  if (bytes < base) return `${BigInt(Math.trunc(bytes))} Bytes`
  let at = 0
  while (at < units.length - 1 && bytes >= base ** (at + 2)) at += 1
  const scaled = (base * bytes) / base ** (at + 2)
  return `${fixedText(scaled, 1)} ${units[at]}`
}

/** Percent-encoding of UTF-8; for a query, slashes too and blanks as `+`. */
function urlQuoted(value: Value, forQuery: boolean, run: Run): string {
  const quoted = encodeURIComponent(text(value, run)).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return forQuery ? quoted.replaceAll("%20", "+") : quoted.replaceAll("%2F", "/")
}

/** True for what cannot be gone through and is printed whole. */
function isOpaque(value: Value): boolean {
  return value instanceof Namespace || value instanceof Callable || (value instanceof Special && value.size === null)
}

function urlEncoded(value: Value, run: Run): string {
  if (isText(value) || isNumber(value) || value === null || isOpaque(value)) return urlQuoted(value, false, run)
  const pairs = value instanceof Dictionary ? value.entries() : listed(value, run).map((pair) => listed(pair, run))
  return pairs
    .map((pair) => {
      if (pair.length !== 2) throw new TemplateError("not enough values to unpack (expected 2)")
      return `${urlQuoted(pair[0], true, run)}=${urlQuoted(pair[1], true, run)}`
    })
    .join("&")
}

function formatted(value: Value, given: Arguments, run: Run): Value {
  const { positional, named } = given
  if (positional.length > 0 && named.size > 0) {
    throw new TemplateError("can't handle positional and keyword arguments at the same time")
  }
  if (named.size === 0) return formatPercent(softText(value, run), new Tuple(positional), run)
  const byName = new Dictionary()
  for (const [name, item] of named) byName.set(name, item)
  return formatPercent(softText(value, run), byName, run)
}

/** Their table. */
export const textFilters: readonly [string, Filter][] = [
  filterEntry("capitalize", [], (value, _args, run) => method("capitalize", value, [], run)),
  filterEntry("center", [["width", 80]], (value, args, run) => method("center", value, args, run)),
  filterEntry("e", [], (value, _args, run) => new Markup(escaped(value, run))),
  filterEntry("escape", [], (value, _args, run) => new Markup(escaped(value, run))),
  filterEntry("filesizeformat", [["binary", false]], (value, [binary]) => fileSize(floatOf(value), truthy(binary))),
  filterEntry("forceescape", [], (value, _args, run) => new Markup(escapeHtml(text(value, run)))),
  ["format", formatted],
  filterEntry(
    "indent",
    [
      ["width", 4],
      ["first", false],
      ["blank", false],
    ],
    indent,
  ),
  filterEntry(
    "join",
    [
      ["d", ""],
      ["attribute", null],
    ],
    join,
  ),
  filterEntry("lower", [], (value, _args, run) => method("lower", value, [], run)),
  filterEntry("pprint", [], (value, _args, run) => prettyPrinted(value, run)),
  filterEntry("replace", [["old"], ["new"], ["count", null]], (value, [old, fresh, count], run) =>
    replaceText(text(value, run), text(old, run), text(fresh, run), count === null ? -1 : toIndex(count), run),
  ),
  filterEntry("safe", [], (value, _args, run) => new Markup(text(value, run))),
  filterEntry("string", [], (value, _args, run) => softText(value, run)),
  filterEntry("striptags", [], (value, _args, run) => stripTags(text(value, run))),
  filterEntry("title", [], (value, _args, run) => title(value, run)),
  ["tojson", toJson],
  filterEntry("trim", [["chars", null]], (value, args, run) => method("strip", value, args, run)),
  filterEntry(
    "truncate",
    [
      ["length", 255],
      ["killwords", false],
      ["end", "..."],
      ["leeway", null],
    ],
    truncate,
  ),
  filterEntry("upper", [], (value, _args, run) => method("upper", value, [], run)),
  filterEntry("urlencode", [], (value, _args, run) => urlEncoded(value, run)),
  filterEntry("wordcount", [], (value, _args, run) => text(value, run).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
  filterEntry(
    "wordwrap",
    [
      ["width", 79],
      ["break_long_words", true],
      ["wrapstring", null],
      ["break_on_hyphens", true],
    ],
    (value, [width, breaks, between, hyphens], run) => {
      if (!isText(value)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'splitlines'`)
      const joint = between === null ? "\n" : isText(between) ? plainText(between) : ""
      return wrapLines(plainText(value), toIndex(width), truthy(breaks), joint, truthy(hyphens), run)
    },
  ),
  filterEntry("xmlattr", [["autospace", true]], xmlAttributes),
]
