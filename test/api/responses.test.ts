import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { checkResponseStream } from "../support/response-grammar"
import type { SentEvent } from "../support/sent-events"
import { startTestServer, type TestServer } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ profile: { samplingDefaults: { temperature: 0.6, topP: 0.95 } } })
})
afterAll(() => server.stop())

const path = "/v1/responses"

/** All events of a stream, which keep to the grammar. */
async function eventsOf(request: object): Promise<SentEvent[]> {
  const events = await server.events(path, request)
  checkResponseStream(events)
  return events
}

const call = '<tool_call>\n{"name": "look", "arguments": {"at": "sky"}}\n</tool_call>'
const tools = [{ type: "function", name: "look", parameters: { type: "object" } }]

function body(text: string, extra: object = {}, xargs: object = {}) {
  return { input: "Hi", vllm_xargs: { sim_text: text, ...xargs }, ...extra }
}

/** Events without what is random, as `type` or `type: delta`. */
async function outline(request: object): Promise<string[]> {
  const events = await eventsOf(request)
  return events.map(({ event, json }) => {
    const name = event.replace("response.", "")
    return json.delta === undefined ? name : `${name}: ${json.delta}`
  })
}

describe("a response", () => {
  test("has every key, null where unset, and echoes what was really used", async () => {
    const { json } = await server.post(path, body("Hello", { request_id: "mine", metadata: { a: "é".repeat(512) } }))
    expect(json).toEqual({
      id: "resp_mine",
      object: "response",
      created_at: expect.any(Number),
      model: "sluice-simulator",
      status: "completed",
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: { a: "é".repeat(512) },
      max_tool_calls: null,
      previous_response_id: null,
      prompt: null,
      reasoning: null,
      text: null,
      user: null,
      top_logprobs: null,
      presence_penalty: 0,
      frequency_penalty: 0,
      safety_identifier: null,
      prompt_cache_key: null,
      prompt_cache_options: null,
      prompt_cache_retention: null,
      output: [
        {
          type: "message",
          id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: null }],
        },
      ],
      parallel_tool_calls: true,
      temperature: 0.6,
      top_p: 0.95,
      tool_choice: "none",
      tools: [],
      truncation: "disabled",
      background: false,
      service_tier: "auto",
      max_output_tokens: 131072 - 9,
      usage: {
        input_tokens: 9,
        input_tokens_details: {
          cached_tokens: 0,
          cache_write_tokens: 0,
        },
        output_tokens: 2,
        output_tokens_details: {
          reasoning_tokens: 0,
          tool_output_tokens: 0,
        },
        total_tokens: 11,
      },
      kv_transfer_params: null,
      ec_transfer_params: null,
      input_messages: null,
      output_messages: null,
    })
  })

  test("echoes greedy sampling as it is, and clamps the reply to the window", async () => {
    const { json } = await server.post(path, body("x", { temperature: 0, max_output_tokens: 2 ** 53 }))
    expect([json.temperature, json.top_p, json.max_output_tokens]).toEqual([0, 1, 131072 - 9])
  })

  test("lists items in the order in which they were written", async () => {
    const text = `<think>\nhm\n</think>\n\nFirst.${call}`
    const { json } = await server.post(path, body(text, { tools }))
    expect(json.output.map((item: { type: string }) => item.type)).toEqual(["reasoning", "message", "function_call"])
    expect(json.output[2]).toEqual({
      type: "function_call",
      id: expect.stringMatching(/^fc_[0-9a-f]{32}$/),
      call_id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
      name: "look",
      arguments: '{"at": "sky"}',
      status: "completed",
    })
    expect(json.usage.output_tokens_details.reasoning_tokens).toBe(1)
  })

  test("is incomplete at the limit, and only its last item is", async () => {
    const text = `<think>\nhm\n</think>\n\n${call}`
    const { json } = await server.post(path, body(text, { tools }, { sim_finish: "length" }))
    expect([json.status, json.incomplete_details]).toEqual(["incomplete", { reason: "max_output_tokens" }])
    expect(json.output.map((item: { status: string }) => item.status)).toEqual(["completed", "incomplete"])
  })

  test("is cancelled when the engine aborts", async () => {
    const events = await eventsOf(body("x", {}, { sim_finish: "abort" }))
    expect([events.at(-1)!.event, events.at(-1)!.json.response.status]).toEqual(["response.completed", "cancelled"])
  })

  test("tells cached tokens", async () => {
    const { json } = await server.post(path, body("x", {}, { sim_cached_tokens: 5, sim_cache_write_tokens: 2 }))
    expect(json.usage.input_tokens_details).toMatchObject({ cached_tokens: 5, cache_write_tokens: 2 })
  })
})

