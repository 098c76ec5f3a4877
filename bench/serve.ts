/**
 * What serving costs: streaming and plain chat and responses against the simulator engine, through real sockets.
 *
 *     npm run bench                     all rows, three repeats
 *     npm run bench -- --repeats 5 --connections 64 --api responses --step-ms 10
 *     npm run bench -- --engine mock    the engine in a process of its own, over the engine link
 *     npm run bench -- --engine mock --vllm-rs PATH --vllm PATH    vLLM's front ends, the one in Rust and the one in
 *                                       Python (the `vllm` command), in turns with ours
 *     npm run bench -- --check          a small run of each row, as a test
 *
 * The server is a child process, and so is the mock engine (`--mock-engine PATH`); the load comes from another one
 * (bench/support/load.ts). Processor time is the server's own, from /proc, so the columns that need it are empty elsewhere
 * than on Linux. Every answer is checked in the run.
 */
import { readFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { buildMockEngine } from "../test/support/mock-engine"
import { type Server, startServerUnder } from "../test/support/server-process"
import { benchModel, type Load, type Plan } from "./support/load"
import { mockServers } from "./support/mock-servers"
import { optionsOf } from "./support/options"
import { loadPrefix, pinned, serverPrefix } from "./support/placement"
import { proseScript, type Script } from "./support/prose-script"

const options = optionsOf(Bun.argv.slice(2))

/** Seconds in one tick of /proc's counters; the kernel's interface fixes it at a hundredth. */
const tickMs = 10

/** One line of the table. */
interface Row {
  readonly api: "chat" | "responses"
  readonly stream: boolean
  readonly connections: number
}

interface Measured {
  readonly load: Load
  /** The server's processor time, -1 where /proc is missing. */
  readonly serverCpuMs: number
}

async function main(): Promise<void> {
  printConditions()
  const servers: Competitor[] = []
  try {
    if (options.engine === "simulator")
      servers.push({ name: "sluice", ...(await simulated()), scriptField: "sim_token_ids" })
    else {
      const start = await mockServers(serverPrefix, loadPrefix, mockEngine(), options.stepMs)
      servers.push({ name: "sluice", ...(await start.sluice()), scriptField: "mock_tokens" })
      for (const { name, path } of options.peers) {
        servers.push({ name, ...(await start.peer(path)), scriptField: "mock_tokens" })
      }
    }
    await runRows(servers)
  } finally {
    for (const server of servers) await server.end()
  }
}

function mockEngine(): string {
  if (options.mockEngine !== null) return options.mockEngine
  const built = buildMockEngine()
  if (!built.ok) throw new Error(`no mock engine: ${built.error}; say where one is by --mock-engine`)
  return built.value
}

/** A server in the run, and the field by which its engine takes a script. */
interface Competitor extends Server {
  readonly name: string
  readonly scriptField: string
}

function simulated(): Promise<Server> {
  const pace = ["--sim-step-ms", String(options.stepMs), "--sim-prefill-ms", "0", "--sim-max-num-seqs", "256"]
  return startServerUnder(serverPrefix, ["--served-model-name", benchModel, ...pace])
}

async function runRows(servers: readonly Competitor[]): Promise<void> {
  const [ours] = servers
  const script = await proseScript(ours!, options.tokens - 1)
  for (const server of servers) {
    // Warm code, warm caches.
    await measure(server, { api: "chat", stream: true, connections: 8 }, script, options.stepMs > 0 ? 32 : 512)
  }
  printHead()
  for (const connections of options.connections) {
    for (const stream of [true, false]) {
      for (const api of options.apis) {
        const row: Row = { api, stream, connections }
        const runs = new Map<Competitor, Measured[]>(servers.map((server) => [server, []]))
        for (let repeat = 0; repeat < options.repeats; repeat++) {
          for (const server of servers) {
            runs.get(server)!.push(await measure(server, row, script, Math.max(options.requests, connections)))
          }
        }
        for (const [server, measured] of runs) printRow(server.name, row, measured)
      }
    }
  }
}

async function measure(server: Competitor, row: Row, script: Script, requests: number): Promise<Measured> {
  const plan: Plan = {
    origin: server.origin,
    scriptField: server.scriptField,
    ...row,
    requests,
    tokensPerRequest: script.tokenIds.length + 1,
    scriptTokenIds: script.tokenIds,
    expectedText: script.text,
  }
  const before = cpuMs(server.pid)
  const command = [...loadPrefix, process.execPath, "--no-install", join(import.meta.dir, "support/load.ts")]
  const child = Bun.spawn([...command, JSON.stringify(plan)], { stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  const out = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`the load for ${JSON.stringify(row)} failed`)
  const after = cpuMs(server.pid)
  return { load: JSON.parse(out), serverCpuMs: before === null || after === null ? -1 : after - before }
}

/** utime + stime of all threads of a process, or null where there is no /proc. */
function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The second field is the name in brackets and may hold spaces; utime and stime are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return null
  }
}

function printConditions(): void {
  const cpu = cpus()[0]?.model ?? "unknown processor"
  const where = pinned ? "server on core 0, load on core 1" : "not pinned"
  console.log(`${cpu}, ${cpus().length} cores, ${process.platform} ${process.arch}; Bun ${Bun.version}; ${where}`)
  console.log(
    `${options.tokens} tokens a request, one token a step, steps of ${options.stepMs} ms, ` +
      `${options.requests} requests a run, ${options.repeats} runs: median (lowest–highest)`,
  )
}

const columns = [
  { title: "server", width: 7 },
  { title: "api", width: 9 },
  { title: "mode", width: 6 },
  { title: "conns", width: 5 },
  { title: "tokens/s", width: 24 },
  { title: "events/s", width: 24 },
  { title: "server CPU µs/token", width: 20 },
  { title: "TTFT p50 ms", width: 18 },
  { title: "TTFT p99 ms", width: 18 },
  { title: "load CPU", width: 8 },
]

function printHead(): void {
  console.log(columns.map(({ title, width }) => title.padStart(width)).join("  "))
}

function printRow(name: string, row: Row, runs: readonly Measured[]): void {
  const of = (value: (run: Measured) => number, digits: number): string => {
    const sorted = runs.map(value).sort((a, b) => a - b)
    const show = (at: number) => sorted[at]!.toFixed(digits)
    const median = show(Math.floor(sorted.length / 2))
    return sorted.length === 1 ? median : `${median} (${show(0)}–${show(sorted.length - 1)})`
  }
  const cells = [
    name,
    row.api,
    row.stream ? "stream" : "plain",
    String(row.connections),
    of(({ load }) => (load.tokens / load.wallMs) * 1_000, 0),
    row.stream ? of(({ load }) => (load.events / load.wallMs) * 1_000, 0) : "",
    runs.every(({ serverCpuMs }) => serverCpuMs >= 0)
      ? of(({ load, serverCpuMs }) => (serverCpuMs / load.tokens) * 1_000, 2)
      : "",
    row.stream ? of(({ load }) => percentile(load.firstTokenMs, 50), 1) : "",
    row.stream ? of(({ load }) => percentile(load.firstTokenMs, 99), 1) : "",
    `${Math.round(100 * Math.max(...runs.map(({ load }) => load.cpuMs / load.wallMs)))} %`,
  ]
  console.log(cells.map((cell, at) => cell.padStart(columns[at]!.width)).join("  "))
}

/** Of ascending values, by nearest rank. */
function percentile(ascending: readonly number[], percent: number): number {
  return ascending[Math.max(0, Math.ceil((percent / 100) * ascending.length) - 1)]!
}

await main()
