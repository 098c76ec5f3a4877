/**
 * Command line, config file and environment → `Config`. The command line wins over the config file (`--config`), and
 * that over the environment; what none of them says keeps its default (config.ts). Pure: files come through `readFile`.
 */
import { isAbsolute, join } from "node:path"
import type { Config } from "./config"
import { type ConfigFileEntry, readConfigFile } from "./flags-config-file"
import { type FindProgram, planEngine, planRender } from "./flags-engine"
import { type Draft, emptyDraft, type Flag, type GivenFlag, passedOn } from "./flags-fields"
import { helpText } from "./flags-help"
import { flagTable } from "./flags-table"
import {
  engineOnlyFlags,
  engineShortFlags,
  unsupportedFlags,
  unsupportedShortFlags,
  unsupportedVariables,
} from "./flags-vllm"
import { err, ok, type Result } from "./result"

/** Our version, as `--version` prints it. */
export const sluiceVersion = "0.1.0"

/** Environment variables by name. */
export type Environment = { readonly [name: string]: string | undefined }

/** Gives a file's text, or why it cannot be read ("does not exist", say). */
export type ReadFile = (path: string) => Result<string, string>

/** Where models on the hub come from and are kept. Variables are those of Hugging Face's own tools. */
export interface HubSettings {
  /** Branch, tag or commit. */
  readonly revision: string
  /** Folder with one `models--org--name` folder a model; may be relative. */
  readonly cacheDir: string
  /** Sent to the endpoint only. */
  readonly token: string | null
  readonly endpoint: string
  readonly offline: boolean
}

/** What the command line asks for. */
export type Invocation =
  | { readonly kind: "help" | "version"; readonly text: string }
  | {
      readonly kind: "serve"
      readonly config: Config
      readonly hub: HubSettings
      /** One line each, for the log. */
      readonly warnings: readonly string[]
    }

/** A command line that cannot be followed: one line; the exit status is 2. */
export interface UsageFailure {
  readonly kind: "usage"
  readonly message: string
}

const flagsByName = new Map([...flagTable, ...engineOnlyFlags].map((flag) => [flag.name, flag]))
const shortFlags: ReadonlyMap<string, string> = new Map([
  ...flagTable.filter((flag) => flag.short !== "").map((flag) => [flag.short, flag.name] as const),
  ...Object.entries(engineShortFlags),
])
const hubEndpointDefault = "https://huggingface.co"

/**
 * Reads `argv` (without the program's own name) with `env`. Help and version win over everything else. Errors name the
 * flag, the value and what was expected. `findProgram` is asked for `vllm` only where a model needs an engine.
 */
export async function parseFlags(
  argv: readonly string[],
  env: Environment,
  readFile: ReadFile,
  findProgram: FindProgram,
): Promise<Result<Invocation, UsageFailure>> {
  if (asksFor(argv, ["--help", "-h"])) return ok({ kind: "help", text: helpText(flagTable) })
  if (asksFor(argv, ["--version", "-v"])) return ok({ kind: "version", text: sluiceVersion })
  const command = argv[0]
  if (command === undefined) return usage("no command given: expected serve or render; sluice --help lists the flags")
  if (command !== "serve" && command !== "render") {
    return usage(`unknown command "${command}": expected serve or render; sluice --help lists the flags`)
  }

  const trailingAt = argv.indexOf("--")
  const line = readCommandLine(trailingAt === -1 ? argv.slice(1) : argv.slice(1, trailingAt))
  if (!line.ok) return line
  const given = line.value.given
  const path = line.value.configFile
  if (path !== null) {
    const text = readFile(path)
    if (!text.ok) return usage(`--config ${path}: ${text.error}`)
    const entries = await readConfigFile(text.value)
    if (!entries.ok) return usage(`--config ${path}: ${entries.error}`)
    const added = addConfigFile(given, path, entries.value)
    if (!added.ok) return added
  }
  addEnvironment(given, env)

  const draft = emptyDraft()
  draft.role = command
  draft.enableScaleOut = command === "render"
  for (const { flag, shown, texts } of given.values()) {
    const applied = flag.apply(draft, texts)
    if (!applied.ok) return usage(`${shown} ${quoted(applied.error.text)}: expected ${applied.error.expected}`)
  }
  const trailing = trailingAt === -1 ? [] : argv.slice(trailingAt + 1)
  const planned =
    command === "render" ? planRender(draft, given, trailing) : planEngine(draft, given, trailing, findProgram)
  if (!planned.ok) return usage(planned.error)
  const config = complete(draft, readFile, env)
  if (!config.ok) return config
  const hub = hubSettings(config.value, env)
  if (!hub.ok) return hub
  const variables = unsupportedVariables.filter((name) => env[name]).map((name) => `${name} is not supported yet`)
  return ok({ kind: "serve", config: config.value, hub: hub.value, warnings: [...variables, ...planned.value] })
}

