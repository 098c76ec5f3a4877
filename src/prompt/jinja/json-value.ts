import type { Json } from "../../ir/conversation"
import { Dictionary, Float, type Value } from "./value"

/** A value from a request or a model file as templates see it. Numbers with a fraction are floats. */
export function templateValue(json: Json | Float | undefined): Value {
  if (typeof json === "number") return Number.isInteger(json) ? json : new Float(json)
  if (typeof json !== "object" || json === null || json instanceof Float) return json
  if (Array.isArray(json)) return json.map(templateValue)
  const made = new Dictionary()
  for (const key of Object.keys(json)) made.set(key, templateValue(json[key]))
  return made
}
