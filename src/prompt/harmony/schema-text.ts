import type { Json } from "../../ir/conversation"
import { entriesOf, isObject, memberText } from "./json-text"

/**
 * A JSON schema as the TypeScript-like type that gpt-oss was trained to read: `{"type": "object", "properties": {"n":
 * {"type": "integer", "default": 3}}}` becomes `{\nn?: number, // default: 3\n}`. Comments carry titles, descriptions,
 * examples and defaults; what the format has no words for is `any`. `indent` stands before comments, properties and the
 * closing brace. Source: openai-harmony 0.0.8, whose spelling this is to the byte, oddities included.
 */
export function schemaText(schema: Json, indent: string): string {
  const oneOf = listOf(field(schema, "oneOf"))
  if (oneOf !== null) return oneOf.map((variant) => `\n${indent} | ${variantText(variant, indent)}`).join("")
  const type = field(schema, "type")
  const types = (listOf(type) ?? []).filter((each) => typeof each === "string")
  if (types.length > 0) return types.map((each) => (each === "integer" ? "number" : each)).join(" | ")
  switch (type) {
    case "object":
      return objectText(schema, indent)
    case "string":
      return enumText(schema) ?? "string"
    case "number":
    case "integer":
      return "number"
    case "boolean":
      return "boolean"
    case "array": {
      const items = field(schema, "items")
      return items === undefined ? "Array<any>" : `${schemaText(items, indent)}[]`
    }
    default:
      return "any"
  }
}

/** One way of a `oneOf` that is a type of its own: with its comments behind it. */
function variantText(variant: Json, indent: string): string {
  const comments: string[] = []
  const description = field(variant, "description")
  if (typeof description === "string") comments.push(description)
  const value = field(variant, "default")
  // Here, and only here, texts of an enum keep their quotes.
  if (value !== undefined)
    comments.push(`default: ${isEnum(variant) ? memberText(variant, "default") : defaultText(variant)}`)
  return nullableText(variant, `${indent}   `) + trailing(comments)
}

function objectText(schema: Json, indent: string): string {
  const description = field(schema, "description")
  let text = typeof description === "string" ? `${indent}// ${description}\n{\n` : "{\n"
  const required = listOf(field(schema, "required")) ?? []
  for (const [key, property] of entriesOf(field(schema, "properties") ?? null)) {
    text += propertyText(required.includes(key) ? key : `${key}?`, property, indent)
  }
  return `${text}${indent}}`
}

/** `key`: with its question mark where the property may be left out. */
function propertyText(key: string, property: Json, indent: string): string {
  const title = field(property, "title")
  const description = field(property, "description")
  const hasOneOf = field(property, "oneOf") !== undefined
  let text = typeof title === "string" ? `${indent}// ${title}\n${indent}//\n` : ""
  if (!hasOneOf && typeof description === "string") text += `${indent}// ${description}\n`
  const examples = listOf(field(property, "examples")) ?? []
  if (examples.length > 0) text += `${indent}// Examples:\n`
  for (const example of examples) if (typeof example === "string") text += `${indent}// - "${example}"\n`
  const variants = listOf(field(property, "oneOf"))
  if (variants !== null) return text + choiceText(key, property, variants, indent)
  text += `${indent}${key}: ${nullableText(property, `${indent}    `)},`
  const value = hasOneOf ? undefined : field(property, "default")
  return value === undefined ? `${text}\n` : `${text} // default: ${defaultText(property)}\n`
}

/** A property that is one of several types: one line each, and a comma on its own. */
function choiceText(key: string, property: Json, variants: readonly Json[], indent: string): string {
  const own = field(property, "description")
  const first = variants[0] === undefined ? undefined : field(variants[0], "description")
  // The description stands above the property, unless the first type says the same.
  const isAbove = typeof own === "string" && own !== first
  let text = isAbove ? `${indent}// ${own}\n` : ""
  const value = field(property, "default")
  if (value !== undefined) text += `${indent}// default: ${defaultText(property)}\n`
  text += `${indent}${key}:\n`
  for (const [index, variant] of variants.entries()) {
    const comments: string[] = []
    const description = field(variant, "description")
    const isShown = !(index === 0 && isAbove) && description !== own
    if (isShown && typeof description === "string") comments.push(description)
    const variantDefault = field(variant, "default")
    if (variantDefault !== undefined) comments.push(`default: ${defaultText(variant)}`)
    text += `${indent} | ${nullableText(variant, `${indent}   `)}${trailing(comments)}\n`
  }
  return `${text}${indent},\n`
}

function nullableText(schema: Json, indent: string): string {
  const text = schemaText(schema, indent)
  return field(schema, "nullable") === true && !text.includes("null") ? `${text} | null` : text
}

function trailing(comments: readonly string[]): string {
  return comments.length === 0 ? "" : ` // ${comments.join(" ")}`
}

/** Texts are quoted, but not those of an enum. */
function defaultText(schema: Json): string {
  const value = field(schema, "default")
  if (typeof value !== "string") return memberText(schema, "default")
  return isEnum(schema) ? value : `"${value}"`
}

/** The texts of an enum, or null when it has none. */
function enumText(schema: Json): string | null {
  const texts = (listOf(field(schema, "enum")) ?? []).filter((each) => typeof each === "string")
  return texts.length === 0 ? null : texts.map((each) => `"${each}"`).join(" | ")
}

function isEnum(schema: Json): boolean {
  return (listOf(field(schema, "enum"))?.length ?? 0) > 0
}

/** A value of an object; undefined where there is none, or no object. */
function field(value: Json, key: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

function listOf(value: Json | undefined): readonly Json[] | null {
  return Array.isArray(value) ? value : null
}
