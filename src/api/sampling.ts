/**
 * The sampling fields that all generation APIs share: their schemas, and how they become effective `SamplingParams`.
 * Rules: CHAT 1 (ranges, defaults, order of precedence), RESPONSES 1 and 5.
 */
import { type Static, Type } from "@sinclair/typebox"
import type { Json } from "../ir/conversation"
import type { RepetitionDetection, SamplingParams, StructuredOutputs } from "../ir/sampling"
import { err, ok, type Result } from "../result"
import type { LowerContext } from "./endpoint"
import { type InvalidRequest, invalid } from "./errors"
import { anyJson, int32, int64, isRecord, jsonObject, optional } from "./schema"

const structuredOutputs = Type.Object({
  json: optional(anyJson, "JSON schema, as an object or as text"),
  regex: optional(Type.String()),
  choice: optional(Type.Array(Type.String())),
  grammar: optional(Type.String()),
  json_object: optional(Type.Boolean()),
  structural_tag: optional(anyJson),
  disable_any_whitespace: optional(Type.Boolean()),
  disable_additional_properties: optional(Type.Boolean()),
  whitespace_pattern: optional(Type.String()),
})

/** Schemas of the fields by name; spread into each endpoint's body. */
export const samplingFields = {
  temperature: optional(Type.Number(), "0 to 2; 0 = greedy. Default: the model's, else 1"),
  top_p: optional(Type.Number(), "(0, 1]"),
  top_k: optional(int32, "0 or -1 = off"),
  min_p: optional(Type.Number(), "0 to 1"),
  presence_penalty: optional(Type.Number(), "-2 to 2"),
  frequency_penalty: optional(Type.Number(), "-2 to 2"),
  repetition_penalty: optional(Type.Number(), "above 0"),
  seed: optional(int64, "-1 = none"),
  stop: optional(Type.Union([Type.String(), Type.Array(Type.String())]), "Strings that end the reply"),
  stop_token_ids: optional(Type.Array(int32)),
  include_stop_str_in_output: optional(Type.Boolean()),
  ignore_eos: optional(Type.Boolean()),
  min_tokens: optional(int32, "Tokens before which nothing ends the reply"),
  skip_special_tokens: optional(Type.Boolean()),
  spaces_between_special_tokens: optional(Type.Boolean()),
  logit_bias: optional(Type.Record(Type.String(), Type.Number()), "Token id → bias, clipped to ±100"),
  allowed_token_ids: optional(Type.Array(int32)),
  bad_words: optional(Type.Array(Type.String())),
  watermarking: optional(Type.Boolean()),
  structured_outputs: optional(
    structuredOutputs,
    "Exactly one of json, regex, choice, grammar, json_object, structural_tag",
  ),
  thinking_token_budget: optional(int32),
  repetition_detection: optional(
    Type.Object({ max_pattern_size: int32, min_pattern_size: optional(int32), min_count: optional(int32) }),
  ),
  logprob_token_ids: optional(Type.Array(int32)),
  vllm_xargs: optional(jsonObject, "To the engine: strings, numbers or lists of them by name"),
  kv_transfer_params: optional(jsonObject),
  ec_transfer_params: optional(jsonObject),
  priority: optional(int32, "Lower is earlier"),
  request_id: optional(Type.String({ maxLength: 512 })),
  session_id: optional(Type.String()),
  cache_salt: optional(Type.String(), "Salts the prefix cache"),
  stream_interval: optional(int32, "Tokens a chunk stands for at least"),
}

const sampled = Type.Object(samplingFields)

/** The fields above, as a checked body has them. */
export type SamplingFields = Static<typeof sampled>

/** What the endpoints spell differently. */
export interface SamplingExtras {
  /** Alternatives for each token; null = no logprobs. */
  readonly logprobs: number | null
  readonly promptLogprobs: number | null
  /** From `response_format` or `text.format`; wins over the same slot of `structured_outputs`. */
  readonly format: StructuredOutputs | null
}

type Checked = Result<SamplingParams, InvalidRequest>

