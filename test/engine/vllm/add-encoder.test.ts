import { describe, expect, test } from "bun:test"
import { AddEncoder } from "../../../src/engine/vllm/add-encoder"
import type { AddRequest, EngineLimits } from "../../../src/engine/vllm/add-request"
import type { SamplingParams } from "../../../src/ir/sampling"
import { addRequest, samplingParams } from "../../support/add-request"
import { type Decoded, decodeAdd } from "../../support/strict-decoder"
import { readWire, type WireValue } from "../../support/wire-value"

const limits: EngineLimits = {
  contextTokensMax: 4_096,
  vocabSize: 151_936,
  supportsLora: true,
  structuredOutputsBackend: "xgrammar",
}
const encoder = new AddEncoder(limits)

/** The keys that were sent, with their values as they stand in the bytes. */
function sent(add: AddRequest, of: AddEncoder = encoder): ReadonlyMap<string, WireValue> {
  const wire = readWire(of.encode(add))
  const params = wire.type === "array" ? wire.value[3] : undefined
  if (params?.type !== "map") throw new Error("no sampling parameters")
  return new Map(params.value.map(([key, value]) => [key.type === "str" ? key.value : "", value]))
}

function sampling(
  change: Partial<SamplingParams>,
  eosTokenIds: readonly number[] = [],
): ReadonlyMap<string, WireValue> {
  return sent(addRequest({ sampling: samplingParams(change), eosTokenIds }))
}

/** The engine's view of one parameter. */
function read(name: string, change: Partial<SamplingParams>, eosTokenIds: readonly number[] = []): Decoded {
  const request = decodeAdd(encoder.encode(addRequest({ sampling: samplingParams(change), eosTokenIds })))
  return (request.sampling_params as { readonly [key: string]: Decoded })[name] ?? null
}

