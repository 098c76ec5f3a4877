import { ok, type Result } from "../../result"
import { objectOf } from "../../tokenizer/json-shape"
import { type RendererUnusable, unusable } from "../renderer"

/** Generations of Mistral's format whose prompts are written. */
export const mistralVersions = [3, 7, 11, 13, 15] as const

/** One of them; the vocabulary's file names it. */
export type MistralVersion = (typeof mistralVersions)[number]

/** What stays the same for all prompts of a Mistral model. */
export interface MistralSetting {
  readonly version: MistralVersion
  /** From v15 on: how hard the model can be told to think, and how hard it does when nothing is said. null = not told. */
  readonly efforts: ReasoningEfforts | null
}

/** The efforts that a vocabulary's file declares. */
export interface ReasoningEfforts {
  readonly values: readonly string[]
  readonly standard: string
}

/**
 * The format's version and settings in a parsed tekken.json. What the reference would refuse to load, and versions
 * before v3, whose vocabularies are no tekken files, are refused. Source: mistral-common 1.13.1, `Tekkenizer.from_file`.
 */
export function readMistralSetting(tekken: unknown): Result<MistralSetting, RendererUnusable> {
  const { config, model_settings_builder: settings } = objectOf(tekken) ?? {}
  const named = objectOf(config)?.version
  const version = mistralVersions.find((each) => named === `v${each}`)
  if (version === undefined) {
    const known = mistralVersions.map((each) => `v${each}`).join(", ")
    return unusable(`tekken.json has the format version ${JSON.stringify(named ?? null)}; known are ${known}`)
  }
  const isSet = settings !== undefined && settings !== null
  if (version < 15) {
    return isSet
      ? unusable(`tekken.json of version v${version} cannot have model settings`)
      : ok({ version, efforts: null })
  }
  if (!isSet) return unusable(`tekken.json of version v${version} needs model settings`)
  const effort = objectOf(settings)?.reasoning_effort ?? null
  if (effort === null) return ok({ version, efforts: null })
  const { values, default: standard } = objectOf(effort) ?? {}
  const isList = Array.isArray(values) && values.every((each) => typeof each === "string")
  if (!isList || typeof standard !== "string" || !values.includes(standard)) {
    return unusable("tekken.json has reasoning efforts that are no list of texts with a default among them")
  }
  return ok({ version, efforts: { values, standard } })
}

/** The same of a SentencePiece model, whose file's name (`tokenizer.model.v3`, `….v7m1`) is all that tells it. */
export function sentencePieceSetting(fileName: string): Result<MistralSetting, RendererUnusable> {
  const named = /\.model\.v(\d+)(?:m\d+)?$/.exec(fileName)?.[1]
  if (named === "3" || named === "7") return ok({ version: named === "3" ? 3 : 7, efforts: null })
  return unusable(
    `${fileName} is of a format version other than v3 and v7; --tokenizer-mode hf takes the chat template`,
  )
}
