/** POST …/render in both roles, beside what generation does with the same body. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test"
import { Simulator } from "../../../src/engine/simulator"
import type { Json } from "../../../src/ir/conversation"
import { qwen3Profile } from "../../support/qwen3-model"
import { recordEngine } from "../../support/recorded-engine"
import { startTestRenderer } from "../../support/test-renderer"
import { startTestServer, type TestServer } from "../../support/test-server"
import { type RenderedExchange, renderedExchanges, transcriptsExist } from "../../support/transcripts"

const weather = {
  name: "get_weather",
  description: "Weather for a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}
const chatTools = [
  { type: "function", function: weather },
  { type: "function", function: { name: "now" } },
]
const responseTools = [
  { type: "function", ...weather },
  { type: "function", name: "now" },
]
const user = { role: "user", content: "Weather in Paris?" }

/** One request in both APIs. */
const requests: { readonly [name: string]: { readonly chat: object; readonly responses: object } } = {
  plain: { chat: { messages: [user] }, responses: { input: "Weather in Paris?" } },
  "several turns with a call": {
    chat: {
      messages: [
        user,
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "sunny" },
        { role: "user", content: "And tomorrow?" },
      ],
      tools: chatTools,
    },
    responses: {
      input: [
        user,
        { type: "function_call", call_id: "c1", name: "get_weather", arguments: '{"city":"Paris"}' },
        { type: "function_call_output", call_id: "c1", output: "sunny" },
        { role: "user", content: "And tomorrow?" },
      ],
      tools: responseTools,
    },
  },
  "tools none": {
    chat: { messages: [user], tools: chatTools, tool_choice: "none" },
    responses: { input: [user], tools: responseTools, tool_choice: "none" },
  },
  "tools required": {
    chat: { messages: [user], tools: chatTools, tool_choice: "required" },
    responses: { input: [user], tools: responseTools, tool_choice: "required" },
  },
  "a named tool": {
    chat: {
      messages: [user],
      tools: chatTools,
      tool_choice: { type: "function", function: { name: "now" } },
    },
    responses: { input: [user], tools: responseTools, tool_choice: { type: "function", name: "now" } },
  },
  "reasoning effort": {
    chat: { messages: [user], reasoning_effort: "high" },
    responses: { input: [user], reasoning: { effort: "high" } },
  },
  "no reasoning": {
    chat: { messages: [user], reasoning_effort: "none" },
    responses: { input: [user], reasoning: { effort: "none" } },
  },
  "thinking on": {
    chat: { messages: [user], chat_template_kwargs: { enable_thinking: true } },
    responses: { input: [user], chat_template_kwargs: { enable_thinking: true } },
  },
  "thinking off": {
    chat: { messages: [user], chat_template_kwargs: { enable_thinking: false } },
    responses: { input: [user], chat_template_kwargs: { enable_thinking: false } },
  },
  "sampling of its own": {
    chat: { messages: [user], temperature: 0, seed: 2 ** 40, stop: ["x"], max_tokens: 7, priority: 3, cache_salt: "s" },
    responses: {
      input: [user],
      temperature: 0,
      seed: 2 ** 40,
      stop: ["x"],
      max_output_tokens: 7,
      priority: 3,
      cache_salt: "s",
    },
  },
  "transfer parameters and arguments": {
    chat: {
      messages: [user],
      vllm_xargs: { a: "b" },
      kv_transfer_params: { do_remote_decode: true },
      ec_transfer_params: { x: [1] },
    },
    responses: {
      input: [user],
      vllm_xargs: { a: "b" },
      kv_transfer_params: { do_remote_decode: true },
      ec_transfer_params: { x: [1] },
    },
  },
}

