import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { defaultConfig } from "../../../src/config"
import { EngineProcess, type EngineProcessOptions } from "../../../src/engine/process/engine-process"
import { GroupWatcher } from "../../../src/engine/process/process-group"
import type { AfterExit, EngineExit } from "../../../src/engine/process/restart-row"
import { hasEnded, isRunning } from "../../support/process-table"
import { ManualClock } from "../manual-clock"

// Each case starts processes.
setDefaultTimeout(30_000)

/** An engine process under a clock that stands still, with all that it said. */
class Watched {
  readonly clock = new ManualClock()
  readonly logged: string[] = []
  readonly ends: { exit: EngineExit; after: AfterExit }[] = []
  readonly process: EngineProcess
  private waiting: { holds: () => boolean; resolve: () => void }[] = []

  constructor(command: readonly string[], options: Partial<EngineProcessOptions> = {}) {
    this.process = new EngineProcess({
      command,
      restart: { ...defaultConfig.vllm.restart, delayMs: 1_000, restartsMax: 2 },
      stopTimeoutMs: 5_000,
      clock: this.clock,
      ...options,
      log: (line) => {
        this.logged.push(line)
        this.look()
      },
      ended: (exit, after) => {
        this.ends.push({ exit, after })
        this.look()
      },
    })
    running.push(this.process)
  }

  /** The engine's own lines, without their prefix. */
  get lines(): string[] {
    return this.logged.filter((line) => line.startsWith("[engine] ")).map((line) => line.slice("[engine] ".length))
  }

  /** What is said about the process, with numbers of processes as N. */
  get news(): string[] {
    return this.logged
      .filter((line) => !line.startsWith("[engine] "))
      .map((line) => line.replace(/process \d+/g, "process N"))
  }

  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push({ holds, resolve })
      this.look()
    })
  }

  /** Waits for the engine to say so. */
  said(line: string): Promise<void> {
    return this.until(() => this.lines.includes(line))
  }

  private look(): void {
    const held = this.waiting.filter(({ holds }) => holds())
    this.waiting = this.waiting.filter((each) => !held.includes(each))
    for (const { resolve } of held) resolve()
  }
}

const running: EngineProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop(0)))
})

const sh = (script: string) => ["/bin/sh", "-c", script]

describe("a run", () => {
  test("leads a group of its own, and its lines are logged behind a prefix", async () => {
    const command = sh("echo out; echo err >&2; echo $1; echo $$; exec cat /dev/stdin")
    const engine = new Watched([...command, "vllm", "two words"], { env: { PATH: process.env.PATH } })
    engine.process.start()
    const group = engine.process.group!
    await engine.until(() => engine.ends.length > 0)
    expect(engine.logged[0]).toStartWith(`engine: process ${group}: /bin/sh -c 'echo out;`)
    expect(engine.logged[0]).toEndWith(" vllm 'two words'")
    expect(engine.lines.toSorted()).toEqual([`${group}`, "err", "out", "two words"])
    // Its standard input was empty: it ended by itself.
    expect(engine.ends[0]!.exit).toEqual({ status: 0, signal: null })
  })

  test("has the environment that was given, and no other", async () => {
    const engine = new Watched(sh("echo $GIVEN:$HOME"), { env: { GIVEN: "yes" } })
    engine.process.start()
    await engine.said("yes:")
  })

  test("never waits for its lines to be read, even those that have no end", async () => {
    const engine = new Watched(sh("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo done"))
    engine.process.start()
    await engine.until(() => engine.ends.length > 0)
    expect(engine.lines.map((line) => line.length)).toEqual([8 * 1024 + 1, 4])
  })

  test("takes what it started with it when it ends", async () => {
    const engine = new Watched(sh("sleep 1000 & echo $!; exit 3"))
    engine.process.start()
    await engine.until(() => engine.ends.length > 0)
    await hasEnded(Number(engine.lines[0]))
    expect(engine.ends[0]!.exit).toEqual({ status: 3, signal: null })
    expect(engine.process.group).toBe(null)
  })
})

