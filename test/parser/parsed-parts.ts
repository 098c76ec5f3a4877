/** What parsers make of samples, part by part. */
import type { ParsedPart } from "../support/recording-sink"

/** A call; `ended`: it is whole. */
export function call(name: string, argumentText: string, ended = true, id = ""): ParsedPart {
  return { kind: "call", name, id, arguments: argumentText, ended }
}

/** A stretch of the reply itself. */
export function text(value: string): ParsedPart {
  return { kind: "text", text: value }
}

/** A stretch of reasoning. */
export function reasoning(value: string): ParsedPart {
  return { kind: "reasoning", text: value }
}
