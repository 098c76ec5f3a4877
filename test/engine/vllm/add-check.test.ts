import { describe, expect, test } from "bun:test"
import { checkAdd, constraintUnitsMax, nameUnitsMax, traceHeadersMax } from "../../../src/engine/vllm/add-check"
import { AddEncoder } from "../../../src/engine/vllm/add-encoder"
import type { AddRequest, EngineLimits } from "../../../src/engine/vllm/add-request"
import type { Json } from "../../../src/ir/conversation"
import type { SamplingParams, StructuredOutputs } from "../../../src/ir/sampling"
import { addRequest, samplingParams } from "../../support/add-request"
import { seededRandom } from "../../support/random"
import { StrictEngine } from "../../support/strict-decoder"

const limits: EngineLimits = {
  contextTokensMax: 64,
  vocabSize: 1_000,
  supportsLora: false,
  structuredOutputsBackend: "xgrammar",
}

/** What is said about the request: the field's name, or "ok". */
function verdict(add: AddRequest, under: EngineLimits = limits): string | null {
  const checked = checkAdd(add, under)
  if (checked.ok) return "ok"
  if (checked.error.kind !== "engine_validation") throw new Error(checked.error.kind)
  return checked.error.param
}

function of(change: Partial<SamplingParams>): string | null {
  return verdict(addRequest({ sampling: samplingParams(change) }))
}

function nested(depth: number): Json {
  let value: Json = {}
  for (let i = 1; i < depth; i++) value = { a: value }
  return value
}

const notNumbers = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]

describe("a request passes", () => {
  test("with every default, and with every value at its edge", () => {
    expect(of({})).toBe("ok")
    for (const temperature of [0, 0.01, 2]) expect(of({ temperature })).toBe("ok")
    for (const change of [
      { topP: 1e-9, topK: -1, minP: 1, presencePenalty: -2, frequencyPenalty: 2, repetitionPenalty: 1e-9 },
      { topK: 2 ** 31 - 1, seed: 2n ** 63n - 1n, logprobs: -1, promptLogprobs: 0, minTokens: 16 },
      { seed: -(2n ** 63n), allowedTokenIds: [0, 999], logprobTokenIds: [999], logitBias: new Map([[0, -100]]) },
      { stopTokenIds: [-5, 2 ** 31 - 1], thinkingTokenBudget: 0 },
      { repetitionDetection: { max_pattern_size: 3, min_pattern_size: 3, min_count: 2 } },
      { extraArgs: { a: 2n ** 64n - 1n, b: -(2n ** 63n), kv_transfer_params: { a: [1, 0.5, null] } } },
    ]) {
      expect(of(change)).toBe("ok")
    }
  })

  test("with any number of tokens asked for, which are cut to what fits", () => {
    expect(of({ maxTokens: 2 ** 31 - 1 })).toBe("ok")
  })
})

