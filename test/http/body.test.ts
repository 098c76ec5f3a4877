import { afterAll, beforeAll, expect, test } from "bun:test"
import { type BodyFailure, readJsonBody } from "../../src/http/body"
import { BodyBudget } from "../../src/http/body-budget"

const budget = new BodyBudget(1_000_000_000)
const limits = { bodyBytesMax: 1_000, jsonDepthMax: 8, bodySecondsMax: 30 }
let server: Bun.Server<undefined>
const failures: BodyFailure["kind"][] = []

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    maxRequestBodySize: 1 << 30,
    async fetch(request) {
      const body = await readJsonBody(request, limits, budget.claim())
      if (!body.ok) failures.push(body.error.kind)
      return body.ok
        ? new Response(JSON.stringify(body.value, (_, each) => (typeof each === "bigint" ? `${each}n` : each)))
        : new Response(body.error.kind, { status: 400 })
    },
  })
})

afterAll(() => server.stop(true))

async function post(body: BodyInit | null, contentType: string | null = "application/json"): Promise<string> {
  const headers = new Headers()
  if (contentType !== null) headers.set("content-type", contentType)
  const response = await fetch(server.url, { method: "POST", headers, body })
  return response.text()
}

/** A body of unknown length, so that it comes in chunks. */
function chunked(chunks: readonly (string | Uint8Array)[]): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks)
        controller.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk)
      controller.close()
    },
  })
}

test("JSON comes through exactly, whole or in chunks", async () => {
  expect(await post('{"seed":9223372036854775807}')).toBe('{"seed":"9223372036854775807n"}')
  expect(await post(chunked(['{"a":', '"é', '"}']))).toBe('{"a":"é"}')
  const split = new TextEncoder().encode('"é"')
  expect(await post(chunked([split.subarray(0, 2), split.subarray(2)]))).toBe('"é"')
})

test("only application/json is taken, whatever its case and parameters", async () => {
  for (const type of [
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    " application/json ;x",
  ]) {
    expect([type, await post("1", type)]).toEqual([type, "1"])
  }
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonl",
    "application/vnd.x+json",
  ]) {
    expect([type, await post("1", type)]).toEqual([type, "not_json_content_type"])
  }
  expect(await post(new Uint8Array([0x31]), null)).toBe("not_json_content_type")
})

test("a body over the limit is refused by its length, or while it comes", async () => {
  expect(await post(`"${"x".repeat(998)}"`)).toBe(`"${"x".repeat(998)}"`)
  expect(await post(`"${"x".repeat(999)}"`)).toBe("body_too_large")
  expect(await post("x".repeat(20_000_000))).toBe("body_too_large")
  expect(await post(chunked(["x".repeat(600), "x".repeat(600)]))).toBe("body_too_large")
})

test("invalid UTF-8 is refused; a byte order mark is not", async () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xc3],
  ]) {
    expect(await post(new Uint8Array(bytes))).toBe("body_not_utf8")
  }
  expect(await post(new Uint8Array([0xef, 0xbb, 0xbf, 0x31]))).toBe("1")
})

test("empty, broken and deep bodies are told apart", async () => {
  expect(await post("")).toBe("body_not_json")
  expect(await post(null)).toBe("body_not_json")
  expect(await post("{")).toBe("body_not_json")
  expect(await post("[".repeat(9) + "]".repeat(9))).toBe("body_too_deep")
})

test("a client that leaves in the middle of its body is known to be gone, and the server serves on", async () => {
  failures.length = 0
  for (const head of ["content-length: 900", "transfer-encoding: chunked"]) {
    const before = failures.length
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: server.port!,
      socket: { data: () => {} },
    })
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${head}\r\n\r\n3\r\n[1,\r\n`)
    socket.flush()
    // The server must have begun to read before the client leaves.
    while (server.pendingRequests === 0) await new Promise((resolve) => setImmediate(resolve))
    socket.terminate()
    while (failures.length === before) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(failures).toEqual(["client_gone", "client_gone"])
  expect(await post("1")).toBe("1")
})
