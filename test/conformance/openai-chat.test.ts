/** The `openai` package on /v1/chat/completions, /v1/completions and /v1/models. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import OpenAI, { APIUserAbortError } from "openai"
import { zodFunction, zodResponseFormat } from "openai/helpers/zod"
import type { ChatCompletionChunk, ChatCompletionMessageParam } from "openai/resources/chat/completions"
import { z } from "zod"
import { type Server, startServer } from "../support/server-process"
import { callText, script, sentence, thinking } from "./support/script"
import { scriptedFetch } from "./support/scripted-fetch"

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

const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "What is the weather in Zürich?" }]
const weather = z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() })
const weatherValue = { city: "Zürich", celsius: 3, sunny: true }

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A field that the package's types do not know. */
function extra(of: object, field: string): unknown {
  return Object.entries(of).find(([name]) => name === field)?.[1]
}

function joined(chunks: readonly ChatCompletionChunk[], field: "content" | "reasoning", choice = 0): string {
  return chunks
    .flatMap((chunk) => chunk.choices.filter(({ index }) => index === choice))
    .map(({ delta }) => extra(delta, field) ?? "")
    .join("")
}

describe("models", () => {
  test("are listed with the card that vLLM's clients read", async () => {
    const cards = await collect(client.models.list())
    expect(cards).toHaveLength(1)
    expect(cards[0]).toMatchObject({
      id: model,
      object: "model",
      created: expect.any(Number),
      owned_by: expect.any(String),
    })
    expect(cards[0]).toHaveProperty("max_model_len", expect.any(Number))
  })
})

describe("chat.completions.create", () => {
  test("answers without a script by what it was asked", async () => {
    const answer = await client.chat.completions.create({ model, messages })
    expect(answer.choices[0]!.message.content).toContain("What is the weather in Zürich?")
    expect(answer.choices[0]!.finish_reason).toBe("stop")
    expect(answer.id).toStartWith("chatcmpl-")
    expect(answer.model).toBe(model)
    const usage = answer.usage!
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
    expect(usage.completion_tokens).toBeGreaterThan(0)
  })

  test("gives text, reasoning and usage apart", async () => {
    const answer = await client.chat.completions.create({ model, messages, ...script(thinking("Hm.", sentence)) })
    const { message } = answer.choices[0]!
    expect(message.content).toBe(sentence)
    expect(extra(message, "reasoning")).toBe("Hm.")
    expect(message.tool_calls).toBeUndefined()
    expect(answer.usage!.completion_tokens_details!.reasoning_tokens).toBe(2)
  })

  test("streams the same text in pieces, first the role, last the finish reason", async () => {
    const stream = await client.chat.completions.create({
      model,
      messages,
      stream: true,
      ...script(thinking("Hm. So be it.", sentence)),
    })
    const chunks = await collect(stream)
    expect(chunks[0]!.choices[0]!.delta).toMatchObject({ role: "assistant", content: "" })
    expect(joined(chunks, "content")).toBe(sentence)
    expect(joined(chunks, "reasoning")).toBe("Hm. So be it.")
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe("stop")
    expect(chunks.slice(0, -1).every((chunk) => chunk.choices[0]!.finish_reason === null)).toBeTrue()
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
    expect(chunks.every((chunk) => chunk.usage === undefined)).toBeTrue()
    expect(chunks.length).toBeGreaterThan(5)
  })

  test("ends a stream with the usage that the same request has without streaming", async () => {
    const body = { model, messages, ...script(thinking("Hm.", sentence)) }
    const whole = await client.chat.completions.create(body)
    const stream = await client.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    expect(chunks.at(-1)!.choices).toEqual([])
    // A stream's usage leaves out what is null.
    const shown = Object.entries(whole.usage!).filter(([, value]) => value !== null)
    expect(chunks.at(-1)!.usage).toEqual(Object.fromEntries(shown) as unknown as typeof whole.usage & object)
    expect(chunks.slice(0, -1).every(({ usage }) => usage === undefined || usage === null)).toBeTrue()
  })

  test("gives each of n choices the script, streamed or not", async () => {
    const body = { model, messages, n: 2, ...script("Twice.") }
    const whole = await client.chat.completions.create(body)
    expect(whole.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "Twice."],
      [1, "Twice."],
    ])
    const one = await client.chat.completions.create({ ...body, n: 1 })
    expect(whole.usage).toMatchObject({
      prompt_tokens: one.usage!.prompt_tokens,
      completion_tokens: 2 * one.usage!.completion_tokens,
    })
    const chunks = await collect(await client.chat.completions.create({ ...body, stream: true }))
    expect([joined(chunks, "content", 0), joined(chunks, "content", 1)]).toEqual(["Twice.", "Twice."])
  })

  test("reports one logprobs entry for each generated token", async () => {
    const body = { model, messages, logprobs: true, top_logprobs: 2, ...script("Plain words only.") }
    const answer = await client.chat.completions.create(body)
    const entries = answer.choices[0]!.logprobs!.content!
    expect(entries).toHaveLength(answer.usage!.completion_tokens)
    expect(entries.map(({ token }) => token).join("")).toStartWith("Plain words only.")
    for (const entry of entries) {
      expect(entry.logprob).toBeLessThanOrEqual(0)
      expect(entry.top_logprobs).toHaveLength(2)
      expect(new TextDecoder().decode(Uint8Array.from(entry.bytes!))).toBe(entry.token)
    }
    const chunks = await collect(await client.chat.completions.create({ ...body, stream: true }))
    expect(chunks.flatMap(({ choices }) => choices[0]?.logprobs?.content ?? [])).toEqual(entries)
  })

  test("stops at a stop string that spans tokens and leaves it out", async () => {
    const body = { model, messages, stop: ["wo three"], ...script("one two three four") }
    const answer = await client.chat.completions.create(body)
    expect(answer.choices[0]!.message.content).toBe("one t")
    expect(answer.choices[0]!.finish_reason).toBe("stop")
    expect(extra(answer.choices[0]!, "stop_reason")).toBe("wo three")
    const chunks = await collect(await client.chat.completions.create({ ...body, stream: true }))
    expect(joined(chunks, "content")).toBe("one t")
  })

  test("ends with length when the reply is full", async () => {
    const answer = await client.chat.completions.create({
      model,
      messages,
      max_completion_tokens: 3,
      ...script("one two three four five six"),
    })
    expect(answer.choices[0]!.finish_reason).toBe("length")
    expect(answer.usage!.completion_tokens).toBe(3)
    expect(answer.choices[0]!.message.content).toBe("one two three")
  })
})

