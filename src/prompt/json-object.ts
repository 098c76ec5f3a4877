/** Objects among JSON values. */
import type { Json } from "../ir/conversation"
import { spellingOf } from "../ir/json-spelling"

/** An object's keys and values, as they were written; nothing for other values. */
export function entriesOf(value: Json): readonly [string, Json][] {
  if (!isObject(value)) return []
  const keys = spellingOf(value)?.keys ?? null
  return keys === null ? Object.entries(value) : keys.map((key) => [key, value[key] ?? null])
}

/** Whether a value is an object, and neither null nor an array. */
export function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
