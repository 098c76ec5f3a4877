/** POST …/derender: what it refuses, what it needs, and vLLM's recorded answers. That it says what the direct answer says: test/property/derender.test.ts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { qwen3Profile } from "../../support/qwen3-model"
import { startTestRenderer } from "../../support/test-renderer"
import type { TestServer } from "../../support/test-server"
import { scaleOutExchange, transcriptsExist } from "../../support/transcripts"

const choice = (extra: object = {}) => ({
  index: 0,
  finish_reason: "stop",
  stop_reason: null,
  token_ids: [40, 41],
  ...extra,
})
const response = (extra: object = {}) => ({ request_id: "generate-tokens-chatcmpl-r", choices: [choice()], ...extra })
const chatRequest = { messages: [{ role: "user", content: "x" }] }

describe("derender", () => {
  let renderer: TestServer
  let plain: TestServer
  beforeAll(async () => {
    renderer = await startTestRenderer()
    plain = await startTestRenderer({ config: { reasoningParser: "none", toolCallParser: "none" } })
  })
  afterAll(async () => {
    await renderer.stop()
    await plain.stop()
  })

  const refused = async (path: string, body: object, server = renderer) => {
    const { status, json } = await server.post(`${path}/derender`, body)
    return [status, json.error?.type, json.error?.param]
  }
  const bad = (param: string | null) => [400, "BadRequestError", param]
  const chat = (extra: object) => ({ chat_request: chatRequest, generate_response: response(), ...extra })
  const chunk = (extra: object) => ({
    stream: true,
    chat_request: chatRequest,
    generate_chunk: response({ choices: [choice({ finish_reason: null })] }),
    prompt_token_ids: [1, 2],
    ...extra,
  })
  const state = {
    request_id: "generate-tokens-chatcmpl-r",
    created: 1,
    index: 0,
    output_token_ids: [40, 41],
    output_chunk_lens: [2],
  }

  test("of a whole reply is refused with the field that is wrong", async () => {
    const path = "/v1/chat/completions"
    expect(await refused(path, chat({ model: "nope" }))).toEqual([404, "NotFoundError", "model"])
    expect(await refused(path, { chat_request: chatRequest })).toEqual([400, "Bad Request", "generate_response"])
    expect(await refused(path, { generate_response: response() })).toEqual(bad("chat_request"))
    expect(await refused(path, chat({ chat_request: { messages: "x" } }))).toEqual([400, "Bad Request", "messages"])
    expect(await refused(path, chat({ chat_request: { ...chatRequest, chat_template: "x" } }))).toEqual(bad(null))
    const text = response({ output_mode: "text" })
    expect(await refused(path, chat({ generate_response: text }))).toEqual(bad("output_mode"))
    for (const finish_reason of [null, "done"]) {
      const unfinished = response({ choices: [choice({ finish_reason })] })
      expect(await refused(path, chat({ generate_response: unfinished }))).toEqual(bad("finish_reason"))
    }
    expect(await refused(path, chat({ generate_response: response({ choices: [] }) }))).toEqual([
      400,
      "Bad Request",
      "generate_response",
    ])
    const beyond = response({ choices: [choice({ token_ids: [2 ** 30] })] })
    expect(await refused(path, chat({ generate_response: beyond }))).toEqual(bad("token_ids"))
    const list = { completion_request: { prompt: ["a", "b"] }, generate_responses: [response(), response()] }
    const completions = "/v1/completions"
    expect(await refused(completions, { ...list, prompt_token_ids: [[1]] })).toEqual(bad("prompt_token_ids"))
    expect(await refused(completions, { ...list, prompt_tokens: [1] })).toEqual(bad("prompt_tokens"))
    expect(await refused(completions, { ...list, prompt_tokens: [-1, 1] })).toEqual(bad("prompt_tokens"))
    expect(await refused(completions, { ...list, generate_responses: [response()] })).toEqual(bad("generate_responses"))
    const uneven = [response(), response({ choices: [choice(), choice({ index: 1 })] })]
    expect(await refused(completions, { ...list, generate_responses: uneven })).toEqual(bad("choices"))
    const twins = response({ choices: [choice(), choice()] })
    expect(await refused(path, chat({ generate_response: twins }))).toEqual(bad("choices"))
    const two = response({ choices: [choice(), choice({ index: 1 })] })
    const ofResponses = { responses_request: { input: "x" }, generate_response: two }
    expect(await refused("/v1/responses", ofResponses)).toEqual(bad("choices"))
    const failed = response({ choices: [choice({ finish_reason: "error" })] })
    expect((await refused(path, chat({ generate_response: failed })))[0]).toBe(500)
  })

  test("of a chunk is refused with the field that is wrong", async () => {
    const path = "/v1/chat/completions"
    const made = (extra: object) => ({ ...state, ...extra })
    expect(await refused(path, chunk({ prompt_token_ids: null }))).toEqual(bad("prompt_token_ids"))
    const two = response({ choices: [choice(), choice({ index: 1 })] })
    expect(await refused(path, chunk({ generate_chunk: two }))).toEqual(bad("generate_chunk"))
    const beyond = response({ choices: [choice({ token_ids: [2 ** 30] })] })
    expect(await refused(path, chunk({ generate_chunk: beyond }))).toEqual(bad("generate_chunk"))
    const endless = response({ choices: [choice({ token_ids: new Array(131_073).fill(40) })] })
    expect(await refused(path, chunk({ generate_chunk: endless }))).toEqual(bad("generate_chunk"))
    const stopped = response({ choices: [choice({ stop_reason: "x" })] })
    expect(await refused(path, chunk({ generate_chunk: stopped }))).toEqual(bad("generate_chunk"))
    expect(await refused(path, chunk({ chat_request: { ...chatRequest, stop: "x" } }))).toEqual(bad("stop"))
    for (const wrong of [
      { index: 1 },
      { request_id: "another" },
      { finish_reason: "stop" },
      { finish_reason: "weird" },
      { output_chunk_lens: [1] },
      { output_token_ids: [2 ** 30, 1] },
    ]) {
      expect([wrong, await refused(path, chunk({ stream_state: made(wrong) }))]).toEqual([wrong, bad("stream_state")])
    }
    expect(await refused(path, chunk({ stream_state: { request_id: 1 } }))).toEqual([
      400,
      "Bad Request",
      "stream_state",
    ])
  })

  test("gives the same ids however often it is asked", async () => {
    const tools = [{ type: "function", function: { name: "now" } }]
    const text = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    const { tokens } = (await renderer.post("/tokenize", { prompt: text })).json
    const body = {
      chat_request: { ...chatRequest, tools },
      generate_response: response({ choices: [choice({ token_ids: tokens, finish_reason: "length" })] }),
    }
    const first = (await renderer.post("/v1/chat/completions/derender", body)).json.choices[0].message.tool_calls
    const second = (await renderer.post("/v1/chat/completions/derender", body)).json.choices[0].message.tool_calls
    expect(first).toEqual([
      { id: expect.stringMatching(/^call_\w{24}$/), type: "function", function: { name: "now", arguments: "{}" } },
    ])
    expect(second).toEqual(first)
  })

  test("needs no request where nothing parses, and counts the prompt as it is told", async () => {
    const { tokens } = (await plain.post("/tokenize", { prompt: "some text" })).json
    const generated = response({
      choices: [choice({ token_ids: tokens, finish_reason: "length" })],
      usage: { prompt_tokens: 5 },
    })
    const reply = async (extra: object) =>
      (await plain.post("/v1/chat/completions/derender", { generate_response: generated, ...extra })).json
    const told = await reply({})
    expect([told.id, told.choices[0].message.content, told.usage.prompt_tokens]).toEqual(["chatcmpl-r", "some text", 5])
    expect((await reply({ prompt_tokens: 7 })).usage.prompt_tokens).toBe(7)
    expect((await reply({ prompt_token_ids: [1, 2, 3] })).usage.prompt_tokens).toBe(3)
  })

  test("keeps a rendered request's id, whatever it ends with", async () => {
    const id = async (request_id: string) =>
      (await renderer.post("/v1/chat/completions/derender", chat({ generate_response: response({ request_id }) }))).json
        .id
    expect(await id("generate-tokens-chatcmpl-a-1")).toBe("chatcmpl-a-1")
    expect(await id("generate-tokens-7")).toBe("generate-tokens-7")
  })

  test("shows the last token unless it stopped the reply", async () => {
    const { tokens } = (await plain.post("/tokenize", { prompt: "one two" })).json
    const text = async (ending: object, request: object = {}) => {
      const generate_responses = [response({ choices: [choice({ token_ids: tokens, ...ending })] })]
      const body = { completion_request: { prompt: "x", ...request }, generate_responses }
      return (await plain.post("/v1/completions/derender", body)).json.choices[0].text
    }
    expect(await text({ finish_reason: "length" })).toBe("one two")
    expect(await text({ stop_reason: tokens[1] })).toBe("one")
    expect(await text({}, { stop_token_ids: [tokens[1]] })).toBe("one")
    expect(await text({ stop_reason: tokens[1] }, { include_stop_str_in_output: true })).toBe("one two")
    // Whatever else ended it, a grammar say, was no token of its own.
    expect(await text({})).toBe("one two")
    expect(await text({ stop_reason: " tw" })).toBe("one")
  })

  test("gives a chunk for every chunk, also where there is nothing to show yet", async () => {
    const empty = response({ choices: [choice({ token_ids: [], finish_reason: null })] })
    const first = (await renderer.post("/v1/chat/completions/derender", chunk({ generate_chunk: empty }))).json
    expect(first.chunk).toMatchObject({
      id: "chatcmpl-r",
      choices: [{ index: 0, delta: { role: "assistant", content: "" } }],
    })
    const again = chunk({ generate_chunk: empty, stream_state: first.stream_state })
    const second = (await renderer.post("/v1/chat/completions/derender", again)).json
    expect(second.chunk.choices).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: null }])
    expect(second.stream_state.output_chunk_lens).toEqual([0, 0])
  })
})

if (!transcriptsExist) test.skip("what vLLM's server answered to derender", () => {})
const compareDerendered = (): void => {
  let renderer: TestServer
  beforeAll(async () => {
    renderer = await startTestRenderer({ profile: await qwen3Profile() })
  })
  afterAll(() => renderer.stop())

  for (const name of ["dev_derender_chat", "dev_derender_comp", "derender_comp"]) {
    test(name, async () => {
      const { request, response: theirs } = scaleOutExchange(name)
      const ours = await renderer.post(request.path, request.body)
      expect(ours.status).toBe(theirs.status)
      if (theirs.status !== 200) {
        expect([ours.json.error.type, ours.json.error.code]).toEqual([theirs.body.error.type, 400])
        return
      }
      const { id, created, system_fingerprint, usage, choices, ...rest } = ours.json
      const {
        id: theirId,
        created: _at,
        system_fingerprint: _print,
        usage: theirUsage,
        choices: theirChoices,
        ...theirRest
      } = theirs.body
      expect([id, rest]).toEqual([theirId, theirRest])
      expect(choices.map(({ weight_versions: _, ...each }: { weight_versions: null }) => each)).toEqual(theirChoices)
      // The response tells the prompt's length; vLLM does not look.
      expect([usage.completion_tokens, usage.prompt_tokens, theirUsage.prompt_tokens]).toEqual([5, 2, 0])
    })
  }
}
if (transcriptsExist) describe("what vLLM's server answered to derender", compareDerendered)
