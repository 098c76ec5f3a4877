import type { Json } from "../../ir/conversation"
import { spellingOf } from "../../ir/json-spelling"
import { compare } from "./equality"
import { templateValue } from "./json-value"
import { floatText, integerText } from "./repr"
import { type Run, TemplateError } from "./run"
import { bind } from "./signature"
import {
  type Arguments,
  Dictionary,
  Float,
  isText,
  iterate,
  type JsonObject,
  Lazy,
  Markup,
  plainText,
  Tuple,
  toIndex,
  truthy,
  typeName,
  type Value,
} from "./value"

interface Style {
  readonly ensureAscii: boolean
  /** Text of one level, or null for one line. */
  readonly indent: string | null
  readonly itemSeparator: string
  readonly keySeparator: string
  readonly sortKeys: boolean
}

const parameters = [
  ["ensure_ascii", false],
  ["indent", null],
  ["separators", null],
  ["sort_keys", false],
] as const

const oneLine: Style = { ensureAscii: false, indent: null, itemSeparator: ", ", keySeparator: ": ", sortKeys: false }

/**
 * Python's `json.dumps`: ", " and ": " between parts, no HTML escaping, integers in full, floats as Python prints
 * them. Source: the `tojson` that transformers puts into its template environment.
 */
export function toJson(value: Value, given: Arguments, run: Run): string {
  const style = given.positional.length + given.named.size === 0 ? oneLine : readStyle(given, run)
  return write(value, style, style.indent === null ? "" : "\n", run)
}

function readStyle(given: Arguments, run: Run): Style {
  const [ensureAscii, indentation, separators, sortKeys] = bind("tojson", parameters, given)
  const indent = indentText(indentation)
  const [item, key] = separators === null ? [indent === null ? ", " : ",", ": "] : twoTexts(separators, run)
  return {
    ensureAscii: truthy(ensureAscii),
    indent,
    itemSeparator: item,
    keySeparator: key,
    sortKeys: truthy(sortKeys),
  }
}

/** Blanks of one level that a number may ask for. */
const indentMax = 1024

function indentText(indentation: Value): string | null {
  if (indentation === null) return null
  if (isText(indentation)) return plainText(indentation)
  return " ".repeat(Math.min(Math.max(0, toIndex(indentation)), indentMax))
}

function twoTexts(separators: Value, run: Run): readonly [string, string] {
  const items = iterate(separators, run)
  const [item, key] = items instanceof Lazy ? [] : items
  if (isText(item) && isText(key) && !(items instanceof Lazy) && items.length === 2) {
    return [plainText(item), plainText(key)]
  }
  throw new TemplateError("separators must be two texts")
}

/** `newline` is the line break with the indentation of the level around the value. */
function write(value: Value, style: Style, newline: string, run: Run): string {
  switch (typeof value) {
    case "string":
      run.build(value.length)
      return jsonString(value, style)
    case "boolean":
      return value ? "true" : "false"
    case "number":
    case "bigint":
      return integerText(value)
  }
  if (value === null) return "null"
  run.step()
  if (value instanceof Dictionary) {
    const { source } = value
    if (source === null || style.sortKeys || spellingOf(source) !== null) {
      return writeDictionary(value, style, newline, run)
    }
    return writeSource(source, style, newline, run)
  }
  if (Array.isArray(value)) return writeItems(value, style, newline, run)
  if (value instanceof Tuple) return writeItems(value.items, style, newline, run)
  if (value instanceof Float) return jsonFloat(value.value)
  if (value instanceof Markup) return jsonString(value.text, style)
  throw new TemplateError(`Object of type ${typeName(value)} is not JSON serializable`)
}

function writeItems(items: readonly Value[], style: Style, newline: string, run: Run): string {
  if (items.length === 0) return "[]"
  const inner = newline + (style.indent ?? "")
  let made = `[${inner}`
  for (let i = 0; i < items.length; i++) {
    if (i > 0) made += style.itemSeparator + inner
    made += write(items[i], style, inner, run)
  }
  return `${made}${newline}]`
}

function writeDictionary(value: Dictionary, style: Style, newline: string, run: Run): string {
  if (value.size === 0) return "{}"
  const inner = newline + (style.indent ?? "")
  let made = "{"
  let before = inner
  const add = (item: Value, key: Value): void => {
    made += before + jsonString(typeof key === "string" ? key : keyText(key), style)
    made += style.keySeparator + write(item, style, inner, run)
    before = style.itemSeparator + inner
  }
  if (!style.sortKeys) value.forEach(add)
  else {
    for (const [key, item] of value.entries().sort(([a], [b]) => compare(a, b, run))) add(item, key)
  }
  return `${made}${newline}}`
}

/** The same for JSON that the template did not make, read where it lies: tools are long, and mostly printed whole. */
function writeSource(json: Json | JsonObject, style: Style, newline: string, run: Run): string {
  if (typeof json === "string") {
    run.build(json.length)
    return jsonString(json, style)
  }
  if (typeof json !== "object" || json === null || spellingOf(json) !== null) {
    return write(templateValue(json), style, newline, run)
  }
  run.step()
  const inner = newline + (style.indent ?? "")
  let made = ""
  if (Array.isArray(json)) {
    for (const item of json) {
      made += (made === "" ? inner : style.itemSeparator + inner) + writeSource(item, style, inner, run)
    }
    return made === "" ? "[]" : `[${made}${newline}]`
  }
  for (const key of Object.keys(json)) {
    made += (made === "" ? inner : style.itemSeparator + inner) + jsonString(key, style)
    made += style.keySeparator + writeSource(json[key]!, style, inner, run)
  }
  return made === "" ? "{}" : `{${made}${newline}}`
}

function keyText(key: Value): string {
  if (key === null) return "null"
  if (typeof key === "boolean") return String(key)
  if (typeof key === "number" || typeof key === "bigint") return integerText(key)
  if (key instanceof Float) return jsonFloat(key.value)
  throw new TemplateError(`keys must be str, int, float, bool or None, not ${typeName(key)}`)
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN"
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity"
  return floatText(value)
}

/** Texts that are JSON as they stand, between quotes. */
const unescaped = /^[ !#-[\]-~]*$/

function jsonString(value: string, style: Style): string {
  if (unescaped.test(value)) return `"${value}"`
  const plain = JSON.stringify(value)
  if (!style.ensureAscii) return plain
  return plain.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
