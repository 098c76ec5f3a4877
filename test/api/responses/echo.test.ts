/** What a response says about its request, against what the engine was really asked and when it really answered. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { SamplingParams } from "../../../src/ir/sampling"
import { recordEngine } from "../../support/recorded-engine"
import { checkResponseStream } from "../../support/response-grammar"
import { startTestServer, type TestServer } from "../../support/test-server"

const path = "/v1/responses"
const windowTokens = 200

let plain: TestServer
let tuned: TestServer
let overridden: TestServer
beforeAll(async () => {
  plain = await startTestServer({ profile: { contextTokensMax: windowTokens } })
  const samplingDefaults = { temperature: 0.6, topP: 0.95, topK: 20, minP: 0.1, presencePenalty: 0.5, maxTokens: 50 }
  const profile = { contextTokensMax: windowTokens, samplingDefaults }
  tuned = await startTestServer({ profile })
  overridden = await startTestServer({ profile, config: { overrideGenerationConfig: { max_new_tokens: 7 } } })
})
afterAll(async () => {
  for (const server of [plain, tuned, overridden]) await server.stop()
})

/** A response in either mode with the request that the engine got for it. */
async function echoed(server: TestServer, extra: object, stream: boolean) {
  using engine = recordEngine()
  const body = { input: "Hi", vllm_xargs: { sim_text: "x" }, ...extra }
  if (stream) {
    const { response } = checkResponseStream(await server.events(path, body))
    return { response, request: engine.requests[0]! }
  }
  const reply = await server.post(path, body)
  if (reply.status !== 200) throw new Error(reply.text)
  return { response: reply.json, request: engine.requests[0]! }
}

const requests: readonly (readonly [string, object])[] = [
  ["nothing", {}],
  ["temperature 0", { temperature: 0, top_p: 0.5, top_k: 5, min_p: 0.2 }],
  ["a very small temperature", { temperature: 1e-6 }],
  ["temperature and top_p", { temperature: 1.3, top_p: 0.25 }],
  ["penalties", { presence_penalty: -1.5, frequency_penalty: 1.25, repetition_penalty: 1.1 }],
  ["null everywhere", { temperature: null, top_p: null, max_output_tokens: null, presence_penalty: null }],
  ["a limit", { max_output_tokens: 3 }],
  ["a limit beyond the window", { max_output_tokens: 100_000 }],
  ["a limit beyond all integers", { max_output_tokens: 2 ** 53 }],
  ["truncation of a long prompt", { input: "word ".repeat(400), truncation: "auto" }],
  ["top_k off, and a seed", { top_k: -1, seed: 42 }],
]

describe.each([
  ["without defaults", () => plain],
  ["with the model's defaults", () => tuned],
  ["with an override", () => overridden],
] as const)("on a server %s", (_name, server) => {
  test.each(requests)("the echo of %s is what the engine was asked", async (_asked, extra) => {
    for (const stream of [false, true]) {
      const { response, request } = await echoed(server(), extra, stream)
      const { sampling, promptTokenIds } = request
      expect({
        temperature: response.temperature,
        top_p: response.top_p,
        presence_penalty: response.presence_penalty,
        frequency_penalty: response.frequency_penalty,
        max_output_tokens: response.max_output_tokens,
        input_tokens: response.usage.input_tokens,
        top_logprobs: response.top_logprobs,
      }).toEqual({
        temperature: sampling.temperature,
        top_p: sampling.topP,
        presence_penalty: sampling.presencePenalty,
        frequency_penalty: sampling.frequencyPenalty,
        max_output_tokens: sampling.maxTokens,
        input_tokens: promptTokenIds.length,
        top_logprobs: null,
      })
      expect(Number.isInteger(response.max_output_tokens)).toBe(true)
      expect(promptTokenIds.length + sampling.maxTokens).toBeLessThanOrEqual(windowTokens)
    }
  })
})

/** Of the engine's request, in both modes. */
async function sampled(server: TestServer, extra: object): Promise<SamplingParams> {
  const [whole, streamed] = [await echoed(server, extra, false), await echoed(server, extra, true)]
  expect(streamed.request.sampling).toEqual(whole.request.sampling)
  return whole.request.sampling
}

/** What a constraint becomes where the model may reason before the text that it is for. */
function behindReasoning(format: object): object {
  const reasoning = {
    type: "sequence",
    elements: [
      { type: "tag", begin: "<think>", content: { type: "any_text" }, end: "</think>" },
      { type: "const_string", value: "\n\n" },
    ],
  }
  const whole = { type: "sequence", elements: [{ type: "optional", content: reasoning }, format] }
  return { structural_tag: { type: "structural_tag", format: whole } }
}

