/**
 * The Vercel AI SDK: its OpenAI provider on /v1/responses and on /v1/chat/completions, and its provider for compatible
 * servers on /v1/chat/completions. The same cases for each; where a provider cannot show something, `traits` says so.
 */
import { describe, expect, test } from "bun:test"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { APICallError, generateText, isStepCount, type LanguageModel, Output, streamText, tool } from "ai"
import { z } from "zod"
import { callText, type Script, script, sentence, thinking } from "./support/script"
import { type ScriptedFetch, scriptedFetch } from "./support/scripted-fetch"
import { servedModel } from "./support/served-model"

const served = servedModel()

interface Traits {
  /** The provider shows reasoning text. The OpenAI ones know only summaries, which no open model writes. */
  readonly reasoning: boolean
  readonly model: (fetch: ScriptedFetch["fetch"]) => LanguageModel
}

const openai = (fetch: ScriptedFetch["fetch"]) =>
  createOpenAI({ baseURL: served.server.baseURL, apiKey: "unused", fetch })

const providers: { readonly [title: string]: Traits } = {
  "openai.responses": { reasoning: false, model: (fetch) => openai(fetch).responses(served.name) },
  "openai.chat": { reasoning: false, model: (fetch) => openai(fetch).chat(served.name) },
  "openai-compatible": {
    reasoning: true,
    model: (fetch) =>
      createOpenAICompatible({
        name: "sluice",
        baseURL: served.server.baseURL,
        includeUsage: true,
        supportsStructuredOutputs: true,
        fetch,
      })(served.name),
  },
}

/**
 * Nothing is stored on the server, and the responses provider must know it: otherwise it sends references to items of
 * earlier steps in place of the items.
 */
const providerOptions = { openai: { store: false } }

const weather = z.object({ city: z.string(), celsius: z.number() })
const value = { city: "Zürich", celsius: 3 }

for (const [title, { model, reasoning }] of Object.entries(providers)) {
  const using = (...scripts: readonly Script[]) => {
    const scripted = scriptedFetch(...scripts)
    return { scripted, settings: { model: model(scripted.fetch), providerOptions, maxRetries: 0 } }
  }

  describe(title, () => {
    test("generates text with its usage and finish reason", async () => {
      const { settings } = using(script(thinking("Let me see.", sentence)))
      const answer = await generateText({ ...settings, system: "Be brief.", prompt: "How is the weather?" })
      expect(answer.text).toBe(sentence)
      expect(answer.finishReason).toBe("stop")
      expect(answer.usage.inputTokens).toBeGreaterThan(0)
      expect(answer.usage.totalTokens).toBe(answer.usage.inputTokens! + answer.usage.outputTokens!)
      expect(answer.usage.outputTokenDetails.reasoningTokens).toBe(4)
      if (reasoning) expect(answer.reasoningText).toBe("Let me see.")
    })

    test("streams the same text in pieces", async () => {
      const { settings } = using(script(thinking("Let me see.", sentence)))
      const answer = streamText({ ...settings, prompt: "How is the weather?" })
      const pieces: string[] = []
      for await (const piece of answer.textStream) pieces.push(piece)
      expect(pieces.join("")).toBe(sentence)
      expect(pieces.length).toBeGreaterThan(3)
      expect(await answer.finishReason).toBe("stop")
      expect((await answer.usage).outputTokens).toBeGreaterThan(5)
      if (reasoning) expect(await answer.reasoningText).toBe("Let me see.")
    })

    test("says that the reply was cut", async () => {
      const { settings } = using(script("one two three four five"))
      const answer = await generateText({ ...settings, maxOutputTokens: 3, prompt: "Count." })
      expect([answer.text, answer.finishReason]).toEqual(["one two three", "length"])
    })

    test("runs tools over several steps", async () => {
      const { scripted, settings } = using(
        script(
          thinking("Two cities.", callText("getWeather", { city: "Bern" }) + callText("getWeather", { city: "Zug" })),
        ),
        script(callText("getWeather", { city: "Zürich" })),
        script("Cold in all three."),
      )
      const asked: string[] = []
      const answer = await generateText({
        ...settings,
        tools: toolbox(asked),
        stopWhen: isStepCount(5),
        prompt: "Weather?",
      })
      expect(answer.text).toBe("Cold in all three.")
      expect(asked.toSorted()).toEqual(["Bern", "Zug", "Zürich"])
      expect(answer.steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "tool-calls", "stop"])
      expect(scripted.bodies).toHaveLength(3)
    })

    test("streams tool calls over several steps", async () => {
      const { settings } = using(
        script(`I look it up.${callText("getWeather", { city: "Zürich" })}`),
        script(thinking("Cold.", "It is cold.")),
      )
      const asked: string[] = []
      const answer = streamText({ ...settings, tools: toolbox(asked), stopWhen: isStepCount(5), prompt: "Weather?" })
      const kinds = new Set<string>()
      let args = ""
      for await (const part of answer.stream) {
        kinds.add(part.type)
        if (part.type === "tool-input-delta") args += part.delta
        if (part.type === "error") throw part.error
      }
      expect(await answer.text).toBe("It is cold.")
      expect(asked).toEqual(["Zürich"])
      expect(JSON.parse(args)).toEqual({ city: "Zürich" })
      expect([...kinds]).toContain("tool-input-start")
      expect([...kinds]).toContain("tool-result")
    })

    test("generates an object by its schema", async () => {
      const { scripted, settings } = using(script(JSON.stringify(value)))
      const answer = await generateText({ ...settings, output: Output.object({ schema: weather }), prompt: "Weather?" })
      expect(answer.output).toEqual(value)
      expect(JSON.stringify(scripted.bodies[0])).toContain("json_schema")
    })

    test("streams an object by its schema", async () => {
      const { settings } = using(script(thinking("JSON.", JSON.stringify(value))))
      const answer = streamText({ ...settings, output: Output.object({ schema: weather }), prompt: "Weather?" })
      let last: unknown
      for await (const partial of answer.partialOutputStream) last = partial
      expect(last).toEqual(value)
      expect(await answer.output).toEqual(value)
    })

    test("gets an error with status and message", async () => {
      const { settings } = using(script("never"))
      const error = await generateText({ ...settings, temperature: 5, prompt: "Hello" }).then(
        () => null,
        (reason: unknown) => reason,
      )
      if (!APICallError.isInstance(error)) throw new Error(`no API error: ${String(error)}`)
      expect(error.statusCode).toBe(400)
      expect(error.message).toContain("temperature")
    })

    test("aborts a stream", async () => {
      const { settings } = using(script("word ".repeat(2_000), { sim_step_ms: 5 }))
      const controller = new AbortController()
      const answer = streamText({
        ...settings,
        prompt: "Talk.",
        maxOutputTokens: 2_000,
        abortSignal: controller.signal,
      })
      const kinds: string[] = []
      for await (const part of answer.stream) {
        kinds.push(part.type)
        if (part.type === "text-delta") controller.abort()
      }
      expect(kinds).toContain("abort")
      expect(kinds.length).toBeLessThan(2_000)
    })
  })
}

function toolbox(asked: string[]) {
  return {
    getWeather: tool({
      description: "Weather of a city",
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => {
        asked.push(city)
        return { city, celsius: 3 }
      },
    }),
  }
}
