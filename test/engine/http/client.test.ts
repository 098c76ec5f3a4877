/** Engines behind HTTP: the contract over a server of ours, and what the choice, retries and health do over small fakes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { defaultConfig } from "../../../src/config"
import { HttpEngine } from "../../../src/engine/http/client"
import { startTestServer, type TestServer, until } from "../../support/test-server"
import { type EngineUnderTest, engineContract, requestOf, samplingOf, submitTo } from "../contract"
import { RecordingReceiver } from "../recording-receiver"

const settings = { ...defaultConfig.http, healthIntervalMs: 20 }
const open = (urls: readonly string[], queuedRequestsMax: number | null = null, log: string[] = []) =>
  new HttpEngine({ ...settings, urls }, { queuedRequestsMax, log: (line) => log.push(line) })

let upstream: TestServer
let proxy: Bun.Server<undefined>
let eosTokenId = 0

beforeAll(async () => {
  upstream = await startTestServer({ config: { enableScaleOut: true }, simulator: { stepMs: 1 } })
  const body = { token_ids: [1], sampling_params: { extra_args: { sim_token_ids: [] } } }
  eosTokenId = (await upstream.post("/inference/v1/generate", body)).json.choices[0].token_ids[0]
  proxy = cuttingProxy(upstream.url)
})
afterAll(async () => {
  await proxy.stop(true)
  await upstream.stop()
})

/** Passes everything on, but ends a stream early, after as many events as `cut_after` of the request's arguments says. */
function cuttingProxy(url: string): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    development: false,
    idleTimeout: 0,
    fetch: async (request) => {
      const path = new URL(request.url).pathname
      if (request.method === "GET") return fetch(url + path)
      const text = await request.text()
      const cutAfter: number = JSON.parse(text).sampling_params.extra_args?.cut_after ?? Number.POSITIVE_INFINITY
      const { headers, signal } = request
      const reply = await fetch(url + path, { method: "POST", headers, body: text, signal })
      if (!reply.ok || cutAfter === Number.POSITIVE_INFINITY) return reply
      const reader = reply.body!.getReader()
      let rest = ""
      let events = 0
      const cut = new ReadableStream<Uint8Array>({
        pull: async (controller) => {
          const { done, value } = await reader.read()
          rest += done ? "" : new TextDecoder().decode(value)
          for (let end = rest.indexOf("\n\n"); end !== -1 && events < cutAfter; end = rest.indexOf("\n\n")) {
            controller.enqueue(new TextEncoder().encode(rest.slice(0, end + 2)))
            rest = rest.slice(end + 2)
            events += 1
          }
          if (events < cutAfter && !done) return
          await reader.cancel()
          controller.close()
        },
      })
      return new Response(cut, { headers: reply.headers })
    },
  })
}

engineContract(
  "engines behind HTTP",
  async (): Promise<EngineUnderTest> => ({
    engine: open([`http://127.0.0.1:${proxy.port}`]),
    vocabSize: 200_000 + 1_024,
    eosTokenId,
    request: (tokenIds, sampling, failure) => {
      const script = { sim_token_ids: [...tokenIds] }
      const args = { engine_retryable: "retryable", engine_validation: "validation" } as const
      const extraArgs =
        failure === null
          ? script
          : failure.kind === "engine_disconnected"
            ? { ...script, cut_after: failure.afterTokens }
            : failure.kind === "engine_retryable" || failure.kind === "engine_validation"
              ? { ...script, sim_error: args[failure.kind], sim_fail_after_tokens: failure.afterTokens }
              : null
      return extraArgs === null ? null : requestOf([5, 6], samplingOf({ ...sampling, extraArgs }), [eosTokenId])
    },
    dispose: async () => {},
  }),
  ["engine_dead"],
)

