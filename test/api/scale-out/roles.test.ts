/** Which scale-out routes there are in which role, and what those answer that are switched off. */
import { describe, expect, test } from "bun:test"
import type { Config } from "../../../src/config"
import { startTestRenderer } from "../../support/test-renderer"
import { startTestServer, type TestServer } from "../../support/test-server"

const textPaths = [
  "/v1/chat/completions/render",
  "/v1/completions/render",
  "/v1/responses/render",
  "/v1/messages/render",
  "/v1/chat/completions/derender",
  "/v1/completions/derender",
  "/v1/responses/derender",
]
const tokenPaths = ["/inference/v1/generate", "/inference/v1/abort_requests"]

async function using(server: Promise<TestServer>, run: (server: TestServer) => Promise<void>): Promise<void> {
  const started = await server
  try {
    await run(started)
  } finally {
    await started.stop()
  }
}

/** The status of a broken body, by path: 400 = somebody read it. */
async function statuses(server: TestServer, paths: readonly string[], key = ""): Promise<number[]> {
  const headers: { [name: string]: string } = key === "" ? {} : { authorization: `Bearer ${key}` }
  return await Promise.all(paths.map(async (path) => (await server.post(path, "{broken", headers)).status))
}

const serve = (config: Partial<Config> = {}): Promise<TestServer> => startTestServer({ config })
const all = (status: number, paths: readonly string[]): number[] => paths.map(() => status)

describe("serve", () => {
  test("answers 403 without a look at the body while scale-out is off, behind the key", async () => {
    await using(serve({ apiKeys: ["k"] }), async (server) => {
      const paths = [...textPaths, ...tokenPaths]
      expect(await statuses(server, paths)).toEqual(all(401, paths))
      expect(await statuses(server, paths, "k")).toEqual(all(403, paths))
      const refused = await server.post("/v1/responses/render", "x", { authorization: "Bearer k" })
      expect(refused.json).toEqual({
        error: {
          message: expect.stringContaining("--enable-scale-out"),
          type: "PermissionDeniedError",
          param: null,
          code: 403,
        },
      })
      const { paths: published } = (await server.get("/openapi.json")).json
      expect(paths.filter((path) => path in published)).toEqual([])
    })
  })

  test("has all of them when it is on, and publishes what they answer", async () => {
    await using(serve({ enableScaleOut: true }), async (server) => {
      const paths = [...textPaths.filter((path) => !path.includes("messages")), ...tokenPaths]
      expect(await statuses(server, paths)).toEqual(all(400, paths))
      expect((await server.post("/abort_requests", {})).status).toBe(404)
      const { paths: published } = (await server.get("/openapi.json")).json
      for (const path of paths.filter((each) => each.endsWith("/render"))) {
        expect(Object.keys(published[path].post.responses)).toEqual(
          expect.arrayContaining(["200", "400", "401", "403", "404", "500", "501"]),
        )
      }
    })
  })

  test("with tokens only keeps generation from ids and nothing that needs text", async () => {
    await using(serve({ enableScaleOut: true, tokensOnly: true, apiKeys: ["k"] }), async (server) => {
      const texts = [
        ...textPaths,
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/tokenize",
        "/detokenize",
      ]
      expect(await statuses(server, texts, "k")).toEqual(all(501, texts))
      const body = { token_ids: [1, 2], sampling_params: { max_tokens: 2 } }
      const send = (extra: object) =>
        server.post("/inference/v1/generate", { ...body, ...extra }, { authorization: "Bearer k" })
      expect((await send({})).status).toBe(200)
      expect((await send({ output_mode: "text" })).json.error.param).toBe("output_mode")
      expect((await send({ sampling_params: { stop: ["x"] } })).json.error.param).toBe("sampling_params")
      // Open, for the engines' own operators.
      expect((await server.post("/abort_requests", { request_ids: [] })).status).toBe(200)
    })
  })
})

describe("render", () => {
  test("renders and derenders, never generates, and is healthy", async () => {
    await using(startTestRenderer(), async (server) => {
      const paths = textPaths.filter((path) => !path.includes("messages"))
      expect(await statuses(server, paths)).toEqual(all(400, paths))
      const generation = [...tokenPaths, "/v1/chat/completions", "/v1/completions", "/v1/responses", "/abort_requests"]
      expect(await statuses(server, generation)).toEqual(all(404, generation))
      for (const path of ["/health", "/ping", "/v1/models", "/version", "/load", "/metrics", "/docs"]) {
        const reply = await server.get(path)
        expect([path, reply.status, reply.headers.get("x-sluice-engine")]).toEqual([path, 200, "none"])
      }
      const tokens = (await server.post("/tokenize", { prompt: "hello" })).json.tokens
      expect((await server.post("/detokenize", { tokens })).json).toEqual({ prompt: "hello" })
    })
  })

  test("answers 403 when scale-out is switched off", async () => {
    await using(startTestRenderer({ config: { enableScaleOut: false } }), async (server) => {
      expect(await statuses(server, textPaths)).toEqual(all(403, textPaths))
      expect(await statuses(server, tokenPaths)).toEqual(all(404, tokenPaths))
    })
  })
})
