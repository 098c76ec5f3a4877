import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { startTestServer, type TestServer } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ config: { enablePromptTokensDetails: true } })
})
afterAll(() => server.stop())

const path = "/v1/chat/completions"
const call = '<tool_call>\n{"name": "look", "arguments": {"at": "sky"}}\n</tool_call>'
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }]

function body(text: string, extra: object = {}, xargs: object = {}) {
  return { messages: [{ role: "user", content: "Hi" }], vllm_xargs: { sim_text: text, ...xargs }, ...extra }
}

async function choice(text: string, extra: object = {}) {
  const reply = await server.post(path, body(text, extra))
  if (reply.status !== 200) throw new Error(reply.text)
  return reply.json.choices[0]
}

describe("a whole chat reply", () => {
  test("has every key of the reference, null where unset", async () => {
    const { json } = await server.post(path, body("Hello", { request_id: "mine" }))
    expect(json).toEqual({
      id: "chatcmpl-mine",
      object: "chat.completion",
      created: expect.any(Number),
      model: "sluice-simulator",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello",
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            reasoning: null,
          },
          logprobs: null,
          finish_reason: "stop",
          stop_reason: null,
          token_ids: null,
          routed_experts: null,
          weight_versions: null,
        },
      ],
      service_tier: null,
      system_fingerprint: expect.stringMatching(/^sluice-/),
      usage: {
        prompt_tokens: 9,
        total_tokens: 11,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 0, created_cache_tokens: 0, multimodal_tokens: null },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
      prompt_logprobs: null,
      prompt_token_ids: null,
      prompt_text: null,
      kv_transfer_params: null,
      ec_transfer_params: null,
      metrics: null,
    })
  })

  test("separates reasoning, text and calls", async () => {
    const { message, finish_reason } = await choice(`<think>\nhm\n</think>\n\nText.\n${call}`, { tools })
    expect({ ...message, finish_reason }).toMatchObject({
      reasoning: "hm",
      content: "Text.",
      tool_calls: [{ type: "function", function: { name: "look", arguments: '{"at": "sky"}' } }],
      finish_reason: "tool_calls",
    })
    expect(message.tool_calls[0].id).toMatch(/^call_[0-9a-f]{24}$/)
  })

  test("has null content beside auto calls, empty content beside forced ones", async () => {
    const forced = { type: "function", function: { name: "look" } }
    const results = []
    for (const tool_choice of ["auto", "required", forced]) {
      const { message, finish_reason } = await choice(call, { tools, tool_choice })
      results.push([message.content, message.tool_calls.length, finish_reason])
    }
    expect(results).toEqual([
      [null, 1, "tool_calls"],
      ["", 1, "tool_calls"],
      ["", 1, "stop"],
    ])
  })

  test("leaves calls as text when none may be made", async () => {
    for (const extra of [{}, { tools, tool_choice: "none" }]) {
      const { message, finish_reason } = await choice(call, extra)
      expect([message.content, message.tool_calls, finish_reason]).toEqual([call, undefined, "stop"])
    }
  })

  test("shows one call when parallel calls are off, and no reasoning when it is not wanted", async () => {
    const text = `<think>\nhm\n</think>\n\n${call}${call}`
    const { message } = await choice(text, { tools, parallel_tool_calls: false, include_reasoning: false })
    expect([message.reasoning, message.tool_calls.length]).toEqual([null, 1])
  })

  test("keeps a quoted end marker that ordinary tokens spell as text", async () => {
    const ids: number[] = []
    for (const piece of ["<", "/th", "ink", ">", " is a tag"]) {
      ids.push(...(await server.post("/tokenize", { prompt: piece })).json.tokens)
    }
    const reply = await server.post(path, {
      messages: [{ role: "user", content: "Hi" }],
      vllm_xargs: { sim_token_ids: ids },
    })
    expect(reply.json.choices[0].message).toMatchObject({ content: "</think> is a tag", reasoning: null })
  })

  test("reports each way to end", async () => {
    for (const finish of ["stop", "length", "abort", "repetition"]) {
      const reply = await server.post(path, body("Hello", {}, { sim_finish: finish }))
      expect(reply.json.choices[0].finish_reason).toBe(finish)
    }
  })

  test("names what stopped it", async () => {
    const [word] = (await server.post("/tokenize", { prompt: " beta" })).json.tokens
    expect((await choice("alpha beta", { stop: ["be"] })).stop_reason).toBe("be")
    expect((await choice("alpha beta gamma", { stop_token_ids: [word] })).stop_reason).toBe(word)
    const included = await choice("alpha beta", { stop: ["be"], include_stop_str_in_output: true })
    expect(included.message.content).toBe("alpha be")
  })

  test("counts n replies and one prompt", async () => {
    const reply = await server.post(path, body("Hello", { n: 3, seed: 5 }))
    expect(reply.json.choices.map((each: { index: number }) => each.index)).toEqual([0, 1, 2])
    expect(reply.json.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 6, total_tokens: 15 })
  })

  test("tells cached tokens", async () => {
    const reply = await server.post(path, body("Hello", {}, { sim_cached_tokens: 4, sim_cache_write_tokens: 3 }))
    expect(reply.json.usage.prompt_tokens_details).toMatchObject({ cached_tokens: 4, created_cache_tokens: 3 })
  })

  test("counts a prompt's cached tokens once, however many replies it has", async () => {
    const reply = await server.post(path, body("Hello", { n: 3 }, { sim_cached_tokens: 4 }))
    expect(reply.json.usage.prompt_tokens_details).toMatchObject({ cached_tokens: 4 })
  })

  test("gives logprobs of every token, with bytes, and ids when asked", async () => {
    const { logprobs, token_ids } = await choice("Hé", { logprobs: true, top_logprobs: 2, return_token_ids: true })
    expect(logprobs.content.length).toBe(token_ids.length)
    const joined = logprobs.content.map((each: { token: string }) => each.token).join("")
    expect(joined).toBe("Hé<|im_end|>")
    for (const entry of logprobs.content) {
      expect(entry.bytes).toEqual([...Buffer.from(entry.token)])
      expect(entry.top_logprobs.length).toBe(2)
      expect(entry.top_logprobs[0].logprob).toBeGreaterThanOrEqual(entry.top_logprobs[1].logprob)
    }
    const asIds = await choice("H", { logprobs: true, return_tokens_as_token_ids: true })
    expect(asIds.logprobs.content[0]).toMatchObject({
      token: expect.stringMatching(/^token_id:\d+$/),
      top_logprobs: [],
    })
  })

  test("withholds logprobs and ids with the reasoning that they would tell", async () => {
    const extra = { logprobs: true, return_token_ids: true, include_reasoning: false }
    const { logprobs, token_ids } = await choice("<think>\nhm\n</think>\n\nText", extra)
    expect([logprobs, token_ids]).toEqual([null, null])
  })

  test("gives prompt logprobs, the first of them null", async () => {
    const reply = await server.post(path, body("x", { prompt_logprobs: 1 }))
    expect(reply.json.prompt_logprobs.length).toBe(9)
    expect(reply.json.prompt_logprobs[0]).toBeNull()
    for (const entry of reply.json.prompt_logprobs.slice(1)) {
      for (const each of Object.values(entry)) {
        expect(each).toEqual({
          logprob: expect.any(Number),
          rank: expect.any(Number),
          decoded_token: expect.any(String),
        })
      }
    }
  })

  test("goes on with the last message, and echoes it when asked", async () => {
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "The answer" },
    ]
    const extra = { messages, add_generation_prompt: false, continue_final_message: true }
    const reply = await server.post(path, body(" is 4", { ...extra, echo: true, return_prompt_text: true }))
    expect(reply.json.prompt_text).toEndWith("<|im_start|>assistant\nThe answer")
    expect(reply.json.choices[0].message.content).toBe("The answer is 4")
  })

  test("takes its id from the header before the body", async () => {
    const reply = await server.post(path, body("x", { request_id: "of-body" }), { "x-request-id": "of-header" })
    expect(reply.json.id).toBe("chatcmpl-of-header")
  })
})

