/** `--cohere-format`: which generation of Cohere's formats a template is told, in both roles and on every road. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Config } from "../../../src/config"
import { builtInProfile } from "../../../src/model/built-in"
import { recordEngine } from "../../support/recorded-engine"
import { startTestRenderer } from "../../support/test-renderer"
import { startTestServer, type TestServer } from "../../support/test-server"

/** Prints what it is told, as templates of Cohere's models choose by it. */
const chatTemplates = {
  default:
    "{{ cohere_format is defined and cohere_format or 'none' }}: {% for message in messages %}{{ message.content }}{% endfor %}",
}
const messages = [{ role: "user", content: "hi" }]
const ask = (kwargs?: object) => (kwargs === undefined ? {} : { chat_template_kwargs: kwargs })

/** Configuration, the request's kwargs, and what the template is told. */
const cases: readonly (readonly [Partial<Config>, object | undefined, string])[] = [
  [{}, undefined, "cmd4"],
  [{ cohereFormat: "cmd3" }, undefined, "cmd3"],
  [{ cohereFormat: "cmd3", defaultChatTemplateKwargs: { cohere_format: "cmd4" } }, undefined, "cmd4"],
  [{ defaultChatTemplateKwargs: { cohere_format: "own" } }, { cohere_format: "cmd3" }, "cmd3"],
  [{ cohereFormat: "cmd3" }, { cohere_format: null }, "cmd3"],
  [{ cohereFormat: "cmd3" }, { cohere_format: "auto" }, "cmd3"],
]

for (const [config, kwargs, expected] of cases) {
  describe(`with ${JSON.stringify(config)} and ${JSON.stringify(kwargs ?? null)}`, () => {
    let renderer: TestServer
    let server: TestServer
    beforeAll(async () => {
      const profile = { ...(await builtInProfile()), chatTemplates }
      const both: Partial<Config> = { ...config, reasoningParser: "qwen3", enableScaleOut: true }
      renderer = await startTestRenderer({ profile, config: both })
      server = await startTestServer({ profile, config: both })
    })
    afterAll(async () => {
      await renderer.stop()
      await server.stop()
    })

    test(`a template is told ${expected} wherever it renders`, async () => {
      const told: unknown[] = []
      for (const [path, body] of [
        ["/v1/chat/completions", { messages, ...ask(kwargs) }],
        ["/v1/responses", { input: "hi", ...ask(kwargs) }],
      ] as const) {
        for (const role of [renderer, server]) {
          const { json, status, text } = await role.post(`${path}/render`, body)
          if (status !== 200) throw new Error(text)
          told.push((await role.post("/detokenize", { tokens: json.token_ids })).json.prompt)
          expect(json.reasoning_parser_kwargs.chat_template_kwargs.cohere_format).toBe(expected)
        }
        using record = recordEngine()
        expect((await server.post(path, body)).status).toBe(200)
        const tokens = Array.from(record.requests[0]!.promptTokenIds)
        told.push((await server.post("/detokenize", { tokens })).json.prompt)
      }
      for (const role of [renderer, server]) {
        const { json } = await role.post("/tokenize", { messages, ...ask(kwargs) })
        told.push((await role.post("/detokenize", { tokens: json.tokens })).json.prompt)
      }
      expect(told).toEqual(told.map(() => `${expected}: hi`))
    })
  })
}
