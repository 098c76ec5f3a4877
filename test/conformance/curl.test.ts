/** curl, as a person or a script would use it: status, headers, and the framing of the streams byte for byte. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Server, startServer } from "../support/server-process"
import { script, sentence, thinking } from "./support/script"

const here = Bun.which("curl") !== null
if (!here) console.log("curl: skipped, there is no curl")

const folder = mkdtempSync(join(tmpdir(), "sluice-curl-"))
const invalidUtf8 = join(folder, "body.json")

let server: Server
let model: string

beforeAll(async () => {
  if (!here) return
  const text = new TextEncoder().encode('{"messages": [{"role": "user", "content": "?"}]}')
  text[text.indexOf(63)] = 0xff
  writeFileSync(invalidUtf8, text)
  server = await startServer()
  const models: { data: { id: string }[] } = JSON.parse((await curl("/v1/models")).body)
  model = models.data[0]!.id
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  if (here) expect(await server.end()).toBe(0)
})

interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** Runs curl without buffering and splits what it wrote at the end of the headers. */
async function curl(path: string, ...options: readonly string[]): Promise<Answer> {
  const command = ["curl", "--silent", "--show-error", "--no-buffer", "--include", "--max-time", "20"]
  const child = Bun.spawn([...command, ...options, `${server.origin}${path}`], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`curl failed: ${errors}`)
  const end = out.indexOf("\r\n\r\n")
  const [statusLine, ...lines] = out.slice(0, end).split("\r\n")
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { status: Number(statusLine!.split(" ")[1]), headers: new Map(headers), body: out.slice(end + 4) }
}

const post = (path: string, body: unknown, ...options: readonly string[]) =>
  curl(path, "--header", "Content-Type: application/json", "--data", JSON.stringify(body), ...options)

const messages = [{ role: "user", content: "Say hello." }]

describe.skipIf(!here)("GET", () => {
  test("health and ping answer with an empty body", async () => {
    for (const path of ["/health", "/ping"]) {
      const { status, body } = await curl(path)
      expect([path, status, body]).toEqual([path, 200, ""])
    }
  })

  test("version, load and models answer with JSON", async () => {
    for (const [path, shape] of Object.entries({
      "/version": { version: expect.any(String) },
      "/load": { server_load: 0 },
      "/v1/models": { object: "list", data: [{ object: "model" }] },
    })) {
      const { status, headers, body } = await curl(path)
      expect([status, headers.get("content-type")?.split(";")[0]]).toEqual([200, "application/json"])
      expect(JSON.parse(body)).toMatchObject(shape)
    }
  })

  test("metrics answer in Prometheus' text format", async () => {
    const { status, headers, body } = await curl("/metrics")
    expect(status).toBe(200)
    expect(headers.get("content-type")).toStartWith("text/plain")
    const lines = body.split("\n").filter((line) => line !== "")
    expect(lines.length).toBeGreaterThan(10)
    for (const line of lines) {
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) \S+ .*|[a-zA-Z_:][\w:]*(?:\{.*\})? [-+\d.eEINaNf]+)$/)
    }
  })

  test("the description of the API names the endpoints, and its page loads nothing from elsewhere", async () => {
    const { body } = await curl("/openapi.json")
    const description: { openapi: string; paths: object } = JSON.parse(body)
    expect(description.openapi).toStartWith("3.")
    const paths = Object.keys(description.paths)
    for (const path of ["/v1/responses", "/v1/chat/completions", "/v1/completions"]) expect(paths).toContain(path)

    const page = await curl("/docs")
    expect([page.status, page.headers.get("content-type")?.split(";")[0]]).toEqual([200, "text/html"])
    const loaded = [...page.body.matchAll(/\b(?:src|href)=["']([^"']+)["']/g)].map((match) => match[1]!)
    expect(loaded.filter((address) => /^(?:https?:)?\/\//.test(address))).toEqual([])
    for (const address of loaded.filter((address) => address.startsWith("/"))) {
      expect((await curl(address)).status).toBe(200)
    }
  })
})

describe.skipIf(!here)("POST", () => {
  test("gives JSON, and says that the answer is simulated", async () => {
    const { status, headers, body } = await post("/v1/chat/completions", { messages })
    expect(status).toBe(200)
    expect(headers.get("content-type")?.split(";")[0]).toBe("application/json")
    expect(headers.get("x-sluice-engine")).toBe("simulator")
    expect(JSON.parse(body)).toMatchObject({ object: "chat.completion", model })
  })

  test("takes the model's name, null, or none", async () => {
    for (const name of [model, null, undefined, ""]) {
      expect((await post("/v1/responses", { model: name, input: "Hi" })).status).toBe(200)
    }
  })

  test("tokenizes and detokenizes to the same text", async () => {
    const { body } = await post("/tokenize", { prompt: sentence })
    const { tokens, count }: { tokens: number[]; count: number } = JSON.parse(body)
    expect(tokens).toHaveLength(count)
    const back: { prompt: string } = JSON.parse((await post("/detokenize", { tokens })).body)
    expect(back.prompt).toBe(sentence)
  })
})

