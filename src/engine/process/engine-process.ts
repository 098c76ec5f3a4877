import type { EngineRestart } from "../../config"
import { type Clock, systemClock } from "../clock"
import { LineReader } from "./line-reader"
import { endGroup, GroupWatcher, killLeader, signalGroup } from "./process-group"
import { type AfterExit, type EngineExit, RestartRow } from "./restart-row"
import { joinShellWords } from "./shell-words"

/** What an engine process is told when it is made. */
export interface EngineProcessOptions {
  /** Program and arguments; the program is looked for on the PATH. No shell reads them. */
  readonly command: readonly string[]
  /** The engine's environment; absent = our own. */
  readonly env?: { readonly [name: string]: string | undefined }
  readonly restart: EngineRestart
  /** Time between SIGTERM and SIGKILL when `restart` ends a run. */
  readonly stopTimeoutMs: number
  /** Gets the engine's lines behind `[engine] `, and what becomes of the process. Lines may hold control characters. */
  readonly log: (line: string) => void
  /** Called once after each run that ended, but for one that `stop` ended. */
  readonly ended: (exit: EngineExit, after: AfterExit) => void
  readonly clock?: Clock
}

/** How long the end of a run waits for the last lines, should a process that left the group keep the pipes open. */
const lastLinesMs = 1_000

/**
 * A command that runs engines on this machine, kept running. Each run leads a process group of its own, and the whole
 * group goes when its leader ends, when we stop it, and when this process ends in whatever way. What it writes is
 * always read, so that it never waits for us. Failures go to `log` and `ended`; nothing here throws.
 */
export class EngineProcess {
  private readonly options: EngineProcessOptions
  private readonly clock: Clock
  private readonly row: RestartRow
  private readonly over = Promise.withResolvers<void>()
  private watcher: GroupWatcher | null = null
  /** What leads the running group; null before, between and after runs. */
  private child: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null
  private startedAt = 0
  /** What shall come after the present run. */
  private intent: "follow_policy" | "restart" | "stop" = "follow_policy"
  /** The one timer: the next start, or SIGKILL for a run that was told to end. */
  private cancelTimer: () => void = () => {}

  constructor(options: EngineProcessOptions) {
    this.options = options
    this.clock = options.clock ?? systemClock
    this.row = new RestartRow(options.restart)
  }

  /** The number of the running process group, or null. */
  get group(): number | null {
    return this.child?.pid ?? null
  }

  /** Starts the command. To be called once. */
  start(): void {
    this.watcher = new GroupWatcher()
    this.run()
  }

  /**
   * Ends the present run, as `stop` does, and starts the command again as after a failure: within the policy and its
   * limit. Without effect between runs and while one is ending.
   */
  restart(reason: string): void {
    const { child } = this
    const runs = child !== null && child.exitCode === null && child.signalCode === null
    if (!runs || this.intent !== "follow_policy") return
    this.options.log(`engine: ending process ${child.pid}: ${reason}`)
    this.intent = "restart"
    this.end(this.options.stopTimeoutMs)
  }

  /**
   * Ends the process for good: SIGTERM to the group, SIGKILL after `graceMs`; 0 = SIGKILL at once. Settles when it is
   * gone. A later call counts its own grace from then on.
   */
  stop(graceMs: number): Promise<void> {
    this.intent = "stop"
    if (this.child === null) this.finish()
    else this.end(graceMs)
    return this.over.promise
  }

  private run(): void {
    const { command, env, log } = this.options
    this.startedAt = this.clock.now()
    let child: Bun.Subprocess<"ignore", "pipe", "pipe">
    try {
      const inherited = env === undefined ? {} : { env }
      const pipes = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const
      child = Bun.spawn([...command], { ...pipes, ...inherited, detached: true })
    } catch (error) {
      log(`engine: cannot start ${joinShellWords(command)}: ${error instanceof Error ? error.message : String(error)}`)
      this.after({ status: null, signal: null })
      return
    }
    this.child = child
    log(`engine: process ${child.pid}: ${joinShellWords(command)}`)
    const lines = this.readOutput(child)
    void child.exited.then(() => this.left(child, lines))
  }

  /** Nobody hears of the engine before it is sure to end with us. */
  private async readOutput(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<void> {
    await this.watcher?.watch(child.pid)
    await Promise.all([this.readLines(child.stdout), this.readLines(child.stderr)])
  }

  private async readLines(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new LineReader((line) => this.options.log(`[engine] ${line}`))
    for await (const chunk of stream) reader.push(chunk)
    reader.end()
  }

  private async left(child: Bun.Subprocess, lines: Promise<unknown>): Promise<void> {
    await endGroup(child.pid)
    this.cancelTimer()
    void this.watcher?.watch(null)
    this.child = null
    const late = Promise.withResolvers<void>()
    const cancel = this.clock.after(lastLinesMs, late.resolve)
    await Promise.race([lines, late.promise])
    cancel()
    this.after({ status: child.exitCode, signal: child.signalCode === null ? null : `${child.signalCode}` })
  }

  private after(exit: EngineExit): void {
    const what = shown(exit)
    if (this.intent === "stop") {
      this.options.log(`engine: ${what}`)
      this.finish()
      return
    }
    const after = this.row.next(exit, this.clock.now() - this.startedAt, this.intent === "restart")
    this.intent = "follow_policy"
    const { restartsMax } = this.options.restart
    this.options.log(
      after.kind === "restart"
        ? `engine: ${what}; starting it again in ${after.delayMs / 1_000} s (${after.restart} of ${restartsMax})`
        : `engine: ${what}; not starting it again: ${after.why}`,
    )
    if (after.kind === "restart") this.cancelTimer = this.clock.after(after.delayMs, () => this.run())
    else this.finish()
    this.options.ended(exit, after)
  }

  private end(graceMs: number): void {
    this.cancelTimer()
    const group = this.group
    if (group === null) return
    if (graceMs <= 0) {
      signalGroup(group, "SIGKILL")
      return
    }
    signalGroup(group, "SIGTERM")
    this.cancelTimer = this.clock.after(graceMs, () => {
      this.options.log(`engine: process ${group} is still there after ${graceMs / 1_000} s and is killed`)
      killLeader(group)
    })
  }

  private finish(): void {
    this.cancelTimer()
    void this.watcher?.close()
    this.watcher = null
    this.over.resolve()
  }
}

function shown(exit: EngineExit): string {
  if (exit.signal !== null) return `ended by ${exit.signal}`
  return exit.status === null ? "could not be started" : `ended with status ${exit.status}`
}
