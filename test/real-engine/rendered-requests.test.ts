/** What is rendered here is read by vLLM's own server: by its classes, without an engine. */
import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { startTestRenderer } from "../support/test-renderer"
import type { Loose } from "../support/transcripts"
import { engineEnvironment, missingRealEngine, python } from "./installation"

const messages = [{ role: "user", content: "hi é" }]
const parameters = { type: "object", properties: { a: { type: "string" } } }
const tools = [{ type: "function", function: { name: "f", parameters } }]
const chats: readonly object[] = [
  {},
  { stream: true, stream_options: { include_usage: true } },
  { tools },
  { tools, tool_choice: "required" },
  { tools, tool_choice: { type: "function", function: { name: "f" } } },
  { response_format: { type: "json_object" } },
  { response_format: { type: "json_schema", json_schema: { name: "x", schema: parameters } } },
  { structured_outputs: { choice: ["a", "b"] } },
  { structured_outputs: { regex: "a+" } },
  { logprobs: true, top_logprobs: 2, prompt_logprobs: 1, return_token_ids: true, return_token_offsets: true },
  { temperature: 0.25, top_p: 0.5, top_k: 5, min_p: 0.125, presence_penalty: 1, frequency_penalty: -1 },
  { repetition_penalty: 1.5, seed: 2 ** 52, ignore_eos: true, min_tokens: 3, max_tokens: 9, n: 3 },
  { stop: ["a"], stop_token_ids: [5], include_stop_str_in_output: true, bad_words: ["q"], allowed_token_ids: [1, 2] },
  { skip_special_tokens: false, spaces_between_special_tokens: false },
  { cache_salt: "s", priority: -3, vllm_xargs: { z: 1 } },
  { kv_transfer_params: { a: 1 }, ec_transfer_params: { b: [2] } },
  { thinking_token_budget: 5, reasoning_effort: "low" },
  { repetition_detection: { max_pattern_size: 3, min_pattern_size: 1, min_count: 2 } },
]

/** What vLLM makes of requests. */
async function readByVllm(requests: readonly object[]): Promise<Loose[]> {
  const child = Bun.spawn([python, "-B", join(import.meta.dir, "read_generate_requests.py")], {
    env: engineEnvironment(),
    stdin: new Blob([JSON.stringify(requests)]),
    stderr: "pipe",
  })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(errors)
  return JSON.parse(out.trimEnd().split("\n").at(-1)!)
}

const reason = missingRealEngine()
// Bun reports the hooks of a skipped group as tests without a name, so the group is not declared at all.
if (reason !== null) test.skip("vLLM reads what is rendered", () => {})
else {
  describe("vLLM reads what is rendered", () => {
    test("and every value of it is what was written", async () => {
      const renderer = await startTestRenderer()
      const made: Loose[] = []
      const render = async (path: string, body: object): Promise<void> => {
        const { status, json, text } = await renderer.post(`${path}/render`, body)
        if (status !== 200) throw new Error(text)
        made.push(...(Array.isArray(json) ? json : [json]))
      }
      for (const chat of chats) await render("/v1/chat/completions", { messages, ...chat })
      await render("/v1/completions", { prompt: ["a", "b"], logprobs: 2, max_tokens: 4 })
      await render("/v1/responses", {
        input: "hi",
        tools: [{ type: "function", name: "f", parameters }],
        tool_choice: "required",
      })
      await renderer.stop()
      const read = await readByVllm(made)
      const told = made.map(({ request_id, token_ids, stream, sampling_params, ...rest }) => {
        const { cache_salt, priority, kv_transfer_params, ec_transfer_params } = rest
        const shared = { request_id, token_ids, stream, cache_salt, priority, kv_transfer_params, ec_transfer_params }
        return { ...shared, sampling_params }
      })
      expect(read).toEqual(told)
    }, 180_000)
  })
}
