/** Engines that registered with an earlier process of this server: whether they are taken, and what they are. */
import { ok, type Result } from "../../result"
import { type EngineFacts, factsOf } from "./engine-facts"
import type { EngineLink } from "./engine-link"
import type { EngineRecord } from "./engine-records"
import type { UtilityFailure } from "./utility-calls"

/**
 * The method with which an engine makes its registration, and so the call that has it say everything again. It only reads.
 * Source: vLLM 0.32.0, `EngineCoreProc`; a version without it answers that the call failed.
 */
const registrationMethod = "_make_ready_response"

/** What this server serves, as far as an engine must compute just that. */
export interface ServedModel {
  /** As the operator wrote it, and its folder. Empty = not compared. */
  readonly modelNames: readonly string[]
  readonly vocabSize: number
  /** Engines step together. */
  readonly isCoordinated: boolean
}

/** Why an engine of an earlier process cannot be taken; null = nothing speaks against it. */
export function whyNotTaken(record: EngineRecord | null, served: ServedModel): string | null {
  // Its sockets to the coordinator are others, and the wave that it stands in is known to the earlier process alone.
  if (served.isCoordinated || record?.isCoordinated === true) return "engines that step together begin together"
  if (record === null) return null
  const [theirs, ours] = [record.modelNames, served.modelNames]
  if (theirs.length > 0 && ours.length > 0 && !theirs.some((name) => ours.includes(name))) {
    return `it was started for ${theirs[0]}, and ${ours[0]} is served now`
  }
  if (record.vocabSize === served.vocabSize) return null
  return `it was started for a vocabulary of ${record.vocabSize} tokens, and one of ${served.vocabSize} is served now`
}

/** Has an engine say again what it is; null = it does not know how. A failure: it does not answer, or is gone. */
export async function askFacts(
  link: EngineLink,
  timeoutMs: number,
): Promise<Result<EngineFacts | null, UtilityFailure>> {
  const said = await link.call(registrationMethod, [], timeoutMs)
  if (!said.ok) return said.error.kind === "utility_failed" ? ok(null) : said
  const { value } = said
  if (typeof value !== "object" || value === null || Array.isArray(value)) return ok(null)
  const facts = factsOf(value)
  // What no registration lacks: else it is another method of that name.
  return ok(facts.contextTokensMax === null ? null : facts)
}