function usage(message: string): { readonly ok: false; readonly error: UsageFailure } {
  return err({ kind: "usage", message })
}

function quoted(text: string): string {
  return JSON.stringify(text)
}

function asksFor(argv: readonly string[], words: readonly string[]): boolean {
  const end = argv.indexOf("--")
  return argv.slice(0, end === -1 ? argv.length : end).some((word) => words.includes(word.replace(/=.*/s, "")))
}

/** A word that starts a flag; negative numbers are values, as in vLLM. */
function startsFlag(word: string): boolean {
  return /^-(?!\d)./.test(word)
}

interface CommandLine {
  readonly given: Map<string, GivenFlag>
  readonly configFile: string | null
}

function readCommandLine(words: readonly string[]): Result<CommandLine, UsageFailure> {
  const given = new Map<string, GivenFlag>()
  let configFile: string | null = null
  let positional: string | null = null
  for (let at = 0; at < words.length; ) {
    const word = words[at++]!
    if (!startsFlag(word)) {
      if (positional !== null) return usage(`unexpected argument ${quoted(word)}: the model is already ${positional}`)
      positional = word
      continue
    }
    // As vLLM, a level may stand right behind its letter.
    const leveled = /^-O[0-3]$/.test(word)
    const equals = leveled ? 1 : word.indexOf("=")
    const written = leveled ? "-O" : equals === -1 ? word : word.slice(0, equals)
    const attached = equals === -1 ? null : word.slice(equals + 1)
    const found = findFlag(written)
    if (!found.ok) return found
    const { flag, name, negated } = found.value

    let texts: string[]
    if (negated) {
      if (attached !== null) return usage(`${written} takes no value`)
      texts = ["false"]
    } else if (attached !== null) {
      texts = [attached]
    } else if (flag?.arity === "switch") {
      const next = words[at]
      const hasValue = next !== undefined && /^(?:true|false)$/i.test(next)
      texts = [hasValue ? next : "true"]
      if (hasValue) at++
    } else {
      const first = at
      const last = flag?.arity === "many" ? words.length : at + 1
      while (at < Math.min(last, words.length) && !startsFlag(words[at]!)) at++
      texts = words.slice(first, at)
      if (texts.length === 0) return usage(`${written} needs a value: ${flag?.sample ?? "FILE"}`)
    }
    if (flag === null) configFile = texts[0]!
    else if (flag.arity === "many" && given.has(name)) given.get(name)!.texts.push(...texts)
    else given.set(name, { flag, shown: written, texts })
  }
  const flagged = given.get("model")?.texts.at(-1)
  if (positional !== null && flagged !== undefined && flagged !== positional) {
    return usage(`two different models: ${positional} and --model ${flagged}`)
  }
  if (positional !== null) given.set("model", { flag: flagsByName.get("model")!, shown: "model", texts: [positional] })
  return ok({ given, configFile })
}

interface FoundFlag {
  /** null for `--config`, which is no part of the table: it may not stand in a config file. */
  readonly flag: Flag | null
  readonly name: string
  readonly negated: boolean
}

