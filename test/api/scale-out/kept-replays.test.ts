/** Derendered streams that go on where they stand: what is kept changes what a chunk costs, and nothing of its answer. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test"
import { Replay } from "../../../src/api/scale-out/replay"
import { defaultConfig } from "../../../src/config"
import { startTestRenderers } from "../../support/test-renderer"
import type { TestServer } from "../../support/test-server"

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
type Loose = any

const withLimit = (keptDerenderTokensMax: number) => ({ limits: { ...defaultConfig.limits, keptDerenderTokensMax } })

let servers: TestServer[] = []
let keeping: TestServer
let replaying: TestServer
let forgetful: TestServer
let tokens: number[]
beforeAll(async () => {
  // With 300, one short stream has room, and a second pushes it out.
  servers = await startTestRenderers(withLimit(1_000_000), withLimit(0), withLimit(300))
  keeping = servers[0]!
  replaying = servers[1]!
  forgetful = servers[2]!
  const text =
    'Hm.</think>\n\nAn é 🎉 of it.\n<tool_call>\n{"name": "look", "arguments": {"a": [1, 2.50]}}\n</tool_call>'
  tokens = (await keeping.post("/tokenize", { prompt: `<think>\n${text}` })).json.tokens
})
afterAll(async () => {
  for (const server of servers) await server.stop()
})

const parameters = { type: "object", properties: { a: {} } }
const tools = [{ type: "function", function: { name: "look", parameters } }]
const requests = {
  "/v1/chat/completions": {
    chat_request: { messages: [{ role: "user", content: "hi" }], tools, stream: true, logprobs: true },
  },
  "/v1/completions": { completion_request: { prompt: "hi", stream: true } },
  "/v1/responses": { responses_request: { input: "hi", tools: [{ type: "function", name: "look", parameters }] } },
} as const
const paths = Object.keys(requests) as (keyof typeof requests)[]

/** Chunk number `i` of the stream; the last one is of counts alone. */
function chunkOf(i: number): object {
  const usage = { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } }
  if (i === tokens.length) return { request_id: "generate-tokens-chatcmpl-s", choices: [], usage }
  const finish_reason = i === tokens.length - 1 ? "length" : null
  const logprobs = { content: [{ token_id: tokens[i], logprob: -0.5, rank: 1, top_logprobs: [] }] }
  return {
    request_id: "generate-tokens-chatcmpl-s",
    choices: [{ index: 0, token_ids: [tokens[i]], finish_reason, logprobs }],
  }
}

async function send(server: TestServer, path: keyof typeof requests, i: number, state: Loose, extra: object = {}) {
  const body = { stream: true, ...requests[path], generate_chunk: chunkOf(i), stream_state: state, ...extra }
  const reply = await server.post(`${path}/derender`, { prompt_token_ids: [1, 2, 3], ...body })
  if (reply.status !== 200) throw new Error(reply.text)
  return reply.json
}

/** All answers but the first, behind which every server is told the same time. */
async function run(server: TestServer, path: keyof typeof requests): Promise<Loose[]> {
  const first = await send(server, path, 0, null)
  const replies: Loose[] = []
  let state = { ...first.stream_state, created: 1 }
  for (let i = 1; i <= tokens.length; i++) {
    const reply = await send(server, path, i, state)
    state = reply.stream_state
    replies.push(reply)
  }
  return replies
}

describe("a kept stream", () => {
  for (const path of paths) {
    test(`says what a replayed one says: ${path}`, async () => {
      const whole = await run(replaying, path)
      expect(await run(keeping, path)).toEqual(whole)
      const both = await Promise.all([run(forgetful, path), run(forgetful, path)])
      expect(both).toEqual([whole, whole])
    })
  }

  test("costs each chunk its own tokens", async () => {
    for (const [server, isKept] of [
      [keeping, true],
      [replaying, false],
    ] as const) {
      const step = spyOn(Replay.prototype, "step")
      let state: Loose = null
      for (let i = 0; i < tokens.length; i++) {
        state = (await send(server, "/v1/chat/completions", i, state)).stream_state
      }
      const n = tokens.length
      expect(step.mock.calls.length).toBe(isKept ? n : (n * (n + 1)) / 2)
      step.mockRestore()
    }
  })

  test("makes room for others: streams that take turns push each other out", async () => {
    const steps = async (server: TestServer): Promise<number> => {
      const step = spyOn(Replay.prototype, "step")
      const states: Loose[] = [null, null]
      for (let i = 0; i < tokens.length; i++) {
        for (const [stream, state] of states.entries()) {
          const told = { prompt_token_ids: [1, 2, 3 + stream] }
          states[stream] = (await send(server, "/v1/chat/completions", i, state, told)).stream_state
        }
      }
      const count = step.mock.calls.length
      step.mockRestore()
      return count
    }
    expect(await steps(keeping)).toBe(2 * tokens.length)
    expect(await steps(forgetful)).toBeGreaterThan(3 * tokens.length)
  })

  test("answers a chunk that comes twice twice, and an older state as it stood", async () => {
    const path = "/v1/responses"
    const states: Loose[] = [null]
    for (let i = 0; i < 12; i++) states.push((await send(keeping, path, i, states[i])).stream_state)
    const again = await send(keeping, path, 11, states[11])
    expect(await send(keeping, path, 11, states[11])).toEqual(again)
    expect(again).toEqual(await send(replaying, path, 11, states[11]))
    expect(await send(keeping, path, 5, states[5])).toEqual(await send(replaying, path, 5, states[5]))
  })

  test("is another's where request, prompt, model or state are not the same", async () => {
    const path = "/v1/chat/completions"
    const states: Loose[] = [null]
    const n = tokens.length - 1
    for (let i = 0; i < n; i++) states.push((await send(keeping, path, i, states[i])).stream_state)
    const { chat_request } = requests[path]
    const state = states[n]
    const ids = state.output_token_ids
    for (const [extra, changed] of [
      [{ chat_request: { ...chat_request, tool_choice: "none" } }, {}],
      [{ chat_request: { ...chat_request, include_reasoning: false } }, {}],
      [{ prompt_token_ids: [1, 2, 4] }, {}],
      [{ model: "sluice-simulator" }, {}],
      [{ generate_chunk: { ...chunkOf(n), request_id: "t" } }, { request_id: "t" }],
      [{}, { created: 2 }],
      [{}, { output_token_ids: [...ids.slice(1), ids[0]] }],
      [{}, { output_chunk_lens: [2, 0, ...state.output_chunk_lens.slice(2)] }],
    ] as const) {
      // Kept again before each try: a look at it takes it.
      await send(keeping, path, n - 1, states[n - 1])
      const changedState = { ...state, ...changed }
      const answers = [keeping, replaying].map((server) => send(server, path, n, changedState, extra))
      const [ours, theirs] = await Promise.all(answers)
      expect([extra, ours]).toEqual([extra, theirs])
    }
  })
})
