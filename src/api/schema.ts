/**
 * How bodies are checked: TypeBox schemas, compiled once, that never coerce, strip or refuse unknown fields. The same
 * schemas are published in /openapi.json.
 */
import { Kind, type Static, type TSchema, Type, TypeRegistry } from "@sinclair/typebox"
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler"
import type { ValueError } from "@sinclair/typebox/errors"
import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"

/** A body that does not fit its schema. */
export interface SchemaMismatch {
  readonly kind: "schema_mismatch"
  /** At most ten, each with its path. */
  readonly problems: readonly string[]
  /** The top-level field of the first problem; null when the body itself is wrong. */
  readonly param: string | null
}

const problemsMax = 10
const shownValueUnitsMax = 200
const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n

TypeRegistry.Set("SluiceInt64", (_schema, value) => {
  if (typeof value === "bigint") return value >= int64Min && value <= int64Max
  return Number.isSafeInteger(value)
})
TypeRegistry.Set("SluiceJson", () => true)
TypeRegistry.Set("SluiceJsonObject", (_schema, value) => isRecord(value))

/** A signed 64-bit integer; the body reader gives those beyond 2^53 as `bigint`. */
export const int64 = Type.Unsafe<number | bigint>({ [Kind]: "SluiceInt64", type: "integer", format: "int64" })

/** Any JSON value, unread. */
export const anyJson = Type.Unsafe<Json>({ [Kind]: "SluiceJson" })

/** Any JSON object, unread. */
export const jsonObject = Type.Unsafe<{ [key: string]: Json }>({ [Kind]: "SluiceJsonObject", type: "object" })

/** A 32-bit integer: token ids, counts, lengths. */
export const int32 = Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 })

/** An optional field where `null` means the same as leaving it out. */
export function optional<Schema extends TSchema>(schema: Schema, description?: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], description === undefined ? {} : { description }))
}

/** Checks bodies against one schema. */
export class BodyCheck<Schema extends TSchema> {
  readonly schema: Schema
  private readonly compiled: TypeCheck<Schema>

  constructor(schema: Schema) {
    this.schema = schema
    this.compiled = TypeCompiler.Compile(schema)
  }

  /** Gives the same object, typed. */
  check(body: unknown): Result<Static<Schema>, SchemaMismatch> {
    if (this.compiled.Check(body)) return ok(body)
    if (!isRecord(body)) return err({ kind: "schema_mismatch", problems: ["the body is not an object"], param: null })
    const problems = new Map<string, string>()
    let param: string | null = null
    for (const outer of this.compiled.Errors(body)) {
      const error = innermost(outer)
      const path = error.path.split("/").slice(1).map(unescapePointer)
      const shown = path.length === 0 ? "body" : path.join(".")
      if (problems.has(shown)) continue
      param ??= path[0] ?? null
      problems.set(shown, `${shown}: ${describe(error)}`)
      if (problems.size === problemsMax) break
    }
    return err({ kind: "schema_mismatch", problems: [...problems.values()], param })
  }
}

/**
 * Where a union failed for good. `null` and one other alternative is how optional fields are written; telling only that
 * neither fits would hide what is wrong inside. The alternative that got deepest is the one that was meant.
 */
function innermost(error: ValueError): ValueError {
  let deepest = error
  for (const alternative of error.errors) {
    const first = alternative.First()
    if (first === undefined) continue
    const inner = innermost(first)
    if (inner.path.length > deepest.path.length) deepest = inner
  }
  return deepest
}

function describe(error: ValueError): string {
  if (error.value === undefined) return "field required"
  return `expected ${expected(error.schema)}, got ${shown(error.value)}`
}

/** The schema in words. */
function expected(schema: TSchema): string {
  const alternatives: unknown = schema.anyOf
  if (Array.isArray(alternatives)) return [...new Set(alternatives.map(expected))].join(" or ")
  if ("const" in schema) return JSON.stringify(schema.const)
  if (typeof schema.maxLength === "number") return `a string of at most ${schema.maxLength} characters`
  if (schema.type === "integer") {
    const { minimum, maximum } = schema
    if (schema.format === "int64") return "a 64-bit integer"
    return minimum === undefined ? "an integer" : `an integer from ${minimum} to ${maximum}`
  }
  const words: { readonly [type: string]: string } = {
    null: "null",
    boolean: "true or false",
    array: "a list",
    object: "an object",
  }
  const type = String(schema.type)
  return words[type] ?? `a ${type}`
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (isRecord(value)) return "an object"
  const text = typeof value === "string" ? JSON.stringify(value) : String(value)
  return text.length > shownValueUnitsMax ? `${text.slice(0, shownValueUnitsMax)}…` : text
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~")
}

/** True for JSON objects (not lists, not null). */
export function isRecord(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