/** Effective sampling parameters; `maxTokens` is set once the prompt is known. */
export function lowerSampling(body: SamplingFields, extras: SamplingExtras, context: LowerContext): Checked {
  const fault = rangeFault(body) ?? listFault(body, context) ?? logprobFault(body, extras, context)
  if (fault !== null) return err(fault)

  const bias = lowerBias(body.logit_bias ?? null, context)
  if (!bias.ok) return bias
  const structured = lowerStructured(body.structured_outputs ?? null, extras.format)
  if (!structured.ok) return structured
  const extraArgs = lowerExtraArgs(body)
  if (!extraArgs.ok) return extraArgs

  const defaults = context.model.samplingDefaults
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? [])
  const seed = body.seed ?? null
  const sampling: SamplingParams = {
    temperature: body.temperature ?? defaults.temperature ?? 1,
    topP: body.top_p ?? defaults.topP ?? 1,
    topK: Math.max(0, body.top_k ?? defaults.topK ?? 0),
    minP: body.min_p ?? defaults.minP ?? 0,
    presencePenalty: body.presence_penalty ?? defaults.presencePenalty ?? 0,
    frequencyPenalty: body.frequency_penalty ?? defaults.frequencyPenalty ?? 0,
    repetitionPenalty: body.repetition_penalty ?? defaults.repetitionPenalty ?? 1,
    seed: seed === null || BigInt(seed) === -1n ? null : BigInt(seed),
    maxTokens: 1,
    minTokens: body.min_tokens ?? 0,
    stop,
    includeStopStrInOutput: body.include_stop_str_in_output ?? false,
    stopTokenIds: body.stop_token_ids ?? [],
    ignoreEos: body.ignore_eos ?? false,
    skipSpecialTokens: body.skip_special_tokens ?? true,
    spacesBetweenSpecialTokens: body.spaces_between_special_tokens ?? true,
    logprobs: extras.logprobs,
    promptLogprobs: extras.promptLogprobs,
    logprobTokenIds: body.logprob_token_ids ?? null,
    logitBias: bias.value,
    allowedTokenIds: body.allowed_token_ids ?? null,
    badWords: body.bad_words ?? [],
    structuredOutputs: structured.value,
    thinkingTokenBudget: body.thinking_token_budget ?? null,
    watermarking: body.watermarking ?? null,
    repetitionDetection: lowerRepetition(body),
    extraArgs: extraArgs.value,
  }
  settleTemperature(sampling)
  return ok(sampling)
}

/**
 * Tokens the reply may have: what was asked for (or the model's own default), what fits behind the prompt, and the
 * operator's cap. At least 1, since prompts that fill the window were refused.
 */
export function replyTokens(asked: number | null, promptTokens: number, context: LowerContext): number {
  const fits = context.model.contextTokensMax - promptTokens
  return Math.max(1, Math.min(fits, wantedTokens(asked, context) ?? fits))
}

/** How long a reply shall be at most, however long its prompt is; null = nobody says. */
export function wantedTokens(asked: number | null, context: LowerContext): number | null {
  const wanted = asked ?? context.model.samplingDefaults.maxTokens ?? null
  const cap = context.config.overrideGenerationConfig.max_new_tokens
  if (typeof cap !== "number") return wanted
  return wanted === null ? cap : Math.min(wanted, cap)
}

/** 0 < T < 0.01 would overflow logits in the engine; 0 is greedy, which makes the other filters meaningless. */
function settleTemperature(sampling: SamplingParams): void {
  if (sampling.temperature > 0) {
    sampling.temperature = Math.max(0.01, sampling.temperature)
    return
  }
  sampling.topP = 1
  sampling.topK = 0
  sampling.minP = 0
}

function rangeFault(body: SamplingFields): InvalidRequest | null {
  const within = (name: keyof SamplingFields, low: number, high: number): InvalidRequest | null => {
    const value = body[name] ?? null
    if (typeof value !== "number" || (value >= low && value <= high)) return null
    return invalid(name, `${name} must be in [${low}, ${high}], got ${value}.`)
  }
  const { top_p, repetition_penalty, top_k, min_tokens, stream_interval, thinking_token_budget } = body
  if (typeof top_p === "number" && (top_p <= 0 || top_p > 1)) {
    return invalid("top_p", `top_p must be in (0, 1], got ${top_p}.`)
  }
  if (typeof repetition_penalty === "number" && repetition_penalty <= 0) {
    return invalid("repetition_penalty", `repetition_penalty must be greater than zero, got ${repetition_penalty}.`)
  }
  if (typeof top_k === "number" && top_k < -1) {
    return invalid("top_k", `top_k must be 0 or -1 (off), or at least 1, got ${top_k}.`)
  }
  if (typeof min_tokens === "number" && min_tokens < 0) {
    return invalid("min_tokens", `min_tokens must be at least 0, got ${min_tokens}.`)
  }
  if (typeof stream_interval === "number" && stream_interval < 1) {
    return invalid("stream_interval", `stream_interval must be at least 1, got ${stream_interval}.`)
  }
  if (typeof thinking_token_budget === "number" && thinking_token_budget < 0) {
    return invalid("thinking_token_budget", `thinking_token_budget must be at least 0, got ${thinking_token_budget}.`)
  }
  const repetition = repetitionFault(body)
  if (repetition !== null) return repetition
  return (
    within("temperature", 0, 2) ??
    within("min_p", 0, 1) ??
    within("presence_penalty", -2, 2) ??
    within("frequency_penalty", -2, 2)
  )
}