describe("a request is refused by the name of its field", () => {
  const wrong: readonly (readonly [string, Partial<SamplingParams>])[] = [
    ...[-0.1, 2.0001, ...notNumbers].map((temperature) => ["temperature", { temperature }] as const),
    ...[0, -1, 1.1, ...notNumbers].map((topP) => ["top_p", { topP }] as const),
    ...[-2, 0.5, 2 ** 31, ...notNumbers].map((topK) => ["top_k", { topK }] as const),
    ...[-0.1, 1.1, ...notNumbers].map((minP) => ["min_p", { minP }] as const),
    ...[-2.1, 2.1, ...notNumbers].map((presencePenalty) => ["presence_penalty", { presencePenalty }] as const),
    ...[-2.1, 2.1, ...notNumbers].map((frequencyPenalty) => ["frequency_penalty", { frequencyPenalty }] as const),
    ...[0, -1, ...notNumbers].map((repetitionPenalty) => ["repetition_penalty", { repetitionPenalty }] as const),
    ...[2n ** 63n, -(2n ** 63n) - 1n].map((seed) => ["seed", { seed }] as const),
    ...[0, -1, 1.5, 2 ** 31, ...notNumbers].map((maxTokens) => ["max_tokens", { maxTokens }] as const),
    ...[-1, 1.5, 17, ...notNumbers].map((minTokens) => ["min_tokens", { minTokens }] as const),
    ...[-2, 0.5, 2 ** 31, ...notNumbers].map((logprobs) => ["logprobs", { logprobs }] as const),
    ...[-2, 0.5, 2 ** 31].map((promptLogprobs) => ["prompt_logprobs", { promptLogprobs }] as const),
    ...[-2, 0.5].map((thinkingTokenBudget) => ["thinking_token_budget", { thinkingTokenBudget }] as const),
    ...[[], [1_000], [-1], [0.5]].map((allowedTokenIds) => ["allowed_token_ids", { allowedTokenIds }] as const),
    ...[[1_000], [-1], Array(129).fill(1)].map(
      (logprobTokenIds) => ["logprob_token_ids", { logprobTokenIds }] as const,
    ),
    ["stop_token_ids", { stopTokenIds: [0.5] }],
    ["stop_token_ids", { stopTokenIds: [Number.NaN] }],
    ["logit_bias", { logitBias: new Map([[1_000, 1]]) }],
    ["logit_bias", { logitBias: new Map([[0.5, 1]]) }],
    ...notNumbers.map((value) => ["logit_bias", { logitBias: new Map([[1, value]]) }] as const),
    ["repetition_detection", { repetitionDetection: { max_pattern_size: 1, min_pattern_size: 2, min_count: 2 } }],
    ["repetition_detection", { repetitionDetection: { max_pattern_size: 1, min_pattern_size: 1, min_count: 1 } }],
    ["repetition_detection", { repetitionDetection: { max_pattern_size: 1.5, min_pattern_size: 1, min_count: 2 } }],
    ["vllm_xargs", { extraArgs: { a: 2n ** 64n } }],
    ["vllm_xargs", { extraArgs: { a: [{ b: -(2n ** 63n) - 1n }] } }],
    ["vllm_xargs", { extraArgs: { a: nested(33) } }],
    ["vllm_xargs", { extraArgs: { a: Array(1_000_001).fill(0) } }],
    ["kv_transfer_params", { extraArgs: { kv_transfer_params: [1] } }],
    ["ec_transfer_params", { extraArgs: { ec_transfer_params: "x" } }],
  ]
  test.each(wrong)("%s", (param, change) => expect(of(change)).toBe(param))

  test("structured_outputs that are not exactly one well-formed constraint", () => {
    const cases: readonly StructuredOutputs[] = [
      {},
      { regex: "a", grammar: "b" },
      { json: {}, json_object: true },
      { json_object: false },
      { choice: [] },
      { grammar: " \n" },
      { regex: "a\0" },
      { json: "" },
      { json: "{" },
      { json: "[1]" },
      { json: true },
      { json: { title: "\ud800" } },
      { json: { "\ud800": 1 } },
      { json: '{"title":"\\ud800"}' },
      { json: nested(65) },
      { structural_tag: "no json" },
      { structural_tag: nested(81) },
      { regex: "x".repeat(constraintUnitsMax + 1) },
      { json: { title: "x".repeat(constraintUnitsMax) } },
    ]
    for (const structuredOutputs of cases) expect(of({ structuredOutputs })).toBe("structured_outputs")
    const fine: readonly StructuredOutputs[] = [
      { json: nested(64) },
      { structural_tag: nested(80) },
      { json: '{"title":"é"}' },
      { regex: "" },
      { choice: [""] },
      { json: { maximum: 2n ** 70n } },
    ]
    for (const structuredOutputs of fine) expect(of({ structuredOutputs })).toBe("ok")
  })

  test("prompts that are empty, too long, or beyond the vocabulary", () => {
    const prompt = (promptTokenIds: Uint32Array, under: EngineLimits = limits): string | null =>
      verdict(addRequest({ promptTokenIds }), under)
    expect(prompt(new Uint32Array(0))).toBe("prompt")
    expect(prompt(new Uint32Array(63))).toBe("ok")
    expect(prompt(new Uint32Array(64))).toBe("prompt")
    expect(prompt(Uint32Array.of(999))).toBe("ok")
    expect(prompt(Uint32Array.of(1, 1_000))).toBe("prompt")
    expect(prompt(Uint32Array.of(1_000), { ...limits, vocabSize: null })).toBe("ok")
    expect(prompt(Uint32Array.of(2 ** 32 - 1), { ...limits, vocabSize: null })).toBe("prompt")
  })

  test("fields beside the sampling", () => {
    const long = "x".repeat(nameUnitsMax + 1)
    const headers = Object.fromEntries(Array.from({ length: traceHeadersMax + 1 }, (_, i) => [`h${i}`, ""]))
    const lora = { name: "n", id: 1, path: "/p", baseModelName: null, is3dWeight: false }
    const cases: readonly (readonly [string, Parameters<typeof addRequest>[0]])[] = [
      ["priority", { priority: 2 ** 31 }],
      ["priority", { priority: 0.5 }],
      ["cache_salt", { cacheSalt: long }],
      ["session_id", { sessionId: long }],
      ["request_id", { requestId: long }],
      ["data_parallel_rank", { dataParallelRank: -1 }],
      ["trace_headers", { traceHeaders: headers }],
      ["trace_headers", { traceHeaders: { a: "x".repeat(10_000) } }],
      ["model", { lora }],
      ["bad_words", { badWordTokenIds: Array(129).fill([1]) }],
      ["bad_words", { badWordTokenIds: [[]] }],
      ["bad_words", { badWordTokenIds: [[1, 1_000]] }],
      ["arrival_time", { arrivalTime: Number.NaN }],
      ["client_index", { clientIndex: -1 }],
      ["current_wave", { currentWave: 0.5 }],
    ]
    for (const [param, change] of cases) expect(verdict(addRequest(change))).toBe(param)
    const withLora = { ...limits, supportsLora: true }
    expect(verdict(addRequest({ lora }), withLora)).toBe("ok")
    expect(verdict(addRequest({ lora: { ...lora, id: 0 } }), withLora)).toBe("model")
    expect(verdict(addRequest({ lora: { ...lora, path: "" } }), withLora)).toBe("model")
  })
})

