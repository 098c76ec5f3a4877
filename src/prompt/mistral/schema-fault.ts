import type { Json } from "../../ir/conversation"
import { entriesOf, isObject } from "../json-object"

/** What is wrong in a schema, and where: keys and places from the outside in. */
interface Fault {
  readonly path: readonly string[]
  readonly text: string
}

/** What the value of a schema's word must be; `null` = it is right. */
type Check = (value: Json) => Fault | null

function fault(what: string): Fault {
  return { path: [], text: `must be ${what}` }
}

function mustBe(what: string, isRight: (value: Json) => boolean): Check {
  return (value) => (isRight(value) ? null : fault(what))
}

const schema: Check = (value) => {
  if (typeof value === "boolean") return null
  if (!isObject(value)) return fault("an object or a boolean")
  return firstFault(entriesOf(value), (member, word) => {
    const check = Object.hasOwn(checks, word) ? checks[word] : undefined
    return check?.(member) ?? null
  })
}

const text = mustBe("a string", (value) => typeof value === "string")
const flag = mustBe("a boolean", (value) => typeof value === "boolean")
const list = mustBe("an array", Array.isArray)
const number = mustBe("a number", isNumber)
const positive = mustBe("a number above 0", (value) => isNumber(value) && value > 0)
const count = mustBe("a whole number of at least 0", (value) => {
  return isNumber(value) && (typeof value === "bigint" || Number.isInteger(value)) && value >= 0
})
const schemas: Check = (value) => {
  if (!Array.isArray(value) || value.length === 0) return fault("an array of schemas")
  return firstFault(value.entries(), schema)
}
const items: Check = (value) => (Array.isArray(value) ? schemas(value) : schema(value))
const texts = mustBe("an array of different strings", isDifferentTexts)
const named: Check = (value) => {
  return isObject(value) ? firstFault(entriesOf(value), schema) : fault("an object")
}
const dependencies: Check = (value) => {
  if (!isObject(value)) return fault("an object")
  return firstFault(entriesOf(value), (member) => (Array.isArray(member) ? texts(member) : schema(member)))
}
const typeNames = ["array", "boolean", "integer", "null", "number", "object", "string"]
const types = mustBe(`one of ${typeNames.join(", ")}, or an array of different ones`, (value) => {
  const isName = (each: Json): boolean => typeof each === "string" && typeNames.includes(each)
  return isName(value) || (isDifferentTexts(value) && value.length > 0 && value.every(isName))
})

const checks: { readonly [word: string]: Check } = {
  ...every(text, "$id", "$schema", "$ref", "$comment", "title", "description", "pattern", "format"),
  ...every(text, "contentMediaType", "contentEncoding"),
  ...every(flag, "readOnly", "uniqueItems"),
  ...every(list, "examples", "enum"),
  ...every(number, "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
  ...every(count, "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"),
  ...every(schema, "additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not"),
  ...every(schemas, "allOf", "anyOf", "oneOf"),
  ...every(named, "definitions", "properties", "patternProperties"),
  multipleOf: positive,
  items,
  required: texts,
  dependencies,
  type: types,
}

/**
 * What makes a tool's parameters no JSON Schema of draft 7, or null; the words name the place. The reference checks the
 * same, and also whether patterns are regular expressions of Python. Source: json-schema.org/draft-07/schema, which
 * mistral-common 1.13.1 holds tools to.
 */
export function schemaFault(parameters: Json): string | null {
  const found = schema(parameters)
  return found === null ? null : `${found.path.join(".")} ${found.text}`.trimStart()
}

function every(check: Check, ...words: readonly string[]): { readonly [word: string]: Check } {
  return Object.fromEntries(words.map((word) => [word, check]))
}

function firstFault(
  members: Iterable<readonly [string | number, Json]>,
  check: (member: Json, key: string) => Fault | null,
): Fault | null {
  for (const [key, member] of members) {
    const found = check(member, String(key))
    if (found !== null) return { ...found, path: [String(key), ...found.path] }
  }
  return null
}

function isDifferentTexts(value: Json): value is string[] {
  if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) return false
  return new Set(value).size === value.length
}

function isNumber(value: Json): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint"
}
