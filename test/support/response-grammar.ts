/**
 * The grammar of a Responses stream (RESPONSES 9 to 11), written once, and a small client that puts a response together
 * from the events alone. Every test that reads such a stream goes through both.
 */
import { expect } from "bun:test"
import type { SentEvent } from "./sent-events"

// biome-ignore lint/suspicious/noExplicitAny: events have many shapes; a wrong path fails the test
type Loose = any

/** The last event and what the events before it add up to. */
export interface CheckedStream {
  /** The response of the terminal event. */
  readonly response: Loose
  /** `completed`, `incomplete` or `failed`. */
  readonly ending: string
  /** The items as a client has them from the events alone. */
  readonly output: Loose[]
}

/** What is expected of one open item's events, in order. */
interface OpenItem {
  readonly index: number
  readonly added: Loose
  text: string
  logprobs: Loose[]
  /** What may come next. */
  stage: "part" | "deltas" | "part done" | "item done"
}

const kinds: {
  readonly [type: string]: {
    readonly prefix: string
    readonly delta: string
    readonly done: string
    readonly part: string | null
  }
} = {
  reasoning: {
    prefix: "rs_",
    delta: "response.reasoning_text.delta",
    done: "response.reasoning_text.done",
    part: "reasoning_text",
  },
  message: {
    prefix: "msg_",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    part: "output_text",
  },
  function_call: {
    prefix: "fc_",
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    part: null,
  },
  custom_tool_call: {
    prefix: "ctc_",
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
    part: null,
  },
}

/** Fails unless the events are one well-formed stream; gives what it said. */
export function checkResponseStream(events: readonly SentEvent[]): CheckedStream {
  expect(events.map(({ json }) => json.sequence_number)).toEqual(events.map((_, index) => index))
  expect(events.map(({ json }) => json.type)).toEqual(events.map(({ event }) => event))
  expect(events.map(({ data }) => data)).not.toContain("[DONE]")

  const [created, inProgress, ...rest] = events
  expect(created?.event).toBe("response.created")
  expect(inProgress?.event).toBe("response.in_progress")
  const opening = created!.json.response
  expect(inProgress!.json.response).toEqual(opening)
  expect(opening).toMatchObject({ object: "response", status: "in_progress", output: [], usage: null, error: null })

  const client = new Client()
  for (const { json } of rest.slice(0, -1)) client.take(json)
  client.atEnd()

  const terminal = rest.at(-1)!
  const ending = terminal.event.replace("response.", "")
  const { response } = terminal.json
  checkTerminal(ending, response, opening)
  // Byte for byte, ids and order of keys included.
  expect(JSON.stringify(response.output)).toBe(JSON.stringify(client.items))
  const statuses: string[] = response.output.map((item: Loose) => item.status)
  expect(statuses.slice(0, -1)).toEqual(statuses.slice(0, -1).map(() => "completed"))
  // A reply that ran into its limit may still have ended its last item.
  const lasts = ending === "incomplete" ? ["completed", "incomplete", undefined] : ["completed", undefined]
  expect(lasts).toContain(statuses.at(-1))
  const ids: string[] = client.items.flatMap((item) => [item.id, ...(item.call_id === undefined ? [] : [item.call_id])])
  expect(new Set(ids).size).toBe(ids.length)
  return { response, ending, output: client.built }
}

function checkTerminal(ending: string, response: Loose, opening: Loose): void {
  const statuses: { readonly [ending: string]: readonly string[] } = {
    completed: ["completed", "cancelled"],
    incomplete: ["incomplete"],
    failed: ["failed"],
  }
  expect(statuses[ending]).toContain(response.status)
  expect(response.incomplete_details).toEqual(ending === "incomplete" ? { reason: "max_output_tokens" } : null)
  if (ending === "failed") {
    expect(response.error).toEqual({ code: "server_error", message: expect.any(String) })
    expect(response.error.message).not.toMatch(/scripted|simulator|connection|engine/i)
  } else {
    expect(response.error).toBeNull()
    expect(response.usage).not.toBeNull()
  }
  // What was announced is what was done: only what generation decides has changed.
  const { status: _s, output: _o, usage: _u, error: _e, incomplete_details: _i, metrics: _m, ...echoed } = response
  const { status: _, output: __, usage: ___, error: ____, incomplete_details: _____, ...announced } = opening
  expect(echoed).toEqual(announced)
}

