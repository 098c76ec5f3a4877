/** What HTTP clients see of vLLM engines that work, break and come back. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { messageOf, outputOf } from "./support/engine-outputs"
import { freePorts } from "./support/free-ports"
import { float } from "./support/message-pack"
import { buildMockEngine, judge, MockEngine } from "./support/mock-engine"
import { makeQwen3Folder } from "./support/qwen3-folder"
import { checkResponseStream } from "./support/response-grammar"
import { readEvents, type SentEvent } from "./support/sent-events"
import { type ServedProcess, serve } from "./support/serve"
import { StrictEngine } from "./support/strict-decoder"
import { TestEngine } from "./support/test-engine"
import { type Reply, until } from "./support/test-server"
import { startVllmServer, type VllmTestServer } from "./support/vllm-server"

setDefaultTimeout(30_000)

/** Each API with the least that it takes, and how its streams end when the engine fails. */
const surfaces = [
  { path: "/v1/chat/completions", body: { messages: [{ role: "user", content: "Hi" }] }, isResponses: false },
  { path: "/v1/completions", body: { prompt: "Hi" }, isResponses: false },
  { path: "/v1/responses", body: { input: "Hi" }, isResponses: true },
] as const
const endless = { ignore_eos: true, max_tokens: 30_000, max_output_tokens: 30_000 }
const chat = surfaces[0]

function expectFailure(events: readonly SentEvent[], isResponses: boolean): void {
  if (isResponses) {
    expect(events.at(-1)!.event).toBe("response.failed")
    const { response } = checkResponseStream(events)
    expect(response).toMatchObject({ status: "failed", usage: null })
    expect(response.error.message).toBe("The stream failed before the response was complete.")
    return
  }
  expect(events.at(-2)!.json).toMatchObject({ error: { code: 500, type: "InternalServerError" } })
  expect(events.at(-1)!.data).toBe("[DONE]")
}

async function health(server: VllmTestServer): Promise<number> {
  return (await server.get("/health")).status
}

async function expectWorks(server: VllmTestServer): Promise<void> {
  for (const { path, body } of surfaces) {
    const reply = await server.post(path, { ...body, vllm_xargs: { mock_tokens: [100, 101] } })
    expect([path, reply.status]).toEqual([path, 200])
  }
}

async function expectUnavailable(server: VllmTestServer): Promise<void> {
  expect(await health(server)).toBe(503)
  for (const { path, body } of surfaces) {
    for (const stream of [true, false]) {
      const reply = await server.post(path, { ...body, stream })
      expect([reply.status, reply.headers.get("retry-after"), reply.json.error.code]).toEqual([503, "1", 503])
    }
  }
}

/** A stream and a plain request of each kind, all of them running in the engine. */
async function runAll(
  server: VllmTestServer,
  started: () => number,
): Promise<{ readonly streams: Promise<Reply>[]; readonly plain: Promise<Reply>[] }> {
  const before = started()
  const streams = surfaces.map(({ path, body }) => server.post(path, { ...body, ...endless, stream: true }))
  const plain = surfaces.map(({ path, body }) => server.post(path, { ...body, ...endless }))
  await until(() => started() === before + 6, 10_000)
  return { streams, plain }
}

async function expectAllFailed(running: Awaited<ReturnType<typeof runAll>>): Promise<void> {
  for (const [i, { isResponses }] of surfaces.entries()) {
    const stream = await running.streams[i]!
    expect(stream.status).toBe(200)
    expectFailure(readEvents(stream.text), isResponses)
    const whole = await running.plain[i]!
    expect([whole.status, whole.json.error.type]).toEqual([500, "InternalServerError"])
  }
}

