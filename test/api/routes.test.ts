/** What stands around generation: keys, CORS, state routes, logs, metrics, docs, limits, shutdown. */
import { describe, expect, spyOn, test } from "bun:test"
import { once } from "node:events"
import { connect } from "node:net"
import { defaultConfig } from "../../src/config"
import { Simulator } from "../../src/engine/simulator"
import { recordEngine } from "../support/recorded-engine"
import { startTestServer, type TestServer, type TestServerOptions, until } from "../support/test-server"

const chatPath = "/v1/chat/completions"
const chat = (xargs: object = {}, extra: object = {}) => ({
  messages: [{ role: "user", content: "Hi" }],
  vllm_xargs: xargs,
  ...extra,
})

async function using(options: TestServerOptions, run: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startTestServer(options)
  try {
    await run(server)
  } finally {
    await server.stop()
  }
}

describe("an API key", () => {
  test("guards the model routes, known or not, and nothing else", async () => {
    await using({ config: { apiKeys: ["one", "two"] } }, async (server) => {
      for (const path of ["/v1/models", "/v1/nothing", "/v2/x", "/inference/v1/generate"]) {
        const reply = await server.get(path)
        expect([path, reply.status, reply.json]).toEqual([path, 401, { error: "Unauthorized" }])
      }
      for (const authorization of ["Bearer nope", "Basic one", "one", "Bearer "]) {
        expect((await server.get("/v1/models", { authorization })).status).toBe(401)
      }
      for (const authorization of ["Bearer one", "bearer two"]) {
        expect((await server.get("/v1/models", { authorization })).status).toBe(200)
      }
      for (const path of ["/health", "/metrics", "/version", "/load", "/docs"]) {
        expect((await server.get(path)).status).toBe(200)
      }
      expect((await server.post("/tokenize", { prompt: "x" })).status).toBe(200)
    })
  })
})

describe("a request line without a usable host", () => {
  /** Sends raw bytes; gives the status line. */
  async function status(server: TestServer, head: string): Promise<string> {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1")
    socket.write(`${head}\r\n\r\n`)
    const [reply] = await once(socket, "data")
    socket.destroy()
    return String(reply).split("\r\n")[0]!
  }
  const hosts = [
    "Host: a b",
    "Host: a/",
    "Host: ",
    "Host: a@b",
    "Host: <x>",
    "Host: a?",
    "Host: a#",
    "Host: \\",
    "Host: é",
  ]

  test("does not get around the key", async () => {
    await using({ config: { apiKeys: ["k"] } }, async (server) => {
      for (const host of hosts) {
        for (const path of ["/v1/models", "/v1/responses/x", "//v1/models", "/v1/nothing"]) {
          const line = await status(server, `GET ${path} HTTP/1.1\r\n${host}`)
          expect([host, path, line]).toEqual([host, path, expect.stringMatching(/ (400|401|404) /)])
          if (!path.startsWith("//")) expect(line).not.toContain(" 404 ")
        }
      }
      expect(await status(server, "GET /v1/models HTTP/1.0")).toContain(" 401 ")
      expect(await status(server, "GET /v1/models HTTP/1.0\r\nAuthorization: Bearer k")).toContain(" 200 ")
    })
  })

  test("reaches the routes, with a prefix too", async () => {
    await using({ config: { rootPath: "/api" } }, async (server) => {
      for (const path of ["/version", "/v1/models", "/api/v1/models", "/api/version?x=1"]) {
        expect([path, await status(server, `GET ${path} HTTP/1.0`)]).toEqual([path, "HTTP/1.1 200 OK"])
      }
      expect(await status(server, "GET /v1/models HTTP/1.1\r\nHost: x")).toContain(" 200 ")
      expect(server.log.filter((line) => line.includes("error"))).toEqual([])
    })
  })
})

