import type { Json } from "../../ir/conversation"
import { entriesOf, isObject } from "../json-object"
import { memberText } from "./json-text"

/**
 * A JSON schema as the TypeScript-like type that gpt-oss was trained to read: `{"type": "object", "properties": {"n":
 * {"type": "integer", "default": 3}}}` becomes `{\nn?: number, // default: 3\n}`. Comments carry titles, descriptions,
 * examples and defaults; what the format has no words for is `any`. `indent` stands before comments, properties and the
 * closing brace. Source: openai-harmony 0.0.8, whose spelling this is to the byte, oddities included.
 */
export function schemaText(schema: Json, indent: string): string {
  const oneOf = listOf(membersOf(schema).oneOf)
  if (oneOf !== null) return oneOf.map((variant) => `\n${indent} | ${variantText(variant, indent)}`).join("")
  const type = membersOf(schema).type
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
      const items = membersOf(schema).items
      return items === undefined ? "Array<any>" : `${schemaText(items, indent)}[]`
    }
    default:
      return "any"
  }
}

/** One way of a `oneOf` that is a type of its own: with its comments behind it. */
function variantText(variant: Json, indent: string): string {
  const comments: string[] = []
  const description = membersOf(variant).description
  if (typeof description === "string") comments.push(description)
  const value = membersOf(variant).default
  // Here, and only here, texts of an enum keep their quotes.
  if (value !== undefined)
    comments.push(`default: ${isEnum(variant) ? memberText(variant, "default") : defaultText(variant)}`)
  return nullableText(variant, `${indent}   `) + trailing(comments)
}

function objectText(schema: Json, indent: string): string {
  const description = membersOf(schema).description
  let text = typeof description === "string" ? `${indent}// ${description}\n{\n` : "{\n"
  const required = listOf(membersOf(schema).required) ?? []
  for (const [key, property] of entriesOf(membersOf(schema).properties ?? null)) {
    text += propertyText(required.includes(key) ? key : `${key}?`, property, indent)
  }
  return `${text}${indent}}`
}

/** `key`: with its question mark where the property may be left out. */
function propertyText(key: string, property: Json, indent: string): string {
  const title = membersOf(property).title
  const description = membersOf(property).description
  const hasOneOf = membersOf(property).oneOf !== undefined
  let text = typeof title === "string" ? `${indent}// ${title}\n${indent}//\n` : ""
  if (!hasOneOf && typeof description === "string") text += `${indent}// ${description}\n`
  const examples = listOf(membersOf(property).examples) ?? []
  if (examples.length > 0) text += `${indent}// Examples:\n`
  for (const example of examples) if (typeof example === "string") text += `${indent}// - "${example}"\n`
  const variants = listOf(membersOf(property).oneOf)
  if (variants !== null) return text + choiceText(key, property, variants, indent)
  text += `${indent}${key}: ${nullableText(property, `${indent}    `)},`
  const value = hasOneOf ? undefined : membersOf(property).default
  return value === undefined ? `${text}\n` : `${text} // default: ${defaultText(property)}\n`
}

/** A property that is one of several types: one line each, and a comma on its own. */
function choiceText(key: string, property: Json, variants: readonly Json[], indent: string): string {
  const own = membersOf(property).description
  const first = membersOf(variants[0]).description
  // The description stands above the property, unless the first type says the same.
  const isAbove = typeof own === "string" && own !== first
  let text = isAbove ? `${indent}// ${own}\n` : ""
  const value = membersOf(property).default
  if (value !== undefined) text += `${indent}// default: ${defaultText(property)}\n`
  text += `${indent}${key}:\n`
  for (const [index, variant] of variants.entries()) {
    const comments: string[] = []
    const description = membersOf(variant).description
    const isShown = !(index === 0 && isAbove) && description !== own
    if (isShown && typeof description === "string") comments.push(description)
    const variantDefault = membersOf(variant).default
    if (variantDefault !== undefined) comments.push(`default: ${defaultText(variant)}`)
    text += `${indent} | ${nullableText(variant, `${indent}   `)}${trailing(comments)}\n`
  }
  return `${text}${indent},\n`
}

function nullableText(schema: Json, indent: string): string {
  const text = schemaText(schema, indent)
  return membersOf(schema).nullable === true && !text.includes("null") ? `${text} | null` : text
}

function trailing(comments: readonly string[]): string {
  return comments.length === 0 ? "" : ` // ${comments.join(" ")}`
}

/** Texts are quoted, but not those of an enum. */
function defaultText(schema: Json): string {
  const value = membersOf(schema).default
  if (typeof value !== "string") return memberText(schema, "default")
  return isEnum(schema) ? value : `"${value}"`
}

/** The texts of an enum, or null when it has none. */
function enumText(schema: Json): string | null {
  const texts = (listOf(membersOf(schema).enum) ?? []).filter((each) => typeof each === "string")
  return texts.length === 0 ? null : texts.map((each) => `"${each}"`).join(" | ")
}

function isEnum(schema: Json): boolean {
  return (listOf(membersOf(schema).enum)?.length ?? 0) > 0
}

/** What other values than objects have: nothing. */
const noMembers: { readonly [key: string]: Json } = {}

/** An object's values by key. The keys that are looked up are none that every object has. */
function membersOf(value: Json | undefined): { readonly [key: string]: Json } {
  return value !== undefined && isObject(value) ? value : noMembers
}

function listOf(value: Json | undefined): readonly Json[] | null {
  return Array.isArray(value) ? value : null
}
