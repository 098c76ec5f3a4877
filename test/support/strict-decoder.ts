/**
 * Plays the part of a vLLM engine that reads requests: the types its decoder insists on, the checks that run in the
 * constructors, and what its scheduler dies of (ENGINE_PROTOCOL 4 to 6, 10, 11, 15). A stand-in engine forgives all of
 * that; a real one closes its input or ends. Used on our own bodies, and on frames that a stand-in engine recorded.
 */
import { readWire, type WireValue } from "./wire-value"

/** A decoded value; ints beyond 2^53 are `bigint`. Maps have string keys, `logit_bias` a `Map`. */
export type Decoded =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Decoded[]
  | ReadonlyMap<number, number>
  | { readonly [key: string]: Decoded }

/** A request as the engine has it after decoding: every field, defaults filled in. */
export interface DecodedRequest {
  readonly [field: string]: Decoded
}

/** Why the engine would not survive a message. */
export class EngineDies extends Error {}

type Reader = (value: WireValue, path: string) => Decoded

/** What the playing engine was started with. */
export interface StrictEngineOptions {
  readonly maxModelLen: number
  readonly vocabSize: number
}

/** Keeps which ids live, as a scheduler does. Every method throws `EngineDies` on what a real engine does not survive. */
export class StrictEngine {
  readonly live = new Map<string, DecodedRequest>()
  private readonly options: StrictEngineOptions

  constructor(options: StrictEngineOptions) {
    this.options = options
  }

  /** ADD. */
  add(body: Uint8Array): DecodedRequest {
    const request = decodeAdd(body)
    const id = String(request.request_id)
    if (this.live.has(id)) throw new EngineDies(`request id ${id} lives already`)
    checkAgainst(request, this.options)
    this.live.set(id, request)
    return request
  }

  /** ABORT: unknown ids do no harm. */
  abort(body: Uint8Array): readonly string[] {
    const ids = dying(() => list(str)(readWire(body), "$"))
    for (const id of ids as readonly string[]) this.live.delete(id) // `list(str)` gives strings
    return ids as readonly string[]
  }

  /** UTILITY. */
  utility(body: Uint8Array): { readonly callId: Decoded; readonly method: Decoded; readonly args: Decoded } {
    const call = dying(() => any(readWire(body), "$"))
    if (!Array.isArray(call) || call.length !== 4) throw new EngineDies("a utility call has four parts")
    const [, callId, method, args] = call
    if (typeof method !== "string" || !Array.isArray(args))
      throw new EngineDies("a utility call names a method and args")
    return { callId, method, args }
  }

  /** A sequence ended by itself. */
  finish(id: string): void {
    this.live.delete(id)
  }
}

/** Decodes ADD; throws `EngineDies`. */
export function decodeAdd(body: Uint8Array): DecodedRequest {
  return dying(() => {
    const wire = readWire(body)
    if (wire.type !== "array") throw expected("array", wire, "$")
    if (wire.value.length < 9) throw new Error(`Expected \`array\` of at least length 9, got ${wire.value.length}`)
    const request: { [field: string]: Decoded } = {}
    requestFields.forEach(([name, read, otherwise], i) => {
      const value = wire.value[i]
      request[name] = value === undefined ? otherwise : read(value, `$[${i}]`)
    })
    if (request.sampling_params === null && request.pooling_params === null) {
      throw new Error("sampling_params and pooling_params can't both be unset")
    }
    return request
  })
}

function dying<Value>(run: () => Value): Value {
  try {
    return run()
  } catch (cause) {
    throw cause instanceof EngineDies ? cause : new EngineDies(cause instanceof Error ? cause.message : String(cause))
  }
}

function expected(wanted: string, value: WireValue, path: string): Error {
  const names: { readonly [type: string]: string } = { bin: "bytes", map: "object", nil: "null" }
  return new Error(`Expected \`${wanted}\`, got \`${names[value.type] ?? value.type}\` - at \`${path}\``)
}