describe("CORS", () => {
  const cors = { origins: ["http://a.example"], methods: ["*"], headers: ["*"], credentials: false }

  test("lets named origins in and no others", async () => {
    await using({ config: { cors } }, async (server) => {
      const allowed = await server.get("/v1/models", { origin: "http://a.example" })
      expect(allowed.headers.get("access-control-allow-origin")).toBe("http://a.example")
      const other = await server.get("/v1/models", { origin: "http://b.example" })
      expect(other.headers.get("access-control-allow-origin")).toBeNull()
      const ask = (origin: string) =>
        fetch(server.url + chatPath, {
          method: "OPTIONS",
          headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "x-a" },
        })
      const preflight = await ask("http://a.example")
      expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([
        200,
        "http://a.example",
      ])
      expect((await ask("http://b.example")).status).toBe(400)
      const stream = await server.post(chatPath, chat({}, { stream: true }), { origin: "http://a.example" })
      expect(stream.headers.get("access-control-allow-origin")).toBe("http://a.example")
    })
  })
})

test("every reply says which engine answers", async () => {
  const cors = { origins: ["http://a.example"], methods: ["*"], headers: ["*"], credentials: false }
  await using({ config: { apiKeys: ["k"], cors } }, async (server) => {
    const authorization = "Bearer k"
    const preflight = { "access-control-request-method": "POST" }
    const asked: [string, string, { [name: string]: string }, number][] = [
      ["GET", "/health", {}, 200],
      ["GET", "/metrics", {}, 200],
      ["GET", "/v1/models", { authorization }, 200],
      ["GET", "/v1/models", {}, 401],
      ["GET", "/nothing", {}, 404],
      ["GET", "/v1/responses/x", { authorization }, 404],
      ["GET", chatPath, { authorization }, 405],
      ["POST", chatPath, { authorization }, 400],
      ["GET", "/docs", {}, 200],
      ["GET", "/docs/", {}, 308],
      ["GET", "/docs/swagger-ui.css", {}, 200],
      ["GET", "/openapi.json", {}, 200],
      ["OPTIONS", chatPath, { origin: "http://a.example", ...preflight }, 200],
      ["OPTIONS", chatPath, { origin: "http://b.example", ...preflight }, 400],
    ]
    for (const [method, path, headers, status] of asked) {
      const reply = await fetch(server.url + path, { method, headers, redirect: "manual" })
      expect([method, path, reply.status, reply.headers.get("x-sluice-engine")]).toEqual([
        method,
        path,
        status,
        "simulator",
      ])
    }
  })
})

describe("what reaches the engine", () => {
  test("is the request's: seeds by choice, trace headers, the wanted rank", async () => {
    await using({}, async (server) => {
      const submit = spyOn(Simulator.prototype, "submit")
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      const headers = { traceparent, tracestate: "a=b", "x-data-parallel-rank": "3" }
      await server.post(chatPath, chat({ sim_text: "x" }, { n: 3, seed: 7, priority: 2, cache_salt: "s" }), headers)
      const requests = submit.mock.calls.map(([request]) => request)
      submit.mockRestore()
      expect(requests.map((request) => request.sampling.seed)).toEqual([7n, 8n, 9n])
      expect(new Set(requests.map((request) => request.requestId)).size).toBe(3)
      for (const request of requests) {
        expect(request).toMatchObject({
          traceHeaders: { traceparent, tracestate: "a=b" },
          dataParallelRank: 3,
          priority: 2,
          cacheSalt: "s",
        })
      }
    })
  })
})