describe("the engine gets", () => {
  test("the model's defaults, unless the request says otherwise", async () => {
    expect(await sampled(tuned, {})).toMatchObject({ temperature: 0.6, topP: 0.95, topK: 20, minP: 0.1, maxTokens: 50 })
    expect(await sampled(tuned, { temperature: 1, top_p: 1, top_k: 0, min_p: 0 })).toMatchObject({
      temperature: 1,
      topP: 1,
      topK: 0,
      minP: 0,
    })
    expect((await sampled(overridden, {})).maxTokens).toBe(7)
    expect((await sampled(overridden, { max_output_tokens: 20 })).maxTokens).toBe(7)
  })

  test("greedy sampling without filters, and no temperature between 0 and 0.01", async () => {
    expect(await sampled(tuned, { temperature: 0 })).toMatchObject({ temperature: 0, topP: 1, topK: 0, minP: 0 })
    expect(await sampled(tuned, { temperature: 1e-6 })).toMatchObject({ temperature: 0.01, topP: 0.95, topK: 20 })
  })

  test("every field that is forwarded", async () => {
    const bias = { "5": 200, "7": -3 }
    expect(
      await sampled(plain, {
        min_p: 0.25,
        top_k: 4,
        repetition_penalty: 1.5,
        seed: -5,
        stop: ["a", "b"],
        stop_token_ids: [9],
        ignore_eos: false,
        include_stop_str_in_output: true,
        min_tokens: 1,
        logit_bias: bias,
        skip_special_tokens: false,
        watermarking: false,
        repetition_detection: { max_pattern_size: 8, min_pattern_size: 2, min_count: 3 },
        allowed_token_ids: [1, 2],
        bad_words: ["x"],
        kv_transfer_params: { do_remote_decode: true },
        ec_transfer_params: { a: 1 },
        vllm_xargs: { sim_text: "x", mine: ["a", 1] },
        text: { format: { type: "json_schema", name: "n", strict: true, schema: { type: "object" } } },
      }),
    ).toMatchObject({
      minP: 0.25,
      topK: 4,
      repetitionPenalty: 1.5,
      seed: -5n,
      stop: ["a", "b"],
      stopTokenIds: [9],
      includeStopStrInOutput: true,
      minTokens: 1,
      logitBias: new Map([
        [5, 100],
        [7, -3],
      ]),
      skipSpecialTokens: false,
      watermarking: false,
      repetitionDetection: { max_pattern_size: 8, min_pattern_size: 2, min_count: 3 },
      allowedTokenIds: [1, 2],
      badWords: ["x"],
      structuredOutputs: expect.objectContaining(
        behindReasoning({ type: "json_schema", json_schema: { type: "object" } }),
      ),
      extraArgs: {
        sim_text: "x",
        mine: ["a", 1],
        kv_transfer_params: { do_remote_decode: true },
        ec_transfer_params: { a: 1 },
      },
    })
  })

  test("watermarking and repetition detection only when they are given", async () => {
    for (const extra of [{}, { watermarking: null, repetition_detection: null }]) {
      expect(await sampled(plain, extra)).toMatchObject({ watermarking: null, repetitionDetection: null })
    }
    expect((await sampled(plain, { watermarking: true })).watermarking).toBe(true)
  })

  test("each constraint, behind the reasoning that may come first", async () => {
    for (const [extra, slot] of [
      [{ text: { format: { type: "text" } } }, null],
      [{ text: { format: { type: "json_object" } } }, { type: "json_schema", json_schema: { type: "object" } }],
      [{ structured_outputs: { regex: "a+" } }, { type: "regex", pattern: "a+" }],
      [{ structured_outputs: { choice: ["a"] } }, { type: "or", elements: [{ type: "const_string", value: "a" }] }],
      [
        { structured_outputs: { grammar: "g" }, text: { verbosity: "low" } },
        { type: "grammar", grammar: "g" },
      ],
    ] as const) {
      const expected: unknown = slot === null ? null : behindReasoning(slot)
      expect<unknown>((await sampled(plain, extra)).structuredOutputs).toEqual(expected)
    }
  })

  test("priority, session, salt, rank and traces, from where they are looked for first", async () => {
    const ask = async (extra: object, headers: { readonly [name: string]: string }) => {
      using engine = recordEngine()
      const reply = await plain.post(path, { input: "Hi", vllm_xargs: { sim_text: "x" }, ...extra }, headers)
      if (reply.status !== 200) throw new Error(reply.text)
      const { priority, sessionId, cacheSalt, dataParallelRank, traceHeaders } = engine.requests[0]!
      return { priority, sessionId, cacheSalt, dataParallelRank, traceHeaders }
    }
    const nothing = { priority: 0, sessionId: null, cacheSalt: null, dataParallelRank: null, traceHeaders: null }
    expect(await ask({}, {})).toEqual(nothing)
    const xargs = { sim_text: "x", session_id: "from-xargs" }
    expect(await ask({ vllm_xargs: xargs }, {})).toEqual({ ...nothing, sessionId: "from-xargs" })
    expect(await ask({ vllm_xargs: { sim_text: "x", session_id: "" }, session_id: "" }, {})).toEqual(nothing)
    const headers = { "x-session-id": "from-header", "x-vllm-priority": "-3", "x-data-parallel-rank": "1" }
    expect(await ask({ vllm_xargs: xargs, priority: 5 }, { ...headers, traceparent: "00-a-b-01" })).toEqual({
      priority: -3,
      sessionId: "from-header",
      cacheSalt: null,
      dataParallelRank: 1,
      traceHeaders: { traceparent: "00-a-b-01" },
    })
    const wrong = { "x-vllm-priority": "high", "x-data-parallel-rank": "one" }
    expect(await ask({ session_id: "from-body", priority: 5, cache_salt: "s" }, { ...headers, ...wrong })).toEqual({
      ...nothing,
      priority: 5,
      sessionId: "from-body",
      cacheSalt: "s",
    })
  })
})