describe("one engine", () => {
  let server: VllmTestServer
  beforeAll(async () => {
    server = await startVllmServer({ hangTimeoutMs: 300 })
  })
  afterAll(() => server.stop())

  test("that never came leaves the server up, and not ready", async () => {
    await expectUnavailable(server)
    expect((await server.get("/v1/models")).status).toBe(200)
  })

  const ways: readonly (readonly [string, (engine: TestEngine) => void])[] = [
    ["says ENGINE_CORE_DEAD", (engine) => engine.die()],
    ["is killed", (engine) => engine.vanish()],
    ["goes deaf", (engine) => engine.deafen()],
    ["hangs", (engine) => engine.hang()],
  ]
  for (const [way, breakIt] of ways) {
    test(`that ${way} ends streams and requests, and its successor is taken`, async () => {
      const engine = await server.attach()
      await expectWorks(server)
      const running = await runAll(server, () => engine.adds.length)
      breakIt(engine)
      await expectAllFailed(running)
      await expectUnavailable(server)
      expect(await server.counts()).toEqual({ running: 0, waiting: 0, inside: 0 })
      const successor = await server.attach()
      expect(await health(server)).toBe(200)
      await expectWorks(server)
      successor.vanish()
      await until(async () => (await health(server)) === 503)
      expect(engine.deaths).toEqual([])
      engine.vanish()
    })
  }

  test("that sends what cannot be read ends streams and requests, and is taken again", async () => {
    const engine = await server.attach()
    const running = await runAll(server, () => engine.adds.length)
    engine.say(Uint8Array.of(0xc1))
    await expectAllFailed(running)
    await server.said("engine 0 is back")
    await expectWorks(server)
    await until(() => engine.aborted.length === 6)
    engine.vanish()
    await until(async () => (await health(server)) === 503)
  })

  test("that is stopped ends streams and requests with finish_reason abort", async () => {
    const engine = await server.attach()
    const running = await runAll(server, () => engine.adds.length)
    engine.terminate()
    for (const [i, { isResponses }] of surfaces.entries()) {
      const events = readEvents((await running.streams[i]!).text)
      const { status, json } = await running.plain[i]!
      if (isResponses) {
        expect([events.at(-1)!.event, events.at(-1)!.json.response.status]).toEqual(["response.completed", "cancelled"])
        expect([status, json.status]).toEqual([200, "cancelled"])
        continue
      }
      expect([status, json.choices[0].finish_reason]).toEqual([200, "abort"])
      expect(events.at(-1)!.data).toBe("[DONE]")
      expect(events.findLast((event) => event.json !== null)!.json.choices[0].finish_reason).toBe("abort")
    }
    await until(async () => (await health(server)) === 503)
  })

  describe("that works", () => {
    let engine: TestEngine
    beforeAll(async () => {
      engine = await server.attach()
    })
    afterEach(() => {
      expect(engine.deaths).toEqual([])
    })

    test("gets ABORT when a client leaves, whatever it asked for", async () => {
      for (const { path, body } of surfaces) {
        for (const stream of [true, false]) {
          const before = engine.aborted.length
          const adds = engine.adds.length
          const leave = new AbortController()
          const reply = fetch(server.url + path, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ ...body, ...endless, stream }),
            signal: leave.signal,
          })
          const gone = reply.then((response) => response.text()).catch((error) => error.name)
          await until(() => engine.adds.length === adds + 1)
          leave.abort()
          await until(() => engine.aborted.length === before + 1)
          expect(engine.aborted.at(-1)).toBe(String(engine.adds.at(-1)!.request_id))
          expect(await gone).toBe("AbortError")
        }
      }
      await until(async () => Object.values(await server.counts()).every((count) => count === 0))
      expect(engine.live).toEqual([])
    })

    test("gets ABORT when a stop string has come, which is not part of the reply", async () => {
      const words = "one two three four five".concat(" six".repeat(400))
      const mock_tokens = (await server.post("/tokenize", { prompt: words, add_special_tokens: false })).json.tokens
      const before = engine.aborted.length
      const reply = await server.post(chat.path, { ...chat.body, stop: [" three"], vllm_xargs: { mock_tokens } })
      expect(reply.json.choices[0]).toMatchObject({
        message: { content: "one two" },
        finish_reason: "stop",
        stop_reason: " three",
      })
      await until(() => engine.aborted.length === before + 1)
      expect(engine.aborted.at(-1)).toBe(String(engine.adds.at(-1)!.request_id))
    })

    test("gets one request for each of n choices, with seeds that differ", async () => {
      const before = engine.adds.length
      const reply = await server.post(chat.path, { ...chat.body, n: 3, seed: 7, max_tokens: 2 })
      expect(reply.json.choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1, 2])
      const adds = engine.adds.slice(before)
      // biome-ignore lint/suspicious/noExplicitAny: a decoded map
      const seeds = adds.map((add) => (add.sampling_params as any).seed)
      expect(seeds).toEqual([7, 8, 9])
      expect(new Set(adds.map((add) => add.request_id)).size).toBe(3)
    })

    test("gives logprobs, counts of cached tokens, and moments that metrics show", async () => {
      const reply = await server.post(chat.path, {
        ...chat.body,
        logprobs: true,
        top_logprobs: 2,
        vllm_xargs: { mock_tokens: [100, 101] },
      })
      const entries = reply.json.choices[0].logprobs.content
      expect(entries.map((entry: { logprob: number }) => entry.logprob)).toEqual([-0.125, -0.125, -0.125])
      expect(entries[0].top_logprobs).toHaveLength(2)
      const { usage } = (await server.post("/v1/responses", { input: "Hi", vllm_xargs: { mock_tokens: [100] } })).json
      expect(usage.input_tokens_details).toEqual({ cached_tokens: 1, cache_write_tokens: 2 })
      const metrics = (await server.get("/metrics")).text
      expect(metrics).toMatch(/^vllm:request_queue_time_seconds_count\{[^}]*\} [1-9]/m)
      expect(metrics).toMatch(/^vllm:kv_cache_usage_perc\{[^}]*\} 0\.25/m)
    })

    test("may end a reply with an error, which then has its counts, unlike one that broke", async () => {
      for (const [test_fail, status] of [
        ["failed", 500],
        ["retryable", 503],
        ["validation", 400],
      ] as const) {
        const vllm_xargs = { mock_tokens: [100, 101, 102], test_fail, test_fail_after: 2 }
        const events = await server.events("/v1/responses", { input: "Hi", vllm_xargs })
        const { response } = checkResponseStream(events)
        expect(response).toMatchObject({
          status: "failed",
          error: { code: "server_error", message: "The model failed to produce a response." },
          usage: { output_tokens: 2 },
        })
        expect((await server.post("/v1/responses", { input: "Hi", vllm_xargs })).status).toBe(status)
      }
    })

    test("is spared a prompt that fills its window", async () => {
      const before = engine.adds.length
      const fits = await server.post("/v1/completions", { prompt: new Array<number>(40_959).fill(5), max_tokens: 5 })
      expect([fits.status, fits.json.choices[0].finish_reason]).toEqual([200, "length"])
      expect(fits.json.usage.completion_tokens).toBe(1)
      for (const tokens of [40_960, 40_961, 131_071]) {
        const reply = await server.post("/v1/completions", { prompt: new Array<number>(tokens).fill(5) })
        expect([reply.status, reply.json.error.param]).toEqual([400, "input_tokens"])
      }
      expect(engine.adds).toHaveLength(before + 1)
    })

    test("has the window that clients are told, and that the echo of a response and truncation go by", async () => {
      expect((await server.get("/v1/models")).json.data[0].max_model_len).toBe(40_960)
      const long = { input: "word ".repeat(50_000), truncation: "auto", ignore_eos: true }
      for (const body of [{ input: "Hi", vllm_xargs: { mock_tokens: [100] } }, long]) {
        const { json } = await server.post("/v1/responses", body)
        const { sampling_params, prompt_token_ids } = engine.adds.at(-1)!
        expect(sampling_params).toMatchObject({ max_tokens: json.max_output_tokens })
        expect(json.max_output_tokens + json.usage.input_tokens).toBe(40_960)
        expect(prompt_token_ids).toHaveLength(json.usage.input_tokens)
      }
    })
  })
})