const int: Reader = (value, path) => {
  if (value.type !== "int") throw expected("int", value, path)
  return Number.isSafeInteger(Number(value.value)) ? Number(value.value) : value.value
}
const float: Reader = (value, path) => {
  if (value.type === "float") return value.value
  if (value.type === "int") return Number(value.value)
  throw expected("float", value, path)
}
const str: Reader = (value, path) => {
  if (value.type !== "str") throw expected("str", value, path)
  return value.value
}
const bool: Reader = (value, path) => {
  if (value.type !== "bool") throw expected("bool", value, path)
  return value.value
}
const any: Reader = (value, path) => {
  switch (value.type) {
    case "nil":
      return null
    case "array":
      return value.value.map((each, i) => any(each, `${path}[${i}]`))
    case "map":
      return Object.fromEntries(
        value.value.map(([key, each]) => {
          if (key.type !== "str" && key.type !== "int") throw expected("str", key, path)
          return [String(key.value), any(each, `${path}.${key.value}`)]
        }),
      )
    case "int":
      return int(value, path)
    case "ext":
      if (value.code !== 3) throw new Error(`Extension type code ${value.code} is not supported`)
      return value.value
    default:
      return value.value
  }
}
const tensor: Reader = (value, path) => {
  if (value.type !== "array" || value.value.length !== 3) throw expected("array", value, path)
  return any(value, path)
}

function nilable(read: Reader): Reader {
  return (value, path) => (value.type === "nil" ? null : read(value, path))
}

function list(read: Reader): (value: WireValue, path: string) => readonly Decoded[] {
  return (value, path) => {
    if (value.type !== "array") throw expected("array", value, path)
    return value.value.map((each, i) => read(each, `${path}[${i}]`))
  }
}

/** A set: order and repetition mean nothing. */
function setOf(read: Reader): Reader {
  const items = list(read)
  return (value, path) => [...new Set(items(value, path))].sort((a, b) => Number(a) - Number(b))
}

function oneOf(...codes: readonly number[]): Reader {
  return (value, path) => {
    const code = int(value, path)
    if (!codes.includes(Number(code))) throw new Error(`Invalid enum value ${code} - at \`${path}\``)
    return code
  }
}

const stringMap: Reader = (value, path) => {
  if (value.type !== "map") throw expected("object", value, path)
  return Object.fromEntries(value.value.map(([key, each]) => [str(key, path), str(each, path)]))
}
const anyMap: Reader = (value, path) => {
  if (value.type !== "map") throw expected("object", value, path)
  for (const [key] of value.value) str(key, `key in ${path}`)
  return any(value, path)
}
const biasMap: Reader = (value, path) => {
  if (value.type !== "map") throw expected("object", value, path)
  return new Map(
    value.value.map(([key, each]) => [Number(int(key, `key in ${path}`)), Number(float(each, path))] as const),
  )
}

type Field = readonly [name: string, read: Reader, otherwise: Decoded]

/** A map with known keys; unknown ones are ignored, missing ones take their default. */
function struct(fields: readonly Field[], construct: (value: { [key: string]: Decoded }) => void): Reader {
  const byName = new Map(fields.map(([name, read]) => [name, read]))
  return (value, path) => {
    if (value.type !== "map") throw expected("object | null", value, path)
    const made: { [key: string]: Decoded } = Object.fromEntries(fields.map(([name, , otherwise]) => [name, otherwise]))
    for (const [key, each] of value.value) {
      const name = String(str(key, path))
      const read = byName.get(name)
      if (read !== undefined) made[name] = read(each, `${path}.${name}`)
    }
    construct(made)
    return made
  }
}

/** An array with known places; a missing one at the end takes its default. */
function tuple(
  fields: readonly Field[],
  least: number,
  construct: (value: { [key: string]: Decoded }) => void,
): Reader {
  return (value, path) => {
    if (value.type !== "array") throw expected("array", value, path)
    if (value.value.length < least) throw new Error(`Expected \`array\` of at least length ${least} - at \`${path}\``)
    const made: { [key: string]: Decoded } = {}
    fields.forEach(([name, read, otherwise], i) => {
      const each = value.value[i]
      made[name] = each === undefined ? otherwise : read(each, `${path}[${i}]`)
    })
    construct(made)
    return made
  }
}

