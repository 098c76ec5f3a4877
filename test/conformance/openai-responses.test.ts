/** The `openai` package on /v1/responses. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import OpenAI from "openai"
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod"
import type { ResponseInput, ResponseOutputItem, ResponseStreamEvent } from "openai/resources/responses/responses"
import { z } from "zod"
import { type Server, startServer } from "../support/server-process"
import { callText, script, sentence, thinking } from "./support/script"

let server: Server
let client: OpenAI
let model: string

beforeAll(async () => {
  server = await startServer()
  client = new OpenAI({ baseURL: server.baseURL, apiKey: "unused", maxRetries: 0 })
  for await (const card of client.models.list()) model ??= card.id
})
afterAll(async () => {
  expect(await server.end()).toBe(0)
})

const input = "What is the weather in Zürich?"
const weather = z.object({ city: z.string(), celsius: z.number() })
const tools = [zodResponsesFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) })]

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The items without what differs from run to run. */
function withoutIds(items: readonly ResponseOutputItem[]): unknown[] {
  return items.map((item) => ({ ...item, id: "", ...("call_id" in item ? { call_id: "" } : {}) }))
}

function terminal(events: readonly ResponseStreamEvent[]): OpenAI.Responses.Response {
  const last = events.at(-1)!
  if (last.type !== "response.completed" && last.type !== "response.incomplete" && last.type !== "response.failed") {
    throw new Error(`the stream ended with ${last.type}`)
  }
  return last.response
}

describe("responses.create", () => {
  test("answers a string", async () => {
    const answer = await client.responses.create({ model, input, ...script(sentence) })
    expect(answer.output_text).toBe(sentence)
    expect(answer.status).toBe("completed")
    expect(answer.id).toStartWith("resp_")
    expect(answer.error ?? null).toBeNull()
    expect(answer.output.map(({ type, id }) => [type, id?.slice(0, 4)])).toEqual([["message", "msg_"]])
    const usage = answer.usage!
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
    expect(usage.input_tokens_details).toMatchObject({ cached_tokens: 0, cache_write_tokens: 0 })
  })

  test("answers without a script by what it was asked", async () => {
    const answer = await client.responses.create({ model, input, instructions: "Be short." })
    expect(answer.output_text).toContain(input)
    expect(answer.instructions).toBe("Be short.")
  })

  test("gives reasoning as an item of its own, before the message", async () => {
    const answer = await client.responses.create({ model, input, ...script(thinking("Let me see.", "Sunny.")) })
    expect(withoutIds(answer.output)).toMatchObject([
      { type: "reasoning", content: [{ type: "reasoning_text", text: "Let me see." }], summary: [] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Sunny.", annotations: [] }] },
    ])
    expect(answer.usage!.output_tokens_details.reasoning_tokens).toBe(4)
  })

  test("is incomplete when the reply is full", async () => {
    const answer = await client.responses.create({
      model,
      input,
      max_output_tokens: 2,
      ...script("one two three four"),
    })
    expect(answer.status).toBe("incomplete")
    expect(answer.incomplete_details).toEqual({ reason: "max_output_tokens" })
    expect(answer.output).toMatchObject([{ type: "message", status: "incomplete" }])
    expect(answer.output_text).toBe("one two")
  })

  test("takes a reply's items back as history", async () => {
    const first = await client.responses.create({
      model,
      input,
      tools,
      ...script(thinking("A tool.", `Wait.${callText("get_weather", { city: "Zürich" })}`)),
    })
    const call = first.output.find((item) => item.type === "function_call")!
    expect(call).toMatchObject({ name: "get_weather", status: "completed" })
    expect(JSON.parse(call.arguments)).toEqual({ city: "Zürich" })
    expect(call.id).toStartWith("fc_")
    expect(call.call_id).not.toBe(call.id!)

    const history: ResponseInput = [
      { role: "user", content: input },
      ...first.output.filter((item) => ["reasoning", "message", "function_call"].includes(item.type)),
      { type: "function_call_output", call_id: call.call_id, output: "3 °C" },
      // The SDK's output and input item types are different unions; the three kinds kept here are in both.
    ] as ResponseInput
    const second = await client.responses.create({ model, input: history, tools, ...script("Cold.") })
    expect(second.output_text).toBe("Cold.")
    expect(second.usage!.input_tokens).toBeGreaterThan(first.usage!.input_tokens)
  })
})

describe("a coding agent", () => {
  test("may send all that Codex sends with each turn", async () => {
    const text = (role: string, words: string) => ({
      type: "message",
      role,
      content: [{ type: "input_text", text: words }],
    })
    const stream = await client.responses.create({
      model,
      stream: true,
      // The package's types lag behind what the agent sends.
      input: [
        text("developer", "Be precise."),
        text("developer", "Sandbox: read-only."),
        text("user", input),
      ] as ResponseInput,
      tools: [
        { type: "function", name: "exec_command", strict: false, parameters: { type: "object", properties: {} } },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { summary: "auto" },
      store: false,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "01a227b9-9f8c-72b3-bc24-18a18b89ba01",
      ...{ client_metadata: { turn_id: "1", thread_source: "user" } },
      ...script(thinking("A command.", callText("exec_command", { cmd: "ls" }))),
    })
    const final = terminal(await collect(stream))
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "function_call"])
  })
})