test("timings are those of the engine's own clock, and the first token's latency is that of ours", async () => {
  const server = await startVllmServer({}, {}, { enablePerRequestMetrics: true })
  const engine = await server.attach({ stepMs: null })
  // This machine's clock never says so; nor is any of it when the messages come.
  const clock = 5e6
  for (const { path, body } of surfaces) {
    const reply = server.post(path, body)
    await engine.until(() => engine.live.length === 1)
    const requestId = engine.live[0]!
    const step = (at: number, fields: object) =>
      engine.say(messageOf([outputOf({ requestId, tokenIds: [100], fields: { ...fields } })], clock + at))
    const event = (type: number, at: number) => ({ type, timestamp: float(clock + at) })
    step(1.5, { 7: [event(1, 1), event(2, 1.25)] })
    // It was put back for want of memory, and scheduled again.
    step(3, { 7: [event(3, 2), event(2, 2.5)] })
    step(3.5, { 5: 1 })
    engine.end(requestId)
    expect([path, (await reply).json.metrics]).toEqual([
      path,
      {
        time_to_first_token_ms: 250,
        generation_time_ms: 2_000,
        queue_time_ms: 250,
        mean_itl_ms: 1_000,
        tokens_per_second: 3 / 2.25,
        speculative_decoding: null,
      },
    ])
  }
  const metrics = (await server.get("/metrics")).text
  const sum = (name: string) => Number(new RegExp(`^vllm:${name}_seconds_sum\\{.*\\} (\\S+)$`, "m").exec(metrics)![1])
  expect(sum("request_queue_time")).toBe(0.75)
  expect(sum("request_prefill_time")).toBe(0.75)
  expect(sum("request_decode_time")).toBe(6)
  expect(sum("time_to_first_token")).toBeGreaterThan(0)
  expect(sum("time_to_first_token")).toBeLessThan(30)
  engine.vanish()
  await server.stop()
})

