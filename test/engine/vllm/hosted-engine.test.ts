/** Engines whose process is ours, with a program that plays `vllm serve` (test/support/hosted-test-engine.ts). */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { defaultConfig, type VllmConfig } from "../../../src/config"
import { HostedEngine } from "../../../src/engine/vllm/hosted-engine"
import { hasEnded, isRunning } from "../../support/process-table"
import { until } from "../../support/test-server"
import { submitTo } from "../contract"
import { endless, scripted, vocabSize } from "./opened-engine"

setDefaultTimeout(30_000)

const program = join(import.meta.dir, "../../support/hosted-test-engine.ts")
const waitMs = 20_000

/** An engine with everything that was said about it. */
class Hosted {
  readonly log: string[] = []
  readonly engine: HostedEngine

  constructor(config: Partial<VllmConfig> = {}, flags: readonly string[] = []) {
    const restart = { ...defaultConfig.vllm.restart, delayMs: 10, restartsMax: 2 }
    const opened = HostedEngine.open(
      { ...defaultConfig.vllm, rpcPort: 0, hangTimeoutMs: 0, stopTimeoutMs: 500, restart, ...config },
      { words: [process.execPath, "--no-install", program, ...flags], engines: 1 },
      {
        contextTokensMax: 4_096,
        vocabSize,
        isMixtureOfExperts: false,
        queuedRequestsMax: null,
        encode: () => new Uint32Array(0),
        log: (line) => this.log.push(line),
        ready: (rank) => this.log.push(`ready ${rank}`),
        lost: (rank) => this.log.push(`lost ${rank}`),
        now: () => performance.now(),
      },
    )
    if (!opened.ok) throw new Error(opened.error.message)
    this.engine = opened.value
    hosted.push(this)
  }

  /** Numbers of the processes that were started. */
  get processes(): number[] {
    return this.log.flatMap((line) => /^engine: process (\d+): /.exec(line)?.[1] ?? []).map(Number)
  }

  /** Waits until it was ready so often. */
  async ready(times: number): Promise<void> {
    await until(() => this.count("ready 0") === times, waitMs)
  }

  async said(words: string): Promise<void> {
    await until(() => this.log.some((line) => line.includes(words)), waitMs)
  }

  async answers(): Promise<void> {
    expect(await submitTo(this.engine, scripted([7])).receiver.ended).toBe("stop")
  }

  count(line: string): number {
    return this.log.filter((each) => each === line).length
  }
}

const hosted: Hosted[] = []
afterEach(async () => {
  for (const each of hosted.splice(0)) {
    await each.engine.close()
    for (const pid of each.processes) expect(isRunning(pid)).toBe(false)
  }
})

test("an engine is started, heard, and ended with the server", async () => {
  const server = new Hosted()
  expect(server.engine.status()).toMatchObject({ alive: false, ready: false })
  await server.ready(1)
  await server.answers()
  expect(server.log).toContain("[engine] dialling with --headless")
  const running = submitTo(server.engine, endless())
  await server.engine.close()
  expect(await running.receiver.ended).toBe("abort")
  await hasEnded(server.processes[0]!)
  expect(server.log.at(-1)).toMatch(/^engine: ended with status 0$/)
})

test("an engine that is killed or dies fails what runs, and is started again until the limit", async () => {
  const server = new Hosted()
  await server.ready(1)
  const { receiver } = submitTo(server.engine, endless())
  await until(() => receiver.outputs.length > 0, waitMs)
  process.kill(server.processes[0]!, "SIGKILL")
  expect(await receiver.ended).toBe("engine_dead")
  expect(server.engine.status()).toMatchObject({ alive: false, ready: false })
  await server.ready(2)
  await server.answers()
  expect(await submitTo(server.engine, scripted([7], { test_fail: "dead" })).receiver.ended).toBe("engine_dead")
  await server.ready(3)
  await server.answers()
  expect(await submitTo(server.engine, scripted([7], { test_fail: "vanish" })).receiver.ended).toBe("engine_dead")
  await server.said("not starting it again: --engine-restart-limit is 2")
  expect(server.processes).toHaveLength(3)
  expect(server.log).toContain("[engine] the engine died")
  expect(server.engine.status()).toMatchObject({ alive: false, ready: false })
})

test("an engine that ends by itself with status 0 is left alone under on-failure", async () => {
  const server = new Hosted()
  await server.ready(1)
  process.kill(server.processes[0]!, "SIGTERM")
  await server.said("engine: ended with status 0; not starting it again: --engine-restart is on-failure")
  await until(() => server.count("lost 0") === 1, waitMs)
  expect(server.processes).toHaveLength(1)
})

test("an engine that goes deaf while its process lives is ended and started again", async () => {
  const server = new Hosted()
  await server.ready(1)
  const { receiver } = submitTo(server.engine, scripted([7], { test_fail: "deaf" }))
  expect(await receiver.ended).toBe("engine_dead")
  await server.ready(2)
  await server.answers()
  expect(server.processes).toHaveLength(2)
  expect(isRunning(server.processes[0]!)).toBe(false)
})

test("an engine whose process stands still is taken for hung, killed, and started again", async () => {
  const server = new Hosted({ hangTimeoutMs: 300 })
  await server.ready(1)
  const { receiver } = submitTo(server.engine, endless())
  await until(() => receiver.outputs.length > 0, waitMs)
  process.kill(server.processes[0]!, "SIGSTOP")
  expect(await receiver.ended).toBe("engine_dead")
  expect(receiver.error?.message).toContain("hangs")
  await server.ready(2)
  await server.answers()
  expect(isRunning(server.processes[0]!)).toBe(false)
})

test("an engine that does not register in time is started again", async () => {
  const server = new Hosted({ startupTimeoutSeconds: 0.5 }, ["--never-registers"])
  await server.said("it did not register within 0.5 s")
  await until(() => server.processes.length === 2, waitMs)
})

test("a command that cannot be started is told, and closing still works", async () => {
  const log: string[] = []
  const opened = HostedEngine.open(
    { ...defaultConfig.vllm, rpcPort: 0, restart: { ...defaultConfig.vllm.restart, policy: "never" } },
    { words: ["/nonexistent/vllm"], engines: 1 },
    {
      contextTokensMax: 4_096,
      vocabSize,
      isMixtureOfExperts: false,
      queuedRequestsMax: null,
      encode: () => new Uint32Array(0),
      log: (line) => log.push(line),
      now: () => performance.now(),
    },
  )
  if (!opened.ok) throw new Error(opened.error.message)
  await until(() => log.some((line) => line.includes("not starting it again")))
  expect(opened.value.status()).toMatchObject({ alive: false, ready: false })
  await opened.value.close()
})
