/**
 * The entry point: flags → config → model profile → server, and signals on the way out. The only file that reads argv
 * and the environment. Exit status: 0 after a clean drain, 1 for a start that failed, 2 for a bad flag, 70 for a
 * bug of ours, 130 or 143 when a second signal cut the drain short.
 */
import { readFileSync, statSync } from "node:fs"
import { bannerLines } from "./banner"
import type { Config } from "./config"
import { type Environment, type HubSettings, parseFlags, type ReadFile } from "./flags"
import type { FindProgram } from "./flags-engine"
import type { RunningServer } from "./listener"
import type { ModelProfile } from "./model/profile"
import { err, ok, type Result } from "./result"

/** Larger files (templates, keys, config files) are refused. */
const textFileBytesMax = 16 * 1024 * 1024

/** A terminal's Ctrl-C reaches us twice when npm or the launcher passes it on: copies within this time count once. */
const signalCopiesMs = 250

/** The signals that stop the server, with the exit status of a death by them. */
const signalStatus = { SIGINT: 130, SIGTERM: 143 } as const
/** One of those signals. */
export type StopSignal = keyof typeof signalStatus

/** How a server is started; the real ones are `startServer` of server.ts and `startRenderer` of renderer.ts. */
export type StartServer = (
  config: Config,
  profile: ModelProfile,
  log: (line: string) => void,
) => Promise<Result<RunningServer, { readonly kind: string; readonly message: string }>>

/** What `main` needs from the process around it; tests give their own. */
export interface System {
  /** Without the runtime and the script. */
  readonly argv: readonly string[]
  readonly env: Environment
  readonly readFile: ReadFile
  /** The path of a program on the PATH of `env`, or null. */
  readonly findProgram: FindProgram
  out(line: string): void
  error(line: string): void
  onSignal(listener: (signal: StopSignal) => void): void
  /** Ends the process at once. */
  exit(status: number): void
  /** Milliseconds on any steady clock. */
  now(): number
  readonly startServer: StartServer
}

/** Runs one command to its end and gives the exit status. */
export async function main(system: System): Promise<number> {
  let server: RunningServer | null = null
  let stop: { signal: StopSignal; at: number } | null = null
  let drainSeconds = 0
  system.onSignal((signal) => {
    const copy = stop !== null && stop.signal === signal && system.now() - stop.at < signalCopiesMs
    if (copy) return
    if (server === null || stop !== null) return system.exit(signalStatus[signal])
    stop = { signal, at: system.now() }
    const fate = drainSeconds > 0 ? `have ${drainSeconds} s to finish` : "are being ended"
    system.out(`${signal}: no new connections; running requests ${fate}`)
    server.stop()
  })

  const parsed = await parseFlags(system.argv, system.env, system.readFile, system.findProgram)
  if (!parsed.ok) {
    system.error(`sluice: ${parsed.error.message}`)
    return 2
  }
  const invocation = parsed.value
  if (invocation.kind !== "serve") {
    system.out(invocation.text.trimEnd())
    return 0
  }
  const { config, hub } = invocation
  drainSeconds = config.shutdownTimeoutSeconds
  for (const warning of invocation.warnings) system.error(`warning: ${warning}`)
  const profile = await findProfile(config, hub, system.error)
  if (!profile.ok) return refuse(system, profile.error)
  const started = await system.startServer(config, profile.value, system.out)
  if (!started.ok) return refuse(system, started.error)
  server = started.value
  for (const line of bannerLines(config, profile.value, server)) system.out(line)
  await server.drained
  return 0
}

/** Failures that only a look at the model shows, but whose cause is a flag's value. */
const flagFailures = ["model_option", "parser_unknown"]

function refuse(system: System, failure: { readonly kind: string; readonly message: string }): number {
  system.error(`sluice: ${failure.message}`)
  return flagFailures.includes(failure.kind) ? 2 : 1
}

/** The built-in profile, or the model's, from its folder or from the hub. Loaded late: most starts need only one. */
async function findProfile(
  config: Config,
  hub: HubSettings,
  progress: (line: string) => void,
): Promise<Result<ModelProfile, { readonly kind: string; readonly message: string }>> {
  const { adaptProfile, loadModelFolder } = await import("./model/files")
  if (config.model === null) {
    const { builtInProfile } = await import("./model/built-in")
    return adaptProfile(await builtInProfile(), config)
  }
  const { resolveModel } = await import("./model/hub")
  const folder = await resolveModel(config.model, { ...hub, progress })
  if (!folder.ok) return folder
  const tokenizer =
    config.tokenizer === null ? folder : await resolveModel(config.tokenizer, { ...hub, revision: "main", progress })
  if (!tokenizer.ok) return tokenizer
  return loadModelFolder(folder.value, config.model, { ...config, tokenizerFolder: tokenizer.value })
}

function readTextFile(path: string): Result<string, string> {
  try {
    const found = statSync(path)
    if (!found.isFile()) return err("is not a file")
    if (found.size > textFileBytesMax) return err(`is larger than ${textFileBytesMax} bytes`)
    return ok(new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path)))
  } catch (error) {
    if (error instanceof TypeError) return err("is not UTF-8")
    const code = error instanceof Error && "code" in error ? error.code : undefined
    return err(code === "ENOENT" || code === "ENOTDIR" ? "does not exist" : `cannot be read (${code})`)
  }
}

/** A bug of ours: one line for the log's reader, the stack for us. */
function die(error: unknown): never {
  const shown = error instanceof Error ? error : new Error(String(error))
  process.stderr.write(`sluice: internal error: ${shown.message.split("\n")[0]}\n${shown.stack ?? ""}\n`)
  process.exit(70)
}

if (import.meta.main) {
  process.on("uncaughtException", die)
  process.on("unhandledRejection", die)
  const status = await main({
    argv: process.argv.slice(2),
    env: process.env,
    readFile: readTextFile,
    findProgram: (name) => Bun.which(name),
    out: (line) => process.stdout.write(`${line}\n`),
    error: (line) => process.stderr.write(`${line}\n`),
    onSignal: (listener) => {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => listener(signal))
    },
    exit: (code) => process.exit(code),
    now: () => performance.now(),
    // Loaded late: a renderer must not hold an engine's code.
    startServer: async (...given) => {
      const [config] = given
      const start: StartServer =
        config.role === "render" ? (await import("./renderer")).startRenderer : (await import("./server")).startServer
      return start(...given)
    },
  }).catch(die)
  process.exit(status)
}
