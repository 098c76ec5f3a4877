/** Requests and answers from public bug reports, each with the rule that its answer must hold. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { checkResponseStream } from "../support/response-grammar"
import type { SentEvent } from "../support/sent-events"
import { readEvents } from "../support/sent-events"
import { type Reply, startTestServer, type TestServer } from "../support/test-server"

const file = join(import.meta.dir, "../../../shared/cases/api.jsonl")

interface Case {
  readonly id: string
  readonly input: {
    readonly path: string
    readonly request: { readonly [field: string]: unknown } | null
    /** Text and finish reason of each engine step. */
    readonly engine_output?: readonly (readonly [string, string | null])[]
  }
  readonly expected: {
    readonly status?: number | string
    readonly error?: { readonly [field: string]: unknown }
    readonly body?: { readonly [field: string]: unknown }
    readonly types?: readonly string[]
    readonly items?: readonly (readonly [string, number])[]
    readonly text?: string
    readonly finish_reason?: string
  }
}

const cases: Case[] = existsSync(file)
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      // The file is made by a script and has this shape.
      .map((line) => JSON.parse(line) as Case)
  : []

/** Every event of a stream, or the whole answer. */
interface Answer {
  readonly reply: Reply
  readonly events: readonly SentEvent[]
}

// biome-ignore lint/suspicious/noExplicitAny: answers have many shapes; a wrong path fails the test
type Loose = any

/** The response object of either mode. */
function responseOf({ reply, events }: Answer): Loose {
  return events.length > 0 ? events.at(-1)!.json.response : reply.json
}

/** Text, calls and finish reason of chat and completions, either mode. */
function choiceOf({ reply, events }: Answer): { text: string; finish: string; deltas: Loose[] } {
  if (events.length === 0) {
    const [choice] = reply.json.choices
    return { text: choice.text ?? choice.message.content ?? "", finish: choice.finish_reason, deltas: [] }
  }
  const choices = events.filter((each) => each.json !== null).flatMap((each) => each.json.choices)
  return {
    text: choices.map((each: Loose) => each.text ?? each.delta.content ?? "").join(""),
    finish: String(choices.map((each: Loose) => each.finish_reason).findLast((each: unknown) => each !== null)),
    deltas: choices.map((each: Loose) => each.delta ?? { content: each.text }),
  }
}

/** What the prose of a case asks for, by id. */
const rules: { readonly [id: string]: (answer: Answer) => void } = {
  "api-stream-order-text": ({ events }) => {
    expect(events.map((each) => each.json.sequence_number)).toEqual(events.map((_, index) => index))
    expect(events.map((each) => each.json.type)).toEqual(events.map((each) => each.event))
    expect(events[0]!.json.response).toMatchObject({ output: [], status: "in_progress" })
  },
  "api-stream-ids-equal-terminal": ({ events }) => {
    const ids = new Set(events.flatMap((each) => each.json.item_id ?? each.json.item?.id ?? []))
    expect([...ids]).toEqual(events.at(-1)!.json.response.output.map((item: Loose) => item.id))
  },
  "api-stream-two-calls": ({ events }) => {
    const { output } = events.at(-1)!.json.response
    const calls = output.filter((item: Loose) => item.type === "function_call")
    expect(calls.map((item: Loose) => item.arguments)).toEqual(["{}", "{}"])
    expect(new Set(calls.flatMap((item: Loose) => [item.id, item.call_id])).size).toBe(4)
  },
  "api-stream-data-type-and-nesting": ({ events }) => {
    for (const { json } of events) expect(json.type).toEqual(expect.any(String))
    for (const index of [0, 1, -1]) expect(events.at(index)!.json.response.object).toBe("response")
    expect(events.at(-1)!.event).toBe("response.completed")
  },
  "api-include-reasoning-false": ({ events }) => {
    expect(events.filter((each) => each.event.includes("reasoning"))).toEqual([])
    expect(events.find((each) => each.event === "response.output_item.added")!.json).toMatchObject({
      output_index: 0,
      item: { type: "message" },
    })
  },
  "api-length-reasoning-then-call": (answer) => {
    const items = responseOf(answer).output.map((item: Loose) => [item.type, item.status])
    expect(items).toEqual([
      ["reasoning", "completed"],
      ["function_call", "incomplete"],
    ])
  },
  "api-usage-stop-token-counted": (answer) => {
    const response = responseOf(answer)
    expect(response.output[0].content[0].text).toBe("hi")
  },
  "api-null-fields": (answer) => {
    const response = responseOf(answer)
    for (const field of ["error", "incomplete_details", "instructions", "previous_response_id", "reasoning"]) {
      expect(response[field]).toBeNull()
    }
  },
  "chat-tool-delta-shape": (answer) => {
    const calls = choiceOf(answer).deltas.flatMap((delta) => delta.tool_calls ?? [])
    expect(calls.map((call) => call.index)).toEqual(calls.map(() => 0))
    expect(Object.keys(calls[0])).toEqual(["index", "id", "type", "function"])
    for (const call of calls.slice(1)) expect(Object.keys(call)).toEqual(["index", "function"])
    expect(calls.map((call) => call.function.arguments).join("")).toBe("{}")
    expect(choiceOf(answer).finish).toBe("tool_calls")
  },
  "chat-no-empty-tool-deltas": (answer) => {
    expect(choiceOf(answer).deltas.filter((delta) => delta.tool_calls !== undefined)).toEqual([])
    expect(choiceOf(answer).finish).toBe("stop")
  },
}

