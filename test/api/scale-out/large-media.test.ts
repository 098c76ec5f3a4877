/** 200 MB of media through server processes: what comes out is what went in, and memory does not grow with copies. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { readFileSync, rmSync } from "node:fs"
import { type Server, startProcess } from "../../support/server-process"
import { makeVisionFolder } from "../../support/vision-folder"

const payloadBytes = 200_000_000
const before = Buffer.from(
  '{"seed":9007199254740993,"messages":[{"role":"user","content":[{"type":"text","text":"What?"},' +
    '{"type":"image_url","image_url":{"url":"data:image/png;base64,',
)
const behind = Buffer.from('"}}]}]}')
const urlStart = "data:image/png;base64,"
/** Base64 digits without a pattern that a mistake could hide in: each block of 64 KiB has a beginning of its own. */
let payload: Buffer
let digest: string
let folder: string

beforeAll(() => {
  const block = Buffer.alloc(65_536)
  for (let i = 0; i < block.length; i++) block[i] = 65 + ((i * 7 + (i >> 5)) % 26)
  payload = Buffer.alloc(payloadBytes)
  for (let at = 0; at < payloadBytes; at += block.length) {
    block.write(String(at).padStart(12, "0"))
    block.copy(payload, at)
  }
  digest = createHash("sha256").update(payload).digest("hex")
  folder = makeVisionFolder()
})
afterAll(() => rmSync(folder, { recursive: true }))

function start(role: string, ...flags: string[]): Promise<Server> {
  const command = [process.execPath, "--no-install", "src/main.ts", role, folder, "--port", "0"]
  return startProcess([...command, "--tokenizer-cache", "off", ...flags])
}

/** A line of /proc/PID/status, in bytes. */
function memory(pid: number, name: "VmRSS" | "VmHWM"): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))
  return Number(line?.[1]) * 1024
}

/** Sends the request, its body in one piece. */
function send(server: Server, path: string): Promise<Response> {
  const body = Buffer.concat([before, payload, behind])
  return fetch(server.origin + path, { method: "POST", headers: { "content-type": "application/json" }, body })
}

/** Of a GenerateRequest as bytes: the digest of its image, and all the rest. */
class Taken {
  rest = ""
  digest = ""
  bytes = 0
  private readonly hash = createHash("sha256")
  private state: "before" | "inside" | "behind" = "before"

  push(chunk: Uint8Array): void {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    if (this.state === "before") {
      this.rest += bytes.toString("latin1")
      const at = this.rest.indexOf(urlStart)
      if (at === -1) return
      bytes = Buffer.from(this.rest.slice(at + urlStart.length), "latin1")
      this.rest = this.rest.slice(0, at)
      this.state = "inside"
    }
    if (this.state === "inside") {
      const end = bytes.indexOf(0x22)
      const inside = end === -1 ? bytes : bytes.subarray(0, end)
      this.hash.update(inside)
      this.bytes += inside.length
      if (end === -1) return
      this.digest = this.hash.digest("hex")
      this.state = "behind"
      bytes = bytes.subarray(end)
    }
    this.rest += bytes.toString("latin1")
  }

  get json(): { [name: string]: unknown } {
    return JSON.parse(this.rest)
  }
}

/** What the body may cost beside itself: the runtime's own buffers. */
const slackBytes = 0.4 * payloadBytes

const describeHere = process.platform === "linux" ? describe : describe.skip

describeHere("a request with 200 MB of media", () => {
  test("is rendered as it came, and costs its own length", async () => {
    const server = await start("render")
    try {
      const base = memory(server.pid, "VmRSS")
      const reply = await send(server, "/v1/chat/completions/render")
      const taken = new Taken()
      for await (const chunk of reply.body!) taken.push(chunk)
      expect([reply.status, taken.bytes, taken.digest]).toEqual([200, payloadBytes, digest])
      expect(taken.json).toMatchObject({ content_parts: [{ type: "image_url", url: "" }], features: null })
      expect(taken.rest).toContain('"seed":9007199254740993')
      const grown = memory(server.pid, "VmHWM") - base
      expect(grown).toBeLessThan(payloadBytes + slackBytes)
    } finally {
      await server.end()
    }
  }, 60_000)

  test("is forwarded to a token-in service as it came, and costs its own length", async () => {
    let taken = new Taken()
    let length = 0
    const service = Bun.serve({
      port: 0,
      development: false,
      maxRequestBodySize: 2 ** 31,
      fetch: async (request) => {
        if (request.method === "GET") return new Response("")
        taken = new Taken()
        length = Number(request.headers.get("content-length"))
        for await (const chunk of request.body!) taken.push(chunk)
        const choice = { index: 0, token_ids: [9707, 151_645], finish_reason: "stop" }
        return new Response(`data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`)
      },
    })
    const server = await start("serve", "--engine", "http", "--engine-url", `http://127.0.0.1:${service.port}`)
    try {
      const base = memory(server.pid, "VmRSS")
      const reply = await send(server, "/v1/chat/completions")
      expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("Hello")])
      expect([taken.bytes, taken.digest]).toEqual([payloadBytes, digest])
      expect(length).toBeGreaterThan(payloadBytes)
      const grown = memory(server.pid, "VmHWM") - base
      expect(grown).toBeLessThan(payloadBytes + slackBytes)
    } finally {
      await server.end()
      await service.stop(true)
    }
  }, 60_000)

  test("has a limit of its own, and the rest keeps the other", async () => {
    const limits = ["--max-request-body-size", "1m", "--max-media-request-body-size", "8m"]
    const server = await start("render", ...limits)
    const post = async (image: number, words: number) => {
      const content = [
        { type: "image_url", image_url: { url: urlStart + "A".repeat(image) } },
        { type: "text", text: "w ".repeat(words / 2) },
      ]
      const body = JSON.stringify({ messages: [{ role: "user", content }], truncate_prompt_tokens: 5 })
      const headers = { "content-type": "application/json" }
      return (await fetch(`${server.origin}/v1/chat/completions/render`, { method: "POST", headers, body })).status
    }
    try {
      // Cut to five tokens, so that what is left has no image: 400 says that it was read.
      expect(await post(7_000_000, 100_000)).toBe(400)
      expect(await post(9_000_000, 100)).toBe(413)
      expect(await post(1_000, 2_000_000)).toBe(413)
      const text = JSON.stringify({ prompt: "x".repeat(2_000_000) })
      const headers = { "content-type": "application/json" }
      const reply = await fetch(`${server.origin}/v1/completions/render`, { method: "POST", headers, body: text })
      expect(reply.status).toBe(413)
    } finally {
      await server.end()
    }
  }, 60_000)
})
