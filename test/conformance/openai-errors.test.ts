/** What the `openai` package makes of our errors: its class, and status, type, param and code of the envelope. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import OpenAI, { APIError, AuthenticationError, BadRequestError, InternalServerError, NotFoundError } from "openai"
import { type Server, startServer } from "../support/server-process"
import { script } from "./support/script"

const key = "sk-correct"
let server: Server
let client: OpenAI
let model: string

beforeAll(async () => {
  server = await startServer("--api-key", key)
  client = new OpenAI({ baseURL: server.baseURL, apiKey: key, maxRetries: 0 })
  for await (const card of client.models.list()) model ??= card.id
})
afterAll(async () => {
  expect(await server.end()).toBe(0)
})

const messages = [{ role: "user", content: "Hello" }] as const

interface Seen {
  readonly kind: string
  readonly status: number | undefined
  readonly type: unknown
  readonly param: unknown
  readonly code: unknown
}

async function failure(promise: Promise<unknown>): Promise<Seen> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof APIError)) throw new Error(`no error of the API: ${String(error)}`)
  expect(error.message.length).toBeGreaterThan(0)
  const { status, type, param, code } = error
  return { kind: error.constructor.name, status, type, param, code }
}

const chat = (more: object) => client.chat.completions.create({ model, messages: [...messages], ...more })
const respond = (more: object) => client.responses.create({ model, input: "Hello", ...more })

describe("errors", () => {
  test("of an unknown model are NotFoundError on every endpoint", async () => {
    const expected = { kind: NotFoundError.name, status: 404, type: "NotFoundError", param: "model", code: 404 }
    expect(await failure(chat({ model: "no-such-model" }))).toEqual(expected)
    expect(await failure(respond({ model: "no-such-model" }))).toEqual(expected)
    expect(await failure(client.completions.create({ model: "no-such-model", prompt: "Hi" }))).toEqual(expected)
  })

  test("of a value out of range are BadRequestError naming the field", async () => {
    const bad = { kind: BadRequestError.name, status: 400, type: "BadRequestError", code: 400 }
    expect(await failure(chat({ temperature: 3 }))).toEqual({ ...bad, param: "temperature" })
    expect(await failure(chat({ stream_options: { include_usage: true } }))).toEqual({
      ...bad,
      param: "stream_options",
    })
    expect(await failure(chat({ tool_choice: "required" }))).toEqual({ ...bad, param: "tool_choice" })
    expect(await failure(respond({ background: true }))).toEqual({ ...bad, param: "background" })
    expect(await failure(respond({ tools: [{ type: "web_search" }] }))).toEqual({ ...bad, param: "tools" })
  })

  test("of a wrong JSON type have the type `Bad Request`", async () => {
    const bad = { kind: BadRequestError.name, status: 400, type: "Bad Request", code: 400 }
    expect(await failure(chat({ max_completion_tokens: "5" }))).toEqual({ ...bad, param: "max_completion_tokens" })
    expect(await failure(respond({ stream: "yes" }))).toEqual({ ...bad, param: "stream" })
    expect(await failure(respond({ input: 5 }))).toEqual({ ...bad, param: "input" })
  })

  test("of a previous response are NotFoundError, since none is kept", async () => {
    const gone = { kind: NotFoundError.name, status: 404, type: "NotFoundError", param: "response_id", code: 404 }
    expect(await failure(respond({ previous_response_id: "resp_1" }))).toEqual(gone)
    expect(await failure(client.responses.retrieve("resp_1"))).toEqual(gone)
    expect(await failure(client.responses.cancel("resp_1"))).toEqual(gone)
    expect(await failure(client.responses.delete("resp_1"))).toEqual(gone)
  })

  test("of a wrong or missing key are AuthenticationError", async () => {
    for (const apiKey of ["sk-wrong", `${key}x`, key.slice(0, -1)]) {
      const stranger = new OpenAI({ baseURL: server.baseURL, apiKey, maxRetries: 0 })
      const { kind, status } = await failure(stranger.chat.completions.create({ model, messages: [...messages] }))
      expect([kind, status]).toEqual([AuthenticationError.name, 401])
    }
    expect((await fetch(`${server.baseURL}/models`)).status).toBe(401)
    expect((await fetch(`${server.origin}/health`)).status).toBe(200)
  })

  test("of the engine are a status when nothing was sent yet", async () => {
    const broken = script("one two three", { sim_fail_after_tokens: 1, sim_error: "disconnect" })
    const internal = { kind: InternalServerError.name, status: 500, type: "InternalServerError", code: 500 }
    expect(await failure(chat(broken))).toMatchObject(internal)
    expect(await failure(respond(broken))).toMatchObject(internal)
    const busy = script("one two three", { sim_fail_after_tokens: 0, sim_error: "retryable" })
    expect(await failure(chat(busy))).toMatchObject({ kind: InternalServerError.name, status: 503, code: 503 })
  })

  test("of the engine in a chat stream reach the reader of the stream", async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: [...messages],
      stream: true,
      ...script("one two three", { sim_fail_after_tokens: 2, sim_error: "disconnect" }),
    })
    let text = ""
    const read = async (): Promise<void> => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ""
    }
    expect(await failure(read())).toMatchObject({ type: "InternalServerError", code: 500 })
    expect(text).toBe("one two")
  })

  test("of a script that makes no sense are BadRequestError", async () => {
    const bad = { kind: BadRequestError.name, status: 400, code: 400 }
    expect(await failure(chat({ vllm_xargs: { sim_text: "a", sim_token_ids: [1] } }))).toMatchObject(bad)
    expect(await failure(chat({ vllm_xargs: { sim_texts: "a" } }))).toMatchObject(bad)
    expect(await failure(chat({ vllm_xargs: { sim_text: 5 } }))).toMatchObject(bad)
  })
})
