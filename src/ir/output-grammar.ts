/**
 * What a model family's output may be held to while it is generated, in the language of structural tags (xgrammar's,
 * which vLLM's engines take). Families write the formats, `api` puts them together for a request.
 */
import type { Json } from "./conversation"

/** Which calls a grammar shall allow. */
export interface CallConstraint {
  readonly functions: readonly ConstrainedFunction[]
  /** Text may stand beside the calls, or in their place; else there is at least one call and nothing else. */
  readonly allowsText: boolean
  /** The reply ends with its first call. */
  readonly single: boolean
}

/** A function that may be called. `parameters` is a JSON schema; true = any JSON. */
export interface ConstrainedFunction {
  readonly name: string
  readonly parameters: Json
}

/** Where the reply to a prompt begins. */
export interface ReasoningTag {
  /** The prompt has the reasoning behind it. */
  readonly ended: boolean
  /** Formats that stand before the reply's own; none when it has ended. */
  readonly formats: readonly Json[]
}

/** The formats of one family. */
export interface OutputGrammar {
  /** Calls in the family's syntax; null for a family without one. */
  readonly callTag: ((constraint: CallConstraint) => Json) | null
  /** What a grammar for the whole reply must let pass first; null for a family without reasoning. */
  readonly reasoningTag: ((promptTokenIds: Uint32Array) => ReasoningTag) | null
  /** The reply's text in the family's frame; absent or null for a family that writes text as it is. */
  readonly textTag?: ((format: Json) => Json) | null
}

/** One format behind the other. */
export function inSequence(formats: readonly Json[]): Json {
  return formats.length === 1 ? formats[0]! : { type: "sequence", elements: [...formats] }
}
