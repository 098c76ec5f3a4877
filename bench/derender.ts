/**
 * Derendering a stream chunk by chunk, one token each, over HTTP: milliseconds a chunk in each quarter of the stream, where
 * the server keeps the replay that gave the state, and where it replays everything before each chunk.
 *
 *     npx bun --no-install bench/derender.ts [--check]
 *
 * Both must give the same text. The client is in the same process: what it does with the growing state is in the figures.
 */
import { cpus } from "node:os"
import { defaultConfig } from "../src/config"
import { startTestRenderer } from "../test/support/test-renderer"
import type { TestServer } from "../test/support/test-server"

const isCheck = Bun.argv.includes("--check")
const lengths = isCheck ? [40] : [1_000, 4_000]
const sentence = "The quick brown fox thinks about 42 things, é and 日本. "

/** An API by its path: its request, and the text that one answer adds. */
interface Api {
  readonly request: object
  // biome-ignore lint/suspicious/noExplicitAny: two shapes of JSON; a wrong path gives another text, which is checked
  readonly textOf: (reply: any) => string
}
const apis: { readonly [path: string]: Api } = {
  "/v1/chat/completions": {
    request: { chat_request: { messages: [{ role: "user", content: "Hi" }] } },
    textOf: ({ chunk }) => {
      const { reasoning, content } = chunk.choices[0]?.delta ?? {}
      return (reasoning ?? "") + (content ?? "")
    },
  },
  "/v1/responses": {
    request: { responses_request: { input: "Hi" } },
    textOf: ({ events }) => events.map((event: { delta?: string }) => event.delta ?? "").join(""),
  },
}

interface Run {
  /** Milliseconds a chunk, by quarter. */
  readonly quarters: readonly number[]
  readonly text: string
}

async function run(server: TestServer, path: string, ids: readonly number[]): Promise<Run> {
  const { request, textOf } = apis[path]!
  const quarters: number[] = []
  let text = ""
  let state: unknown = null
  let startedAt = performance.now()
  for (const [i, id] of ids.entries()) {
    const finish_reason = i === ids.length - 1 ? "length" : null
    const generate_chunk = { request_id: "generate-tokens-x", choices: [{ index: 0, token_ids: [id], finish_reason }] }
    const body = { stream: true, ...request, generate_chunk, stream_state: state, prompt_token_ids: [1, 2, 3] }
    const { json, status, text: raw } = await server.post(`${path}/derender`, body)
    if (status !== 200) throw new Error(raw)
    state = json.stream_state
    text += textOf(json)
    if ((i + 1) % (ids.length / 4) !== 0) continue
    const now = performance.now()
    quarters.push((now - startedAt) / (ids.length / 4))
    startedAt = now
  }
  return { quarters, text }
}

const withLimit = (keptDerenderTokensMax: number): Promise<TestServer> =>
  startTestRenderer({ config: { limits: { ...defaultConfig.limits, keptDerenderTokensMax } } })

const keeping = await withLimit(defaultConfig.limits.keptDerenderTokensMax)
const replaying = await withLimit(0)
const longest = lengths.at(-1)!
const prompt = `<think>\n${sentence.repeat(longest / 20)}</think>\n\n${sentence.repeat(longest / 10)}`
const tokens: number[] = (await keeping.post("/tokenize", { prompt })).json.tokens

console.log(
  `Bun ${Bun.version}, ${cpus().length} × ${cpus()[0]?.model ?? "unknown CPU"}; ms a chunk, by quarter of the stream`,
)
for (const path of Object.keys(apis)) {
  for (const length of lengths) {
    const ids = tokens.slice(0, length)
    const kept = await run(keeping, path, ids)
    const replayed = await run(replaying, path, ids)
    if (kept.text === "" || kept.text !== replayed.text) throw new Error(`${path}: the texts differ`)
    for (const [name, { quarters }] of [
      ["kept", kept],
      ["replayed", replayed],
    ] as const) {
      const shown = quarters.map((ms) => ms.toFixed(2).padStart(6)).join(" ")
      const seconds = (quarters.reduce((sum, ms) => sum + ms, 0) * ids.length) / 4_000
      console.log(
        `${path.padEnd(22)} ${String(length).padStart(5)} tokens ${name.padEnd(9)} ${shown}   ${seconds.toFixed(1)} s`,
      )
    }
  }
}
await keeping.stop()
await replaying.stop()
