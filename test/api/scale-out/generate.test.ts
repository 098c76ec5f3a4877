/** POST /inference/v1/generate and abort, over the simulator. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { startTestServer, type TestServer, until } from "../../support/test-server"
import { scaleOutExchange, transcriptsExist } from "../../support/transcripts"

const path = "/inference/v1/generate"
const script = (ids: readonly number[], extra: object = {}) => ({ sim_token_ids: ids, ...extra })

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
type Loose = any

describe("generate", () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startTestServer({ config: { enableScaleOut: true } })
  })
  afterAll(() => server.stop())

  const ask = (params: object, extra: object = {}) =>
    server.post(path, { token_ids: [11, 12, 13], sampling_params: params, ...extra })

  /** The frames of a stream; the last is the text `[DONE]`. */
  const frames = async (body: object): Promise<Loose[]> =>
    (await server.events(path, body)).map(({ data }) => (data === "[DONE]" ? data : JSON.parse(data)))

  test("answers with ids and every key", async () => {
    const params = { extra_args: script([21, 22, 23]), max_tokens: 3 }
    const { status, json } = await ask(params, { request_id: "r", return_token_ids: true })
    expect([status, json]).toEqual([
      200,
      {
        request_id: "generate-tokens-r",
        model: "sluice-simulator",
        created: expect.any(Number),
        usage: {
          prompt_tokens: 3,
          total_tokens: 6,
          completion_tokens: 3,
          prompt_tokens_details: null,
          completion_tokens_details: null,
        },
        prompt_logprobs: null,
        prompt_token_id_logprobs: null,
        prompt_token_ids: [11, 12, 13],
        mm_placeholders: null,
        metrics: null,
        kv_transfer_params: null,
        ec_transfer_params: null,
        output_mode: "tokens",
        choices: [
          {
            index: 0,
            finish_reason: "length",
            stop_reason: null,
            token_ids: [21, 22, 23],
            routed_experts: null,
            sampling_mask: null,
            weight_versions: null,
            logprobs: null,
          },
        ],
      },
    ])
  })

  test("gives n choices, and goes on to the end of the window when no length is named", async () => {
    const { json } = await ask({ n: 2, extra_args: script([21, 22]) })
    const choices: { index: number; token_ids: number[]; finish_reason: string }[] = json.choices
    expect(choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, "stop"],
      [1, "stop"],
    ])
    expect(choices[0]!.token_ids.slice(0, 2)).toEqual([21, 22])
    expect(json.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 6 })
    const long = await ask({ extra_args: script(Array.from({ length: 40 }, () => 21)) })
    expect(long.json.choices[0].token_ids).toHaveLength(41)
  })

  test("streams a chunk for each step, then usage, then [DONE]", async () => {
    const params = { extra_args: script([21, 22, 23], { sim_tokens_per_step: [2, 1] }), max_tokens: 3 }
    const body = { token_ids: [11, 12], sampling_params: params, request_id: "r", return_token_ids: true }
    const events = await frames({ ...body, stream_options: { include_usage: true } })
    const chunk = (token_ids: number[], finish_reason: string | null, extra: object = {}) => ({
      request_id: "generate-tokens-r",
      output_mode: "tokens",
      choices: [{ index: 0, token_ids, finish_reason, stop_reason: null, logprobs: null }],
      usage: null,
      ...extra,
    })
    expect(events).toEqual([
      chunk([21, 22], null, { prompt_token_ids: [11, 12] }),
      chunk([23], "length"),
      {
        request_id: "generate-tokens-r",
        output_mode: "tokens",
        choices: [],
        usage: { prompt_tokens: 2, total_tokens: 5, completion_tokens: 3 },
      },
      "[DONE]",
    ])
    const running = await frames({
      ...body,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    })
    expect(running[0].usage).toEqual({ prompt_tokens: 2, total_tokens: 4, completion_tokens: 2 })
  })

  test("streams what is whole otherwise, whatever the steps", async () => {
    for (const mode of ["tokens", "text"]) {
      const params = {
        extra_args: { sim_text: "one two — tëxt 🎉 stop here", sim_tokens_per_step: [1, 3, 2] },
        stop: ["stop"],
      }
      const whole = (await ask(params, { output_mode: mode })).json.choices[0]
      const events = await frames({ token_ids: [11], sampling_params: params, output_mode: mode })
      const chunks = events.slice(0, -1).map((event) => event.choices[0])
      expect(chunks.flatMap((each) => each.token_ids)).toEqual(whole.token_ids)
      expect([chunks.at(-1).finish_reason, chunks.at(-1).stop_reason]).toEqual(["stop", "stop"])
      expect([whole.finish_reason, whole.stop_reason]).toEqual(["stop", "stop"])
      if (mode === "text") expect(chunks.map((each) => each.text).join("")).toBe(whole.text)
      expect(whole.text).toBe(mode === "text" ? "one two — tëxt 🎉 " : undefined)
    }
  })

  test("has logprobs by id, the sampled token first, and as chat's in text", async () => {
    const params = { logprobs: 2, max_tokens: 2, extra_args: script([21, 22]) }
    const { content } = (await ask(params)).json.choices[0].logprobs
    expect(content.map((entry: { token_id: number }) => entry.token_id)).toEqual([21, 22])
    for (const { token_id, logprob, rank, top_logprobs } of content) {
      expect(top_logprobs[0]).toEqual({ token_id, logprob, rank })
      expect([2, 3]).toContain(top_logprobs.length)
      const others = top_logprobs.slice(1).map((entry: { rank: number }) => entry.rank)
      expect(others).toEqual(others.toSorted((a: number, b: number) => a - b))
    }
    const text = (await ask(params, { output_mode: "text" })).json.choices[0].logprobs.content[0]
    expect(Object.keys(text)).toEqual(["token", "logprob", "bytes", "top_logprobs"])
    expect(text.top_logprobs).toHaveLength(2)
  })

  test("derenders in place when it is told how", async () => {
    const text = '<think>\nhm\n</think>\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    const parse = { tools: [{ type: "function", function: { name: "now" } }], tool_choice: "auto" }
    const { json } = await ask({ extra_args: { sim_text: text } }, { output_mode: "derender", parse_context: parse })
    expect(json.choices[0].message).toMatchObject({
      role: "assistant",
      reasoning: "hm",
      tool_calls: [{ type: "function", function: { name: "now", arguments: "{}" } }],
    })
  })

  test("is refused with the field that is wrong", async () => {
    const refused = async (params: object, extra: object = {}) => {
      const { status, json } = await ask(params, extra)
      return [status, json.error?.type, json.error?.param]
    }
    const bad = (param: string | null) => [400, "BadRequestError", param]
    const features = (offset: number, length: number, hashes = 1) => ({
      features: {
        mm_hashes: { image: new Array(hashes).fill("h") },
        mm_placeholders: { image: [{ offset, length }] },
        kwargs_data: { image: ["eA=="] },
      },
    })
    expect(await refused({}, { model: "nope" })).toEqual([404, "NotFoundError", "model"])
    expect(await refused({ n: 0 })).toEqual(bad("sampling_params"))
    expect(await refused({ prompt_logprob_token_ids: [1] }, { stream: true })).toEqual(bad("sampling_params"))
    expect(await refused({ detokenize: false }, { output_mode: "text" })).toEqual(bad("output_mode"))
    expect(await refused({}, { output_mode: "derender", parse_context: {}, stream: true })).toEqual(bad("output_mode"))
    expect(await refused({}, { output_mode: "derender" })).toEqual(bad("parse_context"))
    expect(await refused({}, { output_mode: "derender", parse_context: { x: 1 } })).toEqual(bad("parse_context"))
    expect(await refused({}, { output_mode: "words" })).toEqual([400, "Bad Request", "output_mode"])
    expect(await refused({}, { stream_options: {} })).toEqual(bad("stream_options"))
    expect(await refused({}, features(2, 2))).toEqual(bad("features"))
    expect(await refused({}, features(0, 2, 2))).toEqual(bad("features"))
    expect(await refused({}, features(0, 2))).toEqual(bad("features"))
    expect(await refused({}, { content_parts: [{ type: "image_url", url: "x" }] })).toEqual(bad("content_parts"))
    expect(await refused({}, { token_ids: [] })).toEqual([400, "Bad Request", "token_ids"])
    expect(await refused({}, { token_ids: [-1] })).toEqual([400, "Bad Request", "token_ids"])
    expect(await refused({}, { token_ids: ["5"] })).toEqual([400, "Bad Request", "token_ids"])
    expect(await refused({}, { token_ids: [2 ** 30] })).toEqual(bad("token_ids"))
    expect(await refused({ temperature: "1" })).toEqual([400, "Bad Request", "sampling_params"])
    expect(await refused({ max_tokens: 5.5 })).toEqual([400, "Bad Request", "sampling_params"])
    expect(await refused({ temperature: 3 })).toEqual(bad("temperature"))
    expect((await server.post(path, { token_ids: [1] })).json.error.param).toBe("sampling_params")
  })

  test("says on a stream what went wrong, and then [DONE]", async () => {
    const params = { extra_args: script([21, 22], { sim_error: "retryable", sim_fail_after_tokens: 1 }) }
    const events = await frames({ token_ids: [11], sampling_params: params })
    expect(events.at(-2).error).toMatchObject({ code: 503, type: "ServiceUnavailableError" })
    expect(events.at(-1)).toBe("[DONE]")
  })
})