/** Follows the events one by one, as a typed client would. */
class Client {
  /** Items as `output_item.done` had them, and as the other events alone make them. */
  readonly items: Loose[] = []
  readonly built: Loose[] = []
  private open: OpenItem | null = null

  take(json: Loose): void {
    if (json.type === "response.output_item.added") this.add(json)
    else {
      expect([json.type, this.open]).not.toEqual([json.type, null])
      this.inItem(json, this.open!)
    }
  }

  atEnd(): void {
    expect(this.open).toBeNull()
  }

  private add(json: Loose): void {
    expect(this.open).toBeNull()
    const { item, output_index } = json
    expect(output_index).toBe(this.items.length)
    const kind = kinds[item.type]!
    expect(item.id).toMatch(new RegExp(`^${kind.prefix}[0-9a-f]{32}$`))
    expect(item.status).toBe("in_progress")
    if (kind.part !== null) expect(item.content).toEqual([])
    else {
      expect(item.name).not.toBe("")
      expect(item.call_id).not.toBe(item.id)
      expect(item[item.type === "function_call" ? "arguments" : "input"]).toBe("")
    }
    const stage = kind.part === null ? "deltas" : "part"
    this.open = { index: output_index, added: item, text: "", logprobs: [], stage }
  }

  private inItem(json: Loose, open: OpenItem): void {
    const { added } = open
    const kind = kinds[added.type]!
    expect(json.output_index).toBe(open.index)
    if (json.type === "response.output_item.done") {
      expect(open.stage).toBe("item done")
      this.close(json.item, open)
      return
    }
    expect(json.item_id).toBe(added.id)
    // Arguments have no content index; parts always have the first.
    expect(json.content_index).toBe(kind.part === null ? undefined : 0)
    switch (json.type) {
      case "response.content_part.added":
        expect([open.stage, json.part.type, json.part.text]).toEqual(["part", kind.part, ""])
        open.stage = "deltas"
        return
      case kind.delta:
        expect(open.stage).toBe("deltas")
        expect(json.delta).not.toBe("")
        open.text += json.delta
        if (added.type === "message") open.logprobs.push(...json.logprobs)
        return
      case kind.done:
        expect(open.stage).toBe("deltas")
        this.checkDone(json, open)
        open.stage = kind.part === null ? "item done" : "part done"
        return
      case "response.content_part.done":
        expect([open.stage, json.part.type, json.part.text]).toEqual(["part done", kind.part, open.text])
        // A part opens with its first text.
        expect(open.text).not.toBe("")
        open.stage = "item done"
        return
      default:
        throw new Error(`${json.type} inside of a ${added.type}`)
    }
  }

  private checkDone(json: Loose, open: OpenItem): void {
    switch (open.added.type) {
      case "function_call":
        expect([json.name, json.arguments]).toEqual([open.added.name, open.text])
        return
      case "custom_tool_call":
        expect(json.input).toBe(open.text)
        return
      default:
        expect(json.text).toBe(open.text)
    }
    if (open.added.type === "message") expect(json.logprobs).toEqual(open.logprobs)
  }

  private close(item: Loose, open: OpenItem): void {
    this.open = null
    this.items.push(item)
    const { added, text, logprobs } = open
    const built = { ...added, status: item.status }
    if (added.type === "reasoning") built.content = [{ type: "reasoning_text", text }]
    else if (added.type === "message") {
      const shown = item.content[0].logprobs === null ? null : logprobs
      built.content = [{ type: "output_text", text, annotations: [], logprobs: shown }]
    } else built[added.type === "function_call" ? "arguments" : "input"] = text
    this.built.push(built)
    expect(built).toEqual(item)
  }
}

/** A copy in which random ids are numbered in their order and times are gone, so that two replies can be compared. */
export function withoutChance(value: unknown): unknown {
  const known = new Map<string, string>()
  const text = JSON.stringify(value, (key, inner: unknown) => {
    if (key === "created_at" || key === "metrics") return null
    if (typeof inner !== "string" || !["id", "item_id", "call_id"].includes(key)) return inner
    const prefix = inner.slice(0, inner.indexOf("_") + 1)
    const name = known.get(inner) ?? `${prefix}${known.size}`
    known.set(inner, name)
    return name
  })
  return JSON.parse(text)
}
