/** Replies that break: inside of each kind of item, in each way an engine can break (RESPONSES 11 and 12). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { checkResponseStream } from "../../support/response-grammar"
import { readEvents } from "../../support/sent-events"
import { startTestServer, type TestServer, until } from "../../support/test-server"

const path = "/v1/responses"
const tools = [{ type: "function", name: "look", parameters: { type: "object" } }]
const neutral = {
  engine: "The model failed to produce a response.",
  broken: "The stream failed before the response was complete.",
  ended: "The stream ended before the response was complete.",
}

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ simulator: { restartMs: 5 } })
})
afterAll(() => server.stop())

async function idsOf(text: string): Promise<number[]> {
  return (await server.post("/tokenize", { prompt: text, add_special_tokens: false })).json.tokens
}

/** What the model wrote when it broke, and the items that are left of it. */
const places: readonly (readonly [string, string, readonly object[]])[] = [
  ["before anything", "", []],
  ["in reasoning", "<think>\none two", [{ type: "reasoning", content: [{ text: "one two" }], status: "completed" }]],
  ["in text", "one two", [{ type: "message", content: [{ text: "one two" }], status: "completed" }]],
  [
    "in a call",
    '<tool_call>\n{"name": "look", "arguments": {"at": "s',
    [{ type: "function_call", name: "look", arguments: '{"at": "s', status: "completed" }],
  ],
  [
    "behind reasoning, in text",
    "<think>\none\n</think>\n\ntwo",
    [
      { type: "reasoning", status: "completed" },
      { type: "message", content: [{ text: "two" }], status: "completed" },
    ],
  ],
  ["in half a marker", "one <", [{ type: "message", content: [{ text: "one <" }] }]],
]

const ways: readonly (readonly [string, object, string, number])[] = [
  ["is overloaded", { sim_error: "retryable" }, neutral.broken, 503],
  ["refuses after all", { sim_error: "validation" }, neutral.broken, 400],
  ["is lost", { sim_error: "disconnect" }, neutral.ended, 500],
  ["dies", { sim_error: "fatal" }, neutral.broken, 500],
  ["ends with an error", { sim_finish: "error" }, neutral.engine, 500],
]

describe.each(places)("an engine that breaks %s", (_place, text, output) => {
  test.each(ways)("and %s", async (_way, xargs, message, status) => {
    const ids = await idsOf(text)
    const fails = "sim_error" in xargs
    const script = { ...xargs, sim_token_ids: ids, ...(fails && { sim_fail_after_tokens: ids.length }) }
    const body = { input: "Hi", tools, vllm_xargs: script }
    await until(async () => (await server.get("/health")).status === 200)
    const events = await server.events(path, body)
    const { response, ending } = checkResponseStream(events)
    expect(ending).toBe("failed")
    expect(response).toMatchObject({
      status: "failed",
      error: { code: "server_error", message },
      incomplete_details: null,
      output,
    })
    expect(response.output.length).toBe(output.length)
    expect(events.filter(({ event }) => event === "response.output_item.done").length).toBe(output.length)
    // Counts come with the engine's own finish alone.
    expect(response.usage?.output_tokens ?? null).toBe(fails ? null : ids.length)

    await until(async () => (await server.get("/health")).status === 200)
    const whole = await server.post(path, body)
    expect([whole.status, whole.json.error.code]).toEqual([status, status])
    await until(async () => {
      const { running, waiting, inside } = await server.counts()
      return running === 0 && waiting === 0 && inside === 0
    })
  })
})

test("an engine that dies takes all streams with it, each to its own failed end", async () => {
  const slow = { input: "Hi", vllm_xargs: { sim_text: "word ".repeat(200), sim_step_ms: 5 } }
  await until(async () => (await server.get("/health")).status === 200)
  const streams = [server.events(path, slow), server.events(path, slow)]
  await until(async () => (await server.counts()).running === 2)
  await server.post(path, { input: "Hi", vllm_xargs: { sim_error: "fatal" } })
  for (const events of await Promise.all(streams)) {
    const { response, ending } = checkResponseStream(events)
    expect([ending, response.error.message]).toEqual(["failed", neutral.broken])
  }
})

test("a server that is stopped ends its streams as failed", async () => {
  const stopping = await startTestServer()
  const body = { input: "Hi", stream: true, vllm_xargs: { sim_text: "word ".repeat(500), sim_step_ms: 5 } }
  const reply = stopping.post(path, body)
  await until(async () => (await stopping.counts()).running === 1)
  await stopping.stop()
  const { response, ending } = checkResponseStream(readEvents((await reply).text))
  expect([ending, response.error.message]).toEqual(["failed", neutral.broken])
})

test("what an engine refuses before the first token has its own status, streamed or not", async () => {
  await until(async () => (await server.get("/health")).status === 200)
  for (const stream of [true, false]) {
    const reply = await server.post(path, { input: "Hi", stream, vllm_xargs: { sim_unknown: 1 } })
    expect([reply.status, reply.json.error.param]).toEqual([400, "vllm_xargs"])
  }
})