describe("ADD", () => {
  test("carries every field of the request at its place", () => {
    const add = addRequest({
      engineRequestId: "chatcmpl-1-c0ffee00-000000000001",
      requestId: "chatcmpl-é",
      promptTokenIds: Uint32Array.of(0, 127, 128, 65_536, 151_935),
      arrivalTime: 1_795_954_105,
      clientIndex: 2,
      currentWave: 7,
      lora: { name: "sql", id: 3, path: "/adapters/sql", baseModelName: "base", is3dWeight: true },
      reasoningEnded: false,
      priority: -5,
      cacheSalt: "salt",
      sessionId: "s-1",
      dataParallelRank: 1,
      traceHeaders: { traceparent: "00-0af7-b7ad-01", tracestate: "" },
    })
    const { sampling_params, ...request } = decodeAdd(encoder.encode(add))
    expect(request).toEqual({
      request_id: "chatcmpl-1-c0ffee00-000000000001",
      prompt_token_ids: [0, 127, 128, 65_536, 151_935],
      mm_features: null,
      pooling_params: null,
      arrival_time: 1_795_954_105,
      lora_request: {
        lora_name: "sql",
        lora_int_id: 3,
        lora_path: "/adapters/sql",
        base_model_name: "base",
        load_inplace: false,
        is_3d_lora_weight: true,
      },
      cache_salt: "salt",
      data_parallel_rank: 1,
      prompt_embeds: null,
      prompt_is_token_ids: null,
      client_index: 2,
      current_wave: 7,
      priority: -5,
      trace_headers: { traceparent: "00-0af7-b7ad-01", tracestate: "" },
      resumable: false,
      external_req_id: "chatcmpl-é",
      reasoning_ended: false,
      reasoning_parser_kwargs: null,
      abort_immediately: false,
      session_id: "s-1",
      kv_hints: null,
    })
    expect(sampling_params).toMatchObject({ max_tokens: 16, temperature: 1 })
  })

  test("leaves defaults out, but never max_tokens", () => {
    expect([...sampling({})]).toEqual([["max_tokens", { type: "int", value: 16n }]])
  })

  test("sends floats as floats, also whole ones, and ints as ints", () => {
    const keys = {
      temperature: 0,
      topP: 0.5,
      minP: 0.25,
      presencePenalty: 1,
      frequencyPenalty: -2,
      repetitionPenalty: 2,
    }
    const floats = [...sampling(keys)].filter(([name]) => name !== "max_tokens")
    expect(floats.map(([name, value]) => [name, value.type])).toEqual([
      ["temperature", "float"],
      ["top_p", "float"],
      ["min_p", "float"],
      ["presence_penalty", "float"],
      ["frequency_penalty", "float"],
      ["repetition_penalty", "float"],
    ])
    const ints = sampling({ topK: 20, minTokens: 3, logprobs: 0, promptLogprobs: -1, thinkingTokenBudget: 5 })
    for (const name of ["top_k", "min_tokens", "logprobs", "prompt_logprobs", "thinking_token_budget", "max_tokens"]) {
      expect(ints.get(name)?.type).toBe("int")
    }
  })

  test("sends seeds of 64 bits", () => {
    for (const seed of [0n, 42n, -2n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n]) {
      expect(sampling({ seed }).get("seed")).toEqual({ type: "int", value: seed })
    }
  })

  test("ends at EOS without a reason, and at further EOS ids and the request's as stop tokens", () => {
    const keys = sampling({ stopTokenIds: [9, 7, 9] }, [2, 3, 4])
    expect(keys.has("ignore_eos")).toBe(false)
    expect(read("_eos_token_id", { stopTokenIds: [9, 7, 9] }, [2, 3, 4])).toBe(2)
    expect(read("stop_token_ids", { stopTokenIds: [9, 7, 9] }, [2, 3, 4])).toEqual([3, 4, 7, 9])
    expect(read("_all_stop_token_ids", { stopTokenIds: [9, 7, 9] }, [2, 3, 4])).toEqual([2, 3, 4, 7, 9])
  })

  test("goes on past EOS when told so, which still counts for min_tokens", () => {
    const change = { stopTokenIds: [9], ignoreEos: true }
    expect(sampling(change, [2, 3]).has("_eos_token_id")).toBe(false)
    expect(read("ignore_eos", change, [2, 3])).toBe(true)
    expect(read("stop_token_ids", change, [2, 3])).toEqual([9])
    expect(read("_all_stop_token_ids", change, [2, 3])).toEqual([2, 3, 9])
  })

  test("leaves out stop tokens that the vocabulary lacks", () => {
    expect(read("stop_token_ids", { stopTokenIds: [-1, 5, 151_936, 2_000_000_000] }, [2, 151_936])).toEqual([5])
    expect(read("_all_stop_token_ids", { stopTokenIds: [-1, 5, 151_936] }, [2, 151_936])).toEqual([2, 5])
  })

  test("asks for no more tokens than fit behind the prompt", () => {
    const add = addRequest({
      promptTokenIds: new Uint32Array(4_090),
      sampling: samplingParams({ maxTokens: 100 }),
    })
    expect(sent(add).get("max_tokens")).toEqual({ type: "int", value: 6n })
  })

  test("has int keys in logit_bias", () => {
    const bias = sampling({
      logitBias: new Map([
        [100, 5],
        [7, -0.5],
      ]),
    }).get("logit_bias")
    expect(bias).toEqual({
      type: "map",
      value: [
        [
          { type: "int", value: 100n },
          { type: "float", value: 5, bits: 64 },
        ],
        [
          { type: "int", value: 7n },
          { type: "float", value: -0.5, bits: 64 },
        ],
      ],
    })
    expect(sampling({ logitBias: new Map() }).has("logit_bias")).toBe(false)
  })

  test("reads the prompt anew when its logprobs are asked for", () => {
    expect(read("skip_reading_prefix_cache", { promptLogprobs: 0 })).toBe(true)
    expect(read("prompt_logprobs", { promptLogprobs: 0 })).toBe(0)
    expect(read("skip_reading_prefix_cache", { logprobs: 0 })).toBe(false)
  })

  test("carries lists, words as ids, and the rest", () => {
    const change: Partial<SamplingParams> = {
      allowedTokenIds: [1, 2],
      logprobTokenIds: [3],
      logprobs: 1,
      watermarking: false,
      repetitionDetection: { max_pattern_size: 5, min_pattern_size: 1, min_count: 3 },
      badWords: ["cat"],
    }
    const add = addRequest({ sampling: samplingParams(change), badWordTokenIds: [[1], [2, 300]] })
    expect(decodeAdd(encoder.encode(add)).sampling_params).toMatchObject({
      allowed_token_ids: [1, 2],
      logprob_token_ids: [3],
      logprobs: 1,
      watermarking: false,
      repetition_detection: { max_pattern_size: 5, min_pattern_size: 1, min_count: 3 },
      _bad_words_token_ids: [[1], [2, 300]],
    })
  })

  test("sends exactly one constraint, with its back end", () => {
    const flags = { _backend: "xgrammar", _backend_was_auto: true }
    const cases = [
      [{ json: { type: "object", maximum: 3 } }, { json: '{"type":"object","maximum":3}' }],
      [{ json: '{"type": "object"}' }, { json: '{"type": "object"}' }],
      [{ regex: "[0-9]+" }, { regex: "[0-9]+" }],
      [{ choice: ["Yes", 'N"o'] }, { grammar: 'root ::= "Yes" | "N\\"o"' }],
      [{ grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
      [{ json_object: true }, { json_object: true }],
      [{ structural_tag: { type: "structural_tag" } }, { structural_tag: '{"type":"structural_tag"}' }],
      [
        { regex: "a", disable_any_whitespace: true, whitespace_pattern: " " },
        { regex: "a", disable_any_whitespace: true, whitespace_pattern: " " },
      ],
    ] as const
    for (const [structuredOutputs, expected] of cases) {
      const keys = sampling({ structuredOutputs }).get("structured_outputs")
      const plain =
        keys?.type === "map"
          ? keys.value.map(([key, value]) => [key, value].map((each) => "value" in each && each.value))
          : []
      expect(Object.fromEntries(plain)).toEqual({ ...expected, ...flags })
    }
    const guided = new AddEncoder({ ...limits, structuredOutputsBackend: "guidance" })
    const request = decodeAdd(
      guided.encode(addRequest({ sampling: samplingParams({ structuredOutputs: { regex: "a" } }) })),
    )
    expect(request.sampling_params).toMatchObject({ structured_outputs: { _backend: "guidance" } })
  })

  test("passes extra arguments on with their numbers as they are", () => {
    const extraArgs = {
      kv_transfer_params: { do_remote_prefill: true, blocks: [1, 2], port: 5_557, share: 0.5, big: 2n ** 63n },
      name: "x\ud800",
    }
    expect(read("extra_args", { extraArgs })).toEqual({ ...extraArgs, name: "x\ufffd" })
    const args = sampling({ extraArgs: { whole: 3, half: 0.5, long: 2n ** 60n, large: 2 ** 60 } }).get("extra_args")
    const types = args?.type === "map" ? args.value.map(([, value]) => value.type) : []
    expect(types).toEqual(["int", "float", "int", "float"])
  })

  test("sends strings as UTF-8, whatever they hold", () => {
    const odd = "a\ud800é\u0000😀"
    const add = addRequest({ requestId: odd, cacheSalt: odd, sessionId: odd, traceHeaders: { [odd]: odd } })
    expect(decodeAdd(encoder.encode(add))).toMatchObject({
      external_req_id: "a\ufffdé\u0000😀",
      cache_salt: "a\ufffdé\u0000😀",
      session_id: "a\ufffdé\u0000😀",
      trace_headers: { "a\ufffdé\u0000😀": "a\ufffdé\u0000😀" },
    })
  })

  test("takes a prompt of a million tokens", () => {
    const promptTokenIds = Uint32Array.from({ length: 1_000_000 }, (_, i) => i % 151_936)
    const of = new AddEncoder({ ...limits, contextTokensMax: 1_048_576 })
    const body = of.encode(addRequest({ promptTokenIds }))
    const wire = readWire(body)
    const prompt = wire.type === "array" && wire.value[1]?.type === "array" ? wire.value[1].value : []
    expect(prompt.length).toBe(1_000_000)
    expect(prompt.at(-1)).toEqual({ type: "int", value: BigInt(999_999 % 151_936) })
    expect(body.buffer.byteLength).toBe(body.length)
  })
})
