/**
 * The stand-in engine of ../shared/engine/mock-engine: libzmq and C++, nothing of ours. Built once for each version of its
 * sources, and kept below the system's temporary folder.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { err, ok, type Result } from "../../src/result"
import { repository } from "./serve"
import { StrictEngine, type StrictEngineOptions } from "./strict-decoder"

const sources = join(repository, "../shared/engine/mock-engine/src")
const header = "/usr/include/zmq.h"
const installMsMax = 300_000

/** The path of the program, else why there is none. Compiler and libzmq are installed where root can do that. */
export function buildMockEngine(): Result<string, string> {
  if (!existsSync(join(sources, "main.cpp"))) return err("no ../shared/engine/mock-engine")
  const digest = createHash("sha256")
  for (const file of readdirSync(sources).sort()) digest.update(readFileSync(join(sources, file)))
  const folder = join(tmpdir(), `sluice-mock-engine-${digest.digest("hex").slice(0, 16)}`)
  const program = join(folder, "mock-engine")
  if (existsSync(program)) return ok(program)
  const missing = install()
  if (missing !== null) return err(missing)
  mkdirSync(folder, { recursive: true })
  // Two test runs may build it at the same time: each its own, and the last one stays.
  const built = join(mkdtempSync(join(folder, "build-")), "mock-engine")
  const flags = ["-std=c++17", "-O1", "-o", built, join(sources, "main.cpp"), "-lzmq", "-lpthread"]
  const run = Bun.spawnSync(["g++", ...flags], { stdout: "ignore", stderr: "pipe" })
  if (run.exitCode !== 0) return err(`g++ ended with ${run.exitCode}: ${run.stderr.toString().trim()}`)
  renameSync(built, program)
  return ok(program)
}

/** Why what the build needs is missing; null = it is there. */
function install(): string | null {
  if (Bun.which("g++") !== null && existsSync(header)) return null
  if (process.getuid?.() !== 0 || Bun.which("apt-get") === null) return "no g++ with libzmq, and no root with apt-get"
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeout: installMsMax }
  const packages = ["install", "--yes", "--no-install-recommends", "g++", "libzmq3-dev"]
  for (const step of [["update"], packages]) {
    const run = Bun.spawnSync(["apt-get", "--quiet", ...step], { ...options, stdout: "ignore", stderr: "pipe" })
    if (run.exitCode !== 0) return `apt-get ${step[0]} ended with ${run.exitCode}: ${run.stderr.toString().trim()}`
  }
  return null
}

/** A stand-in engine that runs. `await using` kills it. */
export class MockEngine implements AsyncDisposable {
  readonly pid: number
  private readonly child: Bun.Subprocess<"ignore", "ignore", "ignore">
  private readonly folder: string | null

  private constructor(child: Bun.Subprocess<"ignore", "ignore", "ignore">, folder: string | null) {
    this.child = child
    this.pid = child.pid
    this.folder = folder
  }

  /** Starts it; `records` keeps every frame that it gets; `prefix` is a command that replaces itself by it. */
  static start(
    program: string,
    address: string,
    flags: readonly string[],
    records = false,
    prefix: readonly string[] = [],
  ): MockEngine {
    const folder = records ? mkdtempSync(join(tmpdir(), "sluice-frames-")) : null
    const record = folder === null ? [] : ["--record", folder]
    const child = Bun.spawn([...prefix, program, "--handshake", address, ...flags, ...record], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    })
    return new MockEngine(child, folder)
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name)
  }

  /** Messages that it got, in their order: the type, and the body. */
  messages(): { readonly engine: number; readonly type: number; readonly body: Uint8Array }[] {
    const { folder } = this
    if (folder === null) throw new Error("this engine records nothing")
    const files = readdirSync(folder).filter((name) => name.endsWith(".0.bin"))
    const numbered = files.map((name) => ({ name, engine: Number(/^e(\d+)/.exec(name)![1]), n: name.split(".")[1]! }))
    numbered.sort((a, b) => a.engine - b.engine || Number(a.n) - Number(b.n))
    return numbered.map(({ name, engine }) => ({
      engine,
      type: readFileSync(join(folder, name))[0]!,
      body: new Uint8Array(readFileSync(join(folder, name.replace(/\.0\.bin$/, ".1.bin")))),
    }))
  }

  async end(): Promise<void> {
    this.child.kill("SIGKILL")
    await this.child.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
    if (this.folder !== null) rmSync(this.folder, { recursive: true })
  }
}

/** What a real engine would have made of recorded messages. */
export interface Judgement {
  readonly adds: number
  readonly aborts: number
  /** Why it would have died or gone deaf, for each message that would have done that. */
  readonly deaths: readonly string[]
}

/** Judges what a stand-in engine got; ids live until they are aborted (`messages` does not tell which ended). */
export function judge(messages: ReturnType<MockEngine["messages"]>, options: StrictEngineOptions): Judgement {
  const engines = new Map<number, StrictEngine>()
  const deaths: string[] = []
  let adds = 0
  let aborts = 0
  for (const { engine, type, body } of messages) {
    const strict = engines.get(engine) ?? new StrictEngine(options)
    engines.set(engine, strict)
    try {
      if (type === 0) {
        adds += 1
        strict.add(body)
      } else if (type === 1) aborts += strict.abort(body).length
      else if (type === 3) strict.utility(body)
      else deaths.push(`a message of type ${type}`)
    } catch (cause) {
      deaths.push(cause instanceof Error ? cause.message : String(cause))
    }
  }
  return { adds, aborts, deaths }
}
