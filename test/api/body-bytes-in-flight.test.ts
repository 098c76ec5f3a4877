/** Long bodies share one bound: what does not fit is told to come again, and whatever becomes of a request, its room comes back. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { connect, type Socket } from "node:net"
import { defaultConfig } from "../../src/config"
import { startTestRenderer } from "../support/test-renderer"
import { startTestServer, type TestServer, until } from "../support/test-server"
import { visionProfile } from "../support/vision-model"

const longBytes = 1_000_000
/** Room for two of those, and not for three. */
const limits = { ...defaultConfig.limits, bodyBytesInFlightMax: 2.5 * longBytes, bodySecondsMax: 60 }
const renderPath = "/v1/chat/completions/render"
const short = { messages: [{ role: "user", content: "hi" }] }

/** A body of about so many bytes, which are one image. */
function imageBody(bytes: number, extra: object = {}): string {
  const url = `data:image/png;base64,${"A".repeat(bytes - 200)}`
  const content = [{ type: "image_url", image_url: { url } }]
  return JSON.stringify({ messages: [{ role: "user", content }], ...extra }).padEnd(bytes)
}
const long = imageBody(longBytes)

/** A client that sends what it is told and reads only when asked to. Whoever opened it destroys it. */
async function open(server: TestServer, head: string, begin = ""): Promise<Socket> {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on("error", () => {})
  await new Promise((resolve) => socket.once("connect", resolve))
  socket.write(`POST ${head}\r\nhost: x\r\ncontent-type: application/json\r\n\r\n${begin}`)
  return socket
}

/** The status that such a client reads, with its headers. */
function answer(socket: Socket): Promise<{ status: number; head: string }> {
  return new Promise((resolve, reject) => {
    let text = ""
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      const end = text.indexOf("\r\n\r\n")
      if (end !== -1) resolve({ status: Number(text.slice(9, 12)), head: text.slice(0, end).toLowerCase() })
    })
    socket.on("close", () => reject(new Error(`closed after: ${text}`)))
  })
}

const status = async (server: TestServer, path: string, body: unknown): Promise<number> =>
  (await server.post(path, body)).status
/** Bytes of bodies that the server says it holds. */
async function held(server: TestServer): Promise<number> {
  const { text } = await server.get("/metrics")
  return Number(/^sluice:body_bytes_in_flight\{[^}]*\} (\S+)$/m.exec(text)?.[1])
}
const holds = (server: TestServer, bytes: number): Promise<void> =>
  until(async () => (await held(server)) === bytes, 10_000)