describe("one prompt by every road", () => {
  let renderer: TestServer
  let server: TestServer

  beforeAll(async () => {
    const profile = await qwen3Profile()
    renderer = await startTestRenderer({ profile })
    server = await startTestServer({ profile, config: { enableScaleOut: true } })
  })
  afterAll(async () => {
    await renderer.stop()
    await server.stop()
  })

  for (const [name, { chat, responses }] of Object.entries(requests)) {
    test(name, async () => {
      const bodies: (readonly [string, object])[] = [
        ["/v1/chat/completions", chat],
        ["/v1/responses", responses],
      ]
      const seen: Json[] = []
      for (const [path, body] of bodies) {
        const here = await server.post(`${path}/render`, body)
        const there = await renderer.post(`${path}/render`, body)
        const { request_id: _here, ...one } = here.json
        const { request_id: _there, ...other } = there.json
        expect(other).toEqual(one)
        expect(here.json.sampling_params.max_tokens).toBeGreaterThan(0)

        using record = recordEngine()
        expect((await server.post(path, body)).status).toBe(200)
        const { promptTokenIds, reasoningEnded } = record.requests[0]!
        const direct = record.requests[0]!
        expect(here.json.token_ids).toEqual(Array.from(promptTokenIds))
        if (reasoningEnded != null) expect(here.json.reasoning_ended).toBe(reasoningEnded)

        // What was rendered reaches an engine as the request itself would have.
        const generated = await server.post("/inference/v1/generate", here.json)
        expect([generated.status, generated.text]).toEqual([200, expect.any(String)])
        const handed = record.requests[1]!
        expect({ ...handed.sampling, structuredOutputs: null }).toEqual({ ...direct.sampling, structuredOutputs: null })
        expect(tagOf(handed.sampling.structuredOutputs)).toEqual(tagOf(direct.sampling.structuredOutputs))
        expect([handed.priority, handed.cacheSalt]).toEqual([direct.priority, direct.cacheSalt])
        seen.push(one)
      }
      const [fromChat, fromResponses] = seen as { [name: string]: Json }[]
      for (const field of ["token_ids", "sampling_params", "reasoning_parser_kwargs", "cache_salt", "priority"]) {
        expect([field, fromResponses![field]]).toEqual([field, fromChat![field]!])
      }
    })
  }

  test("history in the input lengthens the prompt", async () => {
    const turn = { role: "user", content: "q" }
    const items = [
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "think" }] },
      { type: "function_call", call_id: "c", name: "now", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "noon" },
    ]
    const lengths: number[] = []
    for (let count = 0; count <= items.length; count++) {
      const body = { input: [turn, ...items.slice(0, count)], tools: responseTools }
      lengths.push((await renderer.post("/v1/responses/render", body)).json.token_ids.length)
    }
    expect(lengths.toSorted((a, b) => a - b)).toEqual(lengths)
    expect(lengths.at(-1)!).toBeGreaterThan(lengths[0]! + 10)
  })

  test("truncation auto keeps all of the window but one token, and max_tokens is that one", async () => {
    const body = { input: "word ".repeat(5_000) }
    const kept = (await renderer.post("/v1/responses/render", { ...body, truncation: "auto" })).json
    expect([kept.token_ids.length, kept.sampling_params.max_tokens]).toEqual([4095, 1])
    const refused = await renderer.post("/v1/responses/render", body)
    expect([refused.status, refused.json.error.param]).toEqual([400, "input_tokens"])
    const chat = { messages: [{ role: "user", content: body.input }], truncate_prompt_tokens: 10 }
    const cut = await renderer.post("/v1/chat/completions/render", { ...chat, return_token_offsets: true })
    expect([cut.json.token_ids.length, cut.json.token_offsets.length]).toEqual([10, 10])
  })
})

/** A constraint with its tag as a value, however it was written. */
function tagOf(outputs: { readonly structural_tag?: Json } | null): unknown {
  const tag = outputs?.structural_tag
  return tag === undefined ? outputs : { structural_tag: typeof tag === "string" ? JSON.parse(tag) : tag }
}