/** A service that answers each request by `reply`, and counts. */
function fake(reply: (request: Request) => Response | Promise<Response>) {
  const seen: { body: { [name: string]: unknown }; headers: Headers }[] = []
  const server = Bun.serve({
    port: 0,
    development: false,
    fetch: async (request) => {
      if (new URL(request.url).pathname === "/health") return new Response(null)
      seen.push({ body: (await request.clone().json()) as { [name: string]: unknown }, headers: request.headers })
      return await reply(request)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, seen, stop: () => server.stop(true) }
}

const chunk = (ids: readonly number[], finish: string | null, extra: object = {}): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, token_ids: ids, finish_reason: finish, stop_reason: null }], usage: null, ...extra })}\n\n`
const done = "data: [DONE]\n\n"
const stream = (text: string) => new Response(text, { headers: { "content-type": "text/event-stream" } })
const refused = (status: number, type: string) =>
  Response.json({ error: { message: "no", type, param: "temperature", code: status } }, { status })
const plain = () => requestOf([5, 6], samplingOf({}), [1])

describe("a request", () => {
  test("is sent as a GenerateRequest whose text is made here", async () => {
    const service = fake(() => stream(chunk([7], "stop") + done))
    const engine = new HttpEngine(
      { ...settings, urls: [service.url], apiKey: "k" },
      { queuedRequestsMax: null, log: () => {} },
    )
    const sampling = samplingOf({
      temperature: 0.5,
      stop: ["x"],
      seed: 2n ** 60n,
      extraArgs: { kv_transfer_params: { a: 1 }, b: 2 },
    })
    const request = { ...requestOf([5, 6], sampling, [1]), traceHeaders: { traceparent: "t" }, dataParallelRank: 3 }
    const { receiver } = submitTo(engine, { ...request, cacheSalt: "s", priority: 2, reasoningEnded: true })
    expect(await receiver.ended).toBe("stop")
    expect(receiver.tokenIds).toEqual([7])
    const [{ body, headers }] = service.seen as [(typeof service.seen)[0]]
    expect(body).toEqual({
      token_ids: [5, 6],
      cache_salt: "s",
      priority: 2,
      reasoning_ended: true,
      kv_transfer_params: { a: 1 },
      ec_transfer_params: null,
      request_id: request.requestId,
      model: null,
      sampling_params: {
        temperature: 0.5,
        seed: Number(2n ** 60n),
        max_tokens: 1_000,
        extra_args: { b: 2 },
        detokenize: false,
        output_kind: 1,
      },
      stream: true,
      stream_options: { include_usage: true },
    })
    expect([headers.get("authorization"), headers.get("traceparent"), headers.get("x-data-parallel-rank")]).toEqual([
      "Bearer k",
      "t",
      "3",
    ])
    await engine.close()
    service.stop()
  })

  test("reads events however they are cut, and the cache's counts behind the last tokens", async () => {
    const usage = { choices: [], usage: { prompt_tokens_details: { cached_tokens: 4 } } }
    const text = `: hello\n\n${chunk([7, 8], null)}${chunk([9], "length")}data: ${JSON.stringify(usage)}\n\n${done}`
    const bytes = new TextEncoder().encode(text)
    const service = fake(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({
            start: async (controller) => {
              for (let at = 0; at < bytes.length; at += 13) {
                controller.enqueue(bytes.slice(at, at + 13))
                await Bun.sleep(0)
              }
              controller.close()
            },
          }),
        ),
    )
    const engine = open([service.url])
    const { receiver } = submitTo(engine, plain())
    let cached = -1
    receiver.onOutput = (output) => {
      cached = output.cachedTokens
    }
    expect(await receiver.ended).toBe("length")
    expect([receiver.outputs.map((output) => output.tokenIds), cached]).toEqual([[[7, 8], [9]], 4])
    await engine.close()
    service.stop()
  })

  test("goes to another service as long as it has no tokens", async () => {
    const gone = fake(() => stream(""))
    gone.stop()
    const full = fake(() => refused(503, "ServiceUnavailableError"))
    const broken = fake(() => refused(500, "InternalServerError"))
    const silent = fake(() => stream(done))
    const garbled = fake(() => stream("data: {\n\n"))
    const failing = fake(() => stream(`data: {"error":{"message":"x","code":503}}\n\n${done}`))
    const good = fake(() => stream(chunk([7], "stop") + done))
    const services = [gone, full, broken, silent, garbled, failing, good]
    const engine = open(services.map((service) => service.url))
    for (let i = 0; i < services.length; i++) {
      const { receiver } = submitTo(engine, plain())
      expect(await receiver.ended).toBe("stop")
      expect(receiver.tokenIds).toEqual([7])
    }
    expect(good.seen).toHaveLength(services.length)
    for (const { seen } of services) expect(seen.length).toBeLessThanOrEqual(services.length)
    await engine.close()
    for (const service of services.slice(1)) service.stop()
  })

  test("may be sent again by the client where no service could be reached", async () => {
    const services = [fake(() => stream("")), fake(() => stream(""))]
    for (const service of services) service.stop()
    const engine = open(services.map((service) => service.url))
    const { receiver } = submitTo(engine, plain())
    expect(await receiver.ended).toBe("engine_retryable")
    await engine.close()
  })

  test("stays where its first token was, whatever follows", async () => {
    const other = fake(() => stream(chunk([7], "stop") + done))
    const texts = [chunk([7], null), `${chunk([7], null)}data: {"error":{"message":"x","code":503}}\n\n${done}`]
    for (const [text, kind] of [
      [texts[0], "engine_disconnected"],
      [texts[1], "engine_retryable"],
    ] as const) {
      const first = fake(() => stream(text!))
      const engine = open([first.url])
      const { receiver } = submitTo(engine, plain())
      expect(await receiver.ended).toBe(kind)
      expect([receiver.tokenIds, first.seen.length, other.seen.length]).toEqual([[7], 1, 0])
      await engine.close()
      first.stop()
    }
    other.stop()
  })

  test("that a service refuses for what it asks is not asked again", async () => {
    const services = [fake(() => refused(400, "BadRequestError")), fake(() => refused(400, "BadRequestError"))]
    const engine = open(services.map((service) => service.url))
    const { receiver } = submitTo(engine, plain())
    expect(await receiver.ended).toBe("engine_validation")
    expect(receiver.error).toEqual({ kind: "engine_validation", message: "no", param: "temperature" })
    expect(services.map(({ seen }) => seen.length).toSorted()).toEqual([0, 1])
    await engine.close()
    for (const service of services) service.stop()
  })

  test("that nobody takes fails with the last word", async () => {
    for (const [status, kind] of [
      [503, "engine_retryable"],
      [401, "engine_failed"],
      [404, "engine_failed"],
    ] as const) {
      const service = fake(() => new Response("<html>", { status }))
      const engine = open([service.url])
      const { receiver } = submitTo(engine, plain())
      expect(await receiver.ended).toBe(kind)
      await engine.close()
      service.stop()
    }
  })

  test("beyond the limit is refused at once", async () => {
    const service = fake(() => new Promise<Response>(() => {}))
    const engine = open([service.url], 1)
    const { sequence } = submitTo(engine, plain())
    expect(engine.submit(plain(), new RecordingReceiver())).toMatchObject({ error: { kind: "engine_retryable" } })
    sequence.abort()
    expect(engine.submit(plain(), new RecordingReceiver()).ok).toBe(true)
    await engine.close()
    service.stop()
  })
})

/** A service whose replies are written byte by byte, and whose /health is told. */
function rawService(write: (socket: Socket) => void) {
  const state = { health: 200, requests: 0 }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let text = ""
    let isAnswered = false
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1")
      const end = text.indexOf("\r\n\r\n")
      if (end === -1 || isAnswered) return
      if (text.startsWith("GET")) {
        isAnswered = true
        return socket.end(`HTTP/1.1 ${state.health} H\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
      }
      const length = Number(/content-length: (\d+)/i.exec(text)![1])
      if (text.length < end + 4 + length) return
      isAnswered = true
      state.requests += 1
      write(socket)
    })
  })
  server.listen(0, "127.0.0.1")
  const { port } = server.address() as AddressInfo
  const stop = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}`, state, stop }
}
const head = (status: number, fields = "") => `HTTP/1.1 ${status} S\r\nconnection: close\r\n${fields}\r\n`

describe("a service that does not behave", () => {
  const good = () => fake(() => stream(chunk([7], "stop") + done))

  test("sends nobody elsewhere: a redirect is no answer", async () => {
    const elsewhere = good()
    const away = fake(() => new Response(null, { status: 307, headers: { location: `${elsewhere.url}/x` } }))
    const engine = open([away.url])
    const { receiver } = submitTo(engine, plain())
    expect(await receiver.ended).toBe("engine_failed")
    expect([away.seen.length, elsewhere.seen.length]).toEqual([1, 0])
    await engine.close()
    away.stop()
    elsewhere.stop()
  })

  test("has tokens that are none: another is tried", async () => {
    for (const id of [1.5, -1, 2 ** 31, 2 ** 40, 1e300, "7", null, true, [7]]) {
      const bad = fake(() => stream(chunk([id as number], "stop") + done))
      const other = good()
      const engine = open([bad.url, other.url])
      const { receiver } = submitTo(engine, plain())
      expect([id, await receiver.ended, receiver.tokenIds]).toEqual([id, "stop", [7]])
      expect([bad.seen.length, other.seen.length]).toEqual([1, 1])
      await engine.close()
      bad.stop()
      other.stop()
    }
  })

  test("refuses with a body that never ends, or never comes: another is tried", async () => {
    const endless = rawService((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write("x".repeat(65_536)));
      }
      socket.write(head(500))
      socket.on("drain", more)
      more()
    })
    const stalled = rawService((socket) => socket.write(`${head(503, "content-length: 100\r\n")}{`))
    const other = good()
    for (const bad of [endless, stalled]) {
      const engine = open([bad.url, other.url])
      const { receiver } = submitTo(engine, plain())
      expect(await receiver.ended).toBe("stop")
      expect(bad.state.requests).toBe(1)
      await engine.close()
      bad.stop()
    }
    other.stop()
  })

  test("keeps a stream open behind its end: nobody waits for more than counts", async () => {
    const bad = rawService((socket) => socket.write(head(200) + chunk([7], "length")))
    const engine = open([bad.url])
    const { receiver } = submitTo(engine, plain())
    expect([await receiver.ended, receiver.tokenIds]).toEqual(["length", [7]])
    await engine.close()
    bad.stop()
  })

  test("breaks off behind its end: what was last counts", async () => {
    const bad = rawService((socket) => {
      socket.write(`${head(200, "content-length: 9999\r\n")}${chunk([7], "length")}`)
      setTimeout(() => socket.destroy(), 50)
    })
    const engine = open([bad.url])
    const { receiver } = submitTo(engine, plain())
    expect([await receiver.ended, receiver.tokenIds]).toEqual(["length", [7]])
    await engine.close()
    bad.stop()
  })

  test("does not stop at max_tokens: it is stopped", async () => {
    const bad = rawService((socket) => socket.write(head(200) + chunk([7, 8], null).repeat(50)))
    const engine = open([bad.url])
    const { receiver } = submitTo(engine, requestOf([5], samplingOf({ maxTokens: 5 }), [1]))
    expect([await receiver.ended, receiver.tokenIds]).toEqual(["engine_disconnected", [7, 8, 7, 8]])
    await engine.close()
    bad.stop()
  })

  test("is gone though its connections stand: before the first token another is tried, afterwards the client is told", async () => {
    for (const [first, kind, tokens] of [
      ["", "stop", [7]],
      [chunk([9], null), "engine_disconnected", [9]],
    ] as const) {
      const bad = rawService((socket) => socket.write(head(200) + first))
      const other = good()
      const engine = open([bad.url, other.url])
      const { receiver } = submitTo(engine, plain())
      await until(() => bad.state.requests === 1 && (first === "" || receiver.tokenIds.length > 0))
      bad.state.health = 503
      expect([await receiver.ended, receiver.tokenIds]).toEqual([kind, [...tokens]])
      await engine.close()
      bad.stop()
      other.stop()
    }
  })

  test("is waited for as long as it says that it is there", async () => {
    let give: (() => void) | null = null
    const slow = rawService((socket) => {
      give = () => socket.end(head(200) + chunk([7], "stop") + done)
    })
    const engine = open([slow.url])
    const { receiver } = submitTo(engine, plain())
    await until(() => give !== null)
    // Down for a moment is not gone, nor is silence.
    slow.state.health = 503
    await until(() => !engine.status().alive)
    slow.state.health = 200
    await until(() => engine.status().alive)
    await Bun.sleep(10 * settings.healthIntervalMs)
    give!()
    expect([await receiver.ended, receiver.tokenIds]).toEqual(["stop", [7]])
    await engine.close()
    slow.stop()
  })
})

describe("services", () => {
  test("share the load: the one with the fewest running gets the next", async () => {
    const held: ((response: Response) => void)[] = []
    const hold = () => new Promise<Response>((resolve) => held.push(resolve))
    const services = [fake(hold), fake(hold), fake(hold)]
    const engine = open(services.map((service) => service.url))
    const receivers = Array.from({ length: 9 }, () => submitTo(engine, plain()).receiver)
    await until(() => held.length === 9)
    expect(services.map(({ seen }) => seen.length)).toEqual([3, 3, 3])
    for (const give of held) give(stream(chunk([7], "stop") + done))
    await Promise.all(receivers.map((receiver) => receiver.ended))
    await engine.close()
    for (const service of services) service.stop()
  })

  test("that are all gone make the engine unhealthy, until one is back", async () => {
    const service = fake(() => stream(chunk([7], "stop") + done))
    const { port } = new URL(service.url)
    const log: string[] = []
    const engine = open([service.url], null, log)
    expect(engine.status().alive).toBe(true)
    service.stop()
    await until(() => !engine.status().alive)
    const again = Bun.serve({ port: Number(port), development: false, fetch: () => new Response(null) })
    await until(() => engine.status().alive)
    expect(log.map((line) => line.replace(/:\d+/, "").replace(/not there: .*/, "not there"))).toEqual([
      "engine http://127.0.0.1: is not there",
      "engine http://127.0.0.1: is there",
    ])
    await engine.close()
    await again.stop(true)
  })
})

test("a server in front of another says what that one would say itself", async () => {
  const front = await startTestServer({ config: { engine: "http", http: { ...settings, urls: [upstream.url] } } })
  const text = '<think>\nhm\n</think>\n\nSure 🎉 <tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
  const body = {
    messages: [{ role: "user", content: "x" }],
    tools: [{ type: "function", function: { name: "now" } }],
    logprobs: true,
    top_logprobs: 2,
    n: 2,
    prompt_logprobs: 1,
    return_token_ids: true,
    vllm_xargs: { sim_text: text },
  }
  const bare = (json: object) =>
    JSON.parse(JSON.stringify(json, (key, value) => (["id", "created"].includes(key) ? null : value)))
  const there = await upstream.post("/v1/chat/completions", body)
  const here = await front.post("/v1/chat/completions", body)
  expect([here.status, here.headers.get("x-sluice-engine")]).toEqual([200, "http"])
  expect(bare(here.json)).toEqual(bare(there.json))
  expect((await front.get("/health")).status).toBe(200)
  await front.stop()
})