describe("a chat stream", () => {
  test("begins with the role, ends with the reason, usage and [DONE]", async () => {
    const events = await server.events(path, {
      ...body(`<think>\nhm\n</think>\n\nText${call}`, { tools, request_id: "r" }),
      stream_options: { include_usage: true },
    })
    const chunks = events.slice(0, -1).map((each) => each.json)
    expect(events.at(-1)!.data).toBe("[DONE]")
    expect(chunks[0]).toEqual({
      id: "chatcmpl-r",
      object: "chat.completion.chunk",
      created: chunks[0].created,
      model: "sluice-simulator",
      choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
      prompt_token_ids: null,
      prompt_text: null,
    })
    const deltas = chunks.slice(1, -2).map((chunk) => chunk.choices[0].delta)
    expect(deltas.map((delta) => Object.keys(delta)[0])).toEqual([
      "reasoning",
      "content",
      ...Array(deltas.length - 2).fill("tool_calls"),
    ])
    const opening = deltas[2].tool_calls[0]
    expect(opening).toEqual({
      index: 0,
      id: expect.stringMatching(/^call_/),
      type: "function",
      function: { name: "look", arguments: "" },
    })
    const fragments = deltas.slice(3).map((delta) => delta.tool_calls[0])
    expect(fragments.map((each) => each.function.arguments).join("")).toBe('{"at": "sky"}')
    expect(chunks.at(-2)!.choices).toEqual([
      { index: 0, delta: {}, logprobs: null, finish_reason: "tool_calls", stop_reason: null, token_ids: null },
    ])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } })
    for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).toBeUndefined()
  })

  test("keeps each step's text, ids and logprobs in one chunk", async () => {
    const events = await server.events(path, {
      ...body("one two three four", { logprobs: true, return_token_ids: true }, { sim_tokens_per_step: 2 }),
    })
    const chunks = events.slice(0, -1).map((each) => each.json)
    expect(chunks[0].prompt_token_ids.length).toBe(9)
    const choices = chunks.slice(1).map((chunk) => chunk.choices[0])
    for (const { token_ids, logprobs, delta } of choices.slice(0, -1)) {
      expect(token_ids.length).toBe(2)
      expect(logprobs.content.map((each: { token: string }) => each.token).join("")).toBe(delta.content)
    }
    expect(choices.at(-1)).toMatchObject({ finish_reason: "stop", token_ids: [200020] })
  })

  test("counts along when usage is continuous", async () => {
    const events = await server.events(path, {
      ...body("one two three"),
      stream_options: { include_usage: true, continuous_usage_stats: true },
    })
    const counts = events.slice(0, -1).map((each) => each.json.usage.completion_tokens)
    expect(counts).toEqual([0, 1, 2, 3, 4, 4])
  })

  test("gathers tokens to the interval that was asked for", async () => {
    const events = await server.events(path, { ...body("one two three four five six"), stream_interval: 3 })
    const texts = events.slice(1, -2).map((each) => each.json.choices[0].delta.content)
    expect(texts).toEqual(["one", " two three four", " five six"])
  })

  test("interleaves n choices by index, each with its own end", async () => {
    const events = await server.events(path, { ...body("one two"), n: 2 })
    const choices = events.slice(0, -1).flatMap((each) => each.json.choices)
    for (const index of [0, 1]) {
      const own = choices.filter((each) => each.index === index)
      expect(own.map((each) => each.delta.content ?? "").join("")).toBe("one two")
      expect(own.filter((each) => each.finish_reason !== null).length).toBe(1)
      expect(own[0].delta.role).toBe("assistant")
    }
  })
})

