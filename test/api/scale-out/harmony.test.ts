/** Harmony prompts (gpt-oss) rendered, beside what generation does with the same request. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Json } from "../../../src/ir/conversation"
import { gptOssProfile } from "../../support/gpt-oss-model"
import { recordEngine } from "../../support/recorded-engine"
import { startTestRenderer } from "../../support/test-renderer"
import { startTestServer, type TestServer } from "../../support/test-server"

/** A window that a test can fill. */
const contextTokensMax = 4_096

let renderer: TestServer
let server: TestServer
beforeAll(async () => {
  const profile = { ...(await gptOssProfile()), contextTokensMax }
  const config = { harmonyStartDate: "2026-03-05" }
  renderer = await startTestRenderer({ profile, config })
  server = await startTestServer({ profile, config: { ...config, enableScaleOut: true } })
})
afterAll(async () => {
  await renderer.stop()
  await server.stop()
})

const parameters = { type: "object", properties: { at: { type: "string" } }, required: ["at"] }
const chatTools = [
  { type: "function", function: { name: "look", parameters, strict: true } },
  { type: "function", function: { name: "now" } },
]
const responseTools = [
  { type: "function", name: "look", parameters, strict: true },
  { type: "function", name: "now" },
]
const user = { role: "user", content: "Look up." }

/** A body of each API for the same choice of calls. */
function bodies(required: "required" | "look"): readonly (readonly [path: string, body: object])[] {
  const isNamed = required !== "required"
  const named = { type: "function", function: { name: required } }
  const flat = { type: "function", name: required }
  return [
    ["/v1/chat/completions", { messages: [user], tools: chatTools, tool_choice: isNamed ? named : required }],
    ["/v1/responses", { input: [user], tools: responseTools, tool_choice: isNamed ? flat : required }],
  ]
}

function tag(begin: string, content: Json, end: Json): Json {
  return { type: "tag", begin, content, end }
}

/** Every way that a call of `name` may begin, written out. */
function callTags(name: string, schema: Json): Json[] {
  const begins = [
    ` to=functions.${name}<|channel|>commentary json<|message|>`,
    ` to=functions.${name}<|channel|>commentary <|constrain|>json<|message|>`,
    `<|channel|>commentary to=functions.${name} json<|message|>`,
    `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>`,
    ` to=functions.${name}<|channel|>analysis json<|message|>`,
    ` to=functions.${name}<|channel|>analysis <|constrain|>json<|message|>`,
    `<|channel|>analysis to=functions.${name} json<|message|>`,
    `<|channel|>analysis to=functions.${name} <|constrain|>json<|message|>`,
    ` to=functions.${name}<|channel|>final json<|message|>`,
    ` to=functions.${name}<|channel|>final <|constrain|>json<|message|>`,
    `<|channel|>final to=functions.${name} json<|message|>`,
    `<|channel|>final to=functions.${name} <|constrain|>json<|message|>`,
  ]
  return begins.map((begin) => tag(begin, { type: "json_schema", json_schema: schema }, ["<|end|>", ""]))
}

/** The whole tag of a forced call: reasoning and a word to the user may come first, then one of the calls. */
function forcedTag(calls: Json[]): Json {
  const optional = (channel: string): Json => ({
    type: "optional",
    content: {
      type: "sequence",
      elements: [
        tag(`<|channel|>${channel}<|message|>`, { type: "any_text" }, "<|end|>"),
        { type: "const_string", value: "<|start|>assistant" },
      ],
    },
  })
  const reply: Json = { type: "sequence", elements: [optional("commentary"), { type: "or", elements: calls }] }
  return { type: "structural_tag", format: { type: "sequence", elements: [optional("analysis"), reply] } }
}