const constraints = ["json", "regex", "choice", "grammar", "json_object", "structural_tag"]

const structuredOutputs = struct(
  [
    ["json", nilable((value, path) => (value.type === "str" ? value.value : anyMap(value, path))), null],
    ["regex", nilable(str), null],
    ["choice", nilable(list(str)), null],
    ["grammar", nilable(str), null],
    ["json_object", nilable(bool), null],
    ["structural_tag", nilable(str), null],
    ["disable_any_whitespace", bool, false],
    ["disable_additional_properties", bool, false],
    ["whitespace_pattern", nilable(str), null],
    ["_backend", nilable(str), null],
    ["_backend_was_auto", bool, false],
  ],
  (made) => {
    const set = constraints.filter((name) => made[name] !== null)
    if (set.length !== 1) throw new Error(`one kind of structured outputs constraint, not ${set.length}`)
  },
)

const repetition = struct(
  [
    ["max_pattern_size", int, 0],
    ["min_pattern_size", int, 0],
    ["min_count", int, 0],
  ],
  (made) => {
    const [high, low, count] = [Number(made.max_pattern_size), Number(made.min_pattern_size), Number(made.min_count)]
    if (high < 0 || low < 0 || low > high) throw new Error("pattern sizes must be 0 <= min <= max")
    if (high > 0 && count < 2) throw new Error("min_count must be >= 2")
  },
)

const samplingParams = struct(
  [
    ["n", int, 1],
    ["presence_penalty", float, 0],
    ["frequency_penalty", float, 0],
    ["repetition_penalty", float, 1],
    ["temperature", float, 1],
    ["watermarking", nilable(bool), null],
    ["top_p", float, 1],
    ["top_k", int, 0],
    ["min_p", float, 0],
    ["seed", nilable(int), null],
    ["stop", nilable((value, path) => (value.type === "str" ? [value.value] : list(str)(value, path))), null],
    ["stop_token_ids", nilable(setOf(int)), null],
    ["ignore_eos", bool, false],
    ["max_tokens", nilable(int), 16],
    ["min_tokens", int, 0],
    ["logprobs", nilable(int), null],
    ["prompt_logprobs", nilable(int), null],
    ["prompt_logprob_start", nilable(int), null],
    ["logprob_token_ids", nilable(list(int)), null],
    ["flat_logprobs", bool, false],
    ["detokenize", bool, true],
    ["skip_special_tokens", bool, true],
    ["spaces_between_special_tokens", bool, true],
    ["include_stop_str_in_output", bool, false],
    ["output_kind", oneOf(0, 1, 2), 0],
    ["stream_interval", nilable(int), null],
    ["skip_clone", bool, false],
    ["output_text_buffer_length", int, 0],
    ["_eos_token_id", nilable(int), null],
    ["_all_stop_token_ids", setOf(int), []],
    ["structured_outputs", nilable(structuredOutputs), null],
    ["logit_bias", nilable(biasMap), null],
    ["allowed_token_ids", nilable(list(int)), null],
    ["extra_args", nilable(anyMap), null],
    ["bad_words", nilable(list(str)), null],
    ["_bad_words_token_ids", nilable(list(list(int))), null],
    ["skip_reading_prefix_cache", nilable(bool), null],
    ["thinking_token_budget", nilable(int), null],
    ["repetition_detection", nilable(repetition), null],
    ["routed_experts_prompt_start", int, 0],
    ["trace_decode_token_ids", nilable(list(int)), null],
  ],
  constructSampling,
)