test("whatever passes is survived by an engine, and no value makes the check or the encoder throw", () => {
  const random = seededRandom(9)
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  const numbers = [0, 1, -1, 2, 0.5, 16, 64, 1_000, -2, 2 ** 31, 1e300, ...notNumbers]
  const lists = [[], [0], [999], [1_000], [-1], [0.5], [Number.NaN], Array(200).fill(1)]
  const texts = ["", "a", "\ud800", "\0", "é".repeat(40)]
  const odd: readonly Json[] = [null, 3, 3.5, "", "\ud800", [], {}, 2n ** 64n, nested(40), [1, "x", { a: null }]]
  const encoder = new AddEncoder(limits)
  let passed = 0
  for (let round = 0; round < 8_000; round++) {
    const maybe = <Value>(make: () => Value): { [key: string]: Value } => (random() < 0.15 ? { at: make() } : {})
    const number = (name: string): { [key: string]: number } => {
      const { at } = maybe(() => pick(numbers))
      return at === undefined ? {} : { [name]: at }
    }
    const list = (name: string): { [key: string]: number[] } => {
      const { at } = maybe(() => pick(lists))
      return at === undefined ? {} : { [name]: at }
    }
    const sampling = samplingParams({
      ...number("temperature"),
      ...number("topP"),
      ...number("topK"),
      ...number("minP"),
      ...number("presencePenalty"),
      ...number("repetitionPenalty"),
      ...number("maxTokens"),
      ...number("minTokens"),
      ...number("logprobs"),
      ...number("promptLogprobs"),
      ...number("thinkingTokenBudget"),
      ...list("stopTokenIds"),
      ...list("allowedTokenIds"),
      ...list("logprobTokenIds"),
      seed: random() < 0.1 ? pick([0n, -1n, 2n ** 63n, -(2n ** 63n)]) : null,
      ignoreEos: random() < 0.5,
      logitBias: random() < 0.1 ? new Map([[pick(numbers), pick(numbers)]]) : null,
      extraArgs: random() < 0.2 ? { [pick(texts)]: pick(odd), kv_transfer_params: pick(odd) } : null,
      structuredOutputs: random() < 0.2 ? { json: pick(odd), ...(random() < 0.3 ? { regex: pick(texts) } : {}) } : null,
    })
    const add = addRequest({
      sampling,
      eosTokenIds: pick([[], [2], [2, 3], [2, 1_000]]),
      promptTokenIds: new Uint32Array(pick([0, 1, 10, 62, 63, 64])),
      cacheSalt: pick([null, ...texts]),
      sessionId: pick([null, ...texts]),
      requestId: pick(texts),
      priority: pick([0, 1, -1, 2 ** 31]),
      badWordTokenIds: pick([[], [[1]], [[]], [[1_000]]]),
    })
    if (!checkAdd(add, limits).ok) continue
    passed += 1
    new StrictEngine({ maxModelLen: limits.contextTokensMax, vocabSize: 1_000 }).add(encoder.encode(add))
  }
  expect(passed).toBeGreaterThan(200)
})