describe("a forced call", () => {
  const cases = {
    required: forcedTag([...callTags("look", parameters), ...callTags("now", true)]),
    look: forcedTag(callTags("look", parameters)),
  } as const

  for (const [choice, expected] of Object.entries(cases) as ["required" | "look", Json][]) {
    test(`${choice}: the whole structural tag is rendered, and is what the engine is told`, async () => {
      for (const [path, body] of bodies(choice)) {
        const { json, status, text } = await renderer.post(`${path}/render`, body)
        if (status !== 200) throw new Error(text)
        const { structured_outputs, ...sampling } = json.sampling_params
        expect(Object.keys(structured_outputs)).toEqual(["structural_tag"])
        expect(JSON.parse(structured_outputs.structural_tag)).toEqual(expected)
        // The ids that end a call come from the model's list, not from the request.
        expect([sampling.stop, sampling.stop_token_ids, json.reasoning_ended]).toEqual([undefined, undefined, true])
        expect(sampling.skip_special_tokens).toBe(false)

        using record = recordEngine()
        expect((await server.post(path, body)).status).toBe(200)
        const direct = record.requests[0]!
        expect(Array.from(direct.promptTokenIds)).toEqual(json.token_ids)
        expect(direct.sampling.structuredOutputs as unknown).toEqual({ structural_tag: expected })
        expect(direct.reasoningEnded).toBe(true)
        const generated = await server.post("/inference/v1/generate", json)
        expect([generated.status, record.requests.length]).toEqual([200, 2])
        const handed = record.requests[1]!
        const told = handed.sampling.structuredOutputs?.structural_tag
        expect(JSON.parse(String(told))).toEqual(expected)
        expect({ ...handed.sampling, structuredOutputs: null }).toEqual({ ...direct.sampling, structuredOutputs: null })
      }
    })
  }
})

describe("a prompt that is longer than the window", () => {
  const input = "word ".repeat(contextTokensMax + 10)

  test("is cut to all of the window but one token with truncation auto, as in generation", async () => {
    const body = { input, truncation: "auto" }
    const { json } = await renderer.post("/v1/responses/render", body)
    expect([json.token_ids.length, json.sampling_params.max_tokens]).toEqual([contextTokensMax - 1, 1])
    using record = recordEngine()
    expect((await server.post("/v1/responses", body)).status).toBe(200)
    expect(Array.from(record.requests[0]!.promptTokenIds)).toEqual(json.token_ids)
  })

  test("is refused with truncation disabled, also where it fills the window exactly", async () => {
    const lengthOf = async (words: number): Promise<number> => {
      const { json } = await renderer.post("/v1/responses/render", { input: "word ".repeat(words) })
      return json.token_ids.length
    }
    const around = (await lengthOf(100)) - 100
    expect(await lengthOf(contextTokensMax - around - 1)).toBe(contextTokensMax - 1)
    const exact = "word ".repeat(contextTokensMax - around)
    for (const text of [input, exact]) {
      for (const truncation of [undefined, "disabled"]) {
        const { status, json } = await renderer.post("/v1/responses/render", { input: text, truncation })
        expect([status, json.error.type, json.error.param]).toEqual([400, "BadRequestError", "input_tokens"])
      }
      const chat = await renderer.post("/v1/chat/completions/render", { messages: [{ role: "user", content: text }] })
      expect([chat.status, chat.json.error.param]).toEqual([400, "input_tokens"])
    }
  })
})

test("the parse context has no template's variables, whatever the request gave", async () => {
  const kwargs = { model_identity: "You are a test." }
  const body = { messages: [user], tools: chatTools, reasoning_effort: "high", chat_template_kwargs: kwargs }
  const { json } = await renderer.post("/v1/chat/completions/render", body)
  expect(json.parse_context).toEqual({
    tools: chatTools,
    tool_choice: null,
    parallel_tool_calls: true,
    include_reasoning: true,
    chat_template_kwargs: {},
    history_tool_call_cnt: 0,
  })
  // They went into the prompt all the same.
  const { json: plain } = await renderer.post("/v1/chat/completions/render", { messages: [user], tools: chatTools })
  expect(json.token_ids).not.toEqual(plain.token_ids)
  expect(json.reasoning_parser_kwargs.chat_template_kwargs).toMatchObject({ ...kwargs, reasoning_effort: "high" })
})

test("a template in the request's variables is refused on Responses, though Harmony would not read it", async () => {
  const body = { input: [user], chat_template_kwargs: { chat_template: "x" } }
  const { status, json } = await renderer.post("/v1/responses/render", body)
  expect([status, json.error.type, json.error.param]).toEqual([400, "BadRequestError", null])
})
