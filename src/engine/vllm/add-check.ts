/**
 * What the engine must never be sent. Its decoder and constructors run outside any handling of one request: a value
 * they refuse ends its input thread, and a prompt that is too long ends the engine (ENGINE_PROTOCOL 4, 11 and 15). So
 * every type and range is checked here once more, whatever the API has checked before.
 */
import type { Json } from "../../ir/conversation"
import type { EngineError } from "../../ir/engine"
import { spelledJsonText } from "../../ir/exact-json"
import type { LoraAdapter } from "../../ir/generate-request"
import type { SamplingParams, StructuredOutputs } from "../../ir/sampling"
import { err, ok, type Result } from "../../result"
import type { AddRequest, EngineLimits } from "./add-request"
import { badWordSequencesMax } from "./bad-words"
import { replyTokensMax } from "./sampling-map"

const int32Max = 0x7fff_ffff
const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const uint64Max = 2n ** 64n - 1n

/** UTF-16 units of `cache_salt`, `session_id` and the public request id. */
export const nameUnitsMax = 4_096
/** UTF-16 units of a regex, a grammar, a schema or a structural tag. */
export const constraintUnitsMax = 4_194_304
/** Trace headers of a request, and UTF-16 units of each of their values. */
export const traceHeadersMax = 32
export const traceHeaderUnitsMax = 8_192
/** Objects and lists within each other, in `vllm_xargs` and the transfer parameters. */
export const extraArgsDepthMax = 32
/** Values in them altogether. */
export const extraArgsValuesMax = 1_000_000
/** The same for schemas, and for structural tags, which wrap schemas (vLLM refuses deeper ones). */
export const schemaDepthMax = 64
export const structuralTagDepthMax = 80
/** Ids in `logprob_token_ids` (the engine's buffers are that wide). */
export const logprobTokenIdsMax = 128

/** Why a field cannot be sent; "" = it can. */
type Fault = string
interface Complaint {
  readonly param: string
  readonly fault: Fault
}

/** Says whether the engine survives this request; the error names the API's field. */
export function checkAdd(add: AddRequest, limits: EngineLimits): Result<null, EngineError> {
  const complaint = complaintOf(add, limits)
  if (complaint === null) return ok(null)
  return err({
    kind: "engine_validation",
    message: `${complaint.param} ${complaint.fault}.`,
    param: complaint.param,
  })
}

function complaintOf(add: AddRequest, limits: EngineLimits): Complaint | null {
  const { request } = add
  const lora = request.lora ?? null
  const { sampling } = request
  return (
    first("prompt", promptFault(request.promptTokenIds, limits)) ??
    samplingComplaint(sampling) ??
    first("max_tokens", tokensFault(sampling.maxTokens, 1)) ??
    first("min_tokens", minTokensFault(add, limits)) ??
    idsComplaint(add, limits) ??
    structuredComplaint(sampling.structuredOutputs) ??
    first("logit_bias", biasFault(sampling.logitBias, limits)) ??
    first("vllm_xargs", extraArgsFault(sampling.extraArgs)) ??
    first("kv_transfer_params", objectFault(sampling.extraArgs?.kv_transfer_params)) ??
    first("ec_transfer_params", objectFault(sampling.extraArgs?.ec_transfer_params)) ??
    first("priority", intFault(request.priority, -int32Max - 1, int32Max)) ??
    first("cache_salt", nameFault(request.cacheSalt)) ??
    first("session_id", nameFault(request.sessionId)) ??
    first("request_id", nameFault(request.requestId)) ??
    first(
      "data_parallel_rank",
      request.dataParallelRank === null ? "" : intFault(request.dataParallelRank, 0, 0xffff),
    ) ??
    first("trace_headers", headersFault(request.traceHeaders)) ??
    first("model", lora === null ? "" : loraFault(lora, limits)) ??
    first("arrival_time", Number.isFinite(add.arrivalTime) ? "" : "is no time") ??
    first("client_index", intFault(add.clientIndex, 0, 0xffff)) ??
    first("current_wave", intFault(add.currentWave, 0, Number.MAX_SAFE_INTEGER))
  )
}

function first(param: string, fault: Fault): Complaint | null {
  return fault === "" ? null : { param, fault }
}

/** The engine dies of a longer prompt; one token at least must be left for the reply. */
function promptFault(ids: Uint32Array, limits: EngineLimits): Fault {
  if (ids.length === 0) return "must have at least one token"
  const most = limits.contextTokensMax - 1
  if (ids.length > most) return `has ${ids.length} tokens; with this engine it may have ${most}`
  const above = limits.vocabSize ?? int32Max
  for (let i = 0; i < ids.length; i++) {
    if (ids[i]! >= above) return `contains token id ${ids[i]}, which is out of vocabulary`
  }
  return ""
}

