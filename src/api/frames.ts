/** Text of SSE frames. One event is always one string, so that it leaves in one piece. */
import type { ErrorBody } from "./errors"

/** A frame with only data, as chat and completions use it. `json` must hold no line break: JSON text never does. */
export function dataFrame(json: string): string {
  return `data: ${json}\n\n`
}

/** The last frame of chat and completions streams. */
export const doneFrame = "data: [DONE]\n\n"

/** A failure after the stream began. */
export function errorFrame(error: ErrorBody): string {
  return dataFrame(JSON.stringify({ error }))
}

/**
 * Hot (bench/fold.ts). Characters that JSON leaves as they are but some clients take for line breaks (Python's
 * `splitlines` does), escaped, so that an event stays one line for everybody.
 */
export function asOneLine(frame: string): string {
  return lineBreakers.test(frame) ? frame.replaceAll(everyLineBreaker, escapeUnit) : frame
}

const lineBreakers = /[\u0085\u2028\u2029]/
const everyLineBreaker = /[\u0085\u2028\u2029]/g

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
}