const lora = tuple(
  [
    ["lora_name", str, null],
    ["lora_int_id", int, null],
    ["lora_path", str, ""],
    ["base_model_name", nilable(str), null],
    ["load_inplace", bool, false],
    ["is_3d_lora_weight", bool, false],
  ],
  2,
  (made) => {
    if (Number(made.lora_int_id) < 1) throw new Error(`id must be > 0, got ${made.lora_int_id}`)
    if (made.lora_path === "") throw new Error("lora_path cannot be empty")
  },
)

const requestFields: readonly Field[] = [
  ["request_id", str, null],
  ["prompt_token_ids", nilable(list(int)), null],
  ["mm_features", nilable(list(anyMap)), null],
  ["sampling_params", nilable(samplingParams), null],
  ["pooling_params", nilable(list(any)), null],
  ["arrival_time", float, null],
  ["lora_request", nilable(lora), null],
  ["cache_salt", nilable(str), null],
  ["data_parallel_rank", nilable(int), null],
  ["prompt_embeds", nilable(tensor), null],
  ["prompt_is_token_ids", nilable(list(bool)), null],
  ["client_index", int, 0],
  ["current_wave", int, 0],
  ["priority", int, 0],
  ["trace_headers", nilable(stringMap), null],
  ["resumable", bool, false],
  ["external_req_id", nilable(str), null],
  ["reasoning_ended", nilable(bool), null],
  ["reasoning_parser_kwargs", nilable(anyMap), null],
  ["abort_immediately", bool, false],
  ["session_id", nilable(str), null],
  ["kv_hints", nilable(anyMap), null],
]

/** What the constructor refuses, and what it settles. */
function constructSampling(made: { [key: string]: Decoded }): void {
  const number = (name: string): number => Number(made[name])
  const within = (name: string, low: number, high: number): void => {
    if (!(number(name) >= low && number(name) <= high)) throw new Error(`${name} must be in [${low}, ${high}]`)
  }
  const least = (name: string, low: number): void => {
    if (made[name] !== null && !(number(name) >= low)) throw new Error(`${name} must be at least ${low}`)
  }
  within("n", 1, 16_384)
  within("presence_penalty", -2, 2)
  within("frequency_penalty", -2, 2)
  within("temperature", 0, 2)
  within("min_p", 0, 1)
  if (!(number("top_p") > 0 && number("top_p") <= 1)) throw new Error("top_p must be in (0, 1]")
  if (!(number("repetition_penalty") > 0 && Number.isFinite(number("repetition_penalty")))) {
    throw new Error("repetition_penalty must be finite and greater than zero")
  }
  least("top_k", -1)
  least("max_tokens", 1)
  least("min_tokens", 0)
  least("stream_interval", 1)
  least("logprobs", -1)
  least("prompt_logprobs", -1)
  least("thinking_token_budget", -1)
  if (made.max_tokens !== null && number("min_tokens") > number("max_tokens")) {
    throw new Error("min_tokens must be less than or equal to max_tokens")
  }
  const stop = (made.stop ?? []) as readonly string[] // read as a list of strings
  const badWords = (made.bad_words ?? []) as readonly string[]
  if (stop.includes("")) throw new Error("stop cannot contain an empty string")
  if (badWords.includes("")) throw new Error("bad_words cannot contain an empty string")
  if (stop.length > 0 && made.detokenize === false) throw new Error("stop strings need detokenize")
  checkExtraArgs(made.extra_args ?? null)

  if (made.seed === -1) made.seed = null
  if (made.thinking_token_budget === -1) made.thinking_token_budget = null
  made.stop = stop
  made.bad_words = badWords
  made.stop_token_ids ??= []
  if (number("temperature") > 0) made.temperature = Math.max(0.01, number("temperature"))
  if (number("temperature") < 1e-5) {
    if (number("n") > 1) throw new Error("n must be 1 when using greedy sampling")
    made.top_p = 1
    made.top_k = 0
    made.min_p = 0
  }
  if (number("top_k") === -1) made.top_k = 0
  made._all_stop_token_ids = [
    ...new Set([...(made._all_stop_token_ids as number[]), ...(made.stop_token_ids as number[])]), // lists of ints
  ].sort((a, b) => a - b)
  made.skip_reading_prefix_cache ??= made.prompt_logprobs !== null
}