function repetitionFault(body: SamplingFields): InvalidRequest | null {
  const asked = lowerRepetition(body)
  if (asked === null) return null
  const { max_pattern_size, min_pattern_size, min_count } = asked
  if (max_pattern_size < 0 || min_pattern_size < 0 || min_pattern_size > max_pattern_size) {
    return invalid("repetition_detection", "repetition_detection: pattern sizes must be 0 ≤ min ≤ max.")
  }
  if (max_pattern_size > 0 && min_count < 2) {
    return invalid("repetition_detection", "repetition_detection.min_count must be at least 2.")
  }
  return null
}

function listFault(body: SamplingFields, context: LowerContext): InvalidRequest | null {
  const { stopStringsMax, stopStringUnitsMax, badWordsMax } = context.config.limits
  const { vocabSize } = context.model
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? [])
  if (stop.length > stopStringsMax) {
    return invalid("stop", `stop has ${stop.length} strings; the limit is ${stopStringsMax}.`)
  }
  if (stop.includes("")) return invalid("stop", "stop cannot contain an empty string.")
  if (stop.some((each) => each.length > stopStringUnitsMax)) {
    return invalid("stop", `a stop string may have at most ${stopStringUnitsMax} characters.`)
  }
  const badWords = body.bad_words ?? []
  if (badWords.length > badWordsMax) {
    return invalid("bad_words", `bad_words has ${badWords.length} entries; the limit is ${badWordsMax}.`)
  }
  if (badWords.includes("")) return invalid("bad_words", "bad_words cannot contain an empty string.")
  for (const name of ["allowed_token_ids", "stop_token_ids", "logprob_token_ids"] as const) {
    const ids = body[name] ?? []
    const outside = ids.find((id) => id < 0 || id >= vocabSize)
    // An end token that the vocabulary lacks can never come: harmless, and clients send those of other models.
    if (outside !== undefined && name !== "stop_token_ids") {
      return invalid(name, `${name} contains token id ${outside}, which is out of vocabulary.`)
    }
  }
  if (body.allowed_token_ids?.length === 0) return invalid("allowed_token_ids", "allowed_token_ids must not be empty.")
  if (body.cache_salt === "") return invalid("cache_salt", "cache_salt must be a non-empty string.")
  if (typeof body.thinking_token_budget === "number" && !context.model.parsesReasoning) {
    return invalid("thinking_token_budget", "thinking_token_budget needs a reasoning parser (--reasoning-parser).")
  }
  return null
}

function logprobFault(body: SamplingFields, extras: SamplingExtras, context: LowerContext): InvalidRequest | null {
  const max = context.config.maxLogprobs
  for (const [name, count] of [
    ["logprobs", extras.logprobs],
    ["prompt_logprobs", extras.promptLogprobs],
  ] as const) {
    if (count === null) continue
    if (count < -1) return invalid(name, `${name} must be -1 or at least 0, got ${count}.`)
    const asked = count === -1 ? context.model.vocabSize : count
    if (max !== -1 && asked > max) {
      return invalid(name, `Requested ${name} of ${count}, which is greater than the allowed ${max}.`)
    }
  }
  const ids = body.logprob_token_ids ?? null
  if (ids === null) return null
  if (extras.logprobs === null) return invalid("logprob_token_ids", "logprob_token_ids needs logprobs.")
  if (max !== -1 && ids.length > max) {
    return invalid(
      "logprob_token_ids",
      `logprob_token_ids has ${ids.length} ids, which is more than the allowed ${max}.`,
    )
  }
  return null
}

/** Wrong keys that an error lists. */
const biasKeysShown = 100

function lowerBias(
  bias: { readonly [id: string]: number } | null,
  context: LowerContext,
): Result<ReadonlyMap<number, number> | null, InvalidRequest> {
  if (bias === null) return ok(null)
  const lowered = new Map<number, number>()
  const bad: string[] = []
  for (const [key, value] of Object.entries(bias)) {
    const id = /^\s*[+-]?\d+\s*$/.test(key) ? Number(key) : -1
    if (id < 0 || id >= context.model.vocabSize) bad.push(key.slice(0, 32))
    else lowered.set(id, Math.max(-100, Math.min(100, value)))
  }
  if (bad.length === 0) return ok(lowered)
  const more = bad.length > biasKeysShown ? ` and ${bad.length - biasKeysShown} more` : ""
  const shown = bad.slice(0, biasKeysShown).join(", ")
  return err(invalid("logit_bias", `logit_bias has keys that are no token ids: ${shown}${more}.`))
}

