/** Sampling defaults out of generation_config.json and `--override-generation-config`. */
import type { Json } from "../ir/conversation"
import type { SamplingDefaults } from "../ir/sampling"
import { err, ok, type Result } from "../result"

/** A default that no request could use, or one that means nothing to us. */
export interface GenerationConfigFailure {
  readonly kind: "model_broken" | "model_option"
  readonly message: string
}

interface Field {
  readonly key: keyof SamplingDefaults
  readonly expected: string
  accepts(value: number): boolean
}

/** Keys of the file that are sampling defaults, with the ranges that requests have to keep (CHAT 1). */
const fields: { readonly [name: string]: Field } = {
  temperature: { key: "temperature", expected: "a number 0–2", accepts: (v) => v >= 0 && v <= 2 },
  top_p: { key: "topP", expected: "a number above 0, up to 1", accepts: (v) => v > 0 && v <= 1 },
  top_k: { key: "topK", expected: "a whole number from -1", accepts: (v) => Number.isSafeInteger(v) && v >= -1 },
  min_p: { key: "minP", expected: "a number 0–1", accepts: (v) => v >= 0 && v <= 1 },
  repetition_penalty: { key: "repetitionPenalty", expected: "a number above 0", accepts: (v) => v > 0 },
  presence_penalty: { key: "presencePenalty", expected: "a number -2–2", accepts: (v) => Math.abs(v) <= 2 },
  frequency_penalty: { key: "frequencyPenalty", expected: "a number -2–2", accepts: (v) => Math.abs(v) <= 2 },
  max_new_tokens: {
    key: "maxTokens",
    expected: "a whole number from 1",
    accepts: (v) => Number.isSafeInteger(v) && v >= 1,
  },
}

/** The defaults that a generation_config.json states; other keys of the file are for other programs. */
export function readSamplingDefaults(
  json: { readonly [key: string]: unknown },
  path: string,
): Result<SamplingDefaults, GenerationConfigFailure> {
  const read = readFields(json)
  return read.ok ? read : err({ kind: "model_broken", message: `${path}: ${read.error}` })
}

/** Defaults with those of the flag on top; null takes one away. A key that means nothing to us is refused. */
export function addSamplingOverrides(
  defaults: SamplingDefaults,
  overrides: { readonly [name: string]: Json },
): Result<SamplingDefaults, GenerationConfigFailure> {
  const refused = (what: string) =>
    err({ kind: "model_option" as const, message: `--override-generation-config: ${what}` })
  const unknown = Object.keys(overrides).find((name) => !Object.hasOwn(fields, name))
  if (unknown !== undefined) return refused(`"${unknown}" is not one of ${Object.keys(fields).join(", ")}`)
  const read = readFields(overrides)
  if (!read.ok) return refused(read.error)
  const kept: Record<string, number> = { ...defaults }
  for (const [name, value] of Object.entries(overrides)) if (value === null) delete kept[fields[name]!.key]
  return ok({ ...kept, ...read.value })
}

function readFields(json: { readonly [key: string]: unknown }): Result<SamplingDefaults, string> {
  const defaults: { -readonly [Key in keyof SamplingDefaults]: number } = {}
  for (const [name, field] of Object.entries(fields)) {
    const value = json[name]
    if (value === undefined || value === null) continue
    if (typeof value !== "number" || !field.accepts(value)) {
      return err(`${name} ${JSON.stringify(value)}: expected ${field.expected}`)
    }
    // Both 0 and -1 turn top_k off; inside there is one spelling.
    defaults[field.key] = name === "top_k" && value === -1 ? 0 : value
  }
  return ok(defaults)
}
