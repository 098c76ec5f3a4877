/**
 * Streams at the pace of a model: time to the first token's event and between events, and what the server spends, at
 * several numbers of streams. Ours with the simulator and with a vLLM engine, beside bare Bun that writes ready-made
 * events (the floor), and vLLM's Rust front end on the same engine.
 *
 *     npx bun --no-install bench/latency.ts [--vllm-rs PATH] [--streams 1,32] [--step-ms 10] [--repeats 3] [--check]
 *
 * The engine is the stand-in of ../shared/engine/mock-engine; without it there are only the simulator and the floor.
 * Every reply is checked. The servers take turns, run by run, so that the machine's moods meet all of them.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { freePorts } from "../test/support/free-ports"
import { buildMockEngine, MockEngine } from "../test/support/mock-engine"
import { makeQwen3Folder } from "../test/support/qwen3-folder"
import { type Server, startProcess, startServerUnder } from "../test/support/server-process"
import type { PacedLoad, PacedPlan } from "./support/paced-load"
import { loadPrefix, pinned, serverPrefix } from "./support/placement"
import { proseScript } from "./support/prose-script"

const { values } = parseArgs({
  args: Bun.argv.slice(2),
  options: {
    check: { type: "boolean", default: false },
    "vllm-rs": { type: "string" },
    streams: { type: "string" },
    "step-ms": { type: "string", default: "10" },
    tokens: { type: "string" },
    repeats: { type: "string" },
  },
})
const stepMs = Number(values["step-ms"])
const streamCounts = (values.streams ?? (values.check ? "1,8" : "1,32,128,512")).split(",").map(Number)
const tokens = Number(values.tokens ?? (values.check ? 20 : 256))
const repeats = Number(values.repeats ?? (values.check ? 1 : 3))

/** A server under test, and the field of a request's `vllm_xargs` that tells its engine what to generate. */
interface Subject {
  readonly title: string
  readonly server: Server
  readonly scriptField: "sim_token_ids" | "mock_tokens"
  readonly text: string
}

interface Measured {
  readonly load: PacedLoad
  /** Processor seconds a million tokens; NaN where there is no /proc. */
  readonly cpuSeconds: number
}

await using running = new AsyncDisposableStack()

const folder = makeQwen3Folder()
running.defer(() => rmSync(folder, { recursive: true }))
const subjects = await startAll()
const script = await proseScript(subjects[1]!.server, tokens - 1)
console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores, ${process.platform} ${process.arch}; Bun ` +
    `${Bun.version}; ${pinned ? "server on core 0, load and engine on core 1" : "not pinned"}; chat, ${tokens} tokens a ` +
    `reply, one each ${stepMs} ms; ${repeats} runs, medians; times in ms`,
)
const columns = [7, 24, 24, 24, 10, 16, 16]
print([
  "streams",
  "server",
  "first token p50/p99/max",
  "gap p50/p99/max",
  "events",
  "CPU s/M tokens",
  "above the floor",
])
// Warm code, warm caches.
if (!values.check) for (const subject of subjects) await measure(subject, 128)
for (const streams of streamCounts) {
  const runs = new Map<Subject, Measured[]>(subjects.map((subject) => [subject, []]))
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const subject of subjects) runs.get(subject)!.push(await measure(subject, streams))
  }
  const floor = median(runs.get(subjects[0]!)!.map(({ cpuSeconds }) => cpuSeconds))
  for (const [subject, measured] of runs) printRow(streams, subject.title, measured, floor)
}

/** The floor, the simulator, and where there is an engine, ours and the other front end on it. */
async function startAll(): Promise<Subject[]> {
  const floorText = " kettle"
  const started: Subject[] = []
  const add = (title: string, server: Server, scriptField: Subject["scriptField"], text = "") => {
    running.defer(async () => void (await server.end()))
    started.push({ title, server, scriptField, text })
  }
  const floorCommand = [process.execPath, "--no-install", join(import.meta.dir, "support/floor-server.ts")]
  const floorArguments = [String(stepMs), String(tokens - 1), floorText]
  const floor = await startProcess([...serverPrefix, ...floorCommand, ...floorArguments])
  add("floor (bare Bun)", floor, "sim_token_ids", floorText.repeat(tokens - 1))
  const paced = [
    "--engine",
    "simulator",
    "--sim-step-ms",
    String(stepMs),
    "--sim-prefill-ms",
    "0",
    "--sim-max-num-seqs",
    "1024",
  ]
  add(
    "ours, simulator",
    await startServerUnder(serverPrefix, [folder, "--engine", "simulator", ...paced]),
    "sim_token_ids",
  )

  const program = buildMockEngine()
  if (!program.ok) {
    console.log(`no rows with an engine: ${program.error}`)
    return started
  }
  const engine = (port: number) => {
    const pace = ["--step-ms", String(stepMs), "--max-num-seqs", "1024", "--max-model-len", "40960"]
    running.use(MockEngine.start(program.value, `tcp://127.0.0.1:${port}`, pace, false, loadPrefix))
  }
  const shared = (port: number) => ["--data-parallel-size-local", "0", "--data-parallel-rpc-port", String(port)]
  const ourPort = freePorts(3)
  const ours = await startServerUnder(serverPrefix, [folder, "--engine", "vllm", ...shared(ourPort)])
  add("ours, vLLM engine", ours, "mock_tokens")
  engine(ourPort)
  await healthy(ours)
  const other = values["vllm-rs"]
  if (other === undefined) return started
  const port = freePorts(2)
  const theirPort = port + 1
  const command = [other, "serve", folder, "--port", String(port), "--data-parallel-size", "1", ...shared(theirPort)]
  const theirs = await startProcess([...serverPrefix, ...command], `http://127.0.0.1:${port}`)
  engine(theirPort)
  add("vllm-rs, vLLM engine", theirs, "mock_tokens")
  await healthy(theirs)
  return started
}