if (cases.length === 0) test.skip("reported requests", () => {})
else
  describe("reported requests", () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startTestServer({ config: { servedModelNames: ["m"] } })
    })
    afterAll(() => server?.stop())

    /** What the engine says, as a script: the ids of each step's text; the stop token is the one that ends every script. */
    async function scriptOf(steps: Case["input"]["engine_output"], stepTokens: number): Promise<object> {
      if (steps === undefined) return {}
      const ids: number[] = []
      for (const [said] of steps) {
        if (said === "<stop token>") continue
        const reply = await server.post("/tokenize", { prompt: said, add_special_tokens: false })
        ids.push(...reply.json.tokens)
      }
      const finish = steps.at(-1)![1] ?? "stop"
      return { vllm_xargs: { sim_token_ids: ids, sim_finish: finish, sim_tokens_per_step: stepTokens } }
    }

    async function ask({ id, input }: Case, stepTokens: number): Promise<Answer> {
      if (input.request === null) return { reply: await server.get(input.path), events: [] }
      const headers: { [name: string]: string } =
        id === "api-request-id-header-wins" ? { "x-request-id": "head-1" } : {}
      const { max_output_tokens: limit, ...request } = input.request
      // Where the engine's output is given, its finish reason says what the limit did.
      const limited = input.engine_output === undefined && limit !== undefined ? { max_output_tokens: limit } : {}
      const body = { ...request, ...limited, ...(await scriptOf(input.engine_output, stepTokens)) }
      const reply = await server.post(input.path, body, headers)
      const isStream = reply.headers.get("content-type")?.startsWith("text/event-stream") === true
      const events = isStream ? readEvents(reply.text) : []
      if (isStream && input.path === "/v1/responses") checkResponseStream(events)
      return { reply, events }
    }

    for (const each of cases) {
      for (const stepTokens of each.input.engine_output === undefined ? [1] : [1, 2, 100]) {
        test(`${each.id}, ${stepTokens} tokens a step`, async () => {
          const { expected } = each
          const answer = await ask(each, stepTokens)
          if (typeof expected.status === "number") expect(answer.reply.status).toBe(expected.status)
          if (typeof expected.status === "string") expect(expected.status).toContain(String(answer.reply.status))
          if (expected.error !== undefined) expect(answer.reply.json.error).toMatchObject(expected.error)
          for (const [path, value] of Object.entries(expected.body ?? {})) {
            if (path === "items" || path === "text") continue // told by a rule
            const found = path.split(".").reduce((object: Loose, key) => object?.[key], responseOf(answer))
            expect([path, found]).toEqual([path, value])
          }
          if (expected.types !== undefined) expect(pattern(answer.events)).toEqual([...expected.types])
          if (expected.text !== undefined) expect(choiceOf(answer).text).toBe(expected.text)
          if (expected.finish_reason !== undefined) expect(choiceOf(answer).finish).toBe(expected.finish_reason)
          rules[each.id]?.(answer)
        })
      }
    }
  })

/** Types of events; a run of the same delta is one with a plus. */
function pattern(events: readonly SentEvent[]): string[] {
  const types: string[] = []
  for (const { event } of events) {
    const name = event.endsWith(".delta") ? `${event}+` : event
    if (name !== types.at(-1)) types.push(name)
  }
  return types
}