describe("the rendered request", () => {
  let renderer: TestServer
  beforeAll(async () => {
    renderer = await startTestRenderer({ config: { apiKeys: [] } })
  })
  afterAll(() => renderer.stop())
  const render = (path: string, body: object, headers: { readonly [name: string]: string } = {}) =>
    renderer.post(`${path}/render`, body, headers)

  test("of chat has every field", async () => {
    const body = { model: "sluice-simulator", messages: [{ role: "user", content: "Hi" }], request_id: "r" }
    const { json, headers } = await render("/v1/chat/completions", body)
    expect(headers.get("content-type")).toStartWith("application/json")
    expect(json).toEqual({
      request_id: "chatcmpl-r",
      token_ids: expect.any(Array),
      token_offsets: null,
      features: null,
      content_parts: null,
      sampling_params: { max_tokens: expect.any(Number), output_kind: 2 },
      model: "sluice-simulator",
      reasoning_ended: expect.any(Boolean),
      reasoning_parser_kwargs: {
        chat_template_kwargs: { cohere_format: "cmd4", add_generation_prompt: true, continue_final_message: false },
      },
      return_token_ids: null,
      output_mode: "tokens",
      parse_context: {
        tools: null,
        tool_choice: null,
        parallel_tool_calls: true,
        include_reasoning: true,
        chat_template_kwargs: { cohere_format: "cmd4", add_generation_prompt: true, continue_final_message: false },
        history_tool_call_cnt: 0,
      },
      stream: false,
      stream_options: null,
      cache_salt: null,
      priority: 0,
      kv_transfer_params: null,
      ec_transfer_params: null,
    })
  })

  test("keeps stream and its options, and is JSON all the same", async () => {
    const body = { messages: [user], stream: true, stream_options: { include_usage: true }, return_token_ids: true }
    const { json, headers } = await render("/v1/chat/completions", body)
    expect(headers.get("content-type")).toStartWith("application/json")
    expect([json.stream, json.stream_options, json.return_token_ids, json.sampling_params.output_kind]).toEqual([
      true,
      { include_usage: true },
      true,
      1,
    ])
  })

  test("has an id from the header, the body or by chance, numbered where there are several prompts", async () => {
    const id = { "x-request-id": "h" }
    const chat = { messages: [user], request_id: "b" }
    expect((await render("/v1/chat/completions", chat, id)).json.request_id).toBe("chatcmpl-h")
    expect((await render("/v1/chat/completions", { messages: [user] })).json.request_id).toMatch(/^chatcmpl-\w{32}$/)
    expect((await render("/v1/responses", { input: "x", request_id: "b" })).json.request_id).toBe("resp_b")
    const one = (await render("/v1/completions", { prompt: "x", request_id: "b" })).json
    const two = (await render("/v1/completions", { prompt: [[3], [1, 2]], n: 3 }, id)).json
    expect(one.map((each: { request_id: string }) => each.request_id)).toEqual(["cmpl-b"])
    expect(two.map((each: { request_id: string }) => each.request_id)).toEqual(["cmpl-h-0", "cmpl-h-1"])
    expect([two[1].token_ids, two[1].sampling_params.n, two[1].sampling_params.max_tokens]).toEqual([[1, 2], 3, 16])
  })

  test("has transfer parameters beside the sampling, and no extra_args without others", async () => {
    const body = { messages: [user], kv_transfer_params: { a: 1 }, cache_salt: "s", priority: -2 }
    const { json } = await render("/v1/chat/completions", body)
    expect([json.kv_transfer_params, json.cache_salt, json.priority]).toEqual([{ a: 1 }, "s", -2])
    expect(json.sampling_params.extra_args).toBeUndefined()
  })

  test("keeps the digits of integers beyond 2^53", async () => {
    const text = '{"messages":[{"role":"user","content":"x"}],"seed":9007199254740993}'
    expect((await renderer.post("/v1/chat/completions/render", text)).text).toContain('"seed":9007199254740993')
  })

  test("is refused for what generation refuses, and for what only state could answer", async () => {
    const refused = async (path: string, body: object) => {
      const { status, json } = await render(path, body)
      return [status, json.error?.type, json.error?.param]
    }
    expect(await refused("/v1/chat/completions", { messages: [user], model: "nope" })).toEqual([
      404,
      "NotFoundError",
      "model",
    ])
    expect(await refused("/v1/responses", { input: "x", previous_response_id: "resp_1" })).toEqual([
      400,
      "invalid_request_error",
      "previous_response_id",
    ])
    expect(await refused("/v1/chat/completions", { messages: [user], use_beam_search: true })).toEqual([
      400,
      "BadRequestError",
      "use_beam_search",
    ])
    for (const extra of [{ chat_template: "x" }, { chat_template_kwargs: { chat_template: "x" } }]) {
      expect(await refused("/v1/chat/completions", { messages: [user], ...extra })).toEqual([
        400,
        "BadRequestError",
        null,
      ])
    }
    expect(await refused("/v1/responses", { input: "x", chat_template_kwargs: { chat_template: "x" } })).toEqual([
      400,
      "BadRequestError",
      null,
    ])
    expect(await refused("/v1/responses", { input: "x", tools: [{ type: "web_search" }] })).toEqual([
      400,
      "BadRequestError",
      "tools",
    ])
    expect(await refused("/v1/messages", { messages: [] })).toEqual([501, "NotImplementedError", null])
    expect((await render("/v1/responses", { input: "x", background: true, store: true })).status).toBe(200)
    expect((await renderer.post("/v1/chat/completions/render", "{}", { "content-type": "text/plain" })).status).toBe(
      400,
    )
  })

  test("of a prompt touches no engine, and previous_response_id is refused before anything is rendered", async () => {
    const submit = spyOn(Simulator.prototype, "submit")
    const server = await startTestServer({ config: { enableScaleOut: true } })
    await server.post("/v1/chat/completions/render", { messages: [user] })
    await server.post("/v1/responses/render", { input: "{{", previous_response_id: "x" })
    expect(submit).not.toHaveBeenCalled()
    submit.mockRestore()
    await server.stop()
  })
})