test("what an engine says of transfers comes back, whichever the API", async () => {
  const server = await startVllmServer({}, {}, { enableScaleOut: true })
  const engine = await server.attach({ stepMs: null })
  const transfers = {
    kv_transfer_params: { do_remote_decode: true, remote_block_ids: [1, 2], remote_host: "a" },
    ec_transfer_params: { hash: { size: 3 } },
  }
  const { kv_transfer_params: kv, ec_transfer_params: ec } = transfers
  for (const [kvSaid, ecSaid] of [
    [null, null],
    [kv, null],
    [null, ec],
  ] as const) {
    const expected = { kv_transfer_params: kvSaid, ec_transfer_params: ecSaid }
    for (const { path, body, isResponses } of surfaces) {
      const send = async (extra: object) => {
        const reply = server.post(path, { ...body, ...transfers, ...extra })
        await engine.until(() => engine.live.length === 1)
        // What the client said has reached it.
        expect(engine.adds.at(-1)!.sampling_params).toMatchObject({ extra_args: transfers })
        const [requestId] = engine.live
        engine.sayOutputs([
          outputOf({ requestId: requestId!, tokenIds: [100], fields: { 5: 1, 8: kvSaid, 9: ecSaid } }),
        ])
        engine.end(requestId!)
        return await reply
      }
      expect([path, (await send({})).json]).toMatchObject([path, expected])
      if (!isResponses) continue
      const events = readEvents((await send({ stream: true })).text)
      expect(events.at(-1)!.json.response).toMatchObject(expected)
    }
    for (const stream of [false, true]) {
      const body = { token_ids: [1, 2], sampling_params: { max_tokens: 2 }, stream, ...transfers }
      const reply = server.post("/inference/v1/generate", body)
      await engine.until(() => engine.live.length === 1)
      expect(engine.adds.at(-1)!.sampling_params).toMatchObject({ extra_args: transfers })
      const [requestId] = engine.live
      engine.sayOutputs([outputOf({ requestId: requestId!, tokenIds: [100], fields: { 5: 1, 8: kvSaid, 9: ecSaid } })])
      engine.end(requestId!)
      const { text } = await reply
      const said = stream ? JSON.parse(text.split("\n\n").at(-3)!.slice("data: ".length)) : JSON.parse(text)
      // A chunk leaves out what there is none of.
      expect({ kv_transfer_params: null, ec_transfer_params: null, ...said }).toMatchObject(expected)
    }
  }
  engine.vanish()
  await server.stop()
})

describe("two engines", () => {
  let server: VllmTestServer
  beforeAll(async () => {
    server = await startVllmServer({ dataParallelSize: 2 })
  })
  afterAll(() => server.stop())

  test("share requests evenly, take those for their rank, and outlive each other", async () => {
    const engines = [await server.attach({ stepMs: null }), await server.attach({ rank: 1 })] as const
    expect(engines.map((engine) => engine.init.parallel_config)).toEqual([{}, {}])
    const leave = new AbortController()
    const held = Array.from({ length: 8 }, () =>
      fetch(server.url + chat.path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...chat.body, ...endless }),
        signal: leave.signal,
      }).catch(() => null),
    )
    await until(() => engines[0].adds.length + engines[1].adds.length === 8)
    expect(engines.map((engine) => engine.adds.length)).toEqual([4, 4])

    const ranked = (rank: string) =>
      server.post(chat.path, { ...chat.body, vllm_xargs: { mock_tokens: [100] } }, { "x-data-parallel-rank": rank })
    for (let i = 0; i < 3; i++) expect((await ranked("1")).status).toBe(200)
    expect(engines.map((engine) => engine.adds.length)).toEqual([4, 7])
    const bad = await ranked("2")
    expect([bad.status, bad.json.error.param]).toEqual([400, "data_parallel_rank"])

    engines[0].vanish()
    await until(() => server.log.some((line) => line.startsWith("engine 0 is lost")))
    expect(await health(server)).toBe(200)
    expect((await ranked("0")).status).toBe(503)
    await expectWorks(server)
    expect(engines[1].live).toHaveLength(4)
    leave.abort()
    await Promise.all(held)
    await until(() => engines[1].live.length === 0)
    await server.attach()
    expect((await ranked("0")).status).toBe(200)
    engines[1].vanish()
    await until(() => server.log.some((line) => line.startsWith("engine 1 is lost")))
    expect(await health(server)).toBe(200)
  })
})

