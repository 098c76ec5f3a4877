import type { Json } from "../../ir/conversation"
import { entriesOf, isObject } from "../json-object"

/** A word of a schema, and what its value must be; `null` = it is right. */
type Check = (value: Json) => string | null

const schema: Check = (value) => {
  if (typeof value === "boolean") return null
  if (!isObject(value)) return "must be an object or a boolean"
  return firstFault(entriesOf(value), (member, word) => {
    const check = Object.hasOwn(checks, word) ? checks[word] : undefined
    return check?.(member) ?? null
  })
}

const text: Check = (value) => (typeof value === "string" ? null : "must be a string")
const flag: Check = (value) => (typeof value === "boolean" ? null : "must be a boolean")
const list: Check = (value) => (Array.isArray(value) ? null : "must be an array")
const number: Check = (value) => (isNumber(value) ? null : "must be a number")
const positive: Check = (value) => (isNumber(value) && value > 0 ? null : "must be a number above 0")
const count: Check = (value) => {
  const isWhole = typeof value === "bigint" || Number.isInteger(value)
  return isWhole && isNumber(value) && value >= 0 ? null : "must be a whole number of at least 0"
}
const schemas: Check = (value) => {
  if (!Array.isArray(value) || value.length === 0) return "must be an array of schemas"
  return firstFault(value.entries(), schema)
}
const items: Check = (value) => (Array.isArray(value) ? schemas(value) : schema(value))
const texts: Check = (value) => {
  const isRight = Array.isArray(value) && value.every((each) => typeof each === "string")
  return isRight && new Set(value).size === value.length ? null : "must be an array of different strings"
}
const named: Check = (value) => {
  return isObject(value) ? firstFault(entriesOf(value), schema) : "must be an object"
}
const dependencies: Check = (value) => {
  if (!isObject(value)) return "must be an object"
  return firstFault(entriesOf(value), (member) => (Array.isArray(member) ? texts(member) : schema(member)))
}
const typeNames = ["array", "boolean", "integer", "null", "number", "object", "string"]
const types: Check = (value) => {
  const isName = (each: Json): boolean => typeof each === "string" && typeNames.includes(each)
  if (isName(value)) return null
  if (Array.isArray(value) && value.length > 0 && value.every(isName) && texts(value) === null) return null
  return `must be one of ${typeNames.join(", ")}, or an array of different ones`
}

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
  return schema(parameters)
}

function every(check: Check, ...words: readonly string[]): { readonly [word: string]: Check } {
  return Object.fromEntries(words.map((word) => [word, check]))
}

function firstFault(
  members: Iterable<readonly [string | number, Json]>,
  check: (member: Json, key: string) => string | null,
): string | null {
  for (const [key, member] of members) {
    const fault = check(member, String(key))
    if (fault !== null) return fault.startsWith("must") ? `${key} ${fault}` : `${key}.${fault}`
  }
  return null
}

function isNumber(value: Json): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint"
}
