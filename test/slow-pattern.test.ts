/** A model whose split pattern has no scanner of its own: texts that it takes too many steps for are refused over HTTP. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Server, startServer } from "./support/server-process"
import { byteLevelTokenizer } from "./tokenizer/small-tokenizers"

const folder = mkdtempSync(join(tmpdir(), "sluice-slow-pattern-"))
let server: Server

beforeAll(async () => {
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false }
  // Each `a` more doubles the ways to match none.
  const split = { type: "Split", pattern: { Regex: "(?:a+)+b|." }, behavior: "Isolated", invert: false }
  const pre_tokenizer = { type: "Sequence", pretokenizers: [split, bytes] }
  write("tokenizer.json", { ...byteLevelTokenizer().json, pre_tokenizer })
  write("tokenizer_config.json", { chat_template: "{% for m in messages %}{{ m.content }}{% endfor %}" })
  const config = { architectures: ["Qwen2ForCausalLM"], model_type: "qwen2", max_position_embeddings: 32_768 }
  write("config.json", { ...config, eos_token_id: 0 })
  server = await startServer(folder, "--engine", "simulator", "--served-model-name", "slow")
}, 30_000)
afterAll(async () => {
  await server?.end()
  rmSync(folder, { recursive: true })
})

test("a hostile text is a 400 that says why on every route that encodes, and the next text is served", async () => {
  const hostile = "a".repeat(4_000)
  const bodies: [string, (text: string) => object][] = [
    ["/v1/completions", (prompt) => ({ prompt, max_tokens: 1 })],
    ["/v1/chat/completions", (content) => ({ messages: [{ role: "user", content }], max_tokens: 1 })],
    ["/v1/responses", (input) => ({ input, max_output_tokens: 16 })],
    ["/tokenize", (prompt) => ({ prompt })],
  ]
  for (const [path, body] of bodies) {
    const refused = await post(path, body(hostile))
    expect([path, refused.status, await refused.json()]).toEqual([
      path,
      400,
      {
        error: {
          message: "the text takes too many steps to split by this model's pattern",
          type: "BadRequestError",
          param: null,
          code: 400,
        },
      },
    ])
    expect([path, (await post(path, body("ab"))).status]).toEqual([path, 200])
  }
}, 20_000)

function write(name: string, content: object): void {
  writeFileSync(join(folder, name), JSON.stringify(content))
}

function post(path: string, body: object): Promise<Response> {
  return fetch(`${server.origin}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "slow", ...body }),
  })
}
