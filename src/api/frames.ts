/** Text of SSE frames. One event is always one string, so that it leaves in one piece. */
import { oneLine } from "../http/json-string"
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

/** Any value as JSON on one line, with what `jsonString` escapes. */
export function jsonLine(value: unknown): string {
  return oneLine(jsonText(value))
}