describe("chat.completions.stream", () => {
  test("builds the final completion and tells each piece", async () => {
    const stream = client.chat.completions.stream({ model, messages, ...script(sentence) })
    let told = ""
    stream.on("content", (delta, snapshot) => {
      told += delta
      expect(snapshot).toBe(told)
    })
    const final = await stream.finalChatCompletion()
    expect(told).toBe(sentence)
    expect(final.choices[0]!.message.content).toBe(sentence)
    expect(final.choices[0]!.finish_reason).toBe("stop")
  })

  test("builds tool calls from their fragments", async () => {
    const stream = client.chat.completions.stream({
      model,
      messages,
      tools: [zodFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) })],
      ...script(`Let me see.${callText("get_weather", { city: "Zürich" })}`),
    })
    const fragments: string[] = []
    stream.on("tool_calls.function.arguments.delta", ({ arguments_delta }) => fragments.push(arguments_delta))
    const final = await stream.finalChatCompletion()
    const call = final.choices[0]!.message.tool_calls![0]!
    if (call.type !== "function") throw new Error("not a function")
    expect(JSON.parse(call.function.arguments)).toEqual({ city: "Zürich" })
    expect(fragments.join("")).toBe(call.function.arguments)
    expect(final.choices[0]!.message.content?.trim()).toBe("Let me see.")
    expect(final.choices[0]!.finish_reason).toBe("tool_calls")
  })

  test("aborts, and the server serves on", async () => {
    const controller = new AbortController()
    const stream = await client.chat.completions.create(
      {
        model,
        messages,
        stream: true,
        max_completion_tokens: 2_000,
        ...script("word ".repeat(2_000), { sim_step_ms: 5 }),
      },
      { signal: controller.signal },
    )
    let chunks = 0
    for await (const _ of stream) {
      chunks += 1
      if (chunks === 3) controller.abort()
    }
    expect(chunks).toBeLessThan(2_000)
    const late = client.chat.completions.create({ model, messages, ...script("ok") }, { signal: controller.signal })
    expect(await late.catch((error: unknown) => error)).toBeInstanceOf(APIUserAbortError)

    const deadline = performance.now() + 2_000
    let running = Number.POSITIVE_INFINITY
    while (running > 0 && performance.now() < deadline) {
      const load: { server_load: number } = await (await fetch(`${server.origin}/load`)).json()
      running = load.server_load
    }
    expect(running).toBe(0)
    const answer = await client.chat.completions.create({ model, messages, ...script("still here") })
    expect(answer.choices[0]!.message.content).toBe("still here")
  })
})

