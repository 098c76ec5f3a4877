import { afterAll, beforeAll, expect, test } from "bun:test"
import { startTestServer, type TestServer } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ config: { enablePromptTokensDetails: true } })
})
afterAll(() => server.stop())

const path = "/v1/completions"

function body(text: string, extra: object = {}, xargs: object = {}) {
  return { prompt: "Hi", max_tokens: 50, vllm_xargs: { sim_text: text, ...xargs }, ...extra }
}

test("a whole completion has every key of the reference, null where unset", async () => {
  const { json } = await server.post(path, body("Hello", { request_id: "mine" }))
  expect(json).toEqual({
    id: "cmpl-mine",
    object: "text_completion",
    created: expect.any(Number),
    model: "sluice-simulator",
    choices: [
      {
        index: 0,
        text: "Hello",
        logprobs: null,
        finish_reason: "stop",
        stop_reason: null,
        token_ids: null,
        prompt_logprobs: null,
        prompt_token_ids: null,
        routed_experts: null,
        weight_versions: null,
      },
    ],
    service_tier: null,
    system_fingerprint: expect.stringMatching(/^sluice-/),
    usage: {
      prompt_tokens: 1,
      total_tokens: 3,
      completion_tokens: 2,
      prompt_tokens_details: { cached_tokens: 0, created_cache_tokens: 0, multimodal_tokens: null },
      completion_tokens_details: null,
    },
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  })
})

test("a stream's usage chunk leaves out what is null", async () => {
  const events = await server.events(path, body("Hello", { stream_options: { include_usage: true } }))
  expect(events.at(-2)!.json).toMatchObject({ choices: [] })
  expect(events.at(-2)!.json.usage).toEqual({
    prompt_tokens: 1,
    total_tokens: 3,
    completion_tokens: 2,
    prompt_tokens_details: { cached_tokens: 0, created_cache_tokens: 0 },
  })
})

test("several prompts give choices in the order prompt × n, and count all prompts", async () => {
  const { json } = await server.post(path, body("x", { prompt: ["Hi", "Hi there"], n: 2 }))
  expect(json.choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1, 2, 3])
  expect(json.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 8 })
})

test("markup is text, and token ids are prompts", async () => {
  const { tokens } = (await server.post("/tokenize", { prompt: "Hi there" })).json
  const text = "<think>a</think><tool_call>b</tool_call>"
  const { json } = await server.post(path, body(text, { prompt: tokens, echo: true }))
  expect(json.choices[0].text).toBe(`Hi there${text}`)
})

test("max_tokens is 16 unless given, and 0 scores the prompt alone", async () => {
  const long = "word ".repeat(50)
  const standard = await server.post(path, { prompt: "Hi", vllm_xargs: { sim_text: long } })
  expect(standard.json.usage.completion_tokens).toBe(16)
  const scored = await server.post(path, body(long, { max_tokens: 0, echo: true, logprobs: 0 }))
  expect([scored.json.choices[0].text, scored.json.usage.completion_tokens]).toEqual(["Hi", 0])
  expect(scored.json.choices[0].logprobs.token_logprobs).toEqual([null])
})

test("echo puts the prompt, and its logprobs, in front, streamed or not", async () => {
  const request = body("one two", { prompt: "Hi there", echo: true, logprobs: 1 })
  const [choice] = (await server.post(path, request)).json.choices
  expect(choice.text).toBe("Hi thereone two")
  expect(choice.logprobs.tokens).toEqual(["Hi", " there", "one", " two", "<|im_end|>"])
  expect(choice.logprobs.text_offset).toEqual([0, 2, 8, 11, 15])
  expect(choice.logprobs.token_logprobs[0]).toBeNull()
  const choices = (await server.events(path, request)).slice(0, -1).map((event) => event.json.choices[0])
  expect(choices.map((each) => each.text).join("")).toBe(choice.text)
  for (const list of ["tokens", "text_offset", "token_logprobs", "top_logprobs"] as const) {
    expect(choices.flatMap((each) => each.logprobs?.[list] ?? [])).toEqual(choice.logprobs[list])
  }
})

test("token ids and logprobs of a step share its chunk", async () => {
  const events = await server.events(
    path,
    body("one two three four", { return_token_ids: true }, { sim_tokens_per_step: 2 }),
  )
  const choices = events.slice(0, -1).map((event) => event.json.choices[0])
  expect(choices[0].prompt_token_ids.length).toBe(1)
  expect(choices.map((each) => each.token_ids.length)).toEqual([2, 2, 1])
  expect(choices.map((each) => each.text)).toEqual(["one two", " three four", ""])
})