describe("a crash loop", () => {
  test("waits longer each time, and ends with what to do about it", async () => {
    const engine = new Watched(sh("echo up; kill -KILL $$"))
    engine.process.start()
    for (const [runs, atMs] of [
      [1, 1_000],
      [2, 3_000],
    ] as const) {
      await engine.until(() => engine.ends.length === runs)
      expect(engine.process.group).toBe(null)
      engine.clock.moveTo(atMs - 1)
      expect(engine.process.group).toBe(null)
      engine.clock.moveTo(atMs)
      expect(engine.process.group).not.toBe(null)
    }
    await engine.until(() => engine.ends.length === 3)
    expect(engine.lines).toEqual(["up", "up", "up"])
    const start = "engine: process N: /bin/sh -c 'echo up; kill -KILL $$'"
    expect(engine.news).toEqual([
      start,
      "engine: ended by SIGKILL; starting it again in 1 s (1 of 2)",
      start,
      "engine: ended by SIGKILL; starting it again in 2 s (2 of 2)",
      start,
      "engine: ended by SIGKILL; not starting it again: --engine-restart-limit is 2",
    ])
    expect(engine.ends.map(({ after }) => after.kind)).toEqual(["restart", "restart", "gave_up"])
    expect(engine.clock.pending).toBe(0)
    await engine.process.stop(1_000)
  })

  test("of a command that cannot be started is one as well", async () => {
    const engine = new Watched(["/no/such/vllm", "serve"])
    engine.process.start()
    engine.clock.moveTo(3_000)
    const failed = expect.stringMatching(/^engine: cannot start \/no\/such\/vllm serve: ENOENT/)
    expect(engine.news).toEqual([
      failed,
      "engine: could not be started; starting it again in 1 s (1 of 2)",
      failed,
      "engine: could not be started; starting it again in 2 s (2 of 2)",
      failed,
      "engine: could not be started; not starting it again: --engine-restart-limit is 2",
    ])
  })

  test("is no loop for a run that ended well", async () => {
    const engine = new Watched(sh("exit 0"))
    engine.process.start()
    await engine.until(() => engine.ends.length > 0)
    expect(engine.news.at(-1)).toBe(
      "engine: ended with status 0; not starting it again: --engine-restart is on-failure",
    )
  })
})

describe("stop", () => {
  test("lets the engine end by itself, and all of its group", async () => {
    const engine = new Watched(sh("trap 'echo bye; exit 0' TERM; sleep 1000 & echo $!; wait"))
    engine.process.start()
    await engine.until(() => engine.lines.length > 0)
    await engine.process.stop(1_000)
    await hasEnded(Number(engine.lines[0]))
    await engine.said("bye")
    expect(engine.news.at(-1)).toBe("engine: ended with status 0")
    expect({ ends: engine.ends, timers: engine.clock.pending }).toEqual({ ends: [], timers: 0 })
  })

  test("kills what does not end within the grace", async () => {
    const engine = new Watched(sh("trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"))
    engine.process.start()
    await engine.until(() => engine.lines.length > 0)
    const stopped = engine.process.stop(2_000)
    engine.clock.moveTo(1_999)
    expect(isRunning(Number(engine.lines[0]))).toBe(true)
    engine.clock.moveTo(2_000)
    await stopped
    await hasEnded(Number(engine.lines[0]))
    expect(engine.news.slice(1)).toEqual([
      "engine: process N is still there after 2 s and is killed",
      "engine: ended by SIGKILL",
    ])
  })

  test("without a grace kills at once, also after one that has a grace", async () => {
    const engine = new Watched(sh("trap '' TERM; echo up; while :; do sleep 1000; done"))
    engine.process.start()
    await engine.said("up")
    const first = engine.process.stop(60_000)
    await engine.process.stop(0)
    await first
    expect(engine.clock.pending).toBe(0)
  })

  test("between two runs calls the next one off", async () => {
    const engine = new Watched(sh("exit 1"))
    engine.process.start()
    await engine.until(() => engine.ends.length > 0)
    await engine.process.stop(1_000)
    engine.clock.moveTo(100_000)
    expect(engine.process.group).toBe(null)
    expect(engine.news).toHaveLength(2)
  })

  test("before the start is nothing", async () => {
    const engine = new Watched(sh("exit 1"))
    await engine.process.stop(1_000)
    expect(engine.logged).toEqual([])
  })

  test("from within the news that the engine ended is heard", async () => {
    const engine = new Watched(sh("exit 1"))
    engine.process.start()
    await engine.until(() => engine.ends.length > 0 && engine.process.stop(0) !== null)
    engine.clock.moveTo(100_000)
    expect(engine.news).toHaveLength(2)
  })
})