describe("a response stream", () => {
  test("of a text", async () => {
    expect(await outline(body("Hello world"))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "output_text.delta: Hello",
      "output_text.delta:  world",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ])
  })

  test("of reasoning and a call", async () => {
    const text = `<think>\nhm\n</think>\n\n${call}`
    expect(await outline(body(text, { tools }, { sim_tokens_per_step: 100 }))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "reasoning_text.delta: hm",
      "reasoning_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      'function_call_arguments.delta: {"at": "sky"}',
      "function_call_arguments.done",
      "output_item.done",
      "completed",
    ])
  })

  test("hides reasoning without a trace", async () => {
    const events = await eventsOf(body("<think>\nhm\n</think>\n\nText", { include_reasoning: false }))
    expect(events.filter((each) => each.event.includes("reasoning"))).toEqual([])
    expect(events.find((each) => each.event === "response.output_item.added")!.json.output_index).toBe(0)
  })

  test("ends a call without arguments as one", async () => {
    const text = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    const events = await eventsOf(body(text, { tools }))
    const done = events.find((each) => each.event === "response.function_call_arguments.done")!.json
    expect([done.name, done.arguments]).toEqual(["look", "{}"])
  })

  test("that breaks closes its item once and fails last, with neutral words", async () => {
    for (const [text, tokens] of [
      ["one two three four", 2],
      ["<think>\none two three four", 3],
      [call, 8],
    ] as const) {
      const xargs = { sim_error: "disconnect", sim_fail_after_tokens: tokens }
      const events = await eventsOf(body(text, { tools }, xargs))
      const done = events.filter((each) => each.event === "response.output_item.done")
      const { response } = events.at(-1)!.json
      expect([done.length, events.at(-1)!.event, response.status]).toEqual([1, "response.failed", "failed"])
      expect(response.output).toEqual(done.map((each) => each.json.item))
      expect(response.error).toEqual({ code: "server_error", message: expect.any(String) })
      expect(response.usage).toBeNull()
    }
  })

  test("whose engine failed with counts tells them", async () => {
    const events = await eventsOf(body("one two", {}, { sim_finish: "error" }))
    expect(events.at(-1)!.json.response.usage).toMatchObject({ output_tokens: 2 })
  })
})

describe("input items", () => {
  const promptOf = async (input: unknown, extra: object = {}): Promise<string> => {
    const reply = await server.post(path, { input, ...extra })
    if (reply.status !== 200) throw new Error(reply.text)
    const text: string = reply.json.output[0].content[0].text
    return text
  }
  const tokensOf = async (input: unknown, extra: object = {}): Promise<number> => {
    const reply = await server.post(path, { input, ...extra, vllm_xargs: { sim_text: "x" } })
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.json.usage.input_tokens
  }
  const chatTokens = async (messages: unknown[], extra: object = {}): Promise<number> => {
    const reply = await server.post("/v1/chat/completions", { messages, ...extra, vllm_xargs: { sim_text: "x" } })
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.json.usage.prompt_tokens
  }

  test("become the conversation that chat would have", async () => {
    expect(await promptOf("What is up?")).toContain("What is up?")
    const input = [
      { role: "developer", content: "Be brief." },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Look" }] },
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "I must look" }] },
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"at": "sky"}' },
      { type: "function_call", call_id: "c2", name: "look", arguments: "{bad" },
      { type: "function_call_output", call_id: "c1", output: "blue" },
      {
        type: "function_call_output",
        call_id: "c2",
        output: [
          { type: "input_text", text: "da" },
          { type: "output_text", text: "rk" },
        ],
      },
    ]
    const messages = [
      { role: "system", content: "Help." },
      { role: "developer", content: "Be brief." },
      { role: "user", content: "Look" },
      {
        role: "assistant",
        content: null,
        reasoning: "I must look",
        tool_calls: [
          { id: "c1", function: { name: "look", arguments: '{"at": "sky"}' } },
          { id: "c2", function: { name: "look", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "blue" },
      { role: "tool", tool_call_id: "c2", content: "dark" },
    ]
    const chatTools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }]
    expect(await tokensOf(input, { instructions: "Help.", tools })).toBe(
      await chatTokens(messages, { tools: chatTools }),
    )
  })

  test("that end unfinished are gone on with", async () => {
    const input = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "The answer", status: "incomplete" },
    ]
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "The answer" },
    ]
    const continues = { add_generation_prompt: false, continue_final_message: true }
    expect(await tokensOf(input)).toBe(await chatTokens(messages, continues))
  })

  test("are refused by name when they mean nothing here", async () => {
    const wrong: [unknown, string][] = [
      [[], "input"],
      [[5], "input"],
      [[{ text: "x" }], "input"],
      [[{ type: "item_reference", id: "x" }], "previous_response_id"],
      [[{ type: "web_search_call", id: "x" }], "input"],
      [[{ type: "reasoning", encrypted_content: "abc", summary: [] }], "input"],
      [
        [
          { role: "user", content: "x" },
          { type: "reasoning", status: "incomplete", content: [{ type: "reasoning_text", text: "hm" }] },
        ],
        "input",
      ],
      [[{ role: "user", content: [{ type: "input_image", image_url: "data:," }] }], "input"],
      [[{ role: "user", content: [{ type: "input_file", file_id: "x" }] }], "input"],
      [[{ type: "function_call", call_id: "a", arguments: "{}" }], "input"],
      [[{ type: "function_call_output", call_id: "a", output: [{ type: "input_image" }] }], "input"],
    ]
    for (const [input, param] of wrong) {
      const reply = await server.post(path, { input })
      expect({ input, status: reply.status, error: reply.json.error }).toMatchObject({
        input,
        status: 400,
        error: { type: "BadRequestError", param, code: 400 },
      })
    }
  })
})

