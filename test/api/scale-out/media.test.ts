/** Images, audio and video on the roads that carry them, and what the others say. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Config } from "../../../src/config"
import { inlineArray, pack } from "../../support/message-pack"
import { startTestRenderer } from "../../support/test-renderer"
import { startTestServer, type TestServer } from "../../support/test-server"
import { imagePad, videoPad, visionProfile } from "../../support/vision-model"
import { startVllmServer, type VllmTestServer } from "../../support/vllm-server"

const png = "data:image/png;base64,iVBORw0KGgo="
const far = "https://example.test/cat.jpg"
const image = (url: string, extra: object = {}) => ({ type: "image_url", image_url: { url, detail: "low" }, ...extra })
const text = (words: string) => ({ type: "text", text: words })
const user = (...content: object[]) => ({ role: "user", content })
const count = (ids: readonly number[], id: number) => ids.filter((each) => each === id).length

describe("a rendered request with media", () => {
  let parts: TestServer
  let texts: TestServer
  beforeAll(async () => {
    parts = await startTestRenderer({ profile: await visionProfile("parts") })
    texts = await startTestRenderer({ profile: await visionProfile("texts") })
  })
  afterAll(async () => {
    await parts.stop()
    await texts.stop()
  })
  const render = async (server: TestServer, path: string, body: object) => {
    const reply = await server.post(`${path}/render`, body)
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.json
  }
  const textOf = async (server: TestServer, tokens: number[]): Promise<string> =>
    (await server.post("/detokenize", { tokens })).json.prompt

  test("has them as content parts, one placeholder each, and no length of the reply", async () => {
    const messages = [
      user(text("Compare"), image(png), text("with"), image(far, { uuid: "cat" })),
      { role: "assistant", content: "Well." },
      user({ type: "video_url", video_url: { url: "https://example.test/a.mp4" } }, text("Now?")),
    ]
    const json = await render(parts, "/v1/chat/completions", { messages, return_token_offsets: true })
    expect(json.content_parts).toEqual([
      { type: "image_url", url: png },
      { type: "image_url", url: far, uuid: "cat" },
      { type: "video_url", url: "https://example.test/a.mp4" },
    ])
    expect([json.features, json.token_offsets]).toEqual([null, null])
    expect("max_tokens" in json.sampling_params).toBe(false)
    expect([count(json.token_ids, imagePad), count(json.token_ids, videoPad)]).toEqual([2, 1])
    const mark = "<|vision_start|><|image_pad|><|vision_end|>"
    expect(await textOf(parts, json.token_ids)).toBe(
      `<|im_start|>user\nCompare${mark}with${mark}<|im_end|>\n<|im_start|>assistant\nWell.<|im_end|>\n` +
        "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>Now?<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("has a length where the request gives one, or the operator", async () => {
    const messages = [user(image(png))]
    const given = await render(parts, "/v1/chat/completions", { messages, max_tokens: 7 })
    expect(given.sampling_params.max_tokens).toBe(7)
    const capped = await startTestRenderer({
      profile: await visionProfile(),
      config: { overrideGenerationConfig: { max_new_tokens: 9 } },
    })
    const json = await render(capped, "/v1/chat/completions", { messages })
    expect(json.sampling_params.max_tokens).toBe(9)
    await capped.stop()
  })

  test("is the same from Responses, where results of calls may hold images too", async () => {
    const input = [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: png },
        ],
      },
      { type: "function_call", call_id: "c", name: "shoot", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_image", image_url: far }] },
    ]
    const json = await render(parts, "/v1/responses", { input })
    expect(json.content_parts).toEqual([
      { type: "image_url", url: png },
      { type: "image_url", url: far },
    ])
    expect([count(json.token_ids, imagePad), "max_tokens" in json.sampling_params]).toEqual([2, false])
    const chat = await render(parts, "/v1/chat/completions", { messages: [user(text("Look"), image(png))] })
    const alone = await render(parts, "/v1/responses", { input: [input[0]!] })
    expect([alone.token_ids, alone.content_parts]).toEqual([chat.token_ids, chat.content_parts])
  })

  test("puts the model's placeholders before the text where the template takes texts", async () => {
    const messages = [user(text("one"), image(png), text("two"), { type: "video_url", video_url: far }, image(far))]
    const json = await render(texts, "/v1/chat/completions", { messages })
    const mark = "<|vision_start|><|image_pad|><|vision_end|>"
    expect(await textOf(texts, json.token_ids)).toBe(
      `<|im_start|>user\n${mark}\n${mark}\n<|vision_start|><|video_pad|><|vision_end|>\none\ntwo<|im_end|>\n<|im_start|>assistant\n`,
    )
    expect(json.content_parts.map((part: { url: string }) => part.url)).toEqual([png, far, far])
    const bare = await render(texts, "/v1/chat/completions", { messages: [user(image(png))] })
    expect(await textOf(texts, bare.token_ids)).toContain(`<|im_start|>user\n${mark}<|im_end|>`)
  })

  test("takes no placeholder from a text that spells one, unless special tokens of texts count", async () => {
    const spelled = user(text("<|vision_start|><|image_pad|><|vision_end|> this"), image(png))
    const guarded = await render(texts, "/v1/chat/completions", { messages: [spelled] })
    expect(count(guarded.token_ids, imagePad)).toBe(1)
    const parity = await startTestRenderer({
      profile: await visionProfile("texts"),
      config: { promptSpecialTokens: "parity" },
    })
    // As in vLLM: the client's own place for it, and none to spare.
    const own = await render(parity, "/v1/chat/completions", { messages: [spelled] })
    expect(await textOf(parity, own.token_ids)).toContain("user\n<|vision_start|><|image_pad|><|vision_end|> this")
    const twice = user(text("<|image_pad|><|image_pad|>"), image(png))
    const refused = await parity.post("/v1/chat/completions/render", { messages: [twice] })
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining("3 placeholders")])
    await parity.stop()
  })

  test("is refused where truncation takes a placeholder away", async () => {
    const body = { messages: [user(image(png), text("x ".repeat(50)))], truncate_prompt_tokens: 10 }
    const { status, json } = await parts.post("/v1/chat/completions/render", body)
    expect([status, json.error.message]).toEqual([400, expect.stringContaining("0 placeholders")])
  })

  test("is refused for what cannot be forwarded", async () => {
    const cases: readonly (readonly [part: object, words: string])[] = [
      [image("file:///etc/passwd"), "http, https or data"],
      [image("ftp://example.test/a"), "http, https or data"],
      [image("data:image/png,raw"), "must hold base64"],
      [image("https://"), "cannot be read"],
      [image(`https://example.test/${"a".repeat(20_000)}`), "characters"],
      [{ type: "image_url", image_url: null, uuid: "cat" }, "needs its URL"],
      [{ type: "image_embeds", image_embeds: "AA==" }, "image_embeds parts cannot be forwarded"],
      [{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }, "takes no input_audio parts"],
      [{ type: "input_file", file_data: "data:application/pdf;base64,AA==" }, "takes no input_file parts"],
    ]
    for (const [part, words] of cases) {
      const { status, json } = await parts.post("/v1/chat/completions/render", { messages: [user(part)] })
      expect([status, json.error.type, json.error.param, json.error.message]).toEqual([
        400,
        "BadRequestError",
        "messages",
        expect.stringContaining(words),
      ])
    }
    const kwargs = { messages: [user(image(png))], mm_processor_kwargs: { a: 1 } }
    const trusting = await startTestRenderer({ profile: await visionProfile(), config: { trustRequestMmKwargs: true } })
    const refused = await trusting.post("/v1/chat/completions/render", kwargs)
    expect([refused.status, refused.json.error.param]).toEqual([400, "mm_processor_kwargs"])
    await trusting.stop()
    const tokenized = await parts.post("/tokenize", { messages: [user(image(png))] })
    expect([tokenized.status, tokenized.json.error.message]).toEqual([400, expect.stringContaining("processors")])
  })

  test("can be derendered by its expanded ids, and not without them", async () => {
    const chat_request = { messages: [user(image(png), text("What?"))] }
    const generate_response = {
      request_id: "generate-tokens-chatcmpl-x",
      choices: [{ index: 0, token_ids: [9707, 151_645], finish_reason: "stop" }],
    }
    const prompt_token_ids = [1, imagePad, imagePad, imagePad, imagePad, 2]
    const whole = await parts.post("/v1/chat/completions/derender", {
      chat_request,
      generate_response,
      prompt_token_ids,
    })
    expect([whole.status, whole.json.usage?.prompt_tokens]).toEqual([200, 6])
    const without = await parts.post("/v1/chat/completions/derender", { chat_request, generate_response })
    expect([without.status, without.json.error.param]).toEqual([400, "prompt_token_ids"])
  })
})

describe("served by vLLM's engines", () => {
  const batched = ["batched", { keep_on_cpu: true }]
  const grid = { data: inlineArray("int64", [3], new BigInt64Array([1n, 2n, 2n])), field: batched }
  const item = Buffer.from(pack({ image_grid_thw: grid })).toString("base64")
  const features = {
    mm_hashes: { image: ["h"] },
    mm_placeholders: { image: [{ offset: 1, length: 2 }] },
    kwargs_data: { image: [item] },
    mm_metadata: null,
  }
  const generate = {
    token_ids: [5, imagePad, imagePad, 6],
    features,
    sampling_params: { max_tokens: 4, extra_args: { mock_tokens: [40] } },
  }
  const start = async (config: Partial<Config>): Promise<VllmTestServer> => {
    const { modelType, tokenizer, chatTemplates } = await visionProfile()
    return await startVllmServer({}, { modelType, tokenizer, chatTemplates }, { enableScaleOut: true, ...config })
  }

  test("media need processors, and features a server that trusts requests with them", async () => {
    const server = await start({})
    const engine = await server.attach({ stepMs: 0 })
    const chat = await server.post("/v1/chat/completions", { messages: [user(image(png))] })
    expect([chat.status, chat.json.error.type, chat.json.error.param]).toEqual([400, "BadRequestError", "messages"])
    expect(chat.json.error.message).toMatch(/processors.*--engine http/)
    const content_parts = [{ type: "image_url", url: png }]
    const raw = await server.post("/inference/v1/generate", { ...generate, features: null, content_parts })
    expect([raw.status, raw.json.error.param]).toEqual([400, "content_parts"])
    const refused = await server.post("/inference/v1/generate", generate)
    expect([refused.status, refused.json.error.param]).toEqual([400, "features"])
    expect(refused.json.error.message).toContain("--trust-request-mm-kwargs")
    expect(engine.adds).toEqual([])
    await server.stop()
  })

  test("features become the engine's own, and faulty ones do not reach it", async () => {
    const server = await start({ trustRequestMmKwargs: true })
    const engine = await server.attach({ stepMs: 0 })
    const { status, text } = await server.post("/inference/v1/generate", generate)
    expect([status, text]).toEqual([200, expect.stringContaining("token_ids")])
    const told = { ...generate, return_token_ids: true }
    const { mm_placeholders } = (await server.post("/inference/v1/generate", told)).json
    const [first, ...rest] = await server.events("/inference/v1/generate", told)
    expect([mm_placeholders, first!.json.mm_placeholders]).toEqual([features.mm_placeholders, features.mm_placeholders])
    expect(rest.filter((event) => event.json !== null && "mm_placeholders" in event.json)).toEqual([])
    expect(engine.adds[0]!.prompt_token_ids).toEqual(generate.token_ids)
    expect(engine.adds[0]!.mm_features).toMatchObject([
      {
        data: { image_grid_thw: { data: ["int64", [3], expect.anything()], field: batched } },
        modality: "image",
        identifier: "h",
        mm_position: { offset: 1, length: 2, is_embed: null },
        mm_hash: "h",
      },
    ])
    const broken = { ...features, kwargs_data: { image: ["AAEC"] } }
    const refused = await server.post("/inference/v1/generate", { ...generate, features: broken })
    expect([refused.status, refused.json.error.param]).toEqual([400, "features"])
    expect([engine.adds.length, engine.deaths]).toEqual([3, []])
    await server.stop()
  })
})

describe("served", () => {
  const body = { messages: [user(text("What?"), image(png))] }
  const start = async (config: Partial<Config>) => startTestServer({ profile: await visionProfile(), config })

  test("by an engine without processors, media are refused with words, and rendered all the same", async () => {
    const server = await start({ enableScaleOut: true })
    for (const [path, request, param] of [
      ["/v1/chat/completions", body, "messages"],
      ["/v1/responses", { input: [{ role: "user", content: [{ type: "input_image", image_url: png }] }] }, "input"],
    ] as const) {
      const { status, json } = await server.post(path, request)
      expect([status, json.error.type, json.error.param]).toEqual([400, "BadRequestError", param])
      expect(json.error.message).toContain("--engine http")
    }
    const rendered = await server.post("/v1/chat/completions/render", body)
    expect([rendered.status, rendered.json.content_parts.length]).toEqual([200, 1])
    const generated = await server.post("/inference/v1/generate", rendered.json)
    expect([generated.status, generated.json.error.param]).toEqual([400, "content_parts"])
    await server.stop()
  })

  describe("before a token-in service", () => {
    /** Bodies that the service got. */
    const got: { readonly [name: string]: unknown }[] = []
    let service: Bun.Server<undefined>
    let server: TestServer
    beforeAll(async () => {
      service = Bun.serve({
        port: 0,
        development: false,
        fetch: async (request) => {
          if (request.method === "GET") return new Response("")
          got.push((await request.json()) as { readonly [name: string]: unknown })
          const choice = {
            index: 0,
            token_ids: [9707, 151_645],
            finish_reason: "stop",
            stop_reason: null,
            logprobs: null,
          }
          const usage = { prompt_tokens: 305, completion_tokens: 2, total_tokens: 307 }
          const frames = [{ choices: [choice] }, { choices: [], usage }].map(
            (each) => `data: ${JSON.stringify(each)}\n\n`,
          )
          return new Response(`${frames.join("")}data: [DONE]\n\n`, {
            headers: { "content-type": "text/event-stream" },
          })
        },
      })
      server = await start({
        engine: "http",
        http: { urls: [`http://127.0.0.1:${service.port}`], apiKey: null, healthIntervalMs: 1_000 },
        enableScaleOut: true,
      })
    })
    afterAll(async () => {
      await server.stop()
      await service.stop(true)
    })

    test("they are forwarded, and the prompt is as long as the service says", async () => {
      const { status, json, text: raw } = await server.post("/v1/chat/completions", body)
      expect([status, raw]).toEqual([200, expect.stringContaining("Hello")])
      expect(json.usage).toMatchObject({ prompt_tokens: 305, completion_tokens: 2, total_tokens: 307 })
      const rendered = (await server.post("/v1/chat/completions/render", body)).json
      const { content_parts, token_ids, sampling_params, features } = got.at(-1)!
      expect({ content_parts, token_ids, features }).toEqual({
        content_parts: rendered.content_parts,
        token_ids: rendered.token_ids,
        features: undefined,
      })
      expect("max_tokens" in (sampling_params as object)).toBe(false)
      const response = await server.post("/v1/responses", {
        input: [{ role: "user", content: [{ type: "input_image", image_url: far }] }],
        max_output_tokens: 11,
      })
      expect(response.json.usage.input_tokens).toBe(305)
      expect(got.at(-1)).toMatchObject({
        content_parts: [{ type: "image_url", url: far }],
        sampling_params: { max_tokens: 11 },
      })
    })

    test("features and content parts of a request to generate are forwarded untouched", async () => {
      const features = {
        mm_hashes: { image: ["h"] },
        mm_placeholders: { image: [{ offset: 1, length: 2, is_embed: null }] },
        kwargs_data: { image: ["AAECAw=="] },
        mm_metadata: null,
        unknown: { kept: [1.5, null] },
      }
      const body = { token_ids: [5, imagePad, imagePad, 6], features, sampling_params: { max_tokens: 4 } }
      expect((await server.post("/inference/v1/generate", body)).status).toBe(200)
      expect(got.at(-1)!.features).toEqual(features)
      const content_parts = [{ type: "image_url", url: far, uuid: "u", unknown: true }]
      expect((await server.post("/inference/v1/generate", { ...body, features: null, content_parts })).status).toBe(200)
      expect(got.at(-1)!.content_parts).toEqual(content_parts)
    })

    test("what does not fit together is refused before", async () => {
      const place = { mm_hashes: { image: ["h"] }, mm_placeholders: { image: [{ offset: 1, length: 2 }] } }
      const cases: readonly (readonly [object, string])[] = [
        [{ features: place, content_parts: [{ type: "image_url", url: far }] }, "content_parts"],
        [{ features: { ...place, mm_placeholders: { image: [{ offset: 3, length: 2 }] } } }, "features"],
        [{ features: { ...place, mm_hashes: { audio: ["h"] } } }, "features"],
        [{ features: { ...place, mm_metadata: { image: ["AA=="] } } }, "features"],
        [{ content_parts: [{ type: "image", url: far }] }, "content_parts"],
        [{ content_parts: [{ type: "image_url" }] }, "content_parts"],
      ]
      for (const [extra, param] of cases) {
        const body = { token_ids: [5, 6, 7, 8], sampling_params: {}, ...extra }
        const { status, json } = await server.post("/inference/v1/generate", body)
        expect([status, json.error.param, extra]).toEqual([400, param, extra])
      }
      const transfer = { mm_metadata: { image: ["AA=="] } }
      const taken = { token_ids: [5, 6, 7, 8], sampling_params: {}, features: { ...place, ...transfer } }
      const { status } = await server.post("/inference/v1/generate", { ...taken, ec_transfer_params: { x: 1 } })
      expect(status).toBe(200)
    })
  })
})
