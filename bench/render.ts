/**
 * What rendering costs: chat requests to `sluice render`, prompts of 1 KB and 32 KB of ordinary text, each request another
 * piece of it; in turns with a bare server that only answers with as many bytes (the floor), and with vLLM's Rust renderer.
 *
 *     npx bun --no-install bench/render.ts --vllm-rs PATH      PATH: vllm-rs, started as `vllm-rs render FOLDER`
 *     npx bun --no-install bench/render.ts --check             small, as a test
 *
 * Servers share one core where that can be had, the load is on another. CPU is the server's own user and system time, all
 * threads, from /proc, once its code is compiled. Both renderers must give the same token ids.
 */
import { readFileSync, rmSync } from "node:fs"
import { parseArgs } from "node:util"
import { makeQwen3Folder } from "../test/support/qwen3-folder"
import { type Server, startProcess } from "../test/support/server-process"
import { serverPrefix } from "./support/placement"
import { sampleTexts, stretches } from "./support/sample-texts"

const { values } = parseArgs({
  args: Bun.argv.slice(2),
  options: { check: { type: "boolean", default: false }, "vllm-rs": { type: "string" }, repeats: { type: "string" } },
})
const repeats = Number(values.repeats ?? (values.check ? 1 : 9))
/** By the prompt's size in bytes: requests of one run, and those before, in which code is compiled. */
const sizes: readonly (readonly [bytes: number, requests: number, before: number])[] = values.check
  ? [
      [1_024, 8, 2],
      [32_768, 4, 1],
    ]
  : [
      [1_024, 3_000, 15_000],
      [32_768, 300, 1_500],
    ]
const connections = 4
const floorName = "floor"
/** A tick of /proc's counters. */
const tickMs = 10
/** A renderer that does not answer by then is broken. */
const readyMsMax = 60_000

interface Renderer extends Server {
  readonly name: string
}

interface Run {
  readonly seconds: number
  /** -1 where /proc is missing. */
  readonly cpuMs: number
}

async function main(): Promise<void> {
  const folder = makeQwen3Folder()
  const renderers: Renderer[] = []
  try {
    renderers.push(await sluice(folder), await floor())
    if (values["vllm-rs"] !== undefined) renderers.push(await vllmRs(values["vllm-rs"], folder))
    for (const [bytes, requests, before] of sizes) await row(renderers, bytes, requests, before)
  } finally {
    for (const renderer of renderers) await renderer.end()
    rmSync(folder, { recursive: true })
  }
}

async function sluice(folder: string): Promise<Renderer> {
  const command = [...serverPrefix, process.execPath, "--no-install", "src/main.ts", "render", folder, "--port", "0"]
  const started = await startProcess([...command, "--served-model-name", "m", "--disable-uvicorn-access-log"])
  return { name: "sluice", ...started }
}

async function floor(): Promise<Renderer> {
  const command = [...serverPrefix, process.execPath, "--no-install", "bench/support/answer-server.ts"]
  return { name: floorName, ...(await startProcess(command)) }
}

async function vllmRs(path: string, folder: string): Promise<Renderer> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  const origin = `http://127.0.0.1:${port}`
  const command = [...serverPrefix, path, "render", folder, "--port", `${port}`, "--served-model-name", "m"]
  const started = await startProcess(command, origin)
  const deadline = performance.now() + readyMsMax
  while (
    !(await fetch(`${origin}/health`)
      .then((reply) => reply.ok)
      .catch(() => false))
  ) {
    if (performance.now() > deadline) throw new Error("vllm-rs render was not ready in time")
    await Bun.sleep(100)
  }
  return { name: "vllm-rs", ...started }
}

async function row(renderers: readonly Renderer[], bytes: number, requests: number, before: number): Promise<void> {
  const bodies = bodiesOf(bytes, Math.min(requests, 200))
  const [ours] = renderers
  const answer = await (await post(ours!, bodies[0]!)).text()
  await fetch(renderers.find(({ name }) => name === floorName)!.origin, { method: "PUT", body: answer })
  const answers = await Promise.all(renderers.map((renderer) => tokenIds(renderer, bodies[0]!)))
  for (const answer of answers) {
    if (answer.length === 0 || answer.join() !== answers[0]!.join()) throw new Error("the renderers disagree")
  }
  for (const renderer of renderers) await run(renderer, bodies, before)
  const runs = new Map<Renderer, Run[]>(renderers.map((renderer) => [renderer, []]))
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const renderer of renderers) runs.get(renderer)!.push(await run(renderer, bodies, requests))
  }
  for (const [renderer, measured] of runs) {
    const rate = median(measured.map(({ seconds }) => requests / seconds))
    const cpu = median(measured.map(({ cpuMs }) => cpuMs / requests))
    const ratio = median(measured.map((each, i) => each.cpuMs / runs.get(ours!)![i]!.cpuMs))
    console.log(
      `${String(bytes).padStart(6)} bytes, ${String(answers[0]!.length).padStart(5)} tokens  ${renderer.name.padEnd(8)}` +
        ` ${rate.toFixed(0).padStart(6)} requests/s  ${cpu.toFixed(3).padStart(8)} CPU ms a request` +
        (renderer === ours ? "" : `  ${ratio.toFixed(2)} × ours`),
    )
  }
}

/** Bodies with different pieces of English. */
function bodiesOf(bytes: number, count: number): string[] {
  const text = sampleTexts(1_000_000).texts.get("english")!
  return stretches(text, bytes, count).map((content) =>
    JSON.stringify({ model: "m", messages: [{ role: "user", content }] }),
  )
}

async function run(renderer: Renderer, bodies: readonly string[], requests: number): Promise<Run> {
  const before = cpuMs(renderer.pid)
  const start = performance.now()
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < requests) {
      const reply = await post(renderer, bodies[next++ % bodies.length]!)
      if (!reply.ok) throw new Error(`${renderer.name}: ${reply.status} ${await reply.text()}`)
      await reply.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  const seconds = (performance.now() - start) / 1_000
  const after = cpuMs(renderer.pid)
  return { seconds, cpuMs: before === null || after === null ? -1 : after - before }
}

async function tokenIds(renderer: Renderer, body: string): Promise<readonly number[]> {
  const { token_ids } = (await (await post(renderer, body)).json()) as { token_ids: number[] }
  return token_ids
}

function post(renderer: Renderer, body: string): Promise<Response> {
  const headers = { "content-type": "application/json" }
  return fetch(`${renderer.origin}/v1/chat/completions/render`, { method: "POST", headers, body })
}

/** Processor time of a process and its threads so far; null where /proc is missing. */
function cpuMs(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return null
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

await main()
