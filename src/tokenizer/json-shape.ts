/** Small readers for parsed JSON of unknown shape. */

/** A JSON object, as a record of unknown values. */
export type JsonObject = { readonly [key: string]: unknown }

/** The value when it is an object (no array), else null. */
export function objectOf(value: unknown): JsonObject | null {
  // An object that is no array can be read by key; each value is checked where it is used.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
}

/** The value when it is a list, else null. */
export function listOf(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? value : null
}

/** The value when it is a string, else null. */
export function stringOf(value: unknown): string | null {
  return typeof value === "string" ? value : null
}

/** The `type` of a normalizer, pre-tokenizer, decoder …; "" when it has none. */
export function typeOf(value: unknown): string {
  return stringOf(objectOf(value)?.type) ?? ""
}

/** Whether values stand in one another more than `levels` deep. */
export function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => nestsDeeper(inner, levels - 1))
}

/** A part of a tokenizer file that is not supported, and why: the road to the fallback, or to a refusal. */
export interface Unsupported {
  readonly kind: "unsupported"
  readonly message: string
}