describe("an adapter", () => {
  const loraModules = [
    { name: "sql", path: "/adapters/sql", baseModelName: null, is3dWeight: false },
    { name: "de", path: "acme/de", baseModelName: "acme/base", is3dWeight: true },
  ]
  const config = { servedModelNames: ["m"], vllm: { ...defaultConfig.vllm, loraModules } }

  test("is a model of its own, behind the served names", async () => {
    await using({ config }, async (server) => {
      type Card = { id: string; root: string; parent: string | null; max_model_len: number | null }
      const cards: Card[] = (await server.get("/v1/models")).json.data
      expect(cards.map(({ id, root, parent, max_model_len }) => [id, root, parent, max_model_len])).toEqual([
        ["m", "sluice-simulator", null, 131_072],
        ["sql", "/adapters/sql", "m", null],
        ["de", "acme/de", "acme/base", null],
      ])
      const unknown = await server.post(chatPath, chat({}, { model: "fr" }))
      expect([unknown.status, unknown.json.error.message]).toEqual([
        404,
        "The model `fr` does not exist. Served: m, sql, de.",
      ])
    })
  })

  test("that a request names goes to the engine, and is the model of the reply", async () => {
    await using({ config }, async (server) => {
      using engine = recordEngine()
      const models = ["de", "m", null].map(async (model) => {
        const reply = await server.post(chatPath, chat({ sim_text: "x" }, { model }))
        return reply.json.model
      })
      expect(await Promise.all(models)).toEqual(["de", "m", "m"])
      const adapters = engine.requests.map((request) => request.lora ?? null)
      expect(adapters.sort((a, b) => Number(a === null) - Number(b === null))).toEqual([
        { name: "de", id: 1_346_855_059, path: "acme/de", baseModelName: "acme/base", is3dWeight: true },
        null,
        null,
      ])
    })
  })
})

describe("state routes", () => {
  test("tell models, version, load and health", async () => {
    await using({ config: { servedModelNames: ["a", "b"] } }, async (server) => {
      const models = (await server.get("/v1/models")).json
      expect(models.data.map((card: { id: string; max_model_len: number }) => [card.id, card.max_model_len])).toEqual([
        ["a", 131072],
        ["b", 131072],
      ])
      expect((await server.post(chatPath, chat({}, { model: "b" }))).json.model).toBe("a")
      expect((await server.get("/version")).json).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
      expect((await server.get("/load")).json).toEqual({ server_load: 0 })
      for (const path of ["/health", "/ping"]) {
        const reply = await server.get(path)
        expect([reply.status, reply.text]).toEqual([200, ""])
      }
      expect((await server.post("/ping", "")).status).toBe(200)
    })
  })

  test("count requests inside, and free a place when a waiting client leaves", async () => {
    await using({ simulator: { sequencesMax: 1 } }, async (server) => {
      const slow = chat({ sim_text: "word ".repeat(500), sim_step_ms: 20 })
      const leaving = [new AbortController(), new AbortController()]
      const requests = leaving.map(({ signal }) =>
        fetch(server.url + chatPath, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(slow),
          signal,
        }).catch(() => {}),
      )
      await until(async () => {
        const { running, waiting, inside } = await server.counts()
        return running === 1 && waiting === 1 && inside === 2
      })
      leaving[1]!.abort() // the one that waits
      await until(async () => (await server.counts()).waiting === 0)
      leaving[0]!.abort()
      await until(async () => (await server.counts()).inside === 0)
      await Promise.all(requests)
    })
  })

  test("refuse work over the limits with 503", async () => {
    const limits = { ...defaultConfig.limits, concurrentRequestsMax: 1, queuedRequestsMax: 1 }
    await using({ config: { limits } }, async (server) => {
      const leaving = new AbortController()
      const request = fetch(server.url + chatPath, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(chat({ sim_text: "word ".repeat(500), sim_step_ms: 20 })),
        signal: leaving.signal,
      }).catch(() => {})
      await until(async () => (await server.counts()).inside === 1)
      const refused = await server.post(chatPath, chat())
      expect([refused.status, refused.headers.get("retry-after"), refused.json.error]).toMatchObject([
        503,
        "1",
        { type: "ServiceUnavailableError", param: null, code: 503 },
      ])
      leaving.abort()
      await request
      await until(async () => (await server.counts()).inside === 0)
      expect((await server.post(chatPath, chat())).status).toBe(200)
    })
  })
})

