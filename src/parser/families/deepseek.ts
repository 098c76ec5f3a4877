import type { MakeContent } from "../combined"
import { DsmlCallMachine, type DsmlTagNames, dsmlFrame, dsmlMarker } from "../dsml-calls"
import type { Vocabulary } from "../parser"
import type { ReasoningFraming } from "../reasoning"

/**
 * DeepSeek V3.1 and later: `<think>It may rain.</think>Take a coat.` Their prompts end with either marker, which says
 * whether a reply begins with reasoning. A tag ends it, too: models were seen to call without closing it. Source: PARSERS 2.
 */
export const deepseekV3Reasoning: ReasoningFraming = {
  start: "<think>",
  end: "</think>",
  afterStart: "",
  beforeEnd: "",
  afterEnd: "",
  startsInside: false,
  endedBy: dsmlMarker,
  endedByFrame: dsmlFrame,
}

/** V3.2's tags. */
export const deepseekV32Tags: DsmlTagNames = { calls: ["function_calls"], call: "invoke", parameter: "parameter" }
/** V4's; the model was seen to shorten the first one. */
export const deepseekV4Tags: DsmlTagNames = {
  calls: ["tool_calls", "toolcalls", "tool"],
  call: "invoke",
  parameter: "parameter",
}
/** V4.1's, which begin with a blank. */
export const deepseekV41Tags: DsmlTagNames = { calls: [" calls"], call: " invoke", parameter: " parameter" }

/** Makes the machine for calls; null where the vocabulary has no token that makes tags. */
export function dsmlCalls(tags: DsmlTagNames, vocabulary: Vocabulary): MakeContent | null {
  const markerId = vocabulary.tokenToId(dsmlMarker)
  return markerId < 0 ? null : (emission) => new DsmlCallMachine(tags, markerId, emission)
}
