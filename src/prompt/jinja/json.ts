import { compareTexts, Float, floatText, repr, TemplateError, Tuple, typeName, type Value } from "./value"

/** How to write JSON; the defaults are those of the reference's `tojson`. */
export interface JsonStyle {
  readonly ensureAscii: boolean
  /** Text of one level, or null for one line. */
  readonly indent: string | null
  readonly itemSeparator: string
  readonly keySeparator: string
  readonly sortKeys: boolean
}

/**
 * Python's `json.dumps`: ", " and ": " between parts, no HTML escaping, integers in full, floats as Python prints
 * them. Source: the `tojson` that transformers puts into its template environment.
 */
export function writeJson(value: Value, style: JsonStyle): string {
  return write(value, style, style.indent === null ? "" : "\n")
}

/** `newline` is the line break with the indentation of the level around the value. */
function write(value: Value, style: JsonStyle, newline: string): string {
  if (value === null) return "null"
  if (typeof value === "boolean") return String(value)
  if (typeof value === "number" || typeof value === "bigint") return String(value)
  if (typeof value === "string") return jsonString(value, style)
  if (value instanceof Float) return jsonFloat(value.value)
  const inner = newline + (style.indent ?? "")
  if (Array.isArray(value) || value instanceof Tuple) {
    const items = Array.isArray(value) ? value : value.items
    if (items.length === 0) return "[]"
    const parts = items.map((item) => write(item, style, inner))
    return `[${inner}${parts.join(style.itemSeparator + inner)}${newline}]`
  }
  if (value instanceof Map) {
    if (value.size === 0) return "{}"
    const entries = Array.from(value, ([key, item]): [string, Value] => [keyText(key), item])
    if (style.sortKeys) entries.sort(([a], [b]) => compareTexts(a, b))
    const parts = entries.map(([key, item]) => jsonString(key, style) + style.keySeparator + write(item, style, inner))
    return `{${inner}${parts.join(style.itemSeparator + inner)}${newline}}`
  }
  throw new TemplateError(`Object of type ${typeName(value)} is not JSON serializable`)
}

function keyText(key: Value): string {
  if (typeof key === "string") return key
  if (key === null) return "null"
  if (typeof key === "boolean") return String(key)
  if (typeof key === "number" || typeof key === "bigint" || key instanceof Float) return repr(key)
  throw new TemplateError(`keys must be str, int, float, bool or None, not ${typeName(key)}`)
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN"
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity"
  return floatText(value)
}

function jsonString(value: string, style: JsonStyle): string {
  const plain = JSON.stringify(value)
  if (!style.ensureAscii) return plain
  return plain.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