describe("metrics and logs", () => {
  test("count tokens, ends and requests", async () => {
    await using({}, async (server) => {
      await server.post(chatPath, chat({ sim_text: "one two" }))
      await server.events(chatPath, chat({ sim_text: "one two", sim_finish: "length" }))
      await server.post(chatPath, "{")
      const text = (await server.get("/metrics")).text
      const labels = 'engine="0",model_name="sluice-simulator"'
      const value = (line: string): number => {
        const found = text.split("\n").find((each) => each.startsWith(`${line} `))
        return Number(found?.split(" ").at(-1))
      }
      expect(value(`vllm:prompt_tokens_total{${labels}}`)).toBe(18)
      expect(value(`vllm:generation_tokens_total{${labels}}`)).toBe(5)
      expect(text).toMatch(/vllm:request_success_total\{[^}]*finished_reason="stop"[^}]*\} 1\.0\n/)
      expect(text).toMatch(/vllm:request_success_total\{[^}]*finished_reason="length"[^}]*\} 1\.0\n/)
      expect(text).toMatch(/http_requests_total\{[^}]*handler="\/v1\/chat\/completions"[^}]*\} 2\.0\n/)
      expect(value(`vllm:time_to_first_token_seconds_count{${labels}}`)).toBe(2)
    })
  })

  test("count the tokens of clients that leave, while they are served", async () => {
    await using({}, async (server) => {
      const leaving = new AbortController()
      const body = JSON.stringify(chat({ sim_text: "word ".repeat(500), sim_step_ms: 5 }, { stream: true }))
      const headers = { "content-type": "application/json" }
      const { signal } = leaving
      const response = await fetch(server.url + chatPath, { method: "POST", headers, body, signal })
      const reader = response.body!.getReader() // held, or the runtime may close it
      await reader.read()
      const generated = async (): Promise<number> =>
        Number(/^vllm:generation_tokens_total\{[^}]*\} (\S+)$/m.exec((await server.get("/metrics")).text)?.[1])
      await until(async () => (await generated()) > 3)
      leaving.abort()
      await until(async () =>
        (await server.get("/metrics")).text.includes('finished_reason="abort",model_name="sluice-simulator"} 1.0'),
      )
      expect(server.log.find((line) => line.includes("client_gone"))).toMatch(/, [1-9]\d* tokens, client_gone$/)
    })
  })

  test("write one line for each request when its reply is complete", async () => {
    await using({ config: { accessLogSkippedPaths: ["/health"] } }, async (server) => {
      await server.post(chatPath, chat({ sim_text: "one two" }, { request_id: "r1" }))
      await server.events(chatPath, chat({ sim_text: "one two" }, { request_id: "r2" }))
      await server.get("/health")
      await server.get("/nope")
      expect(server.log.map((line) => line.replace(/\d+\.\d ms/, "_ ms"))).toEqual([
        `POST ${chatPath} 200 _ ms chatcmpl-r1, 3 tokens, stop`,
        `POST ${chatPath} 200 _ ms chatcmpl-r2, 3 tokens, stop`,
        "GET /nope 404 _ ms",
      ])
    })
  })

  test("tell requests and replies when asked to, no longer than asked", async () => {
    const config = { accessLog: false, enableLogRequests: true, enableLogOutputs: true, maxLogLength: 5 }
    await using({ config }, async (server) => {
      await server.post(chatPath, chat({ sim_text: "one\ntwo three" }, { request_id: "r", seed: 4, max_tokens: 9 }))
      expect(server.log).toEqual([
        "request chatcmpl-r: 9 prompt tokens, max_tokens 9, temperature 1, top_p 1, seed 4, no stream",
        'reply chatcmpl-r choice 0: "one\\nt"',
      ])
    })
  })

  test("give request ids back only under the flag", async () => {
    await using({ config: { enableRequestIdHeaders: true } }, async (server) => {
      const reply = await server.post(chatPath, chat(), { "x-request-id": "abc" })
      expect(reply.headers.get("x-request-id")).toBe("abc")
      expect((await server.get("/version")).headers.get("x-request-id")).toMatch(/^[0-9a-f]{32}$/)
      expect((await server.get("/version", { "x-request-id": "" })).headers.get("x-request-id")).toMatch(
        /^[0-9a-f]{32}$/,
      )
    })
    await using({}, async (server) => {
      expect((await server.get("/version", { "x-request-id": "abc" })).headers.get("x-request-id")).toBeNull()
    })
  })
})

