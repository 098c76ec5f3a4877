/** The cases that the references' own tests pin down (RESPONSES 13), in their order. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { recordEngine } from "../../support/recorded-engine"
import { checkResponseStream, withoutChance } from "../../support/response-grammar"
import { startTestServer, type TestServer } from "../../support/test-server"

const path = "/v1/responses"
const tools = [{ type: "function", name: "look", parameters: { type: "object" } }]
const call = '<tool_call>\n{"name": "look", "arguments": {"at": "sky"}}\n</tool_call>'
const thought = "<think>\nhm\n</think>\n\n"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({
    config: { servedModelNames: ["first", "second"] },
    profile: { samplingDefaults: { temperature: 0.6, topP: 0.95 } },
  })
})
afterAll(() => server.stop())

// biome-ignore lint/suspicious/noExplicitAny: responses have many shapes; a wrong path fails the test
type Loose = any

function body(text: string, extra: object = {}, xargs: object = {}) {
  return { input: "Hi", vllm_xargs: { sim_text: text, ...xargs }, ...extra }
}

/** The reply in both modes, which must be the same, with the stream's events. */
async function bothModes(request: object): Promise<{ response: Loose; types: string[]; events: Loose[] }> {
  const events = await server.events(path, request)
  const { response } = checkResponseStream(events)
  const whole = await server.post(path, request)
  expect(withoutChance(whole.json)).toEqual(withoutChance(response))
  return { response, types: events.map(({ event }) => event.replace("response.", "")), events }
}

async function refusal(request: object): Promise<unknown[]> {
  const { status, json } = await server.post(path, request)
  return [status, json.error?.type, json.error?.param]
}

test("1: an empty model is the served one", async () => {
  for (const model of ["", null, undefined, "second"]) {
    expect((await bothModes(body("x", { model }))).response.model).toBe("first")
  }
})

test("2: the model's defaults reach the engine and the echo, and the request wins over them", async () => {
  for (const [extra, expected] of [
    [{}, [0.6, 0.95]],
    [{ temperature: 1.5, top_p: 0.5 }, [1.5, 0.5]],
  ] as const) {
    using engine = recordEngine()
    const { json } = await server.post(path, body("x", extra))
    const { temperature, topP } = engine.requests[0]!.sampling
    expect([
      [json.temperature, json.top_p],
      [temperature, topP],
    ]).toEqual([[...expected], [...expected]])
  }
})

