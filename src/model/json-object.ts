/** A parsed JSON object; each value is checked where it is used. */
export type JsonObject = { readonly [key: string]: unknown }

/** Whether a value of a model's file is an object, and neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