async function healthy({ origin }: Server): Promise<void> {
  for (let left = 600; left > 0; left--) {
    const status = await fetch(`${origin}/health`).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return
    await Bun.sleep(100)
  }
  throw new Error(`${origin} does not become healthy`)
}

async function measure(subject: Subject, streams: number): Promise<Measured> {
  const { server } = subject
  const plan: PacedPlan = {
    origin: server.origin,
    body: JSON.stringify({
      messages: [{ role: "user", content: "Say what you have to say." }],
      max_completion_tokens: tokens,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
      vllm_xargs: { [subject.scriptField]: script.tokenIds },
    }),
    streams,
    spreadMs: Math.min(500, streams * stepMs),
    expectedText: subject.text === "" ? script.text : subject.text,
    tokensPerRequest: tokens,
  }
  const before = cpuNs(server.pid)
  const command = [...loadPrefix, process.execPath, "--no-install", join(import.meta.dir, "support/paced-load.ts")]
  const child = Bun.spawn([...command, JSON.stringify(plan)], { stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  const out = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`${subject.title}: the load of ${streams} streams failed`)
  return { load: JSON.parse(out), cpuSeconds: (cpuNs(server.pid) - before) / 1_000 / (streams * tokens) }
}

/** What all threads of a process have used, NaN where the kernel does not tell. */
function cpuNs(pid: number): number {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`)
    return tasks.reduce(
      (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]),
      0,
    )
  } catch {
    return Number.NaN
  }
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!
}

function print(cells: readonly string[]): void {
  console.log(cells.map((cell, at) => cell.padStart(columns[at]!)).join("  "))
}

function printRow(streams: number, title: string, runs: readonly Measured[], floor: number): void {
  const times = (of: (load: PacedLoad) => readonly number[]) =>
    [0, 1, 2].map((at) => median(runs.map(({ load }) => of(load)[at]!)).toFixed(2)).join(" / ")
  const cpu = median(runs.map(({ cpuSeconds }) => cpuSeconds))
  print([
    ...[String(streams), title, times(({ firstMs }) => firstMs), times(({ gapMs }) => gapMs)],
    ...[String(runs[0]!.load.events), cpu.toFixed(1), (cpu / floor).toFixed(2)],
  ])
}