function samplingComplaint(sampling: SamplingParams): Complaint | null {
  return (
    first("temperature", rangeFault(sampling.temperature, 0, 2)) ??
    first("top_p", sampling.topP > 0 && sampling.topP <= 1 ? "" : `must be in (0, 1], got ${sampling.topP}`) ??
    first("top_k", intFault(sampling.topK, -1, int32Max)) ??
    first("min_p", rangeFault(sampling.minP, 0, 1)) ??
    first("presence_penalty", rangeFault(sampling.presencePenalty, -2, 2)) ??
    first("frequency_penalty", rangeFault(sampling.frequencyPenalty, -2, 2)) ??
    first("repetition_penalty", penaltyFault(sampling.repetitionPenalty)) ??
    first("seed", seedFault(sampling.seed)) ??
    first("logprobs", countFault(sampling.logprobs)) ??
    first("prompt_logprobs", countFault(sampling.promptLogprobs)) ??
    first("thinking_token_budget", countFault(sampling.thinkingTokenBudget)) ??
    first("repetition_detection", repetitionFault(sampling))
  )
}

function rangeFault(value: number, low: number, high: number): Fault {
  // NaN is in no range.
  return value >= low && value <= high ? "" : `must be in [${low}, ${high}], got ${value}`
}

function penaltyFault(value: number): Fault {
  return value > 0 && Number.isFinite(value) ? "" : `must be greater than zero and finite, got ${value}`
}

function intFault(value: number, low: number, high: number): Fault {
  return Number.isInteger(value) && value >= low && value <= high
    ? ""
    : `must be a whole number in [${low}, ${high}], got ${value}`
}

function countFault(value: number | null): Fault {
  return value === null ? "" : intFault(value, -1, int32Max)
}

function tokensFault(value: number, least: number): Fault {
  return intFault(value, least, int32Max)
}

function seedFault(seed: bigint | null): Fault {
  return seed === null || (seed >= int64Min && seed <= int64Max) ? "" : "must be a signed 64-bit integer"
}

/** More tokens at least than at most: the engine's constructor refuses that. */
function minTokensFault(add: AddRequest, limits: EngineLimits): Fault {
  const { minTokens } = add.request.sampling
  const most = replyTokensMax(add, limits)
  return (
    tokensFault(minTokens, 0) || (minTokens <= most ? "" : `is ${minTokens}, but the reply can have ${most} tokens`)
  )
}

function repetitionFault({ repetitionDetection: asked }: SamplingParams): Fault {
  if (asked === null) return ""
  const { min_pattern_size: low, max_pattern_size: high, min_count: count } = asked
  const fault = intFault(low, 0, int32Max) || intFault(high, 0, int32Max) || intFault(count, 0, int32Max)
  if (fault !== "") return fault
  if (low > high) return "needs min_pattern_size ≤ max_pattern_size"
  return high > 0 && count < 2 ? "needs a min_count of at least 2" : ""
}

function idsComplaint(add: AddRequest, limits: EngineLimits): Complaint | null {
  const { sampling, eosTokenIds } = add.request
  const { logprobTokenIds, allowedTokenIds } = sampling
  if (allowedTokenIds?.length === 0) return { param: "allowed_token_ids", fault: "must not be empty" }
  if (logprobTokenIds !== null && logprobTokenIds.length > logprobTokenIdsMax) {
    return { param: "logprob_token_ids", fault: `has more than ${logprobTokenIdsMax} ids` }
  }
  if (add.badWordTokenIds.length > badWordSequencesMax) {
    return { param: "bad_words", fault: `are more than ${badWordSequencesMax} sequences of tokens` }
  }
  if (add.badWordTokenIds.some((word) => word.length === 0)) return { param: "bad_words", fault: "must have tokens" }
  return (
    first("stop_token_ids", stopIdsFault([...sampling.stopTokenIds, ...eosTokenIds])) ??
    first("allowed_token_ids", idsFault(allowedTokenIds ?? [], limits)) ??
    first("logprob_token_ids", idsFault(logprobTokenIds ?? [], limits)) ??
    first("bad_words", idsFault(add.badWordTokenIds.flat(), limits))
  )
}

/** Those that no vocabulary has are left out when the request is written. */
function stopIdsFault(ids: readonly number[]): Fault {
  const odd = ids.find((id) => !Number.isInteger(id))
  return odd === undefined ? "" : `contains ${odd}, which is no whole number`
}

/** These ids are columns of the engine's tensors: one beyond them ends the engine, not the request. */
function idsFault(ids: readonly number[], limits: EngineLimits): Fault {
  const above = limits.vocabSize ?? int32Max
  const outside = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= above)
  return outside === undefined ? "" : `contains ${outside}, which is no token id of the vocabulary`
}