describe("fields", () => {
  test("of clients that replay their history are accepted", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`${i}`.padEnd(64, "k"), "v".repeat(512)]))
    const codex = {
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "medium", summary: "auto" },
      text: { verbosity: "low" },
      service_tier: "default",
      store: true,
      prompt_cache_key: "key",
      metadata,
    }
    const reply = await server.post(path, body("x", codex))
    expect(reply.status).toBe(200)
    expect(reply.json).toMatchObject({
      reasoning: { effort: "medium", summary: "auto" },
      text: { verbosity: "low" },
      service_tier: "default",
      prompt_cache_key: "key",
      metadata,
    })
  })

  test("that need a store, or that show insides, are refused by name", async () => {
    const refused: [object, string][] = [
      [{ prompt: { id: "x" } }, "prompt"],
      [{ conversation: "c" }, "conversation"],
      [{ background: true }, "background"],
      [{ previous_input_messages: [] }, "previous_input_messages"],
      [{ media_io_kwargs: {} }, "media_io_kwargs"],
      [{ enable_response_messages: true }, "enable_response_messages"],
      [{ spaces_between_special_tokens: false }, "spaces_between_special_tokens"],
      [{ top_logprobs: 1 }, "top_logprobs"],
      [{ include: ["message.output_text.logprobs"] }, "include"],
      [{ truncation: "some" }, "truncation"],
      [{ service_tier: "gold" }, "service_tier"],
      [{ text: { verbosity: "loud" } }, "text"],
      [{ reasoning: { summary: "long" } }, "reasoning"],
      [{ metadata: { a: 5 } }, "metadata"],
      [{ metadata: { a: "é".repeat(513) } }, "metadata"],
      [{ metadata: { ["k".repeat(65)]: "v" } }, "metadata"],
      [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, "v"])) }, "metadata"],
      [{ tools: [{ type: "web_search" }] }, "tools"],
      [{ tool_choice: "required" }, "tool_choice"],
      [{ tool_choice: { type: "function", name: "f" }, tools }, "tool_choice"],
      [{ tool_choice: "sometimes", tools }, "tool_choice"],
      [{ structured_outputs: { regex: "a" }, text: { format: { type: "text" } } }, "structured_outputs"],
      [{ cache_salt: "a@b" }, "cache_salt"],
    ]
    for (const [extra, param] of refused) {
      const reply = await server.post(path, body("x", extra))
      expect({ extra, status: reply.status, error: reply.json.error }).toMatchObject({
        extra,
        status: 400,
        error: { type: "BadRequestError", param, code: 400 },
      })
    }
    const wrongType = await server.post(path, body("x", { metadata: [] }))
    expect(wrongType.json.error).toMatchObject({ type: "Bad Request", param: "metadata" })
  })

  test("about tools are echoed resolved", async () => {
    const echo = async (extra: object) => {
      const { json } = await server.post(path, body("x", extra))
      return [json.tool_choice, json.tools]
    }
    const echoed = [{ type: "function", name: "look", description: null, parameters: { type: "object" }, strict: null }]
    expect(await echo({ tool_choice: "auto" })).toEqual(["none", []])
    expect(await echo({ tools })).toEqual(["auto", echoed])
    expect(await echo({ tools, tool_choice: { type: "function", name: "look" } })).toEqual([
      { type: "function", name: "look" },
      echoed,
    ])
  })
})

test("truncation keeps the newest tokens that leave one for the reply", async () => {
  const small = await startTestServer({ profile: { contextTokensMax: 64 } })
  const input = "word ".repeat(500)
  expect((await small.post(path, { input })).json.error.param).toBe("input_tokens")
  const { json } = await small.post(path, { input, truncation: "auto", vllm_xargs: { sim_text: "x" } })
  expect([json.usage.input_tokens, json.max_output_tokens, json.truncation]).toEqual([63, 1, "auto"])
  await small.stop()
})
