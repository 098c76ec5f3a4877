import type { Json } from "../ir/conversation"
import { type EngineError, Finish } from "../ir/engine"
import { err, ok, type Result } from "../result"

/** How a scripted failure ends a sequence. `fatal` takes the whole engine down. */
export type SimulatedFailure = "retryable" | "validation" | "disconnect" | "fatal"

/**
 * What a request says the model shall "generate" and how: the `sim_*` keys of `vllm_xargs`. A stable contract, since
 * tests drive the product over HTTP with it (README, Scripting the simulator).
 */
export interface SimulatorScript {
  /** Model output with special tokens spelled out; null unless the request gives it. */
  readonly text: string | null
  readonly tokenIds: Uint32Array | null
  /** Tokens of the first, second … step; the last number repeats. Never empty, the last is at least 1. */
  readonly tokensPerStep: readonly number[]
  /** null = the engine's own pace. */
  readonly stepMs: number | null
  /** `stop` = the engine adds EOS behind the text; any other code ends the sequence at the text's last token. */
  readonly finish: Finish
  /** Tokens given before the failure; -1 = no failure. */
  readonly failAfterTokens: number
  readonly failure: SimulatedFailure
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
}

/** What the simulator allows in a script. */
export interface ScriptRules {
  readonly allowScripts: boolean
  readonly vocabSize: number
}

/** The script of requests that bring none. */
export const noScript: SimulatorScript = {
  text: null,
  tokenIds: null,
  tokensPerStep: [1],
  stepMs: null,
  finish: Finish.stop,
  failAfterTokens: -1,
  failure: "retryable",
  cachedTokens: 0,
  cacheWriteTokens: 0,
}

/** Tokens that one step may give a sequence. */
const stepTokensMax = 65_536
/** An hour: a step that long stands for an engine that hangs. */
const stepMsMax = 3_600_000
const countMax = 0x7fff_ffff

const keyPrefix = "sim_"
const knownKeys: ReadonlySet<string> = new Set([
  "sim_text",
  "sim_token_ids",
  "sim_tokens_per_step",
  "sim_step_ms",
  "sim_finish",
  "sim_fail_after_tokens",
  "sim_error",
  "sim_cached_tokens",
  "sim_cache_write_tokens",
])

const finishes: ReadonlyMap<Json, Finish> = new Map<Json, Finish>([
  ["stop", Finish.stop],
  ["length", Finish.length],
  ["abort", Finish.abort],
  ["error", Finish.error],
  ["repetition", Finish.repetition],
])

const failures: ReadonlyMap<Json, SimulatedFailure> = new Map<Json, SimulatedFailure>([
  ["retryable", "retryable"],
  ["validation", "validation"],
  ["disconnect", "disconnect"],
  ["fatal", "fatal"],
])

/**
 * Reads the `sim_*` keys of a request; keys without that prefix belong to others and are left alone. Every mistake is
 * an `engine_validation` with param `vllm_xargs`. `sim_fail_after_tokens` alone means a retryable failure, `sim_error`
 * alone a failure before the first token.
 */
export function readScript(
  extraArgs: { readonly [name: string]: Json } | null,
  rules: ScriptRules,
): Result<SimulatorScript, EngineError> {
  if (extraArgs === null) return ok(noScript)
  const keys = Object.keys(extraArgs).filter((key) => key.startsWith(keyPrefix))
  if (keys.length === 0) return ok(noScript)
  if (!rules.allowScripts) {
    return refused(`this server's simulator takes no scripts, so ${keys.join(", ")} cannot be used`)
  }
  const unknown = keys.find((key) => !knownKeys.has(key))
  if (unknown !== undefined)
    return refused(`${unknown} is no key of the simulator; it knows ${[...knownKeys].join(", ")}`)

  const text = extraArgs.sim_text
  if (text !== undefined && typeof text !== "string") return refused("sim_text must be a string")
  const tokenIds = extraArgs.sim_token_ids
  if (text !== undefined && tokenIds !== undefined) {
    return refused("sim_text and sim_token_ids say the same thing twice; give one of them")
  }
  const ids = tokenIds === undefined ? null : readTokenIds(tokenIds, rules.vocabSize)
  if (ids === "wrong") {
    return refused(`sim_token_ids must be a list of token ids from 0 to ${rules.vocabSize - 1}`)
  }
  const tokensPerStep = readTokensPerStep(extraArgs.sim_tokens_per_step)
  if (tokensPerStep === null) {
    return refused(
      `sim_tokens_per_step must be an integer from 1 to ${stepTokensMax}, or a list of such (0 allowed but not last)`,
    )
  }
  const stepMs = extraArgs.sim_step_ms ?? null
  if (("sim_step_ms" in extraArgs && typeof stepMs !== "number") || !isPace(stepMs)) {
    return refused(`sim_step_ms must be a number from 0 to ${stepMsMax}`)
  }
  const finish = "sim_finish" in extraArgs ? finishes.get(extraArgs.sim_finish!) : Finish.stop
  if (finish === undefined) return refused(`sim_finish must be one of ${[...finishes.keys()].join(", ")}`)
  const failure = "sim_error" in extraArgs ? failures.get(extraArgs.sim_error!) : noScript.failure
  if (failure === undefined) return refused(`sim_error must be one of ${[...failures.keys()].join(", ")}`)

  const failAfterDefault = "sim_error" in extraArgs ? 0 : -1
  const failAfterTokens = readCount(extraArgs, "sim_fail_after_tokens", failAfterDefault)
  const cachedTokens = readCount(extraArgs, "sim_cached_tokens", noScript.cachedTokens)
  const cacheWriteTokens = readCount(extraArgs, "sim_cache_write_tokens", noScript.cacheWriteTokens)
  if (failAfterTokens === null) return notCount("sim_fail_after_tokens")
  if (cachedTokens === null) return notCount("sim_cached_tokens")
  if (cacheWriteTokens === null) return notCount("sim_cache_write_tokens")

  return ok({
    text: text ?? null,
    tokenIds: ids,
    tokensPerStep,
    stepMs,
    finish,
    failAfterTokens,
    failure,
    cachedTokens,
    cacheWriteTokens,
  })
}

function refused(message: string): Result<never, EngineError> {
  return err({ kind: "engine_validation", message, param: "vllm_xargs" })
}

function notCount(key: string): Result<never, EngineError> {
  return refused(`${key} must be an integer from 0 to ${countMax}`)
}

function isInteger(value: Json, min: number, max: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max
}

function isPace(value: Json): value is number | null {
  return value === null || (typeof value === "number" && value >= 0 && value <= stepMsMax)
}

function readCount(args: { readonly [name: string]: Json }, key: string, absent: number): number | null {
  if (!(key in args)) return absent
  const value = args[key]!
  return isInteger(value, 0, countMax) ? value : null
}

function readTokenIds(value: Json, vocabSize: number): Uint32Array | "wrong" {
  if (!Array.isArray(value)) return "wrong"
  const ids = new Uint32Array(value.length)
  for (let i = 0; i < value.length; i++) {
    const id = value[i]!
    if (!isInteger(id, 0, vocabSize - 1)) return "wrong"
    ids[i] = id
  }
  return ids
}

function readTokensPerStep(value: Json | undefined): readonly number[] | null {
  if (value === undefined) return noScript.tokensPerStep
  const list = Array.isArray(value) ? value : [value]
  const last = list.at(-1)
  if (last === undefined || !isInteger(last, 1, stepTokensMax)) return null
  const counts: number[] = []
  for (const count of list) {
    if (!isInteger(count, 0, stepTokensMax)) return null
    counts.push(count)
  }
  return counts
}