describe("abort", () => {
  const long = { extra_args: { sim_token_ids: Array.from({ length: 50_000 }, () => 21) } }

  test("ends what runs under the ids of replies, with what it has, and answers at once", async () => {
    const server = await startTestServer({ config: { enableScaleOut: true }, simulator: { stepMs: 1 } })
    const tokens = server.post(path, { token_ids: [11], sampling_params: long, request_id: "a" })
    const messages = [{ role: "user", content: "x" }]
    const chat = server.post("/v1/chat/completions", { messages, vllm_xargs: long.extra_args, request_id: "b" })
    const stays = server.post(path, { token_ids: [11], sampling_params: long, request_id: "c" })
    await until(async () => (await server.counts()).inside === 3)
    const ids = ["generate-tokens-a", "chatcmpl-b", "unknown", 7]
    const reply = await server.post("/inference/v1/abort_requests", { request_ids: ids })
    expect([reply.status, reply.text]).toEqual([200, ""])
    const [first, second] = [await tokens, await chat]
    expect([first.status, first.json.choices[0].finish_reason]).toEqual([200, "abort"])
    expect([second.status, second.json.choices[0].finish_reason]).toEqual([200, "abort"])
    expect((await server.counts()).inside).toBe(1)
    await server.post("/inference/v1/abort_requests", { request_ids: ["generate-tokens-c"] })
    expect((await stays).status).toBe(200)
    await until(async () => {
      const { running, waiting, inside } = await server.counts()
      return running + waiting + inside === 0
    })
    for (const body of [{}, { request_ids: "x" }, "{"]) {
      expect((await server.post("/inference/v1/abort_requests", body)).status).toBe(400)
    }
    await server.stop()
  })
})

if (!transcriptsExist) test.skip("what vLLM's server answered to generate", () => {})
const compareGenerated = (): void => {
  for (const name of ["generate", "generate_n2", "generate_bad"]) {
    test(name, async () => {
      const server = await startTestServer({ config: { enableScaleOut: true } })
      const { request, response } = scaleOutExchange(name)
      const params = request.body.sampling_params
      const ids = response.body.choices?.[0].token_ids ?? []
      const body =
        params === undefined
          ? request.body
          : { ...request.body, sampling_params: { ...params, extra_args: script(ids) } }
      const ours = await server.post(path, { ...body, model: undefined })
      await server.stop()
      expect(ours.status).toBe(response.status)
      if (response.status !== 200) {
        expect(ours.json.error.type).toBe(response.body.error.type)
        return
      }
      const bare = ({ request_id: _id, created: _at, model: _model, ...rest }: { [name: string]: unknown }) =>
        JSON.parse(JSON.stringify(rest, (key, value) => (key === "weight_versions" ? null : value)))
      expect(bare(ours.json)).toEqual(bare(response.body))
    })
  }
}
if (transcriptsExist) describe("what vLLM's server answered to generate", compareGenerated)