function checkExtraArgs(value: Decoded): void {
  if (typeof value === "bigint" && (value < -(2n ** 63n) || value >= 2n ** 64n)) {
    throw new Error("extra_args integers must have 64 bits")
  }
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return
  for (const each of Object.values(value)) checkExtraArgs(each)
}

/** What passes the decoder and ends the engine later: lengths, and ids that are columns of its tensors. */
function checkAgainst(request: DecodedRequest, options: StrictEngineOptions): void {
  const prompt = (request.prompt_token_ids ?? []) as readonly number[] // a list of ints
  if (prompt.length === 0 && request.prompt_embeds === null) throw new EngineDies("the prompt is empty")
  if (prompt.length >= options.maxModelLen) {
    throw new EngineDies(`the prompt has ${prompt.length} tokens, the model takes ${options.maxModelLen}`)
  }
  const sampling = request.sampling_params as { readonly [key: string]: Decoded } | null
  if (sampling === null) return
  if (sampling.max_tokens === null) throw new EngineDies("max_tokens must be set")
  if (Number(sampling.max_tokens) + prompt.length > options.maxModelLen) {
    throw new EngineDies("max_tokens must fit behind the prompt")
  }
  const bias = sampling.logit_bias
  const ids: readonly (readonly [string, readonly Decoded[]])[] = [
    ["prompt_token_ids", prompt],
    ["stop_token_ids", sampling.stop_token_ids as readonly number[]],
    ["_all_stop_token_ids", sampling._all_stop_token_ids as readonly number[]],
    ["allowed_token_ids", (sampling.allowed_token_ids ?? []) as readonly number[]],
    ["logprob_token_ids", (sampling.logprob_token_ids ?? []) as readonly number[]],
    ["_bad_words_token_ids", ((sampling._bad_words_token_ids ?? []) as readonly (readonly number[])[]).flat()],
    ["logit_bias", bias instanceof Map ? [...bias.keys()] : []],
  ]
  for (const [name, list] of ids) {
    const outside = list.find((id) => Number(id) < 0 || Number(id) >= options.vocabSize)
    if (outside !== undefined) throw new EngineDies(`${name} has ${outside}, which is out of vocabulary`)
  }
  if ((sampling.allowed_token_ids as readonly number[] | null)?.length === 0) {
    throw new EngineDies("allowed_token_ids is empty")
  }
  if (((sampling.logprob_token_ids ?? []) as readonly number[]).length > 128) {
    throw new EngineDies("logprob_token_ids has more than 128 ids")
  }
  if (((sampling._bad_words_token_ids ?? []) as readonly Decoded[]).length > 128) {
    throw new EngineDies("more than 128 bad words")
  }
  if (bias instanceof Map && [...bias.values()].some((value) => !Number.isFinite(value))) {
    throw new EngineDies("logit_bias is not finite")
  }
  checkStructured(sampling.structured_outputs as { readonly [key: string]: Decoded } | null)
}

/** A constraint without a back end, or of a kind that it refuses, ends the request; later ones assert. */
function checkStructured(outputs: { readonly [key: string]: Decoded } | null): void {
  if (outputs === null) return
  if (outputs._backend === null) throw new EngineDies("structured_outputs._backend must be set")
  if (outputs.choice !== null) throw new EngineDies("structured_outputs.choice is refused by the back end")
  if (outputs.json_object === false) throw new EngineDies("structured_outputs.json_object is false")
  if (typeof outputs.grammar === "string" && outputs.grammar.trim() === "") throw new EngineDies("the grammar is empty")
  for (const name of ["json", "structural_tag"]) {
    const text = outputs[name]
    if (typeof text !== "string") continue
    try {
      JSON.parse(text)
    } catch {
      throw new EngineDies(`structured_outputs.${name} is not JSON`)
    }
  }
}