/** Finds a flag as written: `--max_model_len`, `--no-enable-log-requests`, `-tp`, `--compilation-config.mode`. */
function findFlag(written: string): Result<FoundFlag, UsageFailure> {
  // Keys behind a dot belong to a JSON value: they keep their spelling.
  const dot = written.indexOf(".")
  const keys = dot === -1 ? "" : written.slice(dot)
  const plain = (dot === -1 ? written : written.slice(0, dot)).replace(/^--?/, "")
  const name = written.startsWith("--") ? plain.replaceAll("_", "-") : (shortFlags.get(plain) ?? plain)
  if (written.startsWith("--") && name === "config" && keys === "") return ok({ flag: null, name, negated: false })
  if (written.startsWith("--") || shortFlags.has(plain)) {
    const whole = flagsByName.get(name + keys)
    if (whole !== undefined) return ok({ flag: whole, name: whole.name, negated: false })
    const base = flagsByName.get(name)
    const takesKeys = base?.forEngine === "alone" ? base.arity === "one" : base?.name === "structured-outputs-config"
    if (keys !== "" && takesKeys) {
      return ok({ flag: passedOn(name + keys, "one", null), name: name + keys, negated: false })
    }
    const positive = name.replace(/^no-/, "")
    const switched = positive === name || keys !== "" ? undefined : flagsByName.get(positive)
    if (switched?.arity === "switch") return ok({ flag: switched, name: positive, negated: true })
    if (unsupportedFlags.has(name) || unsupportedFlags.has(positive)) return usage(`${written} is not supported yet`)
  }
  if (!written.startsWith("--") && unsupportedShortFlags.has(name)) return usage(`${written} is not supported yet`)
  const near = nearestFlag(name) ?? nearestFlag(name.replace(/^no-/, ""))
  return usage(`unknown flag ${written}${near === null ? "" : `: did you mean --${near}?`}`)
}

/** The flag with the fewest changed letters, if at most a third of them changed. */
function nearestFlag(name: string): string | null {
  let nearest: string | null = null
  let distance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of ["config", "help", "version", ...flagsByName.keys()]) {
    const changed = editDistance(name.slice(0, 64), candidate)
    if (changed < distance) [nearest, distance] = [candidate, changed]
  }
  return nearest
}

/** Letters to add, drop or replace to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}

function addConfigFile(
  given: Map<string, GivenFlag>,
  path: string,
  entries: readonly ConfigFileEntry[],
): Result<null, UsageFailure> {
  const seen = new Set<string>()
  for (const entry of entries) {
    const name = entry.key.replaceAll("_", "-")
    const found = name === "config" ? usage("unknown flag --config") : findFlag(`--${name}`)
    if (!found.ok) return usage(`--config ${path}: ${entry.key}: ${found.error.message}`)
    const flag = found.value.flag!
    if (found.value.negated) return usage(`--config ${path}: ${entry.key}: write ${found.value.name}: false`)
    if (seen.has(flag.name)) return usage(`--config ${path}: ${entry.key} is given twice`)
    seen.add(flag.name)
    const texts = flag.arity === "many" && entry.entries !== null ? [...entry.entries] : [entry.text]
    if (!given.has(flag.name)) given.set(flag.name, { flag, shown: `--config ${path}: ${entry.key}`, texts })
  }
  return ok(null)
}

function addEnvironment(given: Map<string, GivenFlag>, env: Environment): void {
  for (const flag of flagTable) {
    if (given.has(flag.name)) continue
    // An empty variable counts as unset: that is how shells and container files take one back.
    const variable = flag.env.find((name) => env[name])
    if (variable !== undefined) given.set(flag.name, { flag, shown: variable, texts: [env[variable]!] })
  }
}

/** Looks at what depends on several flags or on files, and leaves only what `Config` holds. */
function complete(draft: Draft, readFile: ReadFile, env: Environment): Result<Config, UsageFailure> {
  const { chatTemplateSource, tokenizerCacheChoice, engineRecordsChoice, sslKeyFile, sslCertFile, sslCaFile, ...rest } =
    draft
  const { engineChoice, engineCommandWords, dataParallelSizeLocal, engineArguments, ...config } = rest
  if (config.enableLogOutputs && !config.enableLogRequests) {
    return usage("--enable-log-outputs needs --enable-log-requests")
  }
  if (config.tokensOnly) config.enableScaleOut = true
  if (config.model === null) {
    if (config.tokenizer !== null) return usage("--tokenizer needs a model: the built-in profile has its own")
    if (config.revision !== null) return usage("--revision needs a model")
  }
  if (sslCertFile === null && (sslKeyFile ?? sslCaFile) !== null) {
    return usage(`${sslKeyFile === null ? "--ssl-ca-certs" : "--ssl-keyfile"} needs --ssl-certfile`)
  }
  for (const [flag, path] of [
    ["--ssl-keyfile", sslKeyFile],
    ["--ssl-certfile", sslCertFile],
    ["--ssl-ca-certs", sslCaFile],
  ] as const) {
    const file = path === null ? null : readFile(path)
    if (file?.ok === false) return usage(`${flag} ${path}: ${file.error}`)
  }
  if (sslCertFile !== null) {
    config.tls = { certFile: sslCertFile, keyFile: sslKeyFile ?? sslCertFile, caFile: sslCaFile }
  }
  config.tokenizerCacheDir = keptFolder(tokenizerCacheChoice, env)
  config.vllm.recordsDir = keptFolder(engineRecordsChoice, env, "engines")
  if (chatTemplateSource !== null) {
    const template = readChatTemplate(chatTemplateSource, readFile)
    if (!template.ok) return template
    config.chatTemplate = template.value
  }
  return ok(config)
}

