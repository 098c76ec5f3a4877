/**
 * Which engine serves, and with which command it is started here: what `--engine auto` means, and what follows from
 * flags that are spread over Sluice's command line, the engine's, and the PATH.
 */
import type { Draft, Flag, GivenFlag } from "./flags-fields"
import { engineFlagTable } from "./flags-table-engine"
import { err, ok, type Result } from "./result"

/** Gives the path of a program on the PATH, or null. */
export type FindProgram = (name: string) => string | null

/** Flags that engine and Sluice must agree on, under every name that an engine's command line may have for them. */
const linkFlags: ReadonlyMap<string, Flag> = new Map(
  engineFlagTable
    .filter((flag) => flag.short !== "")
    .flatMap((flag) => [[`--${flag.name}`, flag] as const, [`-${flag.short}`, flag] as const]),
)

/** Flags that only engines behind HTTP have. */
const httpFlags: ReadonlySet<string> = new Set(["engine-url", "engine-api-key", "engine-health-interval-ms"])

/**
 * Chooses the engine and, where engines are started here, writes their command into the draft. `trailing` are the
 * words after `--`. Gives warnings, or what is wrong as one line.
 */
export function planEngine(
  draft: Draft,
  given: ReadonlyMap<string, GivenFlag>,
  trailing: readonly string[],
  findProgram: FindProgram,
): Result<readonly string[], string> {
  const written = [...given.values()]
  const passed = written.filter((each) => each.flag.forEngine === "alone").map((each) => each.shown)
  if (trailing.length > 0) passed.push("what stands after --")
  const ours = written.filter(
    ({ flag }) =>
      flag.group === "engine" && flag.forEngine !== "alone" && flag.name !== "engine" && !httpFlags.has(flag.name),
  )
  const steering = [...ours.map((each) => each.shown), ...passed]

  const remote = written.filter(({ flag }) => httpFlags.has(flag.name))
  if (draft.engineChoice === "http" || (draft.engineChoice === "auto" && draft.http.urls.length > 0)) {
    if (draft.http.urls.length === 0) return err("--engine http needs --engine-url")
    draft.engine = "http"
    const idle = ours.filter(({ flag }) => flag.name !== "lora-modules")
    const words = [...idle.map((each) => each.shown), ...passed]
    return ok(words.length === 0 ? [] : [`without effect on --engine http: ${words.join(", ")}`])
  }
  if (draft.engineChoice === "vllm" && draft.http.urls.length > 0) return err("--engine-url is for --engine http")
  if (draft.engineChoice === "simulator") {
    const idle = [...remote.map((each) => each.shown), ...steering]
    return ok(idle.length === 0 ? [] : [`without effect on the simulator: ${idle.join(", ")}`])
  }
  if (draft.model === null) {
    if (draft.engineChoice === "vllm") return err("--engine vllm needs a model")
    return steering.length > 0 ? err(`${steering[0]} needs a model`) : ok([])
  }
  if (draft.engineChoice === "auto" && steering.length === 0 && findProgram("vllm") === null) {
    return err(
      `no vllm on the PATH to compute the answers of ${draft.model}: name the command with --engine-command, wait for ` +
        "engines started elsewhere with --engine vllm, or have answers simulated with --engine simulator",
    )
  }
  draft.engine = "vllm"
  return planCommand(draft, draft.model, given, passed, trailing, findProgram)
}

/** The role without an engine: what steers one is without effect, and said to be. */
export function planRender(
  draft: Draft,
  given: ReadonlyMap<string, GivenFlag>,
  trailing: readonly string[],
): Result<readonly string[], string> {
  if (draft.tokensOnly) return err("--tokens-only is for serve: render has nothing but text")
  const idle = [...given.values()].filter(({ flag }) => ["engine", "simulator"].includes(flag.group))
  const words = [...idle.map((each) => each.shown), ...(trailing.length > 0 ? ["what stands after --"] : [])]
  return ok(words.length === 0 ? [] : [`without effect on sluice render: ${words.join(", ")}`])
}

/** The command of the engines that are started here, if any are. */
function planCommand(
  draft: Draft,
  model: string,
  given: ReadonlyMap<string, GivenFlag>,
  passed: readonly string[],
  trailing: readonly string[],
  findProgram: FindProgram,
): Result<readonly string[], string> {
  const command = draft.engineCommandWords
  const before = command ?? ["serve", model, ...sharedArguments(draft)]
  const agreed = agreeOnLink([...before, ...trailing], draft, given)
  if (!agreed.ok) return agreed
  const { dataParallelSize } = draft.vllm
  const local = draft.dataParallelSizeLocal
  if (local !== null && local > dataParallelSize) {
    return err(`--data-parallel-size-local ${local} is more than --data-parallel-size ${dataParallelSize}`)
  }
  if (command !== null && local === 0) {
    return err("--engine-command starts engines, but --data-parallel-size-local 0 says that none is started here")
  }
  if (command !== null && passed.length > (trailing.length > 0 ? 1 : 0)) {
    return err(`${passed[0]} belongs into --engine-command, which is run as it stands`)
  }
  const program = command !== null || local === 0 ? null : findProgram("vllm")
  if (command === null && program === null) {
    if (local !== null && local > 0) {
      return err(`--data-parallel-size-local ${local}: there is no vllm on the PATH to start, and no --engine-command`)
    }
    if (passed.length === 0) return ok([])
    return ok([`for the command line of the engine, and none is started here: ${passed.join(", ")}`])
  }
  const words = program === null ? agreed.value : [program, ...agreed.value]
  if (program !== null && draft.vllm.loraModules.length > 0 && !words.includes("--enable-lora")) {
    return err("--lora-modules needs --enable-lora")
  }
  draft.vllm.command = { words, engines: local ?? dataParallelSize }
  return ok([])
}

/** What `vllm serve MODEL` gets of our own command line. Parsers that we choose ourselves mean nothing to vLLM. */
function sharedArguments(draft: Draft): string[] {
  return draft.engineArguments.filter((word) => !/^--reasoning-parser=(?:auto|none)$/.test(word))
}

/**
 * Takes the flags of the link out of an engine's command line, because they are added when it is started. What Sluice
 * was not told itself counts as told; two different values are an error.
 */
function agreeOnLink(
  words: readonly string[],
  draft: Draft,
  given: ReadonlyMap<string, GivenFlag>,
): Result<string[], string> {
  const rest: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    const equals = word.indexOf("=")
    const written = equals === -1 ? word : word.slice(0, equals)
    const name = written.startsWith("--") ? written.replaceAll("_", "-") : written
    if (name === "--headless") continue
    const flag = linkFlags.get(name)
    if (flag === undefined) {
      rest.push(word)
      continue
    }
    const text = equals === -1 ? words[++at] : word.slice(equals + 1)
    if (text === undefined) return err(`${written} at the end of the engine's command line needs a value`)
    const own = given.get(flag.name)
    const ownText = own?.texts.at(-1)
    if (own !== undefined && ownText !== text) {
      return err(`${own.shown} ${ownText} and ${written} ${text} on the engine's command line: they must be the same`)
    }
    const applied = flag.apply(draft, [text])
    if (!applied.ok) {
      return err(`${written} ${JSON.stringify(text)} on the engine's command line: expected ${applied.error.expected}`)
    }
  }
  return ok(rest)
}
