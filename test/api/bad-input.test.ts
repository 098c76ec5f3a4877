/** What comes from outside may be anything: the right status and envelope, in bounded time, and the server serves on. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { once } from "node:events"
import { connect } from "node:net"
import { defaultConfig } from "../../src/config"
import { startTestServer, type TestServer, until } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({
    config: { limits: { ...defaultConfig.limits, bodyBytesMax: 32 * 1024 * 1024 } },
    profile: { contextTokensMax: 4096 },
  })
})
afterAll(() => server.stop())

const chatPath = "/v1/chat/completions"
const chat = (content: unknown, extra: object = {}) => ({ messages: [{ role: "user", content }], ...extra })

/** Status, type, param and code; the text is free. */
async function refusal(path: string, body: unknown, headers: { readonly [name: string]: string } = {}) {
  const reply = await server.post(path, body, headers)
  const { message, ...rest } = reply.json.error
  expect(typeof message).toBe("string")
  expect(message.length).toBeLessThan(4_000)
  return { status: reply.status, ...rest }
}

const badBody = { status: 400, type: "Bad Request", param: null, code: 400 }

describe("a body", () => {
  test("must be JSON", async () => {
    for (const body of ["", "{", "nope", '{"messages": [}', "{'a': 1}", '{"a": 1} x', "\u0000", '{"a": 1e999}']) {
      expect({ body, ...(await refusal(chatPath, body)) }).toEqual({ body, ...badBody })
    }
  })

  test("must be an object", async () => {
    for (const body of ["[1]", "5", '"text"', "null", "true"]) {
      expect(await refusal(chatPath, body)).toEqual(badBody)
    }
  })

  test("must say that it is JSON", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonl",
      "",
    ]) {
      expect(await refusal(chatPath, chat("Hi"), { "content-type": type })).toEqual(badBody)
    }
    for (const type of ["application/json", "Application/JSON; charset=utf-8"]) {
      expect((await server.post(chatPath, chat("Hi"), { "content-type": type })).status).toBe(200)
    }
  })

  test("must be valid UTF-8", async () => {
    const body = Buffer.from(JSON.stringify(chat("X")))
    body[body.indexOf("X")] = 0xff
    expect(await refusal(chatPath, new Uint8Array(body))).toEqual(badBody)
  })

  test("must not nest without end", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000)
    expect(await refusal(chatPath, `{"messages": ${deep}}`)).toEqual(badBody)
    expect(await refusal(chatPath, '{"a":'.repeat(50_000))).toEqual(badBody)
  })

  test("must not be larger than the limit", async () => {
    const body = `{"messages": "${"x".repeat(33 * 1024 * 1024)}"}`
    expect(await refusal(chatPath, body)).toMatchObject({ status: 413, code: 413, param: null })
  })

  test("is not cut short by a client that goes away in the middle of it", async () => {
    const { port } = new URL(server.url)
    const socket = connect(Number(port), "127.0.0.1")
    socket.write(
      `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"mess`,
    )
    await once(socket, "connect")
    socket.destroy()
    await until(() => server.log.some((line) => line.startsWith(`POST ${chatPath} 499 `)))
  })

  test("must come in time, and keeps nobody else out while it does not", async () => {
    const limits = { ...defaultConfig.limits, bodySecondsMax: 0.2, concurrentRequestsMax: 1 }
    const strict = await startTestServer({ config: { limits } })
    const socket = connect(Number(new URL(strict.url).port), "127.0.0.1")
    const head = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n`
    socket.write(`${head}{`)
    await once(socket, "connect")
    expect((await strict.post(chatPath, chat("Hi"))).status).toBe(200)
    const [reply] = await once(socket, "data")
    expect(String(reply)).toStartWith("HTTP/1.1 408 ")
    socket.destroy()
    await strict.stop()
  })

  test("may hold lone surrogates: they reach the model as U+FFFD", async () => {
    const reply = await server.post(chatPath, '{"messages": [{"role": "user", "content": "a\\ud800b"}]}')
    expect(reply.status).toBe(200)
    expect(reply.json.choices[0].message.content).toContain("a\ufffdb")
  })

  test("may name __proto__ without harm", async () => {
    const reply = await server.post(
      chatPath,
      '{"__proto__": {"model": "nope"}, "messages": [{"role": "user", "content": "Hi"}]}',
    )
    expect(reply.status).toBe(200)
    expect(Reflect.get({}, "model")).toBeUndefined()
  })
})

test("a mismatch inside of an optional field is told by its path", async () => {
  const wrong: [object, string][] = [
    [{ tools: [{ type: "function" }] }, "tools.0.function: field required"],
    [{ reasoning_effort: "x" }, "reasoning_effort: expected "],
    [{ logit_bias: { "1": "a" } }, 'logit_bias.1: expected a number, got "a"'],
    [{ stream_options: { include_usage: "x" } }, "stream_options.include_usage: expected true or false or null"],
    [{ stop: ["a", 1] }, "stop.1: expected a string, got 1"],
    [{ stop_token_ids: ["1"] }, "stop_token_ids.0: expected an integer"],
    [{ structured_outputs: { regex: 1 } }, "structured_outputs.regex: expected a string or null, got 1"],
    [{ request_id: "x".repeat(513) }, "request_id: expected a string of at most 512 characters"],
    [{ messages: [{ role: "assistant", tool_calls: [{}] }] }, "messages.0.tool_calls.0.function: field required"],
    [{ n: "1", top_p: "2" }, "n: expected an integer"],
  ]
  for (const [extra, message] of wrong) {
    const reply = await server.post(chatPath, chat("Hi", extra))
    expect(reply.json.error.message).toContain(message)
  }
})

describe("messages", () => {
  test("must be there, with roles and contents of the right type", async () => {
    const wrong: [object, string][] = [
      [{}, "messages"],
      [{ messages: null }, "messages"],
      [{ messages: "Hi" }, "messages"],
      [{ messages: [5] }, "messages"],
      [{ messages: [{ content: "x" }] }, "messages"],
      [{ messages: [{ role: 5, content: "x" }] }, "messages"],
      [chat(5), "messages"],
      [chat([{ text: "x" }]), "messages"],
      [{ messages: [{ role: "assistant", tool_calls: [{ id: "a" }] }] }, "messages"],
      [chat("x", { tools: [{ type: "function" }] }), "tools"],
      [chat("x", { tools: {} }), "tools"],
    ]
    for (const [body, param] of wrong) {
      expect({ body, ...(await refusal(chatPath, body)) }).toEqual({ body, ...badBody, param })
    }
  })

  test("must make sense", async () => {
    const wrong: [object, string][] = [
      [{ messages: [] }, "messages"],
      [chat([{ type: "hologram" }]), "type"],
      [chat([{ type: "image_url", image_url: { url: "data:," } }]), "messages"],
      [chat("x", { tools: [] }), "tools"],
      [chat("x", { tool_choice: "auto" }), "tool_choice"],
      [chat("x", { tool_choice: "sometimes", tools: [tool] }), "tool_choice"],
      [chat("x", { tool_choice: { type: "function" }, tools: [tool] }), "tool_choice.function"],
      [chat("x", { tool_choice: { type: "function", function: {} }, tools: [tool] }), "tool_choice.function.name"],
      [chat("x", { tool_choice: { type: "function", function: { name: "g" } }, tools: [tool] }), "tool_choice"],
      [chat("x", { top_logprobs: 2 }), "top_logprobs"],
      [chat("x", { logprobs: true, top_logprobs: 21 }), "logprobs"],
      [chat("x", { stream_options: { include_usage: true } }), "stream_options"],
      [chat("x", { prompt_logprobs: 1, stream: true }), "prompt_logprobs"],
      [chat("x", { n: 0 }), "n"],
      [chat("x", { n: 2, temperature: 0 }), "n"],
      [chat("x", { n: 100_000 }), "n"],
      [chat("x", { max_tokens: 4097 }), "max_tokens"],
      [chat("x", { max_completion_tokens: 4097, max_tokens: 5 }), "max_completion_tokens"],
      [chat("x", { min_tokens: 6, max_tokens: 5 }), "min_tokens"],
      [chat("x", { response_format: { type: "json_schema" } }), "response_format"],
      [chat("x", { truncate_prompt_tokens: 4097 }), "truncate_prompt_tokens"],
      [chat("x", { mm_processor_kwargs: { a: 1 } }), "mm_processor_kwargs"],
      [chat("x", { max_tokens: 2 ** 40 }), "max_tokens"],
      [chat("x", { stop: "x".repeat(20_000) }), "stop"],
      [chat("x", { logprobs: true, logprob_token_ids: Array.from({ length: 21 }, (_, i) => i) }), "logprob_token_ids"],
      [chat("x", { structured_outputs: { json: 5 } }), "structured_outputs"],
      [chat("x", { structured_outputs: { structural_tag: 3 } }), "structured_outputs"],
      [
        chat("x", { response_format: { type: "json_schema", json_schema: { name: 5, schema: {} } } }),
        "response_format",
      ],
      [chat("x", { response_format: { type: "json_schema", json_schema: { schema: [] } } }), "response_format"],
      [chat("x", { repetition_detection: { max_pattern_size: -5 } }), "repetition_detection"],
      [chat("x", { repetition_detection: { max_pattern_size: 3, min_count: 0 } }), "repetition_detection"],
      [chat("x", { tools: [{ type: "function", function: { name: "" } }] }), "tools"],
      [chat("x", { add_generation_prompt: true, continue_final_message: true }), "continue_final_message"],
    ]
    for (const [body, param] of wrong) {
      const refused = await refusal(chatPath, body)
      expect({ body, ...refused }).toEqual({ body, status: 400, type: "BadRequestError", param, code: 400 })
    }
    for (const body of [
      chat("x", { chat_template: "{{ 1 }}" }),
      chat("x", { chat_template_kwargs: { chat_template: "" } }),
    ]) {
      expect(await refusal(chatPath, body)).toEqual({ status: 400, type: "BadRequestError", param: null, code: 400 })
    }
  })

  test("may be a hundred thousand, as far as they fit", async () => {
    const messages = Array.from({ length: 100_000 }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: "x",
    }))
    const startedAt = performance.now()
    expect(await refusal(chatPath, { messages })).toMatchObject({ status: 400, type: "BadRequestError" })
    expect(performance.now() - startedAt).toBeLessThan(25_000)
  }, 30_000)
})

const tool = { type: "function", function: { name: "f" } }

describe("a prompt", () => {
  test("over the window is refused by its tokens, or by its bytes when it could never fit", async () => {
    const refusedBy = { status: 400, type: "BadRequestError", code: 400 }
    const long = "word ".repeat(5_000)
    const endless = "x".repeat(20_000_000)
    expect(await refusal(chatPath, chat(long))).toEqual({ ...refusedBy, param: "input_tokens" })
    expect(await refusal("/v1/responses", { input: long })).toEqual({ ...refusedBy, param: "input_tokens" })
    expect(await refusal("/v1/completions", { prompt: long })).toEqual({ ...refusedBy, param: "input_tokens" })
    const startedAt = performance.now()
    expect(await refusal("/v1/completions", { prompt: endless })).toEqual({ ...refusedBy, param: "input_text" })
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test("of exactly the window is refused, one token less is not", async () => {
    const ids = (count: number) => ({ prompt: Array.from({ length: count }, () => 1), max_tokens: 5 })
    expect((await refusal("/v1/completions", ids(4096))).param).toBe("input_tokens")
    const reply = await server.post("/v1/completions", ids(4095))
    expect(reply.json.usage).toMatchObject({ prompt_tokens: 4095, completion_tokens: 1 })
  })

  test("must be in the vocabulary, not empty, and not too many", async () => {
    for (const prompt of ["", [], [""], [[]], [[1], []], null]) {
      expect(await refusal("/v1/completions", { prompt })).toMatchObject({ status: 400, param: "prompt" })
    }
    for (const prompt of [[99_999_999], [-1], [[1], [99_999_999]]]) {
      expect(await refusal("/v1/completions", { prompt })).toMatchObject({ status: 400, type: "BadRequestError" })
    }
    const choices = { prompt: ["x", "y"], n: 9_000 }
    expect(await refusal("/v1/completions", choices)).toMatchObject({ status: 400, param: "n" })
    const many = Array.from({ length: 1_025 }, () => "x")
    expect(await refusal("/v1/completions", { prompt: many })).toMatchObject({ status: 400, param: "prompt" })
  })

  test("may be one very long piece of text without costing more than its length", async () => {
    const startedAt = performance.now()
    expect((await refusal("/v1/completions", { prompt: "a".repeat(500_000) })).param).toBe("input_tokens")
    expect(performance.now() - startedAt).toBeLessThan(20_000)
  })
})

describe("a route", () => {
  test("that does not exist is 404, and a wrong method 405, in the usual envelope", async () => {
    const unknown = await server.get("/v1/nothing")
    expect([unknown.status, unknown.json.error.code]).toEqual([404, 404])
    const wrong = await server.get(chatPath)
    expect([wrong.status, wrong.json.error.code, wrong.headers.get("allow")]).toEqual([405, 405, "POST"])
    const patched = await fetch(`${server.url}/v1/models`, { method: "PATCH" })
    expect(patched.status).toBe(405)
  })

  test("for stored responses knows none", async () => {
    const notFound = { type: "NotFoundError", param: "response_id", code: 404 }
    expect((await server.get("/v1/responses/resp_1")).json.error).toMatchObject(notFound)
    expect((await server.post("/v1/responses/resp_1/cancel", {})).json.error).toMatchObject(notFound)
    const deleted = await fetch(`${server.url}/v1/responses/resp_1`, { method: "DELETE" })
    expect([deleted.status, (await deleted.json()).error.param]).toEqual([404, "response_id"])
    const continued = await server.post("/v1/responses", { input: "Hi", previous_response_id: "resp_1" })
    expect([continued.status, continued.json.error]).toMatchObject([404, notFound])
  })
})

test("a client's id makes no lines of its own in the log", async () => {
  await server.post(chatPath, chat("Hi", { request_id: "x\nFAKE \u001b[31mred" }))
  expect(server.log.at(-1)).toContain("x\\u000aFAKE \\u001b[31mred")
})

test("after all of this the server serves on", async () => {
  expect((await server.post(chatPath, chat("Hi"))).status).toBe(200)
  expect(await server.counts()).toEqual({ running: 0, waiting: 0, inside: 0 })
  expect(server.log.filter((line) => line.startsWith("internal error"))).toEqual([])
})
