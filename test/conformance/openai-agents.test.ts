/** The Agents SDK for JavaScript: its loop over function tools, on /v1/responses and on /v1/chat/completions. */
import { describe, expect, test } from "bun:test"
import { Agent, type Model, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, tool } from "@openai/agents"
import OpenAI from "openai"
import { z } from "zod"
import { callText, script, sentence, thinking } from "./support/script"
import { scriptedFetch } from "./support/scripted-fetch"
import { servedModel } from "./support/served-model"

const served = servedModel()

/** Two calls at once, one more, then words. */
const steps = [
  script(
    thinking("Two cities.", callText("get_celsius", { city: "Bern" }) + callText("get_celsius", { city: "Zürich" })),
  ),
  script(thinking("One is missing.", `A moment.${callText("get_celsius", { city: "Zug" })}`)),
  script(thinking("All there.", sentence)),
]
const question = "How cold is it?"

/** The model by its API. The SDK reports each run to a service of its own unless tracing is off. */
const models: { readonly [api: string]: (client: OpenAI) => Model } = {
  responses: (client) => new OpenAIResponsesModel(client, served.name),
  chat: (client) => new OpenAIChatCompletionsModel(client, served.name),
}

function usual(model: (client: OpenAI) => Model) {
  const asked: string[] = []
  const scripted = scriptedFetch(...steps)
  const client = new OpenAI({ baseURL: served.server.baseURL, apiKey: "unused", maxRetries: 0, fetch: scripted.fetch })
  const getCelsius = tool({
    name: "get_celsius",
    description: "Temperature of a city",
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      asked.push(city)
      return `3 °C in ${city}`
    },
  })
  const agent = new Agent({ name: "Weather", instructions: "Be brief.", model: model(client), tools: [getCelsius] })
  return { agent, runner: new Runner({ tracingDisabled: true }), scripted, asked }
}

for (const [api, model] of Object.entries(models)) {
  describe(`an agent over ${api}`, () => {
    test("calls its tools until the model answers in words", async () => {
      const { agent, runner, scripted, asked } = usual(model)
      const run = await runner.run(agent, question)
      expect(run.finalOutput).toBe(sentence)
      expect(asked).toEqual(["Bern", "Zürich", "Zug"])
      expect(scripted.bodies).toHaveLength(3)
      const last = JSON.stringify(scripted.bodies[2])
      for (const city of asked) expect(last).toContain(`3 °C in ${city}`)
      expect(run.rawResponses.map(({ usage }) => usage.totalTokens > usage.inputTokens)).toEqual([true, true, true])
    })

    test("does the same streamed, and tells each piece of text", async () => {
      const { agent, runner, scripted, asked } = usual(model)
      const run = await runner.run(agent, question, { stream: true })
      const told: string[] = []
      const items: string[] = []
      for await (const event of run) {
        if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") {
          told.push(event.data.delta)
        }
        if (event.type === "run_item_stream_event") items.push(event.name)
      }
      await run.completed
      expect(run.finalOutput).toBe(sentence)
      expect(told.join("")).toBe(`A moment.${sentence}`)
      expect(told.length).toBeGreaterThan(5)
      expect(items.filter((item) => item === "tool_called")).toHaveLength(3)
      expect(items.filter((item) => item === "tool_output")).toHaveLength(3)
      expect(asked).toEqual(["Bern", "Zürich", "Zug"])
      expect(scripted.bodies).toHaveLength(3)
    })
  })
}

test("an agent over responses sends its reasoning, calls and their results back as items", async () => {
  const { agent, runner, scripted } = usual(models.responses!)
  await runner.run(agent, question)
  const { input } = z
    .object({ input: z.array(z.looseObject({ type: z.string().optional() })) })
    .parse(scripted.bodies[1])
  expect(input.map(({ type }) => type ?? "message")).toEqual([
    "message",
    "reasoning",
    "function_call",
    "function_call",
    "function_call_output",
    "function_call_output",
  ])
})