describe.skipIf(!here)("a chat stream", () => {
  test("is data lines with one JSON object each, an empty line after each, and [DONE] at its end", async () => {
    const { status, headers, body } = await post("/v1/chat/completions", {
      messages,
      stream: true,
      ...script(thinking("Hm.", sentence)),
    })
    expect(status).toBe(200)
    expect(headers.get("content-type")?.split(";")[0]).toBe("text/event-stream")
    expect(headers.get("x-sluice-engine")).toBe("simulator")
    expect(headers.has("content-length")).toBeFalse()
    expect(body).toMatch(/^(?:data: \{[^\n\r]*\}\n\n)+data: \[DONE\]\n\n$/)
    const frames = body.split("\n\n").slice(0, -2)
    const chunks: { choices: { delta: { content?: string } }[] }[] = frames.map((frame) => JSON.parse(frame.slice(6)))
    expect(chunks.map(({ choices }) => choices[0]!.delta.content ?? "").join("")).toBe(sentence)
  })

  test("of completions is framed alike", async () => {
    const { body } = await post("/v1/completions", { prompt: "Once", stream: true, ...script(" upon a time") })
    expect(body).toMatch(/^(?:data: \{[^\n\r]*\}\n\n)+data: \[DONE\]\n\n$/)
  })

  test("that fails ends with an error frame and [DONE]", async () => {
    const { status, body } = await post("/v1/chat/completions", {
      messages,
      stream: true,
      ...script("one two three", { sim_fail_after_tokens: 2, sim_error: "disconnect" }),
    })
    expect(status).toBe(200)
    const frames = body.split("\n\n")
    expect(frames.slice(-2)).toEqual(["data: [DONE]", ""])
    expect(JSON.parse(frames.at(-3)!.slice(6))).toEqual({
      error: { message: expect.any(String), type: "InternalServerError", param: null, code: 500 },
    })
  })
})

describe.skipIf(!here)("a responses stream", () => {
  test("is pairs of an event line and a data line, numbered, without [DONE]", async () => {
    const { status, headers, body } = await post("/v1/responses", {
      input: "Say hello.",
      stream: true,
      ...script(thinking("Hm.", sentence)),
    })
    expect(status).toBe(200)
    expect(headers.get("content-type")?.split(";")[0]).toBe("text/event-stream")
    expect(body).toMatch(/^(?:event: response\.[a-z_.]+\ndata: \{[^\n\r]*\}\n\n)+$/)
    const events = body
      .split("\n\n")
      .slice(0, -1)
      .map((frame) => {
        const [name, line] = frame.split("\n")
        const event: { type: string; sequence_number: number } = JSON.parse(line!.slice("data: ".length))
        return { name: name!.slice("event: ".length), ...event }
      })
    expect(events.map(({ name }) => name)).toEqual(events.map(({ type }) => type))
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
    expect(events.at(-1)!.type).toBe("response.completed")
  })
})

describe.skipIf(!here)("a bad request", () => {
  const envelope = (code: number, type: string, param: string | null) => ({
    error: { message: expect.any(String), type, param, code },
  })

  test("that is no JSON, of another type, or invalid UTF-8 is 400", async () => {
    const path = "/v1/chat/completions"
    const json = ["--header", "Content-Type: application/json"]
    const answers = [
      await curl(path, ...json, "--data", '{"messages": ['),
      await curl(path, "--data", "messages=Hello"),
      await curl(path, "--header", "Content-Type: text/plain", "--data", JSON.stringify({ messages })),
      await curl(path, ...json, "--data-binary", `@${invalidUtf8}`),
      await curl(path, ...json, "--data", ""),
    ]
    for (const { status, headers, body } of answers) {
      expect([status, headers.get("content-type")?.split(";")[0]]).toEqual([400, "application/json"])
      expect(JSON.parse(body)).toEqual(envelope(400, "Bad Request", null))
    }
  })

  test("to nowhere is 404, and with the wrong method 405", async () => {
    const nowhere = await curl("/v1/nowhere")
    expect([nowhere.status, JSON.parse(nowhere.body).error.code]).toEqual([404, 404])
    const wrong = await curl("/v1/chat/completions")
    expect([wrong.status, JSON.parse(wrong.body).error.code]).toEqual([405, 405])
  })

  test("for an unknown model is 404", async () => {
    const { status, body } = await post("/v1/responses", { model: "none", input: "Hi" })
    expect(status).toBe(404)
    expect(JSON.parse(body)).toEqual(envelope(404, "NotFoundError", "model"))
  })

  test("does not end the server", async () => {
    expect((await curl("/health")).status).toBe(200)
  })
})
