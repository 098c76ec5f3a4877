/** LangChain's chat model for OpenAI, on /v1/responses and on /v1/chat/completions. The same cases for both. */
import { describe, expect, test } from "bun:test"
import {
  type AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  ToolMessage,
} from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { ChatOpenAI } from "@langchain/openai"
import { z } from "zod"
import { callText, type Script, script, sentence, thinking } from "./support/script"
import { scriptedFetch } from "./support/scripted-fetch"
import { servedModel } from "./support/served-model"

const served = servedModel()

const weather = z.object({ city: z.string(), celsius: z.number() })
const value = { city: "Zürich", celsius: 3 }
const question = new HumanMessage("How cold is it?")
const getCelsius = tool(({ city }) => `3 °C in ${city}`, {
  name: "get_celsius",
  description: "Temperature of a city",
  schema: z.object({ city: z.string() }),
})

for (const useResponsesApi of [true, false]) {
  const using = (...scripts: readonly Script[]) => {
    const scripted = scriptedFetch(...scripts)
    const model = new ChatOpenAI({
      model: served.name,
      apiKey: "unused",
      maxRetries: 0,
      useResponsesApi,
      configuration: { baseURL: served.server.baseURL, fetch: scripted.fetch },
    })
    return { model, scripted }
  }

  describe(`ChatOpenAI over ${useResponsesApi ? "responses" : "chat"}`, () => {
    test("answers in words, with usage", async () => {
      const { model } = using(script(thinking("Let me see.", sentence)))
      const answer = await model.invoke([question])
      expect(answer.text).toBe(sentence)
      const usage = answer.usage_metadata!
      expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
      expect(usage.output_token_details).toMatchObject({ reasoning: 4 })
    })

    test("streams the same text in pieces", async () => {
      const { model } = using(script(thinking("Let me see.", sentence)))
      const pieces: string[] = []
      let whole: AIMessageChunk | null = null
      for await (const chunk of await model.stream([question])) {
        if (chunk.text !== "") pieces.push(chunk.text)
        whole = whole === null ? chunk : whole.concat(chunk)
      }
      expect(pieces.join("")).toBe(sentence)
      expect(pieces.length).toBeGreaterThan(3)
      expect(whole!.text).toBe(sentence)
      expect(whole!.usage_metadata!.output_tokens).toBeGreaterThan(5)
    })

    test("calls tools over several steps", async () => {
      const { model, scripted } = using(
        script(
          thinking("Two.", callText("get_celsius", { city: "Bern" }) + callText("get_celsius", { city: "Zürich" })),
        ),
        script(`A moment.${callText("get_celsius", { city: "Zug" })}`),
        script(thinking("All there.", sentence)),
      )
      const { answer, asked } = await loop((history) => model.bindTools([getCelsius]).invoke(history))
      expect(answer.text).toBe(sentence)
      expect(asked).toEqual(["Bern", "Zürich", "Zug"])
      const last = JSON.stringify(scripted.bodies[2])
      for (const city of asked) expect(last).toContain(`3 °C in ${city}`)
    })

    test("streams calls over several steps", async () => {
      const { model, scripted } = using(
        script(thinking("Two.", callText("get_celsius", { city: "Bern" }) + callText("get_celsius", { city: "Zug" }))),
        script(sentence),
      )
      const { answer, asked } = await loop(async (history) => {
        let whole: AIMessageChunk | null = null
        for await (const chunk of await model.bindTools([getCelsius]).stream(history)) {
          whole = whole === null ? chunk : whole.concat(chunk)
        }
        return whole!
      })
      expect(answer.text).toBe(sentence)
      expect(asked).toEqual(["Bern", "Zug"])
      expect(scripted.bodies).toHaveLength(2)
    })

    test("gives an object by its schema", async () => {
      const { model, scripted } = using(script(thinking("JSON.", JSON.stringify(value))))
      expect(await model.withStructuredOutput(weather, { method: "jsonSchema" }).invoke([question])).toEqual(value)
      expect(JSON.stringify(scripted.bodies[0])).toContain("json_schema")
    })

    test("gets an error with its status", async () => {
      const { model } = using(script("never", { sim_finish: "none of the known" }))
      const error = await model.invoke([question]).then(
        () => null,
        (reason: unknown) => reason,
      )
      expect(error).toMatchObject({ status: 400, message: expect.stringContaining("sim_finish") })
    })
  })
}

/** Asks and runs the tools that were called, until the model calls none. */
async function loop(ask: (history: BaseMessage[]) => Promise<AIMessage | AIMessageChunk>) {
  const history: BaseMessage[] = [question]
  const asked: string[] = []
  for (;;) {
    const answer = await ask(history)
    history.push(answer)
    if (answer.tool_calls === undefined || answer.tool_calls.length === 0) return { answer, asked }
    for (const call of answer.tool_calls) {
      const { city } = z.object({ city: z.string() }).parse(call.args)
      asked.push(city)
      const result: unknown = await getCelsius.invoke({ ...call, type: "tool_call" })
      if (!(result instanceof ToolMessage)) throw new Error("the tool gave no tool message")
      history.push(result)
    }
  }
}