describe("responses.create with stream", () => {
  test("numbers its events without gaps and ends with the whole response", async () => {
    const body = {
      model,
      input,
      tools,
      ...script(thinking("A tool.", `Wait.${callText("get_weather", { city: "Zürich" })}`)),
    }
    const whole = await client.responses.create(body)
    const events = await collect(await client.responses.create({ ...body, stream: true }))
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"])
    const final = terminal(events)
    expect(final.status).toBe("completed")
    expect(withoutIds(final.output)).toEqual(withoutIds(whole.output))
    expect(final.usage).toEqual(whole.usage)
    expect(events.flatMap((event) => (event.type === "response.output_item.done" ? [event.item] : []))).toEqual(
      final.output,
    )
  })

  test("opens, fills and closes each kind of item in the same order", async () => {
    const events = await collect(
      await client.responses.create({
        model,
        input,
        tools,
        stream: true,
        ...script(`${thinking("Hm.", "Wait.")}${callText("get_weather", {})}`, { sim_tokens_per_step: 1 }),
      }),
    )
    const order = events
      .map(({ type }) => type.replace("response.", ""))
      .filter((type, at, all) => type !== all[at - 1])
    expect(order).toEqual([
      ...["created", "in_progress"],
      ...["output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done"],
      ...["content_part.done", "output_item.done"],
      ...["output_item.added", "content_part.added", "output_text.delta", "output_text.done"],
      ...["content_part.done", "output_item.done"],
      ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
      "completed",
    ])
  })

  test("ends with response.failed when the engine breaks, and says what came before", async () => {
    const events = await collect(
      await client.responses.create({
        model,
        input,
        stream: true,
        ...script("one two three four", { sim_fail_after_tokens: 2, sim_error: "disconnect" }),
      }),
    )
    expect(events.at(-1)!.type).toBe("response.failed")
    const final = terminal(events)
    expect(final.status).toBe("failed")
    expect(final.error).toMatchObject({ code: "server_error", message: expect.any(String) })
    expect(final.output_text ?? "one two").toBe("one two")
    expect(final.output).toHaveLength(1)
  })
})

describe("responses.stream", () => {
  test("builds the final response and tells each piece", async () => {
    const stream = client.responses.stream({ model, input, ...script(thinking("Hm.", sentence)) })
    let told = ""
    let thought = ""
    stream.on("response.output_text.delta", ({ delta, snapshot }) => {
      told += delta
      expect(snapshot).toBe(told)
    })
    stream.on("response.reasoning_text.delta", ({ delta }) => {
      thought += delta
    })
    const final = await stream.finalResponse()
    expect(told).toBe(sentence)
    expect(thought).toBe("Hm.")
    expect(final.output_text).toBe(sentence)
    expect(final.status).toBe("completed")
  })

  test("ends with the response of the last event, from which the accumulated text does not differ", async () => {
    const said = thinking("Hm.", `${sentence}${callText("get_weather", { city: "Zürich" })}`)
    const stream = client.responses.stream({ model, input, tools, ...script(said) })
    const events: ResponseStreamEvent[] = []
    stream.on("event", (event) => {
      events.push(event)
    })
    const final = await stream.finalResponse()
    const last = terminal(events)
    // The helper adds what it parsed, and the text as a whole, to the objects that came.
    expect(final).toMatchObject({ ...last })
    expect(last.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"])
    const accumulated = new Map<number, string>()
    for (const event of events) {
      if (!("delta" in event) || !("output_index" in event)) continue
      accumulated.set(event.output_index, (accumulated.get(event.output_index) ?? "") + event.delta)
    }
    expect([...accumulated.values()]).toEqual(["Hm.", sentence, JSON.stringify({ city: "Zürich" })])
    expect(last.output_text ?? sentence).toBe(sentence)
  })

  test("builds a call's arguments", async () => {
    const stream = client.responses.stream({
      model,
      input,
      tools,
      ...script(callText("get_weather", { city: "Zürich" })),
    })
    let told = ""
    stream.on("response.function_call_arguments.delta", ({ delta, snapshot }) => {
      told += delta
      expect(snapshot).toBe(told)
    })
    const final = await stream.finalResponse()
    const call = final.output.find((item) => item.type === "function_call")!
    expect(call.arguments).toBe(told)
    expect(call.parsed_arguments).toEqual({ city: "Zürich" })
  })

  test("aborts in the middle", async () => {
    const stream = client.responses.stream({
      model,
      input,
      max_output_tokens: 2_000,
      ...script("word ".repeat(2_000), { sim_step_ms: 5 }),
    })
    const seen: string[] = []
    const ended = await (async () => {
      for await (const event of stream) {
        seen.push(event.type)
        if (event.type === "response.output_text.delta") stream.abort()
      }
    })().catch((error: unknown) => error)
    expect(ended).toBeInstanceOf(OpenAI.APIUserAbortError)
    expect(seen).not.toContain("response.completed")
    const answer = await client.responses.create({ model, input, ...script("still here") })
    expect(answer.output_text).toBe("still here")
  })
})

describe("responses.parse", () => {
  test("gives the object that the schema describes", async () => {
    const value = { city: "Zürich", celsius: 3 }
    const answer = await client.responses.parse({
      model,
      input,
      text: { format: zodTextFormat(weather, "weather") },
      ...script(thinking("Hm.", JSON.stringify(value))),
    })
    expect(answer.output_parsed).toEqual(value)
    expect(answer.text).toMatchObject({ format: { type: "json_schema", name: "weather" } })
  })

  test("gives a call's arguments parsed", async () => {
    const answer = await client.responses.parse({
      model,
      input,
      tools,
      ...script(callText("get_weather", { city: "Zürich" })),
    })
    expect(answer.output).toMatchObject([{ type: "function_call", parsed_arguments: { city: "Zürich" } }])
  })
})