describe("restart", () => {
  test("ends the run and starts it again, even where it ends well, and once for two calls", async () => {
    const engine = new Watched(sh("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done"))
    engine.process.start()
    await engine.said("up")
    engine.process.restart("it answers nothing")
    engine.process.restart("it answers nothing")
    await engine.until(() => engine.ends.length > 0)
    engine.process.restart("it has ended")
    engine.clock.moveTo(1_000)
    await engine.until(() => engine.lines.length === 2)
    expect(engine.ends).toEqual([
      { exit: { status: 0, signal: null }, after: { kind: "restart", delayMs: 1_000, restart: 1 } },
    ])
    const start = expect.stringMatching(/^engine: process N: /)
    expect(engine.news).toEqual([
      start,
      "engine: ending process N: it answers nothing",
      "engine: ended with status 0; starting it again in 1 s (1 of 2)",
      start,
    ])
  })

  test("kills a process that stands still", async () => {
    // Deaf to SIGTERM, which might come before it stands still.
    const engine = new Watched(sh("trap '' TERM; echo up; kill -STOP $$"))
    engine.process.start()
    await engine.said("up")
    engine.process.restart("hung")
    engine.clock.moveTo(5_000)
    await engine.until(() => engine.ends.length > 0)
    expect(engine.ends[0]!.exit).toEqual({ status: null, signal: "SIGKILL" })
    expect(engine.ends[0]!.after.kind).toBe("restart")
  })
})

describe("when this process ends", () => {
  /** A process that runs `engine`, and the number that the engine's own child says. */
  async function parentOf(engine: string, then: string) {
    const file = join(import.meta.dir, "../../../src/engine/process/engine-process.ts")
    const script = `
      import { EngineProcess } from ${JSON.stringify(file)}
      const restart = { policy: "never", delayMs: 0, delayMsMax: 0, restartsMax: 0, stableMs: 0 }
      const engine = new EngineProcess({
        command: ["/bin/sh", "-c", ${JSON.stringify(engine)}], restart, stopTimeoutMs: 1000, ended: () => {},
        log: (line) => {
          console.log(line)
          if (line.startsWith("[engine] ")) { ${then} }
        },
      })
      engine.start()`
    // `--no-orphans` of a test run would end the watcher with its parent, which no server is started with.
    const env = { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: undefined }
    const command = [process.execPath, "--no-install", "-e", script]
    const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "pipe" })
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    for (;;) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`the parent ended without a word of its engine: ${text}`)
      text += value
      const leader = /engine: process (\d+):/.exec(text)
      const inner = /\[engine\] (\d+)$/m.exec(text)
      if (leader !== null && inner !== null) return { child, leader: Number(leader[1]), inner: Number(inner[1]) }
    }
  }

  test.each([
    ["is killed", "", "sleep 1000 & echo $!; wait"],
    ["exits by itself", "process.exit(70)", "sleep 1000 & echo $!; wait"],
    ["is killed, and the engine does not listen", "", "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"],
  ])("because it %s, the engine's group ends", async (_, then, engine) => {
    const parent = await parentOf(engine, then)
    if (then === "") parent.child.kill("SIGKILL")
    await parent.child.exited
    await hasEnded(parent.inner)
    await hasEnded(parent.leader)
  })
})

test("the watcher ends with nothing to watch, and by the end of its pipe", async () => {
  const idle = new GroupWatcher()
  await idle.close()
  const group = Bun.spawn(["sleep", "1000"], { detached: true })
  const watcher = new GroupWatcher()
  await watcher.watch(group.pid)
  await watcher.close()
  expect(isRunning(group.pid)).toBe(true)
  group.kill("SIGKILL")
  await group.exited
})
