import type { MakeContent } from "../combined"
import { MistralCallMachine, mistralCallMarkers } from "../mistral-calls"
import type { Vocabulary } from "../parser"
import type { ReasoningFraming } from "../reasoning"

/**
 * Magistral and other models of v13 and later: `[THINK]It may rain.[/THINK]Take a coat.` A call may end the reasoning,
 * too. Source: PARSERS 2.
 */
export const mistralReasoning: ReasoningFraming = {
  start: "[THINK]",
  end: "[/THINK]",
  afterStart: "",
  beforeEnd: "",
  afterEnd: "",
  startsInside: false,
  endedBy: mistralCallMarkers.calls,
}

/** Makes the machine for calls; null where the vocabulary has no marker for them. */
export function mistralCalls(vocabulary: Vocabulary): MakeContent | null {
  const idOf = (marker: string): number => vocabulary.tokenToId(marker)
  const { calls, callId, args } = mistralCallMarkers
  const ids = { calls: idOf(calls), callId: idOf(callId), args: idOf(args) }
  return ids.calls < 0 ? null : (emission) => new MistralCallMachine(ids, emission)
}