describe("rendering", () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startTestRenderer({ config: { limits }, profile: await visionProfile() })
  })
  afterAll(() => server.stop())

  test("long bodies that were announced take their room, and short requests need none", async () => {
    const clients: Socket[] = []
    for (let i = 0; i < 2; i++) {
      clients.push(await open(server, `${renderPath} HTTP/1.1\r\ncontent-length: ${longBytes}`, '{"messages":'))
    }
    await holds(server, 2 * longBytes)
    const refused = await server.post(renderPath, long)
    expect([refused.status, refused.headers.get("retry-after"), refused.json.error]).toEqual([
      503,
      "1",
      {
        message: "Other requests' bodies leave no room for this one; please try again.",
        type: "ServiceUnavailableError",
        param: null,
        code: 503,
      },
    ])
    expect(await status(server, "/tokenize", { prompt: "x".repeat(longBytes) })).toBe(503)
    expect(await status(server, renderPath, short)).toBe(200)
    // One of them leaves in the middle.
    clients[0]!.destroy()
    await holds(server, longBytes)
    expect(await status(server, renderPath, long)).toBe(200)
    // The other one sends the rest after all.
    const rest = long.slice('{"messages":'.length)
    clients[1]!.write(rest)
    expect((await answer(clients[1]!)).status).toBe(200)
    clients[1]!.destroy()
    await holds(server, 0)
  })

  test("bodies without a length are counted while they come", async () => {
    const chunked = `${renderPath} HTTP/1.1\r\ntransfer-encoding: chunked`
    const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
    const first = await open(server, chunked, chunk(long.slice(0, 990_000)))
    const second = await open(server, chunked, chunk(long.slice(0, 90_000)))
    await until(async () => (await held(server)) >= 990_000)
    const third = await open(server, `${renderPath} HTTP/1.1\r\ncontent-length: 500000`)
    await until(async () => (await held(server)) >= 1_490_000)
    second.write(chunk(long.slice(90_000) + " ".repeat(longBytes)))
    const refused = await answer(second)
    expect([refused.status, refused.head]).toEqual([503, expect.stringContaining("retry-after: 1")])
    first.write(`${chunk(long.slice(990_000))}0\r\n\r\n`)
    expect((await answer(first)).status).toBe(200)
    await holds(server, 500_000)
    for (const socket of [first, second, third]) socket.destroy()
    await holds(server, 0)
  })

  test("a body that could never fit is too large, with and without a length", async () => {
    const huge = imageBody(3 * longBytes)
    expect(await status(server, renderPath, huge)).toBe(413)
    const body = new ReadableStream({
      start: (controller) => {
        for (let at = 0; at < huge.length; at += 100_000) controller.enqueue(Buffer.from(huge.slice(at, at + 100_000)))
        controller.close()
      },
    })
    const headers = { "content-type": "application/json" }
    expect((await fetch(server.url + renderPath, { method: "POST", headers, body })).status).toBe(413)
    await holds(server, 0)
  })

  test("whatever is wrong with a request, its room comes back", async () => {
    const wrong: [number, string, string][] = [
      [200, renderPath, long],
      [400, renderPath, "[".padEnd(longBytes)],
      [400, renderPath, `"${"é".repeat(longBytes / 2)}`],
      [400, renderPath, "[".repeat(longBytes)],
      [400, renderPath, JSON.stringify({ messages: 1 }).padEnd(longBytes)],
      [404, renderPath, JSON.stringify({ ...short, model: "no" }).padEnd(longBytes)],
      [400, renderPath, imageBody(longBytes, { truncate_prompt_tokens: 5 })],
      [400, "/v1/chat/completions/derender", imageBody(longBytes)],
      [400, "/v1/responses/derender", JSON.stringify({ stream: true }).padEnd(longBytes)],
      [400, "/v1/responses/render", JSON.stringify({ input: "x", previous_response_id: "r" }).padEnd(longBytes)],
      [501, "/v1/messages/render", long],
      [200, "/v1/completions/render", JSON.stringify({ prompt: "x" }).padEnd(longBytes)],
      [400, "/detokenize", JSON.stringify({ tokens: "x" }).padEnd(longBytes)],
    ]
    for (const [expected, path, body] of wrong) {
      for (let i = 0; i < 3; i++) expect([path, await status(server, path, body)]).toEqual([path, expected])
    }
    const other = { "content-type": "text/plain" }
    for (let i = 0; i < 3; i++) expect((await server.post(renderPath, long, other)).status).toBe(400)
    expect(await held(server)).toBe(0)
  })

  test("a body that does not come in time gives its room back", async () => {
    const hasty = await startTestRenderer({
      config: { limits: { ...limits, bodySecondsMax: 1 } },
      profile: await visionProfile(),
    })
    for (const length of [`content-length: ${longBytes}`, "transfer-encoding: chunked"]) {
      const begin = length.startsWith("t") ? `${(600_000).toString(16)}\r\n${long.slice(0, 600_000)}\r\n` : "{"
      const clients: Socket[] = []
      for (let i = 0; i < 2; i++) clients.push(await open(hasty, `${renderPath} HTTP/1.1\r\n${length}`, begin))
      const answers = clients.map(answer)
      await until(async () => (await held(hasty)) >= 1_200_000)
      expect((await Promise.all(answers)).map((each) => each.status)).toEqual([408, 408])
      expect(await held(hasty)).toBe(0)
      for (const client of clients) client.destroy()
    }
    await hasty.stop()
  })

  test("a reply that nobody reads holds its room until its client is gone", async () => {
    const bytes = 40_000_000
    const roomy = await startTestRenderer({
      config: { limits: { ...limits, bodyBytesInFlightMax: bytes + longBytes } },
      profile: await visionProfile(),
    })
    const client = await open(roomy, `${renderPath} HTTP/1.1\r\ncontent-length: ${bytes}`)
    client.pause()
    client.write(imageBody(bytes))
    // All of it came once its reply is on its way, and two sockets hold less than that.
    await until(() => client.writableLength === 0, 10_000)
    expect(await status(roomy, renderPath, imageBody(2 * longBytes))).toBe(503)
    client.resume()
    await new Promise((resolve) => client.once("data", resolve))
    client.pause()
    expect(await held(roomy)).toBe(bytes)
    client.destroy()
    await holds(roomy, 0)
    const line = `POST ${renderPath} 200`
    expect(roomy.log.filter((each) => each.startsWith(line))).toHaveLength(1)
    // Read to its end it gives the room back too.
    for (let i = 0; i < 3; i++) {
      expect(await status(roomy, renderPath, imageBody(bytes))).toBe(200)
      await holds(roomy, 0)
    }
    await roomy.stop()
  })
})

describe("serving before a token-in service", () => {
  let behaviour: "hangs" | "answers" | "fails" = "answers"
  let running = 0
  const chatPath = "/v1/chat/completions"
  const service = Bun.serve({
    port: 0,
    development: false,
    idleTimeout: 0,
    fetch: async (request) => {
      if (request.method === "GET") return new Response(null)
      await request.bytes()
      if (behaviour === "fails") return new Response("no", { status: 500 })
      const choice = { index: 0, token_ids: [9707], finish_reason: behaviour === "hangs" ? null : "stop" }
      const frame = `data: ${JSON.stringify({ choices: [choice] })}\n\n`
      if (behaviour === "answers") return new Response(`${frame}data: [DONE]\n\n`)
      running += 1
      request.signal.addEventListener("abort", () => {
        running -= 1
      })
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(frame)) }))
    },
  })
  let server: TestServer
  beforeAll(async () => {
    const http = { ...defaultConfig.http, urls: [`http://127.0.0.1:${service.port}`] }
    server = await startTestServer({ config: { limits, engine: "http", http }, profile: await visionProfile() })
  })
  afterAll(async () => {
    await server.stop()
    await service.stop(true)
  })

  for (const stream of [false, true]) {
    test(`a body is held as long as its request runs (${stream ? "a stream" : "whole"})`, async () => {
      const body = imageBody(longBytes, { stream })
      behaviour = "answers"
      expect(await status(server, chatPath, body)).toBe(200)
      await holds(server, 0)
      behaviour = "fails"
      const reply = await server.post(chatPath, body)
      expect([reply.status, reply.text.includes("InternalServerError")]).toEqual([stream ? 200 : 500, true])
      await holds(server, 0)
      behaviour = "hangs"
      const clients: Socket[] = []
      for (let i = 0; i < 2; i++)
        clients.push(await open(server, `${chatPath} HTTP/1.1\r\ncontent-length: ${longBytes}`, body))
      await until(() => running === 2, 5_000)
      expect(await held(server)).toBe(2 * longBytes)
      expect(await status(server, chatPath, body)).toBe(503)
      behaviour = "answers"
      expect(await status(server, chatPath, short)).toBe(200)
      for (const client of clients) client.destroy()
      await until(() => running === 0, 5_000)
      await holds(server, 0)
    })
  }
})
