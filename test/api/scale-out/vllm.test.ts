/** The way by token ids over vLLM's engines: what they are sent does not depend on the road. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { TestEngine } from "../../support/test-engine"
import { startVllmServer, type VllmTestServer } from "../../support/vllm-server"

let server: VllmTestServer
let engine: TestEngine
beforeAll(async () => {
  server = await startVllmServer({}, {}, { enableScaleOut: true })
  engine = await server.attach({ stepMs: 0 })
}, 30_000)
afterAll(() => server.stop())

const tools = [{ type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } }]
const bodies: { readonly [name: string]: object } = {
  plain: {},
  sampling: { temperature: 0.3, top_p: 0.5, top_k: 7, min_p: 0.1, seed: 2 ** 40, max_tokens: 9, stop_token_ids: [5] },
  bias: {
    logit_bias: { "5": 1.5 },
    bad_words: ["bad"],
    allowed_token_ids: [5, 6, 40],
    logprobs: true,
    top_logprobs: 2,
  },
  "a forced call": { tools, tool_choice: "required" },
  "a schema": { response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } } },
  routing: { priority: 3, cache_salt: "s", kv_transfer_params: { do_remote_decode: true } },
}

/**
 * An ADD without what is each request's own. A renderer tells where the prompt stands with its reasoning even where no
 * grammar waits for it; not telling means that the engine looks for itself, and sees the same.
 */
function shared(add: { readonly [name: string]: unknown }): object {
  const { request_id: _id, external_req_id: _external, arrival_time: _at, reasoning_ended, ...rest } = add
  return { ...rest, reasoning_ended: reasoning_ended ?? false }
}

for (const [name, extra] of Object.entries(bodies)) {
  test(`an engine is sent the same by both roads: ${name}`, async () => {
    const body = { messages: [{ role: "user", content: "hi" }], vllm_xargs: { mock_tokens: [40, 41] }, ...extra }
    engine.adds.length = 0
    const direct = await server.post("/v1/chat/completions", body)
    expect([direct.status, direct.text]).toEqual([200, expect.any(String)])
    const rendered = (await server.post("/v1/chat/completions/render", body)).json
    const generated = await server.post("/inference/v1/generate", rendered)
    expect([generated.status, generated.text]).toEqual([200, expect.any(String)])
    const [first, second] = engine.adds as unknown as { [name: string]: unknown }[] // plain records of what was sent
    expect(shared(second!)).toEqual(shared(first!))
    expect(engine.deaths).toEqual([])
  })
}

test("ids come back whole and as a stream, and an abort reaches the engine", async () => {
  const params = { extra_args: { mock_tokens: [40, 41, 42] } }
  const whole = await server.post("/inference/v1/generate", { token_ids: [5, 6], sampling_params: params })
  const { token_ids, finish_reason } = whole.json.choices[0]
  expect([token_ids.slice(0, 3), finish_reason]).toEqual([[40, 41, 42], "stop"])
  const events = await server.events("/inference/v1/generate", { token_ids: [5, 6], sampling_params: params })
  const chunks = events.slice(0, -1).map((event) => event.json.choices[0])
  expect(chunks.flatMap((chunk) => chunk.token_ids)).toEqual(token_ids)

  const long = { extra_args: { mock_tokens: new Array(100_000).fill(40) } }
  const running = server.post("/inference/v1/generate", { token_ids: [5], sampling_params: long, request_id: "x" })
  await engine.until(() => engine.live.length === 1)
  await server.post("/inference/v1/abort_requests", { request_ids: ["generate-tokens-x"] })
  expect((await running).json.choices[0].finish_reason).toBe("abort")
  await engine.until(() => engine.aborted.length === 1)
  expect(engine.live).toEqual([])
}, 30_000)
