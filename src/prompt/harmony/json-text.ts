import type { Json } from "../../ir/conversation"
import { spellingOf } from "../../ir/json-spelling"
import { entriesOf, isObject } from "../json-object"

/**
 * JSON without blanks, as the reference's language prints it: floats as they are in value, integers of 64 bits with all
 * their digits, keys in the order in which they were written. Source: serde_json, which openai-harmony 0.0.8 uses.
 */
export function jsonText(value: Json): string {
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : floatText(value)
  if (typeof value === "bigint") return integerText(value)
  if (Array.isArray(value)) return `[${value.map((_, place) => memberText(value, String(place))).join(",")}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = entriesOf(value).map(([key]) => `${JSON.stringify(key)}:${memberText(value, key)}`)
  return `{${members.join(",")}}`
}

/** The same of one value in an object or array, which knows whether that is a float (`1.0`). */
export function memberText(parent: Json, key: string): string {
  if (typeof parent !== "object" || parent === null) return "null"
  const value = Array.isArray(parent) ? parent[Number(key)] : parent[key]
  const isFloat = spellingOf(parent)?.floats?.has(key) === true
  if (isFloat && typeof value === "number") return floatText(value)
  return jsonText(value ?? null)
}

/** Integers that are larger are doubles to the reference. */
function integerText(value: bigint): string {
  return value >= -(2n ** 63n) && value < 2n ** 64n ? String(value) : floatText(Number(value))
}

/** Decimal digits up to which a double is written without an exponent, and zeros behind the point likewise. */
const plainDigitsMax = 16
const leadingZerosMax = 5

/** A double in the fewest digits, always with a point or an exponent: `1.0`, `1e21`, `1.5e-7`. */
export function floatText(value: number): string {
  const [mantissa, exponent] = Math.abs(value).toExponential().split("e") as [string, string] // always has an "e"
  const sign = value < 0 || Object.is(value, -0) ? "-" : ""
  if (value === 0) return `${sign}0.0`
  const digits = mantissa.replace(".", "")
  // Where the point stands, counted from the digits' start.
  const point = Number(exponent) + 1
  if (point > plainDigitsMax || point <= -leadingZerosMax) return `${sign}${mantissa}e${Number(exponent)}`
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`
  if (digits.length <= point) return `${sign}${digits}${"0".repeat(point - digits.length)}.0`
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`
}
