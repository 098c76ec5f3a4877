import type { Json } from "../../ir/conversation"
import { isRecord } from "../schema"

type Fields = { readonly [name: string]: Json }

/**
 * The chunks of one step as one, for replies that have room for one: texts and lists of the same kind are joined,
 * fragments of a call go into its entry, and of everything else the last word counts. `empty` gives a step that shows
 * nothing; `index` is the choice's number towards the client.
 */
export function mergedChunk(events: readonly Fields[], empty: Fields, index: number): Fields {
  let merged: Fields = empty
  for (const event of events) {
    const choices = mergedChoice(choiceOf(merged), choiceOf(event))
    merged = { ...merged, ...event, choices: choices === null ? [] : [{ ...choices, index }] }
  }
  // A chunk with usage alone has no choice.
  const isUsageOnly = events.length > 0 && events.every((event) => choiceOf(event) === null)
  return isUsageOnly ? { ...merged, choices: [] } : merged
}

function choiceOf(chunk: Fields): Fields | null {
  const { choices } = chunk
  const first = Array.isArray(choices) ? choices[0] : null
  return isRecord(first) ? first : null
}

function mergedChoice(first: Fields | null, second: Fields | null): Fields | null {
  if (first === null || second === null) return second ?? first
  const merged: { [name: string]: Json } = { ...first }
  for (const [name, value] of Object.entries(second)) {
    const before = merged[name] ?? null
    if (value === null && before !== null) continue
    merged[name] = joined(name, before, value)
  }
  return merged
}

function joined(name: string, before: Json, value: Json): Json {
  if (before === null) return value
  if (typeof before === "string" && typeof value === "string") {
    return joinedTexts.has(name) ? before + value : value
  }
  if (Array.isArray(before) && Array.isArray(value)) {
    return name === "tool_calls" ? mergedCalls(before, value) : [...before, ...value]
  }
  if (isRecord(before) && isRecord(value)) return mergedChoice(before, value) ?? {}
  return value
}

const joinedTexts: ReadonlySet<string> = new Set(["content", "reasoning", "text", "arguments"])

/** Entries of the same call become one. */
function mergedCalls(before: readonly Json[], more: readonly Json[]): Json[] {
  const calls = [...before]
  for (const call of more) {
    const at = isRecord(call) ? calls.findIndex((each) => isRecord(each) && each.index === call.index) : -1
    const known = calls[at]
    if (isRecord(call) && isRecord(known)) calls[at] = mergedChoice(known, call) ?? {}
    else calls.push(call)
  }
  return calls
}
