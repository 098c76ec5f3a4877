import type { Json } from "./conversation"
import { spellingOf } from "./json-spelling"

// Bun has it, and the types of the language's library do not know it yet (ECMA-262, "JSON.parse source text access").
const { rawJSON } = JSON as JSON & { rawJSON(text: string): object }

/**
 * A value of a client's as JSON text, as it was spelled where that was noted: keys that look like integers in their
 * order, 14.0 as 14.0. An engine's grammar follows a schema's order and writes its constants.
 */
export function spelledJsonText(value: Json): string {
  if (typeof value === "bigint") return String(value)
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const noted = spellingOf(value)
  const text = (each: Json, key: string): string =>
    noted?.floats?.has(key) === true && Number.isInteger(each) ? floatText(each) : spelledJsonText(each)
  if (Array.isArray(value)) return `[${value.map((each, i) => text(each, String(i))).join(",")}]`
  const keys = noted?.keys ?? Object.keys(value)
  return `{${keys.map((key) => `${JSON.stringify(key)}:${text(value[key] ?? null, key)}`).join(",")}}`
}

/** A schema or structural tag as JSON text: one that came as text stays as it is. */
export function schemaText(value: Json): string {
  return typeof value === "string" ? value : spelledJsonText(value)
}

/** Whether something was noted anywhere in a value, so that its plain JSON would be spelled otherwise. */
export function isSpelledOtherwise(value: Json): boolean {
  if (typeof value !== "object" || value === null) return false
  return spellingOf(value) !== null || Object.values(value).some(isSpelledOtherwise)
}

function floatText(value: Json): string {
  const plain = Object.is(value, -0) ? "-0" : String(value)
  return /[.e]/.test(plain) ? plain : `${plain}.0`
}

/**
 * Any value as JSON text. Integers beyond 2^53 are `bigint` here: clients send them (a schema's bounds, say) and get them
 * back in the echo, engines send them in transfer parameters. They keep their digits.
 */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    // Nearly no text holds one: only then is each value looked at.
    return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawJSON(String(each)) : each))
  }
}
