import { formatValue } from "./format-spec"
import { escapeHtml } from "./markup"
import { ascii, repr, text } from "./repr"
import { type Run, TemplateError } from "./run"
import { type Arguments, Dictionary, Markup, type Value } from "./value"

/** Replacement fields inside format specifications inside each other. Source: Python's `string.Formatter`. */
const nestingMax = 2

/** How a template reaches attributes and items: the door is handed in, since methods lie behind it too. */
export interface Lookup {
  readonly attribute: (object: Value, name: string, run: Run) => Value
  readonly item: (object: Value, key: Value, run: Run) => Value
}

/**
 * Python's `str.format`: names, numbers, attributes, items, conversions and specifications. Attributes go through the
 * same door as the template's own, so nothing is reached that a template may not reach.
 */
export function formatBraces(format: string | Markup, given: Arguments, lookup: Lookup, run: Run): Value {
  if (!(format instanceof Markup)) return new BraceFormat(given, false, lookup, run).format(format, nestingMax)
  return new Markup(new BraceFormat(given, true, lookup, run).format(format.text, nestingMax))
}

/** Python's `str.format_map`. */
export function formatMap(format: string | Markup, mapping: Value, lookup: Lookup, run: Run): Value {
  if (!(mapping instanceof Dictionary)) throw new TemplateError("format_map() argument must be a mapping")
  const named = new Map(mapping.entries().map(([key, value]): [string, Value] => [text(key, run), value]))
  return formatBraces(format, { positional: [], named }, lookup, run)
}

class BraceFormat {
  private readonly given: Arguments
  private readonly escapes: boolean
  private readonly lookup: Lookup
  private readonly run: Run
  /** The next automatic number, or -1 once fields are numbered by hand. */
  private nextNumber = 0

  constructor(given: Arguments, escapes: boolean, lookup: Lookup, run: Run) {
    this.given = given
    this.escapes = escapes
    this.lookup = lookup
    this.run = run
  }

  format(format: string, nesting: number): string {
    if (nesting < 0) throw new TemplateError("Max string recursion exceeded")
    let made = ""
    for (let at = 0; at < format.length; ) {
      const brace = format.slice(at).search(/[{}]/)
      if (brace < 0) return made + format.slice(at)
      made += format.slice(at, at + brace)
      at += brace
      const char = format.charAt(at)
      if (format.charAt(at + 1) === char) {
        made += char
        at += 2
        continue
      }
      if (char === "}") throw new TemplateError("Single '}' encountered in format string")
      const end = fieldEnd(format, at + 1)
      made += this.field(format.slice(at + 1, end), nesting)
      at = end + 1
      this.run.checkText(made.length)
    }
    return made
  }

  private field(field: string, nesting: number): string {
    const [, path = "", conversion, spec = ""] = /^((?:[^!:[]|\[[^\]]*\])*)(?:!([^:]*))?(?::(.*))?$/s.exec(field) ?? []
    const value = this.converted(this.value(path), conversion)
    const made = formatValue(value, this.format(spec, nesting - 1), this.run)
    return this.escapes && !(value instanceof Markup) ? escapeHtml(made) : made
  }

  private value(path: string): Value {
    const first = /^[^.[]*/.exec(path)?.[0] ?? ""
    let value = this.first(first)
    for (const [, name, key] of path.slice(first.length).matchAll(/\.([^.[]*)|\[([^\]]*)\]/g)) {
      if (name !== undefined) value = this.lookup.attribute(value, name, this.run)
      else value = this.lookup.item(value, /^\d+$/.test(key ?? "") ? Number(key) : key, this.run)
    }
    return value
  }

  private first(name: string): Value {
    if (name === "") {
      if (this.nextNumber < 0) throw mixedNumbering()
      this.nextNumber += 1
      return this.positional(this.nextNumber - 1)
    }
    if (/^\d+$/.test(name)) {
      if (this.nextNumber > 0) throw mixedNumbering()
      this.nextNumber = -1
      return this.positional(Number(name))
    }
    if (!this.given.named.has(name)) throw new TemplateError(repr(name, this.run))
    return this.given.named.get(name)
  }

  private converted(value: Value, conversion: string | undefined): Value {
    if (conversion === undefined) return value
    if (conversion === "s") return text(value, this.run)
    if (conversion === "r") return repr(value, this.run)
    if (conversion === "a") return ascii(value, this.run)
    throw new TemplateError(`Unknown conversion specifier ${conversion}`)
  }

  private positional(index: number): Value {
    if (index < this.given.positional.length) return this.given.positional[index]
    throw new TemplateError(`Replacement index ${index} out of range for positional args tuple`)
  }
}

/** The brace that closes the field which begins at `start`. */
function fieldEnd(format: string, start: number): number {
  let open = 1
  for (let at = start; at < format.length; at++) {
    const char = format.charAt(at)
    if (char === "{") open += 1
    else if (char === "}") {
      open -= 1
      if (open === 0) return at
    }
  }
  throw new TemplateError("expected '}' before end of string")
}

function mixedNumbering(): TemplateError {
  return new TemplateError("cannot switch between manual and automatic field numbering")
}