/**
 * A file's text, or the template itself. As in vLLM, what cannot be read as a file is a template only if it holds a
 * brace or a line break; anything else was meant as a path.
 */
function readChatTemplate(source: string, readFile: ReadFile): Result<string, UsageFailure> {
  if (!/[{}\n]/.test(source)) {
    const file = readFile(source)
    return file.ok ? file : usage(`--chat-template ${source}: ${file.error}`)
  }
  const file = source.length <= 4096 && !source.includes("\n") ? readFile(source) : null
  if (file?.ok === true) return file
  // On a command line `\n` stands for a line break, as vLLM reads it.
  const escapes: { readonly [letter: string]: string } = { n: "\n", t: "\t", r: "\r", "\\": "\\" }
  return ok(source.replace(/\\([ntr\\])/g, (_, letter: string) => escapes[letter]!))
}

/** The folder that a flag chose or, unless it did, one of the user's; null = none, also where nobody has a home. */
function keptFolder(choice: string | null, env: Environment, ...below: readonly string[]): string | null {
  const home = env.HOME || env.USERPROFILE
  if (choice === "off") return null
  if (choice !== null) return home ? choice.replace(/^~(?=\/|$)/, () => home) : choice
  // A relative path counts as unset. Source: XDG Base Directory Specification.
  if (env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME)) return join(env.XDG_CACHE_HOME, "sluice", ...below)
  return home ? join(home, ".cache", "sluice", ...below) : null
}

function hubSettings(config: Config, env: Environment): Result<HubSettings, UsageFailure> {
  const endpoint = (env.HF_ENDPOINT || hubEndpointDefault).replace(/\/+$/, "")
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? "")) {
    return usage(`HF_ENDPOINT ${quoted(endpoint)}: expected an http or https address`)
  }
  const home = env.HOME || env.USERPROFILE || "."
  const hfHome = env.HF_HOME || join(env.XDG_CACHE_HOME || join(home, ".cache"), "huggingface")
  const cacheDir = (config.downloadDir ?? join(hfHome, "hub")).replace(/^~(?=\/|$)/, () => home)
  return ok({
    revision: config.revision ?? "main",
    cacheDir,
    token: env.HF_TOKEN?.trim() || null,
    endpoint,
    offline: [env.HF_HUB_OFFLINE, env.TRANSFORMERS_OFFLINE].some((word) => /^(?:1|true|yes|on)$/i.test(word ?? "")),
  })
}