describe("truncation auto keeps the newest tokens", () => {
  const long = `${"old ".repeat(500)}new`
  test.each([
    ["of a text", long],
    ["of messages", [{ role: "user", content: [{ type: "input_text", text: long }] }]],
    [
      "of a tool's output",
      [
        { role: "user", content: "x" },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: long },
      ],
    ],
    [
      "of an answer to go on with",
      [
        { role: "user", content: "x" },
        { role: "assistant", content: long, status: "incomplete" },
      ],
    ],
  ] as const)("%s", async (_name, input) => {
    for (const stream of [false, true]) {
      const { response, request } = await echoed(plain, { input, truncation: "auto" }, stream)
      expect([request.promptTokenIds.length, response.truncation]).toEqual([windowTokens - 1, "auto"])
      const tokens = Array.from(request.promptTokenIds)
      const { prompt } = (await plain.post("/detokenize", { tokens })).json
      expect(prompt).toContain(" old new")
    }
    for (const truncation of [undefined, null, "disabled"]) {
      const reply = await plain.post(path, { input, truncation })
      expect([reply.status, reply.json.error.param]).toEqual([400, "input_tokens"])
    }
  })

  test("and leaves short prompts alone", async () => {
    const { response, request } = await echoed(plain, { truncation: "auto", instructions: "Be brief." }, false)
    expect(request.promptTokenIds.length).toBe(response.usage.input_tokens)
    expect(request.promptTokenIds.length).toBeLessThan(50)
  })
})

describe("metrics", () => {
  test("follow their formulas on the engine's own moments", async () => {
    const server = await startTestServer({
      config: { enablePerRequestMetrics: true },
      simulator: { stepMs: 3, prefillMs: 4 },
    })
    for (const [text, stream] of [
      ["one two three four", false],
      ["one two three four", true],
      ["", false],
    ] as const) {
      using engine = recordEngine()
      const body = { input: "Hi", vllm_xargs: { sim_text: text } }
      const response = stream
        ? checkResponseStream(await server.events(path, body)).response
        : (await server.post(path, body)).json
      const withTokens = engine.outputs.filter(({ tokens }) => tokens > 0)
      const count = withTokens.reduce((sum, { tokens }) => sum + tokens, 0)
      const { queuedAt, scheduledAt, at: first } = withTokens[0]!
      const last = withTokens.at(-1)!.at
      expect(response.metrics).toEqual({
        time_to_first_token_ms: expect.closeTo((first - scheduledAt) * 1000, 6),
        generation_time_ms: expect.closeTo((last - first) * 1000, 6),
        queue_time_ms: expect.closeTo((scheduledAt - queuedAt) * 1000, 6),
        mean_itl_ms: count < 2 ? null : expect.closeTo(((last - first) / (count - 1)) * 1000, 6),
        tokens_per_second: expect.closeTo(count / (last - scheduledAt), 6),
        speculative_decoding: null,
      })
      expect(response.usage.output_tokens).toBe(count)
    }
    await server.stop()
  })

  test("are absent without their flag", async () => {
    const { response } = await echoed(plain, {}, false)
    expect("metrics" in response).toBe(false)
  })
})

test("counts of cached, written and reasoning tokens are the engine's and the parser's", async () => {
  const xargs = { sim_text: "<think>\na b c\n</think>\n\nd", sim_cached_tokens: 4, sim_cache_write_tokens: 3 }
  for (const stream of [false, true]) {
    const { response } = await echoed(plain, { vllm_xargs: xargs }, stream)
    const { input_tokens_details: input, output_tokens_details: output } = response.usage
    expect([input.cached_tokens, input.cache_write_tokens, output.reasoning_tokens]).toEqual([4, 3, 3])
    expect(response.usage.total_tokens).toBe(response.usage.input_tokens + response.usage.output_tokens)
  }
})