describe("a prompt", () => {
  const prompt = async (extra: object): Promise<string> => {
    const reply = await server.post(path, { ...body("x"), return_prompt_text: true, ...extra })
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.json.prompt_text
  }

  test("is the built-in ChatML template's", async () => {
    expect(await prompt({})).toBe("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    expect(await prompt({ reasoning_effort: "none" })).toEndWith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    expect(await prompt({ chat_template_kwargs: { enable_thinking: false } })).toEndWith("</think>\n\n")
  })

  test("joins text parts, and moves developer texts into the system turn", async () => {
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "a" }, { type: "input_text", text: "b" }, "c"] },
      { role: "system", content: "Be kind." },
    ]
    expect(await prompt({ messages })).toBe(
      "<|im_start|>system\nBe brief.\n\nBe kind.<|im_end|>\n<|im_start|>user\na\nb\nc<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("never breaks on what a model once wrote", async () => {
    const messages = [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{bad" } }],
      },
      { role: "tool", tool_call_id: "a", content: "7" },
    ]
    expect(await prompt({ messages })).toContain('{"name": "f", "arguments": {}}')
  })

  test("tells tools unless the operator keeps them out", async () => {
    expect(await prompt({ tools, tool_choice: "none" })).toContain('"name": "look"')
  })

  test("equals what /tokenize and /detokenize say", async () => {
    const messages = [{ role: "user", content: "Grüße 🎉" }]
    const reply = await server.post(path, { ...body("x"), messages, return_token_ids: true })
    const tokenized = (await server.post("/tokenize", { messages })).json
    expect(tokenized).toEqual({
      count: tokenized.tokens.length,
      max_model_len: 131072,
      tokens: reply.json.prompt_token_ids,
      token_strs: null,
    })
    const text = (await server.post("/detokenize", { tokens: tokenized.tokens })).json.prompt
    expect(text).toBe("<|im_start|>user\nGrüße 🎉<|im_end|>\n<|im_start|>assistant\n")
  })
})
