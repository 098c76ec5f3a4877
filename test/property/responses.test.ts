/**
 * Random replies through /v1/responses: whatever the model writes, however its tokens come and wherever they stop, the
 * stream keeps to its grammar, and its end is the reply that is not streamed.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { responsesExtensions } from "../../src/config"
import { seededRandom } from "../support/random"
import { checkResponseStream, withoutChance } from "../support/response-grammar"
import { startTestServer, type TestServer } from "../support/test-server"

const path = "/v1/responses"
const seeds = 400

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({
    config: { responsesExtensions, enablePerRequestMetrics: true },
    simulator: { restartMs: 0 },
  })
})
afterAll(() => server.stop())

/** A case: what is asked, and what the model writes. */
interface Case {
  readonly body: { readonly [field: string]: unknown }
  readonly breaks: boolean
}

const words = [
  "Hello",
  " world",
  "\n",
  "  ",
  "🎉",
  "é",
  "👩‍👩‍👧",
  "ab STOP cd",
  "<",
  "</",
  "\\u00e9",
  '"',
  "{",
  "\u2028",
  "日本",
]
const names = ["look", "crm__find", "run", "unknown"]

function randomCase(seed: number): Case {
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const oneOf = <Value>(values: readonly Value[]): Value => values[below(values.length)]!
  const chance = (share: number): boolean => random() < share
  const some = (): string => Array.from({ length: 1 + below(5) }, () => oneOf(words)).join("")

  let text = ""
  for (let parts = below(6); parts > 0; parts--) {
    const kind = below(3)
    if (kind === 0) text += `<think>\n${some()}\n</think>\n\n`
    else if (kind === 1) text += some()
    else {
      const name = oneOf(names)
      const given =
        name === "run" && chance(0.8) ? { input: some() } : chance(0.3) ? {} : { at: some(), deep: [1, { x: null }] }
      text += `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>${chance(0.3) ? "\n" : ""}`
    }
  }
  if (chance(0.1)) text = text.slice(0, below(text.length + 1))

  const fails = chance(0.25)
  const xargs: { [key: string]: unknown } = {
    sim_text: text,
    sim_tokens_per_step: chance(0.3) ? 1 : [...Array.from({ length: below(6) }, () => below(5)), 1 + below(9)],
    sim_cached_tokens: below(9),
    sim_cache_write_tokens: below(9),
  }
  if (fails) {
    xargs.sim_fail_after_tokens = below(40)
    xargs.sim_error = oneOf(["disconnect", "retryable", "validation"])
  } else xargs.sim_finish = oneOf(["stop", "stop", "stop", "length", "repetition", "abort", "error"])
  const body: { [field: string]: unknown } = {
    input: "Hi",
    vllm_xargs: xargs,
    tools: [
      { type: "function", name: "look", parameters: { type: "object" } },
      { type: "namespace", name: "crm", description: "", tools: [{ type: "function", name: "find" }] },
      { type: "custom", name: "run" },
    ],
  }
  if (chance(0.3)) body.max_output_tokens = 1 + below(30)
  if (chance(0.2)) body.stop = ["STOP", "\n"].slice(below(2))
  if (chance(0.2)) body.include_reasoning = false
  if (chance(0.2)) body.parallel_tool_calls = false
  if (chance(0.1)) body.tool_choice = "none"
  if (chance(0.2)) body.stream_interval = 1 + below(4)
  if (chance(0.3)) {
    body.include = ["message.output_text.logprobs"]
    body.top_logprobs = below(3)
  }
  return { body, breaks: fails || xargs.sim_finish === "error" }
}

test.each(Array.from({ length: seeds / 50 }, (_, index) => index * 50))("50 replies from seed %d on", async (first) => {
  for (let seed = first; seed < first + 50; seed++) {
    const { body, breaks } = randomCase(seed)
    const events = await server.events(path, body)
    const whole = await server.post(path, body)
    try {
      const { response, ending } = checkResponseStream(events)
      const types = events.map(({ event }) => event).join()
      if (body.include_reasoning === false) expect(types).not.toContain("reasoning")
      const calls = response.output.filter((item: { type: string }) => item.type.endsWith("_call"))
      if (body.parallel_tool_calls === false) expect(calls.length).toBeLessThanOrEqual(1)
      if (body.tool_choice === "none") expect(calls).toEqual([])
      if (!breaks || whole.status === 200) {
        expect(whole.status).toBe(200)
        expect(ending).not.toBe("failed")
        expect(JSON.stringify(withoutChance(response))).toBe(JSON.stringify(withoutChance(whole.json)))
      } else {
        expect(ending).toBe("failed")
        expect([400, 500, 503]).toContain(whole.status)
      }
    } catch (error) {
      throw new Error(`seed ${seed}: ${JSON.stringify(body)}`, { cause: error })
    }
  }
})
