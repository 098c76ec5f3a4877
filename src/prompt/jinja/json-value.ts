import type { Json } from "../../ir/conversation"
import { type JsonSpelling, spellingOf } from "../../ir/json-spelling"
import type { Variables } from "./frame"
import { Dictionary, Float, type JsonObject, type Value } from "./value"

/**
 * A value from a request or a model file as templates see it: numbers with a fraction, or written as floats
 * (ir/json-spelling.ts), are floats; keys stand in the order in which they were written.
 */
export function templateValue(json: Json | undefined): Value {
  if (typeof json === "number") return Number.isInteger(json) ? json : new Float(json)
  if (typeof json !== "object" || json === null) return json
  if (Array.isArray(json)) {
    const floats = spellingOf(json)?.floats ?? null
    return floats === null ? json.map(templateValue) : json.map((item, i) => spelledValue(item, floats.has(String(i))))
  }
  return templateVariables(json)
}

/** A JSON object's keys as variables: each is made into a value when a template first asks, and then stays that one. */
export class JsonVariables implements Variables {
  private readonly source: JsonObject
  private readonly floats: ReadonlySet<string> | null
  private readonly made = new Map<string, Value>()

  constructor(source: JsonObject) {
    this.source = source
    this.floats = spellingOf(source)?.floats ?? null
  }

  get(name: string): Value {
    const known = this.made.get(name)
    if (known !== undefined || !this.has(name)) return known
    const value = spelledValue(this.source[name], this.floats?.has(name) ?? false)
    this.made.set(name, value)
    return value
  }

  has(name: string): boolean {
    return Object.hasOwn(this.source, name)
  }
}

/** An object as templates see it. */
export function templateVariables(json: JsonObject): Dictionary {
  return new Dictionary(json, fill)
}

function fill(json: JsonObject, made: Dictionary): void {
  const spelling = spellingOf(json)
  if (spelling !== null) addSpelled(made, json, spelling)
  else for (const key of Object.keys(json)) made.set(key, templateValue(json[key]))
}

function addSpelled(made: Dictionary, json: JsonObject, { keys, floats }: JsonSpelling): void {
  const add = (key: string): void => {
    made.set(key, spelledValue(json[key], floats?.has(key) ?? false))
  }
  for (const key of keys ?? []) if (Object.hasOwn(json, key)) add(key)
  // A copy may have got more keys than the text had.
  for (const key of Object.keys(json)) if (!made.has(key)) add(key)
}

function spelledValue(json: Json | undefined, isFloat: boolean): Value {
  return isFloat && typeof json === "number" ? new Float(json) : templateValue(json)
}