describe("tools", () => {
  test("come back as calls and go in as results", async () => {
    const tools = [zodFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) })]
    const two = callText("get_weather", { city: "Bern" }) + callText("get_weather", { city: "Zürich" })
    const first = await client.chat.completions.create({ model, messages, tools, ...script(two) })
    const { message, finish_reason } = first.choices[0]!
    expect(finish_reason).toBe("tool_calls")
    expect(message.content).toBeNull()
    const calls = message.tool_calls!
    expect(calls.map((call) => (call.type === "function" ? JSON.parse(call.function.arguments) : null))).toEqual([
      { city: "Bern" },
      { city: "Zürich" },
    ])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)

    const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "3 °C" }) as const)
    const second = await client.chat.completions.create({
      model,
      messages: [...messages, message, ...results],
      tools,
      ...script("Cold."),
    })
    expect(second.choices[0]!.message.content).toBe("Cold.")
    expect(second.usage!.prompt_tokens).toBeGreaterThan(first.usage!.prompt_tokens)
  })

  for (const stream of [false, true]) {
    test(`run by the helper until the model answers in words, ${stream ? "" : "not "}streaming`, async () => {
      const { fetch, bodies } = scriptedFetch(
        script(thinking("I need a tool.", callText("get_weather", { city: "Zürich" }))),
        script("It is 3 °C."),
      )
      const asked: string[] = []
      const getWeather = zodFunction({
        name: "get_weather",
        parameters: z.object({ city: z.string() }),
        function: ({ city }) => {
          asked.push(city)
          return { celsius: 3 }
        },
      })
      const { completions } = client.withOptions({ fetch }).chat
      const runner = stream
        ? completions.runTools({ model, messages, tools: [getWeather], stream: true })
        : completions.runTools({ model, messages, tools: [getWeather] })
      expect(await runner.finalContent()).toBe("It is 3 °C.")
      expect(asked).toEqual(["Zürich"])
      expect(bodies[1]).toMatchObject({
        messages: [{ role: "user" }, { role: "assistant" }, { role: "tool", content: '{"celsius":3}' }],
      })
    })
  }

  test("give no second call when parallel calls are off", async () => {
    const answer = await client.chat.completions.create({
      model,
      messages,
      tools: [zodFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) })],
      parallel_tool_calls: false,
      ...script(callText("get_weather", { city: "Bern" }) + callText("get_weather", { city: "Zürich" })),
    })
    expect(answer.choices[0]!.message.tool_calls).toHaveLength(1)
  })
})

describe("chat.completions.parse", () => {
  test("gives the object that the schema describes", async () => {
    const answer = await client.chat.completions.parse({
      model,
      messages,
      response_format: zodResponseFormat(weather, "weather"),
      ...script(JSON.stringify(weatherValue)),
    })
    expect(answer.choices[0]!.message.parsed).toEqual(weatherValue)
  })

  test("does so at the end of a stream", async () => {
    const stream = client.chat.completions.stream({
      model,
      messages,
      response_format: zodResponseFormat(weather, "weather"),
      ...script(JSON.stringify(weatherValue)),
    })
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]!.message.parsed).toEqual(weatherValue)
  })
})

describe("completions.create", () => {
  test("continues a text", async () => {
    const answer = await client.completions.create({
      model,
      prompt: "Once",
      max_tokens: 50,
      ...script(" upon a time."),
    })
    expect(answer.choices[0]).toMatchObject({ index: 0, text: " upon a time.", finish_reason: "stop" })
    expect(answer.id).toStartWith("cmpl-")
    expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens)
  })

  test("streams it, echo first", async () => {
    const stream = await client.completions.create({
      model,
      prompt: "Once",
      max_tokens: 50,
      echo: true,
      stream: true,
      ...script(" upon a time."),
    })
    const chunks = await collect(stream)
    expect(chunks.map(({ choices }) => choices[0]?.text ?? "").join("")).toBe("Once upon a time.")
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe("stop")
    expect(chunks.every(({ object }) => object === "text_completion")).toBeTrue()
  })

  test("answers several prompts in their order", async () => {
    const answer = await client.completions.create({ model, prompt: ["a", "b"], n: 2, ...script("x") })
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, "x"],
      [1, "x"],
      [2, "x"],
      [3, "x"],
    ])
  })

  test("gives logprobs as parallel lists", async () => {
    const answer = await client.completions.create({ model, prompt: "a", logprobs: 1, ...script("two words") })
    const { tokens, token_logprobs, text_offset, top_logprobs } = answer.choices[0]!.logprobs!
    expect(tokens).toHaveLength(answer.usage!.completion_tokens)
    expect([token_logprobs!.length, text_offset!.length, top_logprobs!.length]).toEqual(Array(3).fill(tokens!.length))
    expect(tokens!.join("")).toStartWith("two words")
  })
})