const structuredSlots = ["json", "regex", "choice", "grammar", "json_object", "structural_tag"] as const

function lowerStructured(
  asked: SamplingFields["structured_outputs"] | null,
  format: StructuredOutputs | null,
): Result<StructuredOutputs | null, InvalidRequest> {
  if (asked === null || asked === undefined) return ok(format)
  const merged: { [slot: string]: Json } = {}
  for (const [slot, value] of Object.entries({ ...asked, ...(format ?? {}) })) {
    if (value !== null && value !== undefined) merged[slot] = value as Json // both sources are parsed JSON
  }
  const set = structuredSlots.filter((slot) => merged[slot] !== undefined)
  if (set.length !== 1) {
    const got = set.length === 0 ? "none" : set.join(", ")
    return err(invalid("structured_outputs", `structured_outputs needs exactly one kind of constraint, got ${got}.`))
  }
  if (Array.isArray(merged.choice) && merged.choice.length === 0) {
    return err(invalid("structured_outputs", "structured_outputs.choice must not be empty."))
  }
  if (merged.json !== undefined && typeof merged.json !== "string" && !isRecord(merged.json)) {
    return err(invalid("structured_outputs", "structured_outputs.json must be a schema: an object, or its text."))
  }
  const tag = merged.structural_tag
  if (tag !== undefined && typeof tag !== "string" && !isRecord(tag)) {
    return err(invalid("structured_outputs", "structured_outputs.structural_tag must be an object, or its text."))
  }
  if (merged.json_object === false) {
    return err(invalid("structured_outputs", "structured_outputs.json_object can only be true."))
  }
  return ok(merged)
}

function lowerRepetition(body: SamplingFields): RepetitionDetection | null {
  const asked = body.repetition_detection ?? null
  if (asked === null) return null
  return {
    max_pattern_size: asked.max_pattern_size,
    min_pattern_size: asked.min_pattern_size ?? 0,
    min_count: asked.min_count ?? 0,
  }
}

/** `vllm_xargs` reaches the engine as it is, with the transfer parameters beside it. */
function lowerExtraArgs(body: SamplingFields): Result<{ readonly [name: string]: Json } | null, InvalidRequest> {
  const args: { [name: string]: Json } = {}
  for (const [name, value] of Object.entries(body.vllm_xargs ?? {})) {
    const values = Array.isArray(value) ? value : [value]
    const bad = values.find((each) => typeof each !== "string" && typeof each !== "number" && typeof each !== "bigint")
    if (bad !== undefined) {
      return err(invalid("vllm_xargs", `vllm_xargs.${name.slice(0, 64)} must be a string, a number or a list of them.`))
    }
    const wide = values.find((each) => typeof each === "bigint" && (each >= 2n ** 63n || each < -(2n ** 63n)))
    if (wide !== undefined) {
      return err(invalid("vllm_xargs", `vllm_xargs.${name.slice(0, 64)} does not fit into 64 bits.`))
    }
    args[name] = value
  }
  for (const name of ["kv_transfer_params", "ec_transfer_params"] as const) {
    const params = body[name] ?? null
    if (params !== null) args[name] = params
  }
  return ok(Object.keys(args).length === 0 ? null : args)
}

/** `response_format` of chat and completions, and `text.format` of Responses, as a constraint. */
export function lowerFormat(format: unknown, param: string): Result<StructuredOutputs | null, InvalidRequest> {
  if (format === null || format === undefined) return ok(null)
  if (!isRecord(format)) return err(invalid(param, `${param} must be an object.`))
  switch (format.type) {
    case "text":
      return ok(null)
    case "json_object":
      return ok({ json_object: true })
    case "json_schema": {
      // Chat nests name and schema in `json_schema`; Responses has them beside the type.
      const holder = isRecord(format.json_schema) ? format.json_schema : format
      const { schema, name } = holder
      if (!isRecord(schema))
        return err(invalid(param, `${param} of type json_schema needs a schema, which is an object.`))
      if (name !== undefined && typeof name !== "string") return err(invalid(param, `${param}: the name must be text.`))
      return ok({ json: { ...schema } })
    }
    case "structural_tag":
      return ok({ structural_tag: { ...format } })
    default:
      return err(invalid(param, `${param}.type must be text, json_object, json_schema or structural_tag.`))
  }
}