describe("a front end that ends", () => {
  test("tells the engine of everything that runs", async () => {
    const server = await startVllmServer()
    const engine = await server.attach()
    const running = await runAll(server, () => engine.adds.length)
    await server.stop()
    await until(() => engine.aborted.length === 6)
    expect([engine.live, engine.deaths]).toEqual([[], []])
    for (const [i, { isResponses }] of surfaces.entries()) {
      const events = readEvents((await running.streams[i]!).text)
      expect(isResponses ? events.at(-1)!.event : events.at(-1)!.data).toBe(isResponses ? "response.failed" : "[DONE]")
      expect((await running.plain[i]!).status).toBe(503)
    }
  })

  test("by SIGTERM leaves nothing running in a process of its own", async () => {
    const folder = makeQwen3Folder()
    const link = ["--engine", "vllm", "--data-parallel-size-local", "0", "--data-parallel-rpc-port", "0"]
    await using served = await serve([folder, ...link])
    await served.printed(/engines dial tcp:\S+/)
    const address = /engines dial (\S+)/.exec(served.output())![1]!
    expect((await fetch(`${served.url}/health`)).status).toBe(503)
    const engine = new TestEngine({ address, vocabSize: 151_936 })
    await served.printed("engine 0 is ready")
    expect((await fetch(`${served.url}/health`)).status).toBe(200)
    const stream = await fetch(`${served.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "Hi", ignore_eos: true, max_tokens: 4_000, stream: true }),
    })
    expect(stream.status).toBe(200)
    await engine.until(() => engine.live.length === 1)
    const reading = stream.text()
    expect(await served.stop()).toBe(0)
    await until(() => engine.aborted.length === 1)
    expect([engine.live, engine.deaths]).toEqual([[], []])
    expect((await reading).endsWith("data: [DONE]\n\n")).toBe(true)
    engine.vanish()
    rmSync(folder, { recursive: true })
  })
})

/** A closed connection is enough: nobody waits for a time to pass. */
const noticedMsMax = 1_000
/** From the start of a server to an answer of an engine that returns: under a second, if nothing else runs here. */
const answeredMsMax = 5_000

const mock = buildMockEngine()
describe.skipIf(!mock.ok)("the stand-in engine", () => {
  const program = mock.ok ? mock.value : ""
  const flags = ["--step-ms", "1", "--vocab", "200000", "--max-model-len", "32768"]

  test("killed with SIGKILL is noticed at once, and one that comes back is taken", async () => {
    const server = await startVllmServer()
    for (let round = 0; round < 2; round++) {
      await using engine = MockEngine.start(program, server.address, flags)
      await until(async () => (await health(server)) === 200, 10_000)
      const running = surfaces.map(({ path, body }) => server.events(path, { ...body, ...endless }))
      await until(async () => (await server.counts()).running === 3)
      const killedAt = performance.now()
      engine.signal("SIGKILL")
      await until(async () => (await health(server)) === 503)
      for (const [i, events] of running.entries()) expectFailure(await events, surfaces[i]!.isResponses)
      expect(performance.now() - killedAt).toBeLessThan(noticedMsMax)
    }
    await server.stop()
  })

  test("stopped with SIGSTOP while requests run is noticed, and goes on after SIGCONT", async () => {
    const server = await startVllmServer({ hangTimeoutMs: 400 })
    await using engine = MockEngine.start(program, server.address, flags)
    await until(async () => (await health(server)) === 200, 10_000)
    const running = server.events(chat.path, { ...chat.body, ...endless })
    await until(async () => (await server.counts()).running === 1)
    engine.signal("SIGSTOP")
    expectFailure(await running, false)
    expect(await health(server)).toBe(503)
    engine.signal("SIGCONT")
    await until(async () => (await health(server)) === 200, 10_000)
    await expectWorks(server)
    await server.stop()
  })

  test("outlives servers that are killed or stopped, and the next one answers at once", async () => {
    const folder = makeQwen3Folder()
    const port = freePorts(3)
    const link = ["--engine", "vllm", "--data-parallel-size-local", "0", "--data-parallel-rpc-port", `${port}`]
    const start = () => serve([folder, ...link, "--engine-records", join(folder, "records")])
    const ask = (served: ServedProcess, body: object, signal: AbortSignal | null = null) =>
      fetch(`${served.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ prompt: "Hi", ...body }),
        signal,
      })
    const vocabulary = ["--step-ms", "1", "--vocab", "150000", "--max-model-len", "30000"]
    await using engine = MockEngine.start(program, `tcp://127.0.0.1:${port}`, vocabulary, true)
    const running = async (served: ServedProcess): Promise<number> => {
      const metrics = await (await fetch(`${served.url}/metrics`)).text()
      return Number(/^vllm:num_requests_running\{.*\} (\S+)$/m.exec(metrics)![1])
    }
    let served = await start()
    await served.printed("engine 0 is ready")
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      const streams = [1, 2, 3].map(() =>
        ask(served, { ignore_eos: true, max_tokens: 25_000, stream: true })
          .then((reply) => reply.text())
          .catch(() => "cut off"),
      )
      await until(async () => (await running(served)) === 3, 10_000)
      await served.stop(signal)
      const ends = (await Promise.all(streams)).map((text) => (text.endsWith("data: [DONE]\n\n") ? "done" : text))
      expect(ends).toEqual(Array(3).fill(signal === "SIGKILL" ? "cut off" : "done"))
      const startedAt = performance.now()
      served = await start()
      await served.printed(/^engine 0 is back from an earlier process of this server, vLLM \S+, window 30000/m)
      const reply = await ask(served, { max_tokens: 3, ignore_eos: true })
      const answeredAt = performance.now()
      expect([reply.status, JSON.parse(await reply.text()).usage.completion_tokens]).toEqual([200, 3])
      expect(answeredAt - startedAt).toBeLessThan(answeredMsMax)
    }
    expect(await served.stop()).toBe(0)
    const limits = { maxModelLen: 30_000, vocabSize: 151_936 }
    const messages = engine.messages()
    const { adds, deaths } = judge(messages, limits)
    expect([adds, deaths]).toEqual([8, []])
    // What it had sent before it read an abort may reach the next server, which then says it again.
    const strict = new StrictEngine(limits)
    const aborted = messages.filter(({ type }) => type === 1).flatMap(({ body }) => strict.abort(body))
    expect(new Set(aborted).size).toBe(6)
    rmSync(folder, { recursive: true })
  })

  for (const version of ["0.32.0", "0.33.0"]) {
    test(`plays two ranks of a mixture of experts, ${version}; one is killed and joins again`, async () => {
      const server = await startVllmServer({ dataParallelSize: 2 }, { isMixtureOfExperts: true })
      const start = (rank: number): MockEngine =>
        MockEngine.start(program, server.address, [...flags, "--vllm-version", version, "--engine-index", `${rank}`])
      const first = start(0)
      await server.said("engine 0 connected and starts")
      // Neither may run before both have subscribed.
      expect(await health(server)).toBe(503)
      const second = start(1)
      await until(() => ["engine 0 is ready", "engine 1 is ready"].every((words) => said(server, words) === 1), 10_000)
      for (let i = 0; i < 4; i++) await expectWorks(server)
      second.signal("SIGKILL")
      await server.said("engine 1 is lost")
      await expectWorks(server)
      const third = start(1)
      await until(() => said(server, "engine 1 is ready") === 2, 10_000)
      const ranked = await server.post(
        chat.path,
        { ...chat.body, vllm_xargs: { mock_tokens: [100] } },
        { "x-data-parallel-rank": "1" },
      )
      expect(ranked.status).toBe(200)
      await server.stop()
      for (const engine of [first, second, third]) await engine[Symbol.asyncDispose]()
    })
  }
})

function said(server: VllmTestServer, words: string): number {
  return server.log.filter((line) => line.startsWith(words)).length
}