test("3: metadata has limits, counted in characters", async () => {
  const pairs = (count: number, key: string, value: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${String.fromCodePoint(97 + i)}${key}`, value]))
  for (const metadata of [
    pairs(16, "é".repeat(63), "é".repeat(512)),
    pairs(1, "🎉".repeat(63), "🎉".repeat(512)),
    {},
  ]) {
    expect((await bothModes(body("x", { metadata }))).response.metadata).toEqual(metadata)
  }
  for (const metadata of [pairs(17, "k", "v"), pairs(1, "é".repeat(64), "v"), pairs(1, "k", "é".repeat(513))]) {
    expect(await refusal(body("x", { metadata }))).toEqual([400, "BadRequestError", "metadata"])
  }
  for (const value of [1, { a: "b" }, null, ["v"], true]) {
    expect(await refusal(body("x", { metadata: { key: value } }))).toEqual([400, "BadRequestError", "metadata"])
  }
})

test("4: what Codex sends is taken", async () => {
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`${i}`.padEnd(64, "k"), "v".repeat(512)]))
  const asked = {
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "high", summary: "auto" },
    text: { verbosity: "low" },
    service_tier: "default",
    parallel_tool_calls: false,
    store: false,
    prompt_cache_key: "a-key",
    metadata,
  }
  const { include: _, store: __, ...echoed } = asked
  expect((await bothModes(body("x", asked))).response).toMatchObject(echoed)
})

test("5: nothing to answer is refused", async () => {
  const dangling = [
    { type: "reasoning", status: "incomplete", summary: [], content: [{ type: "reasoning_text", text: "a" }] },
  ]
  const empty = { type: "output_text", text: "" }
  const nothingToGoOnWith = [[empty, empty], [], "", null].map((content) => [
    { role: "user", content: "Hi" },
    { role: "assistant", status: "incomplete", content },
  ])
  for (const input of [[], dangling, [{ type: "reasoning", summary: [] }], ...nothingToGoOnWith]) {
    expect(await refusal({ input })).toEqual([400, "BadRequestError", "input"])
  }
  expect((await server.post(path, { ...body("x"), input: [], instructions: "Say something." })).status).toBe(200)
})

test("6: an automatic choice without tools is none", async () => {
  for (const extra of [{}, { tool_choice: "auto" }, { tool_choice: null }, { tools: [] }, { tool_choice: "none" }]) {
    expect((await bothModes(body("x", extra))).response.tool_choice).toBe("none")
  }
})

test("7: a choice needs its tool", async () => {
  for (const extra of [
    { tool_choice: "required" },
    { tool_choice: { type: "function", name: "look" } },
    { tools, tool_choice: { type: "function", name: "nope" } },
    { tools, tool_choice: { type: "web_search_preview" } },
    { tools, tool_choice: "any" },
  ]) {
    expect(await refusal(body("x", extra))).toEqual([400, "BadRequestError", "tool_choice"])
  }
})

test("8: truncation is echoed, and null is disabled", async () => {
  for (const [truncation, echoed] of [
    ["auto", "auto"],
    ["disabled", "disabled"],
    [null, "disabled"],
    [undefined, "disabled"],
  ]) {
    expect((await bothModes(body("x", { truncation }))).response.truncation).toBe(echoed)
  }
})

test("9: the header's id wins over the body's, and both get the prefix", async () => {
  const idOf = async (extra: object, headers: { readonly [name: string]: string } = {}) =>
    (await server.post(path, body("x", extra), headers)).json.id
  expect(await idOf({ request_id: "mine" }, { "x-request-id": "theirs" })).toBe("resp_theirs")
  expect(await idOf({ request_id: "mine" })).toBe("resp_mine")
  expect(await idOf({ request_id: "resp_mine" })).toBe("resp_resp_mine")
  expect(await idOf({})).toMatch(/^resp_[0-9a-f]{32}$/)
})

describe("10: a cut reply is incomplete, and so is its last item alone", () => {
  test.each([
    ["text", "one two three", 2, ["incomplete"]],
    ["reasoning", "<think>\none two three", 4, ["incomplete"]],
    ["a call behind reasoning", `${thought}${call}`, 14, ["completed", "incomplete"]],
    ["a call that is whole", `${thought}${call}`, 100, ["completed", "completed"]],
    ["text behind a call", `${call}Then this and that, and more`, 21, ["completed", "incomplete"]],
  ])("%s", async (_name, text, limit, statuses) => {
    const { response } = await bothModes(body(text, { tools, max_output_tokens: limit }))
    expect(response.output.map((item: Loose) => item.status)).toEqual(statuses)
    const isCut = statuses.includes("incomplete")
    expect([response.status, response.incomplete_details]).toEqual(
      isCut ? ["incomplete", { reason: "max_output_tokens" }] : ["completed", null],
    )
  })
})

test("11: a reply that the engine aborts is cancelled, in a completed event", async () => {
  const { response, types } = await bothModes(body("one", {}, { sim_finish: "abort" }))
  expect([response.status, types.at(-1)]).toEqual(["cancelled", "completed"])
})

test("12: a reply that breaks closes its item once and fails last", async () => {
  const xargs = { sim_error: "disconnect", sim_fail_after_tokens: 2 }
  const events = await server.events(path, body("one two three", {}, xargs))
  const { response } = checkResponseStream(events)
  const done = events.filter(({ event }) => event === "response.output_item.done")
  expect(done.map(({ json }) => json.item)).toEqual(response.output)
  expect([done.length, events.at(-1)!.event]).toEqual([1, "response.failed"])
})

test("13: hidden reasoning leaves no trace but its count", async () => {
  const { response, events } = await bothModes(body(`${thought}Yes`, { include_reasoning: false }))
  expect(events.filter(({ event }: Loose) => event.includes("reasoning"))).toEqual([])
  expect(events.find(({ event }: Loose) => event.endsWith("item.added")).json.output_index).toBe(0)
  expect(response.output.map((item: Loose) => item.type)).toEqual(["message"])
  expect(response.usage.output_tokens_details.reasoning_tokens).toBe(1)
})

test("14: a call goes round: its items come back as history", async () => {
  const question = { role: "user", content: "What colour is the sky?" }
  const first = (await bothModes(body(`${thought}I look.${call}`, { input: [question], tools }))).response
  const { call_id } = first.output.at(-1)
  const input = [question, ...first.output, { type: "function_call_output", call_id, output: "blue" }]
  using engine = recordEngine()
  const second = await server.post(path, body("It is blue.", { input, tools }))
  expect(second.json.output[0].content[0].text).toBe("It is blue.")
  const tokens = Array.from(engine.requests[0]!.promptTokenIds)
  const { prompt } = (await server.post("/detokenize", { tokens })).json
  for (const each of ["What colour is the sky?", "I look.", '"at": "sky"', "blue"]) expect(prompt).toContain(each)
})

test("15: events come in exactly this order", async () => {
  const message = ["output_item.added", "content_part.added"]
  const ending = ["content_part.done", "output_item.done"]
  expect((await bothModes(body("one two"))).types).toEqual([
    ...["created", "in_progress", ...message, "output_text.delta", "output_text.delta", "output_text.done"],
    ...[...ending, "completed"],
  ])
  expect((await bothModes(body(`${thought}${call}`, { tools }, { sim_tokens_per_step: 100 }))).types).toEqual([
    ...["created", "in_progress", ...message, "reasoning_text.delta", "reasoning_text.done", ...ending],
    ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    "completed",
  ])
})

test("16: sequence numbers are places, and event lines are types", async () => {
  const events = await server.events(path, body(`${thought}a${call}b`, { tools }))
  expect(events.map(({ event, json }) => [event, json.sequence_number])).toEqual(
    events.map(({ json }, index) => [json.type, index]),
  )
})

test("17: what would need a store is not found", async () => {
  const headers = { "content-type": "application/json" }
  const requests: readonly (readonly [string, string, string | undefined])[] = [
    ["GET", `${path}/resp_x`, undefined],
    ["GET", `${path}/resp_x?stream=true&starting_after=3`, undefined],
    ["DELETE", `${path}/resp_x`, undefined],
    ["POST", `${path}/resp_x/cancel`, undefined],
    ["GET", `${path}/resp_x/input_items`, undefined],
    ["POST", path, JSON.stringify({ input: "Hi", previous_response_id: "resp_x" })],
    ["POST", path, JSON.stringify({ input: "Hi", previous_response_id: "resp_x", stream: true })],
  ]
  for (const [method, url, sent] of requests) {
    const reply = await fetch(server.url + url, { method, headers, body: sent })
    expect([method, url, reply.status, await reply.json()]).toEqual([
      method,
      url,
      404,
      {
        error: {
          message: "Response with id 'resp_x' not found.",
          type: "NotFoundError",
          param: "response_id",
          code: 404,
        },
      },
    ])
  }
  expect((await server.post(path, body("x", { previous_response_id: null }))).status).toBe(200)
})

test("18: built-in tools are refused by type and place", async () => {
  const reply = await server.post(path, body("x", { tools: [...tools, { type: "web_search" }] }))
  expect([reply.status, reply.json.error.param]).toEqual([400, "tools"])
  expect(reply.json.error.message).toContain("tools[1]")
  expect(reply.json.error.message).toContain("web_search")
})

test("19: asking for storage is no fault", async () => {
  const { response } = await bothModes(body("x", { store: true }))
  expect([response.status, "store" in response]).toEqual(["completed", false])
  expect(await refusal(body("x", { background: true, store: true }))).toEqual([400, "BadRequestError", "background"])
})

test("20: a call without arguments has its events all the same", async () => {
  for (const [given, expected] of [
    ['{"name": "look"}', ""],
    ['{"name": "look", "arguments": {}}', "{}"],
  ] as const) {
    const text = `<tool_call>\n${given}\n</tool_call>`
    const { response, events } = await bothModes(body(text, { tools }))
    const done = events.find(({ event }: Loose) => event === "response.function_call_arguments.done").json
    expect([done.arguments, response.output[0].arguments, response.output[0].status]).toEqual([
      expected,
      expected,
      "completed",
    ])
  }
})

// 21, parity with chat, stands in parity.test.ts.

test("22: what an engine refuses or cannot take has its status", async () => {
  for (const [xargs, status] of [
    [{ sim_error: "validation" }, 400],
    [{ sim_error: "retryable" }, 503],
    [{ sim_error: "disconnect" }, 500],
    [{ sim_finish: "error" }, 500],
  ] as const) {
    const reply = await server.post(path, body("x", {}, xargs))
    expect([reply.status, reply.json.error.code]).toEqual([status, status])
  }
})

describe("input items", () => {
  const user = { role: "user", content: "Hi" }

  test("that hold media are refused by their place, once they could be read", async () => {
    const image = { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "low" }
    const audio = { type: "input_audio", input_audio: { data: "AA==", format: "wav" } }
    const file = { type: "input_file", filename: "a.txt", file_data: "data:,x" }
    const text = { type: "input_text", text: "What is this?" }
    const place = async (input: unknown): Promise<string> => {
      const reply = await server.post(path, { input })
      expect([reply.status, reply.json.error.type, reply.json.error.param]).toEqual([400, "BadRequestError", "input"])
      return reply.json.error.message
    }
    const takesNone = (at: string, type: string) => `${at}: this model takes no ${type} parts.`
    expect(await place([user, { role: "user", content: [text, image] }])).toBe(
      takesNone("input[1].content[1]", "input_image"),
    )
    expect(await place([{ role: "developer", content: [audio] }])).toBe(takesNone("input[0].content[0]", "input_audio"))
    expect(await place([{ role: "user", content: [file] }])).toBe(takesNone("input[0].content[0]", "input_file"))
    expect(await place([user, { type: "function_call_output", call_id: "c", output: [text, image] }])).toBe(
      takesNone("input[1].output[1]", "input_image"),
    )
    expect(await place([user, { role: "assistant", content: [image] }])).toContain("an assistant's message cannot hold")
    for (const [broken, words] of [
      [{ type: "input_image" }, "requires image_url"],
      [{ type: "input_image", file_id: "f" }, "file_id"],
      [{ type: "input_audio", input_audio: { data: "AA==" } }, "format"],
      [{ type: "input_audio", data: "AA==", format: "wav" }, "input_audio"],
      [{ type: "input_file" }, "input_file"],
      [{ type: "input_video" }, "input_video"],
    ] as const) {
      expect(await place([{ role: "user", content: [broken] }])).toContain(words)
    }
  })

  test("of the assistant keep every text and refusal, and merge with what stands beside them", async () => {
    const items = [
      user,
      { type: "reasoning", id: "rs", summary: [{ type: "summary_text", text: "sum" }], content: null },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "output_text", text: "One. " },
          { type: "refusal", refusal: "No. " },
          { type: "output_text", text: "Two." },
        ],
      },
      { type: "function_call", call_id: "c1", name: "look", arguments: "{broken" },
      { type: "function_call", call_id: "c2", name: "look", arguments: '{"at":"sea"}' },
      { type: "function_call_output", call_id: "c1", output: "" },
    ]
    const messages = [
      user,
      {
        role: "assistant",
        reasoning: "sum",
        content: [
          { type: "text", text: "One. " },
          { type: "refusal", refusal: "No. " },
          { type: "text", text: "Two." },
        ],
        tool_calls: [
          { id: "c1", function: { name: "look", arguments: "{}" } },
          { id: "c2", function: { name: "look", arguments: '{"at":"sea"}' } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "" },
    ]
    using engine = recordEngine()
    await server.post(path, body("x", { input: items }))
    await server.post("/v1/chat/completions", { messages, vllm_xargs: { sim_text: "x" } })
    const [ours, chat] = engine.requests.map(({ promptTokenIds }) => Array.from(promptTokenIds))
    expect(ours).toEqual(chat!)
  })

  test("that keep state elsewhere, or are of unknown kinds, are refused by name", async () => {
    for (const [item, param] of [
      [{ type: "item_reference", id: "msg_1" }, "previous_response_id"],
      [{ type: "reasoning", summary: [], encrypted_content: "abc" }, "input"],
      [{ type: "web_search_call", id: "ws" }, "input"],
      [{ type: "computer_call" }, "input"],
      [{ type: "mcp_call" }, "input"],
      [{ type: "local_shell_call" }, "input"],
      [{ type: "compaction" }, "input"],
      [{ type: "message", content: "x" }, "input"],
      [{ role: "tool", content: "x" }, "input"],
      [{ content: "x" }, "input"],
      [{ type: "reasoning", content: "abc", summary: [] }, "input"],
      [{ type: "reasoning", content: [{ type: "reasoning_text" }], summary: [] }, "input"],
      [{ type: "reasoning", summary: ["abc"] }, "input"],
      ["text", "input"],
      [null, "input"],
    ] as const) {
      expect([item, await refusal({ input: [user, item] })]).toEqual([item, [400, "BadRequestError", param]])
    }
  })
})

test("words that are refused are told with the field that has them, and the list of those that are taken", async () => {
  for (const [extra, words] of [
    [{ text: { verbosity: "loud" } }, "text.verbosity must be one of low, medium, high, got 'loud'."],
    [{ reasoning: { summary: "long" } }, "reasoning.summary must be one of auto, concise, detailed, got 'long'."],
    [{ service_tier: "gold" }, "service_tier must be one of auto, default, flex, scale, priority, got 'gold'."],
  ] as const) {
    const { json } = await server.post(path, body("x", extra))
    expect([json.error.param, json.error.message]).toEqual([Object.keys(extra)[0]!, words])
  }
})

test("a cache salt has at most 128 characters, and keys of logit_bias that are no ids are listed", async () => {
  expect((await server.post(path, body("x", { cache_salt: "🎉".repeat(128) }))).status).toBe(200)
  for (const cache_salt of ["🎉".repeat(129), "a".repeat(129), "a/b", "a\\b", "a\0b", ""]) {
    expect(await refusal(body("x", { cache_salt }))).toEqual([400, "BadRequestError", "cache_salt"])
  }
  const logit_bias = Object.fromEntries(Array.from({ length: 102 }, (_, i) => [`no${i}`, 1]))
  const { json } = await server.post(path, body("x", { logit_bias }))
  expect(json.error).toMatchObject({ param: "logit_bias", code: 400 })
  expect(json.error.message).toMatch(/: no0, no1, .*, no98, no99 and 2 more\.$/)
})

test("text formats are checked", async () => {
  for (const format of [
    { type: "json_schema", schema: {} },
    { type: "json_schema", name: "n" },
    { type: "json_schema", name: "n", schema: [] },
    { type: "structural_tag" },
    { type: "xml" },
    {},
  ]) {
    expect([format, await refusal(body("x", { text: { format } }))]).toEqual([format, [400, "BadRequestError", "text"]])
  }
})

test("idle streams get comments when the flag asks for them", async () => {
  const alive = await startTestServer({ config: { sseKeepAliveSeconds: 0.02 } })
  const script = { sim_text: "one two", sim_step_ms: 100 }
  const reply = await alive.post(path, { input: "Hi", stream: true, vllm_xargs: script })
  expect(reply.text).toMatch(/^: .*\n\n/m)
  checkResponseStream(await alive.events(path, { input: "Hi", vllm_xargs: script }))
  await alive.stop()
})
