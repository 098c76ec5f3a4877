/**
 * A reply as one object is a fold of the calls that a stream writes: both modes must make the same calls. Every view
 * calls its fold first, so watching `Fold` sees what either mode was told.
 */
import { afterAll, afterEach, beforeAll, expect, spyOn, test } from "bun:test"
import { Fold } from "../../src/api/fold"
import { startTestServer, type TestServer } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.stop())

const methods = ["promptLogprobs", "open", "delta", "close", "step", "done", "fail"] as const
let spies: { mockRestore(): void }[] = []
afterEach(() => {
  for (const spy of spies) spy.mockRestore()
  spies = []
})

/** Records the calls of all folds, with random ids and times left out. */
function recordCalls(): string[] {
  const calls: string[] = []
  for (const method of methods) {
    const original = Fold.prototype[method]
    const spy = spyOn(Fold.prototype, method).mockImplementation(function (this: Fold, ...args: unknown[]) {
      calls.push(`${method} ${JSON.stringify(method === "step" ? liveParts(args) : args, normalised)}`)
      Reflect.apply(original, this, args)
    })
    spies.push(spy)
  }
  return calls
}

/** Engines reuse their arrays, so what lies outside of the step's own part is anything. */
function liveParts(args: unknown[]): unknown {
  const [ids, start, end, rows] = args as Parameters<Fold["step"]>
  const tokenIds = Array.from(ids.subarray(start, end))
  if (rows === null) return { tokenIds }
  const entries = (end - start) * rows.width
  return {
    tokenIds,
    ids: Array.from(rows.tokenIds.subarray(0, entries)),
    logprobs: Array.from(rows.logprobs.subarray(0, entries)),
  }
}

function normalised(key: string, value: unknown): unknown {
  if (key === "id" || key === "callId") return value === "" ? "" : "some id"
  return key === "timing" ? "some times" : value
}

const script =
  "<think>\nLet me see.\n</think>\n\nI will look." +
  '<tool_call>\n{"name": "look", "arguments": {"at": "sky", "n": [1, 2]}}\n</tool_call>' +
  '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'

const chatTools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }]
const responseTools = [{ type: "function", name: "look", parameters: { type: "object" } }]
const chat = { messages: [{ role: "user", content: "Hi" }], tools: chatTools }
const response = { input: "Hi", tools: responseTools }
const completion = { prompt: "Hi", max_tokens: 300 }

const bodies: { readonly [name: string]: readonly [string, object] }[] = []
for (const xargs of [
  { sim_text: script },
  { sim_text: script, sim_tokens_per_step: [2, 5, 1] },
  { sim_text: script, sim_finish: "length" },
  { sim_text: script, sim_error: "disconnect", sim_fail_after_tokens: 20 },
  { sim_text: "" },
]) {
  const extra = { vllm_xargs: xargs }
  bodies.push({
    chat: ["/v1/chat/completions", { ...chat, ...extra }],
    "chat with logprobs and ids": [
      "/v1/chat/completions",
      { ...chat, ...extra, logprobs: true, top_logprobs: 2, return_token_ids: true },
    ],
    "chat without reasoning, one call": [
      "/v1/chat/completions",
      { ...chat, ...extra, include_reasoning: false, parallel_tool_calls: false },
    ],
    Responses: ["/v1/responses", { ...response, ...extra }],
    "completions with logprobs": ["/v1/completions", { ...completion, ...extra, logprobs: 1, stop: ["sky"] }],
  })
}

test.each(bodies.flatMap((each) => Object.entries(each)).map(([name, [path, body]]) => [name, path, body] as const))(
  "%s makes the same calls streamed and whole (%#)",
  async (_name, path, body) => {
    const whole = recordCalls()
    await server.post(path, body)
    for (const spy of spies) spy.mockRestore()
    const streamed = recordCalls()
    await server.events(path, body)
    expect(whole.length).toBeGreaterThan(0)
    expect(streamed).toEqual(whole)
  },
)
