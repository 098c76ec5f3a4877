/**
 * The same message on /v1/responses and /v1/chat/completions at temperature 0: the same prompt ids, reasoning and text
 * (RESPONSES, Decided), for each template at hand.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import type { GenerateRequest } from "../../../src/ir/generate-request"
import { builtInProfile } from "../../../src/model/built-in"
import { qwen3Profile } from "../../support/qwen3-model"
import { recordEngine } from "../../support/recorded-engine"
import { startTestServer, type TestServer } from "../../support/test-server"

const templates = join(import.meta.dir, "../../../../shared/cases/templates")
const templateFiles = existsSync(templates)
  ? readdirSync(templates)
      .filter((file) => file.endsWith(".jinja"))
      .sort()
  : []

const chatTools = [
  { type: "function", function: { name: "look", description: "Looks.", parameters: { type: "object" } } },
]
const tools = [{ type: "function", name: "look", description: "Looks.", parameters: { type: "object" } }]

/** The same conversation in both APIs' words. */
const conversations: readonly (readonly [string, { readonly chat: object; readonly responses: object }])[] = [
  [
    "one message",
    { chat: { messages: [{ role: "user", content: "What is up?" }] }, responses: { input: "What is up?" } },
  ],
  [
    "instructions",
    {
      chat: {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "What is up?" },
        ],
      },
      responses: { instructions: "Be brief.", input: "What is up?" },
    },
  ],
  [
    "effort and tools",
    {
      chat: { messages: [{ role: "user", content: "Look up." }], tools: chatTools, reasoning_effort: "low" },
      responses: { input: "Look up.", tools, reasoning: { effort: "low" } },
    },
  ],
  [
    "developer messages",
    {
      chat: {
        messages: [
          { role: "developer", content: "One." },
          { role: "developer", content: [{ type: "text", text: "Two." }] },
          { role: "user", content: "Hi" },
        ],
      },
      responses: {
        input: [
          { role: "developer", content: "One." },
          { role: "developer", content: [{ type: "input_text", text: "Two." }] },
          { role: "user", content: "Hi" },
        ],
      },
    },
  ],
  [
    "a call and its output",
    {
      chat: {
        messages: [
          { role: "user", content: "Look up." },
          {
            role: "assistant",
            content: "I look.",
            reasoning: "Up, then.",
            tool_calls: [{ id: "callid001", type: "function", function: { name: "look", arguments: '{"at":"sky"}' } }],
          },
          { role: "tool", tool_call_id: "callid001", content: "blue" },
        ],
        tools: chatTools,
      },
      responses: {
        input: [
          { role: "user", content: "Look up." },
          { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Up, then." }] },
          { role: "assistant", content: [{ type: "output_text", text: "I look." }] },
          { type: "function_call", call_id: "callid001", name: "look", arguments: '{"at":"sky"}' },
          { type: "function_call_output", call_id: "callid001", output: "blue" },
        ],
        tools,
      },
    },
  ],
]

const scripts: readonly (object | undefined)[] = [
  undefined,
  { sim_text: "<think>\nLet me see.\n</think>\n\nNot much." },
  { sim_text: "Let me see.\n</think>\n\nNot much." },
]

/** What both APIs say alike. Where the template cannot render the conversation, both say so in the same words. */
interface Alike {
  readonly status: number
  readonly refusal: unknown
  readonly prompt: readonly number[]
  readonly promptTokens: number
  readonly reasoning: string
  readonly text: string
}

async function post(server: TestServer, path: string, body: object) {
  using engine = recordEngine()
  const reply = await server.post(path, { ...body, temperature: 0 })
  const request: GenerateRequest | undefined = engine.requests[0]
  return { reply, prompt: Array.from(request?.promptTokenIds ?? []) }
}

async function throughChat(server: TestServer, body: object): Promise<Alike> {
  const { reply, prompt } = await post(server, "/v1/chat/completions", body)
  const { status, json } = reply
  if (status !== 200) return refused(status, json.error)
  const { content, reasoning } = json.choices[0].message
  return { ...served, prompt, promptTokens: json.usage.prompt_tokens, reasoning: reasoning ?? "", text: content ?? "" }
}

async function throughResponses(server: TestServer, body: object): Promise<Alike> {
  const { reply, prompt } = await post(server, "/v1/responses", body)
  const { status, json } = reply
  if (status !== 200) return refused(status, json.error)
  const textOf = (type: string): string =>
    json.output
      .filter((item: { type: string }) => item.type === type)
      .map((item: { content: [{ text: string }] }) => item.content[0].text)
      .join("")
  const promptTokens: number = json.usage.input_tokens
  return { ...served, prompt, promptTokens, reasoning: textOf("reasoning"), text: textOf("message") }
}

const served = { status: 200, refusal: null }

function refused(status: number, refusal: unknown): Alike {
  return { status, refusal, prompt: [], promptTokens: 0, reasoning: "", text: "" }
}

/** The cases on one server; gives how many of them its template could render. */
async function compare(server: TestServer): Promise<number> {
  let rendered = 0
  for (const [name, { chat, responses }] of conversations) {
    for (const vllm_xargs of scripts) {
      const fromChat = await throughChat(server, { ...chat, vllm_xargs })
      const fromResponses = await throughResponses(server, { ...responses, vllm_xargs })
      expect([name, fromResponses]).toEqual([name, fromChat])
      if (fromChat.status === 200) rendered += 1
      expect([200, 400]).toContain(fromChat.status)
      expect(fromChat.promptTokens).toBe(fromChat.prompt.length)
    }
  }
  return rendered
}

const all = conversations.length * scripts.length

describe("Responses and chat say the same", () => {
  test.each([
    ["the built-in model", builtInProfile],
    ["Qwen3", qwen3Profile],
  ] as const)("on %s", async (_name, profileOf) => {
    const server = await startTestServer({ profile: await profileOf() })
    expect(await compare(server)).toBe(all)
    await server.stop()
  })

  if (templateFiles.length === 0) test.skip("on the templates of the cases", () => {})
  else {
    // Templates are looked up for each prompt, so one server can go through them all.
    const chatTemplates = { default: "{{ messages }}" }
    const renderable: string[] = []
    let server: TestServer
    beforeAll(async () => {
      server = await startTestServer({ profile: { chatTemplates } })
    })
    for (const file of templateFiles) {
      const name = basename(file, ".jinja")
      test(`on ${name}`, async () => {
        chatTemplates.default = readFileSync(join(templates, file), "utf8")
        if ((await compare(server)) > 0) renderable.push(name)
      })
    }
    test("on most of the templates", () => {
      expect(renderable.length).toBeGreaterThan(templateFiles.length * 0.9)
    })
    afterAll(() => server.stop())
  }
})
