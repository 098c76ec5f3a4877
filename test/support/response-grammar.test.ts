import { expect, test } from "bun:test"
import { checkResponseStream } from "./response-grammar"
import type { SentEvent } from "./sent-events"
import { startTestServer } from "./test-server"

const script =
  '<think>\na b\n</think>\n\nOne two.<tool_call>\n{"name": "look", "arguments": {"at": "sky"}}\n</tool_call>'

// biome-ignore lint/suspicious/noExplicitAny: faults are made in JSON of many shapes
type Loose = any

/** A stream in which something is wrong, named for what. */
const faults: { readonly [name: string]: (events: Loose[]) => Loose[] } = {
  "no first event": (events) => events.slice(1),
  "no last event": (events) => events.slice(0, -1),
  "a second last event": (events) => [...events, events.at(-1)],
  "a lost delta": (events) => without(events, (json) => json.type.endsWith("text.delta")),
  "a lost done": (events) => without(events, (json) => json.type.endsWith("arguments.done")),
  "a lost part": (events) => without(events, (json) => json.type.endsWith("part.added")),
  "a lost end of a part": (events) => without(events, (json) => json.type.endsWith("part.done")),
  "a lost item's end": (events) => without(events, (json) => json.type.endsWith("item.done")),
  "a lost item's beginning": (events) => without(events, (json) => json.type.endsWith("item.added")),
  "a repeated end": (events) => events.flatMap((json) => (json.type.endsWith("item.done") ? [json, json] : [json])),
  "an index that stands still": (events) => changed(events, (json) => "output_index" in json, { output_index: 0 }),
  "a content index for arguments": (events) =>
    changed(events, (json) => json.type.includes("arguments"), { content_index: 0 }),
  "another text at the end": (events) => changed(events, (json) => json.type.endsWith("text.done"), { text: "x" }),
  "another item at the end": (events) =>
    events.map((json) =>
      json.type.endsWith("item.done") ? { ...json, item: { ...json.item, id: `${json.item.id}0` } } : json,
    ),
  "keys in another order at the end": (events) =>
    events.map((json) =>
      json.type.endsWith("item.done")
        ? { ...json, item: Object.fromEntries(Object.entries(json.item).reverse()) }
        : json,
    ),
  "an early item that is incomplete": (events) =>
    onItems(events, (item) => (item.type === "reasoning" ? { ...item, status: "incomplete" } : item)),
  "another status than the event's": (events) =>
    changed(events, (json) => json.type === "response.completed", { type: "response.incomplete" }),
  "an echo that changes": (events) =>
    events.map((json, index) =>
      index === events.length - 1 ? { ...json, response: { ...json.response, temperature: 2 } } : json,
    ),
  "an empty delta": (events) => changed(events, (json) => "delta" in json, { delta: "" }),
}

function without(events: Loose[], isIt: (json: Loose) => boolean): Loose[] {
  return events.toSpliced(events.findIndex(isIt), 1)
}

function changed(events: Loose[], isIt: (json: Loose) => boolean, fields: object): Loose[] {
  return events.map((json) => (isIt(json) ? { ...json, ...fields } : json))
}

function onItems(events: Loose[], change: (item: Loose) => Loose): Loose[] {
  return events.map((json) => {
    if (json.type === "response.output_item.done") return { ...json, item: change(json.item) }
    if (json.type !== "response.completed") return json
    return { ...json, response: { ...json.response, output: json.response.output.map(change) } }
  })
}

/** Numbered anew, so that only the fault itself is wrong. */
function asSent(events: readonly Loose[]): SentEvent[] {
  return events.map((json, index) => {
    const numbered = { ...json, sequence_number: index }
    return { event: json.type, data: JSON.stringify(numbered), json: numbered }
  })
}

test("the grammar takes what the server sends, and finds every fault", async () => {
  const server = await startTestServer()
  const tools = [{ type: "function", name: "look" }]
  const sent = await server.events("/v1/responses", { input: "Hi", tools, vllm_xargs: { sim_text: script } })
  await server.stop()
  const events = sent.map(({ json }) => json)
  expect(checkResponseStream(asSent(events)).ending).toBe("completed")
  for (const [name, make] of Object.entries(faults)) {
    const broken = asSent(make(structuredClone(events)))
    expect([name, finds(broken)]).toEqual([name, true])
  }
  const gap = sent.map((each, index) =>
    index < 3 ? each : { ...each, json: { ...each.json, sequence_number: index + 1 } },
  )
  expect(finds(gap)).toBe(true)
  expect(finds([...sent, { event: "", data: "[DONE]", json: null }])).toBe(true)
})

function finds(events: readonly SentEvent[]): boolean {
  try {
    checkResponseStream(events)
    return false
  } catch {
    return true
  }
}
