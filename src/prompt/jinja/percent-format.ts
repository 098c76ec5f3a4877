import { floatDigits, percentInteger } from "./format-spec"
import { escaped, escapeHtml } from "./markup"
import { ascii, repr, text } from "./repr"
import { type Run, TemplateError } from "./run"
import {
  codePoints,
  Dictionary,
  Float,
  isNumber,
  isText,
  Markup,
  plainText,
  Tuple,
  toFloat,
  toIndex,
  typeName,
  type Value,
} from "./value"

const directive = /%(?:\(([^)]*)\)|(\())?([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*)?)?[hlL]?(.)?/gsu

/** Python's `'%s of %d' % (a, b)`, with its names, flags, widths and precisions; escaping for an escaped format. */
export function formatPercent(format: string | Markup, given: Value, run: Run): Value {
  const escapes = format instanceof Markup
  const made = new PercentFormat(given, escapes, run).format(plainText(format))
  return escapes ? new Markup(made) : made
}

class PercentFormat {
  private readonly given: Value
  private readonly escapes: boolean
  private readonly run: Run
  private readonly values: readonly Value[]
  private used = 0
  private byName = false

  constructor(given: Value, escapes: boolean, run: Run) {
    this.given = given
    this.escapes = escapes
    this.run = run
    this.values = given instanceof Tuple ? given.items : [given]
  }

  format(plain: string): string {
    let made = ""
    let from = 0
    // One by one: `replace` would look for all of them before the first error shows.
    for (const { 0: whole, 1: name, 2: openKey, 3: flags, 4: width, 5: precision, 6: code, index } of plain.matchAll(
      directive,
    )) {
      if (openKey !== undefined) throw new TemplateError("incomplete format key")
      if (code === undefined) throw new TemplateError("incomplete format")
      const hasPoint = whole.includes(".", name === undefined ? 0 : whole.indexOf(")"))
      const places = hasPoint ? (precision ?? "0") : undefined
      made += plain.slice(from, index) + this.directive(code, name, flags ?? "", width, places)
      from = index + whole.length
    }
    made += plain.slice(from)
    if (this.used < this.values.length && !this.byName && !this.allowsUnused()) {
      throw new TemplateError("not all arguments converted during string formatting")
    }
    this.run.checkText(made.length)
    return made
  }

  /** Python counts everything that can be indexed, texts and tuples aside, as a possible mapping. */
  private allowsUnused(): boolean {
    const { given } = this
    return given === undefined || Array.isArray(given) || given instanceof Dictionary
  }

  private directive(
    code: string,
    name: string | undefined,
    flags: string,
    width: string | undefined,
    precision: string | undefined,
  ): string {
    if (name !== undefined && !(this.given instanceof Dictionary)) {
      throw new TemplateError("format requires a mapping")
    }
    const wide = this.count(width) ?? 0
    const left = flags.includes("-") || wide < 0
    const places = this.count(precision)
    this.run.build(Math.abs(wide) + (places ?? 0))
    if (code === "%") return "%"
    const value = name === undefined ? this.next() : this.named(name)
    const [sign, body] = this.spelled(value, code, flags, places)
    const missing = Math.abs(wide) - codePoints(sign + body)
    if (missing <= 0) return sign + body
    if (left) return sign + body + " ".repeat(missing)
    const zeros =
      flags.includes("0") && isNumber(value) && !"csra".includes(code) && (/^\d/.test(body) || "xX".includes(code))
    return zeros ? sign + "0".repeat(missing) + body : " ".repeat(missing) + sign + body
  }

  private count(spelled: string | undefined): number | null {
    if (spelled === undefined) return null
    if (spelled !== "*") return Number(spelled)
    const value = this.next()
    if (typeof value !== "number" && typeof value !== "boolean") throw new TemplateError("* wants int")
    return toIndex(value)
  }

  private next(): Value {
    if (this.byName || this.used >= this.values.length) {
      throw new TemplateError("not enough arguments for format string")
    }
    this.used += 1
    return this.values[this.used - 1]
  }

  private named(name: string): Value {
    this.byName = true
    // `directive` made sure that it is one.
    const dictionary = this.given as Dictionary
    if (!dictionary.has(name)) throw new TemplateError(repr(name, this.run))
    return dictionary.get(name)
  }

  /** Sign and body of one value. */
  private spelled(value: Value, code: string, flags: string, places: number | null): [string, string] {
    switch (code) {
      case "s":
        return ["", cut(this.escapes ? escaped(value, this.run) : text(value, this.run), places)]
      case "r":
      case "a":
        return [
          "",
          cut(
            this.escapes ? escapeHtml(repr(value, this.run)) : (code === "a" ? ascii : repr)(value, this.run),
            places,
          ),
        ]
      case "c":
        return ["", character(value)]
      case "d":
      case "i":
      case "u":
        return withSign(percentInteger(value, code).padStart(0), flags, places)
      case "o":
      case "x":
      case "X":
        return based(value, code, flags, places)
      case "e":
      case "E":
      case "f":
      case "F":
      case "g":
      case "G":
        return float(value, code, flags, places)
      default:
        throw new TemplateError(`unsupported format character '${code}' (0x${code.codePointAt(0)?.toString(16)})`)
    }
  }
}

function cut(plain: string, places: number | null): string {
  return places === null ? plain : Array.from(plain).slice(0, places).join("")
}

function character(value: Value): string {
  if (isText(value) && codePoints(plainText(value)) === 1) return plainText(value)
  if (typeof value === "boolean") return String.fromCodePoint(Number(value))
  if (typeof value === "number" && value >= 0 && value <= 0x10ffff) return String.fromCodePoint(value)
  throw new TemplateError("%c requires int or char")
}

function withSign(spelled: string, flags: string, places: number | null): [string, string] {
  const negative = spelled.startsWith("-")
  const digits = (negative ? spelled.slice(1) : spelled).padStart(places ?? 0, "0")
  return [negative ? "-" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "", digits]
}

function based(value: Value, code: string, flags: string, places: number | null): [string, string] {
  if (!isNumber(value) || value instanceof Float) {
    throw new TemplateError(`%${code} format: an integer is required, not ${typeName(value)}`)
  }
  const spelled = BigInt(value).toString(code === "o" ? 8 : 16)
  const [sign, digits] = withSign(code === "X" ? spelled.toUpperCase() : spelled, flags, places)
  return [flags.includes("#") ? `${sign}0${code}` : sign, digits]
}

function float(value: Value, code: string, flags: string, places: number | null): [string, string] {
  if (!isNumber(value)) throw new TemplateError(`must be real number, not ${typeName(value)}`)
  const number = toFloat(value)
  const negative = number < 0 || Object.is(number, -0)
  const upper = code === code.toUpperCase()
  if (!Number.isFinite(number)) {
    const word = Number.isNaN(number) ? "nan" : negative ? "-inf" : "inf"
    return withSign(upper ? word.toUpperCase() : word, flags, 0)
  }
  const digits = floatDigits(Math.abs(number), code, places, flags.includes("#"))
  return withSign((negative ? "-" : "") + digits, flags, 0)
}