function biasFault(bias: ReadonlyMap<number, number> | null, limits: EngineLimits): Fault {
  if (bias === null) return ""
  for (const value of bias.values()) if (!Number.isFinite(value)) return `must have finite values, got ${value}`
  return idsFault([...bias.keys()], limits)
}

function structuredComplaint(outputs: StructuredOutputs | null): Complaint | null {
  if (outputs === null) return null
  return first("structured_outputs", structuredFault(outputs))
}

function structuredFault(outputs: StructuredOutputs): Fault {
  const { json, regex, choice, grammar, json_object, structural_tag } = outputs
  const set = [json, regex, choice, grammar, json_object, structural_tag].filter(isSet)
  if (set.length !== 1) return `needs exactly one kind of constraint, got ${set.length}`
  if (isSet(json_object) && json_object !== true) return "can only have json_object: true"
  if (isSet(choice) && choice.length === 0) return "must have a choice"
  if (isSet(grammar) && grammar.trim() === "") return "must not have an empty grammar"
  if (isSet(regex) && regex.includes("\0")) return "must not have a NUL in its regex"
  const texts = [regex, grammar, outputs.whitespace_pattern, ...(choice ?? [])].filter(isSet)
  if (texts.some((text) => text.length > constraintUnitsMax)) return `must be below ${constraintUnitsMax} characters`
  if (isSet(json)) return schemaFault(json, schemaDepthMax)
  return isSet(structural_tag) ? schemaFault(structural_tag, structuralTagDepthMax) : ""
}

/** A schema must be an object, or the JSON text of one. */
function schemaFault(schema: Json, depthMax: number): Fault {
  let value = schema
  if (typeof schema === "string") {
    if (schema.length > constraintUnitsMax) return `must be below ${constraintUnitsMax} characters`
    try {
      // JSON.parse gives what Json describes.
      value = JSON.parse(schema) as Json
    } catch {
      return "must be valid JSON"
    }
  }
  if (!isObject(value)) return "must be a JSON object"
  const fault = valueFault(value, depthMax, false)
  if (fault !== "") return fault
  return spelledJsonText(value).length > constraintUnitsMax ? `must be below ${constraintUnitsMax} characters` : ""
}

function extraArgsFault(args: { readonly [name: string]: Json } | null): Fault {
  return args === null ? "" : valueFault({ ...args }, extraArgsDepthMax, true)
}

function objectFault(value: Json | undefined): Fault {
  return value === undefined || value === null || isObject(value) ? "" : "must be an object"
}

/**
 * Depth and size of a value, level by level, so that depth costs no stack. In MessagePack (`isPacked`) integers have 64
 * bits; in JSON text they may have any size, but half a surrogate pair is none that the engine's parser takes on.
 */
function valueFault(value: Json, depthMax: number, isPacked: boolean): Fault {
  let level: Json[] = [value]
  let values = 1
  for (let depth = 0; level.length > 0; depth++) {
    const next: Json[] = []
    for (const each of level) {
      if (typeof each === "bigint" && isPacked && (each < int64Min || each > uint64Max)) {
        return `has the integer ${String(each).slice(0, 24)}, which does not fit into 64 bits`
      }
      if (typeof each === "string" && !isPacked && !each.isWellFormed()) return "must be valid Unicode"
      if (each === null || typeof each !== "object") continue
      if (depth >= depthMax) return `nests deeper than ${depthMax} levels`
      if (!isPacked && !Array.isArray(each) && !Object.keys(each).every((key) => key.isWellFormed())) {
        return "must be valid Unicode"
      }
      const children = Array.isArray(each) ? each : Object.values(each)
      values += children.length
      if (values > extraArgsValuesMax) return `has more than ${extraArgsValuesMax} values`
      for (const child of children) next.push(child)
    }
    level = next
  }
  return ""
}

function nameFault(name: string | null): Fault {
  return name === null || name.length <= nameUnitsMax ? "" : `may have at most ${nameUnitsMax} characters`
}

function headersFault(headers: { readonly [name: string]: string } | null): Fault {
  if (headers === null) return ""
  const entries = Object.entries(headers)
  if (entries.length > traceHeadersMax) return `are more than ${traceHeadersMax}`
  const isLong = entries.some(([name, value]) => name.length + value.length > traceHeaderUnitsMax)
  return isLong ? `may have at most ${traceHeaderUnitsMax} characters each` : ""
}

function loraFault(lora: LoraAdapter, limits: EngineLimits): Fault {
  if (!limits.supportsLora) return "names an adapter, and the engine was started without --enable-lora"
  if (lora.path === "" || lora.name === "") return "names an adapter without a name or a path"
  return intFault(lora.id, 1, int32Max)
}

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== null && value !== undefined
}

function isObject(value: Json): value is { [key: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value)
}
