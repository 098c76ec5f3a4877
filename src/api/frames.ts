/** Text of SSE frames. One event is always one string, so that it leaves in one piece. */
import { jsonText } from "../ir/exact-json"
import type { ErrorBody } from "./errors"

/** A frame with only data, as chat and completions use it. `json` must hold no line break: JSON text never does. */
export function dataFrame(json: string): string {
  return `data: ${json}\n\n`
}

/** The last frame of chat and completions streams. */
export const doneFrame = "data: [DONE]\n\n"

/** A failure after the stream began. */
export function errorFrame(error: ErrorBody): string {
  return dataFrame(jsonLine({ error }))
}

/**
 * Hot (bench/fold.ts). A text as JSON. Characters that JSON leaves as they are but some clients take for line breaks
 * (Python's `splitlines` does) are escaped, so that an event stays one line for everybody.
 */
export function jsonString(text: string): string {
  const json = JSON.stringify(text)
  return lineBreakers.test(text) ? oneLine(json) : json
}

/** Any value as JSON on one line, as `jsonString` makes it. */
export function jsonLine(value: unknown): string {
  const json = jsonText(value)
  return lineBreakers.test(json) ? oneLine(json) : json
}

const lineBreakers = /[\u0085\u2028\u2029]/
const everyLineBreaker = /[\u0085\u2028\u2029]/g

function oneLine(json: string): string {
  return json.replaceAll(everyLineBreaker, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