if (!transcriptsExist) test.skip("what vLLM's render server answered", () => {})
const compareRendered = (): void => {
  let renderer: TestServer
  beforeAll(async () => {
    renderer = await startTestRenderer({ profile: await qwen3Profile() })
  })
  afterAll(() => renderer.stop())

  /** Where we answer something else on purpose. */
  const different: { readonly [name: string]: string } = {
    assistant_parts: "an assistant's history keeps every text part",
    history_call_parts: "the parts of a call's output join without a separator",
    builtin: "built-in tools are refused",
    truncation_long_auto: "a prompt that was cut to fit is rendered",
    max_over: "max_output_tokens beyond the window is clamped",
    unknown_item: "an item of an unknown type is a value that breaks a rule",
  }

  for (const exchange of renderedExchanges()) {
    const { name, path, request, status, response } = exchange
    test(`${path} ${name}`, async () => {
      const ours = await renderer.post(path, request)
      if (name in different) {
        expect(differs(exchange, ours.status, ours.json)).toBe(true)
        expect(ours.status).toBeLessThan(500)
        return
      }
      if (status !== 200) {
        expect([ours.status, ours.json.error.type]).toEqual([status, response.error.type])
        return
      }
      const { request_id, parse_context, sampling_params, reasoning_ended, ...rest } = ours.json
      const { request_id: theirId, sampling_params: theirs, reasoning_ended: theirEnd, ...theirRest } = response
      expect(rest).toEqual(theirRest)
      expect(request_id.replace(/[-_].*/, "")).toBe(theirId.replace(/[-_].*/, ""))
      expect(filled(sampling_params)).toEqual(filled(theirs))
      // With a grammar of the parser's that covers reasoning, it counts as ended (RENDER 5).
      const hasTag = theirs.structured_outputs?.structural_tag != null
      expect(reasoning_ended).toBe(hasTag ? true : theirEnd)
      expect(parse_context === null).toBe(!path.startsWith("/v1/chat"))
    })
  }
}
if (transcriptsExist) describe("what vLLM's render server answered", compareRendered)

function differs(
  { status, response }: RenderedExchange,
  ourStatus: number,
  ours: { token_ids?: unknown; error?: { type?: string } },
): boolean {
  if (status !== 200) return status !== ourStatus || response.error.type !== ours.error?.type
  return status !== ourStatus || !Bun.deepEquals(response.token_ids, ours.token_ids)
}

/**
 * Sampling parameters with vLLM's defaults filled in, without what only its own process knows.
 * vLLM keeps special tokens for every parser, we only for those whose markers are such tokens. Of a tag, that it is there.
 */
function filled(params: { readonly [name: string]: Json }): object {
  const { skip_clone: _clone, skip_reading_prefix_cache: _cache, skip_special_tokens: _special, ...known } = params
  const { structured_outputs, extra_args, ...plain } = known
  const isEmpty = extra_args === undefined || Object.keys(extra_args as object).length === 0
  return {
    temperature: 1,
    top_p: 1,
    top_k: 0,
    min_p: 0,
    presence_penalty: 0,
    frequency_penalty: 0,
    repetition_penalty: 1,
    stop: [],
    stop_token_ids: [],
    bad_words: [],
    ...plain,
    // The recorded server left transfer parameters where it found them as well.
    extra_args: isEmpty || "kv_transfer_params" in (extra_args as object) ? null : extra_args,
    constrained: structured_outputs != null,
  }
}
