import type { Conversation, Json } from "../../ir/conversation"
import { spellingOf } from "../../ir/json-spelling"
import { ok, type Result } from "../../result"
import { type ConversationRefused, refused } from "../renderer"

type Kwargs = Conversation["templateKwargs"]

/** What template variables say to V4 and V4.1. */
export interface V4Setting {
  readonly isThinking: boolean
  /** Reasoning of turns that are answered is left out, unless there are tools. */
  readonly dropsReasoning: boolean
  /** What stands in front of a conversation that is thought about: V4's level, V4.1's number of 100. */
  readonly effort: V4Effort | number
}

/** V4's levels. */
export type V4Effort = "low" | "high" | "max"

/** V3.2 thinks when it is told to. Source: vLLM 0.33.0, `deepseek_v32.py`. */
export function readV32Thinking({ thinking, enable_thinking: enableThinking }: Kwargs): boolean {
  return readsAsTrue(thinking) || readsAsTrue(enableThinking)
}

/**
 * V4 thinks unless it is told not to, hard where nothing is said. Of the seven levels of effort it knows three. Source:
 * vLLM 0.33.0, `deepseek_v4.py`.
 */
export function readV4Setting(kwargs: Kwargs): V4Setting {
  const effort = kwargs.reasoning_effort ?? null
  return {
    isThinking: thinksUnlessTold(kwargs) && effort !== "none",
    dropsReasoning: dropsReasoning(kwargs),
    effort: v4Effort(effort),
  }
}

function v4Effort(effort: Json): V4Effort {
  switch (effort) {
    case "max":
      return "max"
    case "low":
    case "minimal":
    case "medium":
      return "low"
    default:
      return "high"
  }
}

/** V4.1's names for numbers. */
const v41Efforts: ReadonlyMap<Json, number> = new Map([
  ["low", 50],
  ["high", 75],
  ["xhigh", 75],
  ["max", 100],
])

/** V4.1 takes numbers from 1 to 100 as well, and no other names than its own. Source: vLLM 0.33.0, `deepseek_v41.py`. */
export function readV41Setting(kwargs: Kwargs): Result<V4Setting, ConversationRefused> {
  const given = kwargs.reasoning_effort ?? "high"
  const isNone = given === "none"
  const effort = typeof given === "number" ? wholeNumber(given, kwargs) : v41Efforts.get(isNone ? "high" : given)
  if (effort === undefined || effort < 1 || effort > 100) {
    return refused(
      "reasoning_effort must be none, low, high, xhigh or max for this model, or in chat_template_kwargs a whole number from 1 to 100.",
      "reasoning_effort",
    )
  }
  return ok({ isThinking: thinksUnlessTold(kwargs) && !isNone, dropsReasoning: dropsReasoning(kwargs), effort })
}

/** 50.0 is no integer, as in the reference. */
function wholeNumber(value: number, kwargs: Kwargs): number | undefined {
  const isFloat = spellingOf(kwargs)?.floats?.has("reasoning_effort") === true
  return Number.isInteger(value) && !isFloat ? value : undefined
}

function thinksUnlessTold({ thinking, enable_thinking: enableThinking }: Kwargs): boolean {
  if (thinking === undefined && enableThinking === undefined) return true
  return readsAsTrue(thinking) || readsAsTrue(enableThinking)
}

function dropsReasoning({ drop_thinking: dropThinking = true }: Kwargs): boolean {
  return readsAsTrue(dropThinking)
}

/** Python's `bool`: nothing, zero and what is empty are false. */
export function readsAsTrue(value: Json | undefined): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value)
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0
}