describe("the docs", () => {
  test("are made from the schemas that validate, and need nothing from elsewhere", async () => {
    await using({}, async (server) => {
      const spec = (await server.get("/openapi.json")).json
      const { schema } = spec.paths[chatPath].post.requestBody.content["application/json"]
      expect(schema.required).toEqual(["messages"])
      expect(Object.keys(schema.properties)).toContain("chat_template_kwargs")
      for (const path of ["/v1/responses", "/v1/completions", "/tokenize", "/detokenize", "/v1/models", "/health"]) {
        expect(Object.keys(spec.paths)).toContain(path)
      }
      const page = await server.get("/docs")
      expect(page.headers.get("content-type")).toStartWith("text/html")
      const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!)
      expect(sources.length).toBeGreaterThan(1)
      for (const source of sources) {
        expect(source).toStartWith("/docs/")
        expect((await server.get(source)).status).toBe(200)
      }
    })
  })

  test("can be switched off", async () => {
    await using({ config: { docs: false } }, async (server) => {
      expect((await server.get("/docs")).status).toBe(404)
      expect((await server.get("/openapi.json")).status).toBe(404)
    })
  })
})

describe("a proxy's prefix", () => {
  test("is taken off before routes are looked up", async () => {
    await using({ config: { rootPath: "/llm", apiKeys: ["k"] } }, async (server) => {
      expect((await server.get("/llm/v1/models", { authorization: "Bearer k" })).status).toBe(200)
      expect((await server.get("/llm/v1/models")).status).toBe(401)
      expect((await server.get("/llm/health")).status).toBe(200)
      expect((await server.get("/health")).status).toBe(200)
      const reply = await server.post(`/llm${chatPath}`, chat(), { authorization: "Bearer k" })
      expect(reply.status).toBe(200)
    })
  })
})

describe("a shutdown", () => {
  test("lets running requests end within its time, and takes no new ones", async () => {
    const server = await startTestServer({ config: { shutdownTimeoutSeconds: 10 } })
    const running = server.post(chatPath, chat({ sim_text: "word ".repeat(20), sim_step_ms: 10 }))
    await until(async () => (await server.counts()).running === 1)
    const stopped = server.stop()
    expect((await running).status).toBe(200)
    await stopped
    await expect(server.get("/version")).rejects.toThrow()
  })

  test("without time ends them with an error that their clients see", async () => {
    const server = await startTestServer()
    const slow = { sim_text: "word ".repeat(500), sim_step_ms: 10 }
    const whole = server.post(chatPath, chat(slow))
    const stream = server.events("/v1/responses", { input: "Hi", vllm_xargs: slow })
    await until(async () => (await server.counts()).running === 2)
    await server.stop()
    expect((await whole).json.error).toMatchObject({ message: "The server is shutting down", code: 503 })
    expect((await stream).at(-1)!.event).toBe("response.failed")
  })
})

test("scripts in requests are refused when the operator says so", async () => {
  await using({ simulator: { allowScripts: false } }, async (server) => {
    expect((await server.post(chatPath, chat({ sim_text: "x" }))).json.error).toMatchObject({ param: "vllm_xargs" })
    expect((await server.post(chatPath, chat())).status).toBe(200)
  })
})

test("idle streams carry keep-alive comments", async () => {
  await using({ config: { sseKeepAliveSeconds: 0.05 } }, async (server) => {
    const reply = await server.post(chatPath, chat({ sim_text: "a b c", sim_step_ms: 150 }, { stream: true }))
    expect(reply.text).toContain(": keep-alive\n\n")
    expect(reply.text).toEndWith("data: [DONE]\n\n")
  })
})
