import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test"
import { connect, type Socket } from "node:net"
import { DeltaFrame, FramePart } from "../../src/http/delta-frame"
import { type SseWriter, type StreamLoss, sseResponse } from "../../src/http/sse"

/** What a request's path asks for, and what became of it. */
interface Stream {
  readonly writer: SseWriter
  readonly losses: StreamLoss[]
}

const smallLimit = 256 * 1024
/** More than the kernel's buffers and the test's texts together. */
const largeLimit = 64 * 1024 * 1024
let bufferedBytesMax = smallLimit
let server: Bun.Server<undefined>
let keepAliveSeconds = 0
/** Called with each new stream before its response is returned. */
let begin: (writer: SseWriter) => void
let hold: Promise<void> | null
const streams: Stream[] = []
const sockets: Socket[] = []

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    development: false,
    async fetch() {
      if (hold !== null) await hold
      const losses: StreamLoss[] = []
      return sseResponse({
        headers: { "x-extra": "1" },
        bufferedBytesMax,
        keepAliveSeconds,
        onGone: (loss) => losses.push(loss),
        start(writer) {
          streams.push({ writer, losses })
          begin(writer)
        },
      })
    },
  })
})

beforeEach(() => {
  streams.length = 0
  bufferedBytesMax = smallLimit
  keepAliveSeconds = 0
  hold = null
  begin = () => {}
})

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.stop(true)
})

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

/** A raw client, so that chunks can be told apart and reading can stop. */
function open(): Socket & { text: string; ended: boolean; failed: boolean } {
  const socket = Object.assign(connect(server.port!, "127.0.0.1"), { text: "", ended: false, failed: false })
  sockets.push(socket)
  // Looking at the end of a long text that still grows would copy all of it each time.
  let tail = ""
  socket.on("data", (bytes) => {
    const text = bytes.toString()
    socket.text += text
    tail = (tail + text).slice(-lastChunk.length)
    socket.ended = tail === lastChunk || (socket.text.length < 1_000 && hasItsLength(socket.text))
  })
  socket.on("error", () => {
    socket.failed = true
  })
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
  return socket
}

const lastChunk = "\r\n0\r\n\r\n"

/** A stream that ends with its first write comes with a length instead of chunks. */
function hasItsLength(text: string): boolean {
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)
  return length !== null && Buffer.byteLength(text) - text.indexOf("\r\n\r\n") - 4 === Number(length[1])
}

/** Bodies of the chunks, one for each write the server made. */
function chunks(text: string): string[] {
  const bodies: string[] = []
  let at = text.indexOf("\r\n\r\n") + 4
  while (at < text.length) {
    const end = text.indexOf("\r\n", at)
    const length = Number.parseInt(text.slice(at, end), 16)
    if (length === 0) break
    bodies.push(text.slice(end + 2, end + 2 + length))
    at = end + 2 + length + 2
  }
  return bodies
}

async function opened(): Promise<{ readonly client: ReturnType<typeof open>; readonly stream: Stream }> {
  const before = streams.length
  const client = open()
  await until(() => streams.length > before)
  return { client, stream: streams[before]! }
}

test("a stream has the headers of event streams and the given ones", async () => {
  begin = (writer) => writer.end()
  const response = await fetch(server.url)
  expect(response.status).toBe(200)
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
  expect(response.headers.get("cache-control")).toBe("no-cache")
  expect(response.headers.get("x-accel-buffering")).toBe("no")
  expect(response.headers.get("x-extra")).toBe("1")
  expect(await response.text()).toBe("")
})

test("frames of one tick leave as one write, those of the next as another, and what was written before the end arrives", async () => {
  const { client, stream } = await opened()
  for (const tick of [1, 2, 3]) {
    const before = client.text.length
    stream.writer.write(`data: ${tick}a\n\n`)
    stream.writer.write(`data: ${tick}b é\n\n`)
    await until(() => client.text.length > before)
  }
  stream.writer.write("data: [DONE]\n\n")
  stream.writer.end()
  await until(() => client.ended)
  expect(
    chunks(Buffer.from(client.text).toString("latin1")).map((body) => Buffer.from(body, "latin1").toString()),
  ).toEqual([
    "data: 1a\n\ndata: 1b é\n\n",
    "data: 2a\n\ndata: 2b é\n\n",
    "data: 3a\n\ndata: 3b é\n\n",
    "data: [DONE]\n\n",
  ])
  expect(stream.losses).toEqual([])
})

test("frames written before the response leaves are not lost, nor is an end that comes with them", async () => {
  begin = (writer) => {
    writer.write("data: 1\n\n")
    writer.write("data: 2\n\n")
    writer.end()
    writer.write("data: after the end\n\n")
    writer.end()
  }
  expect(await (await fetch(server.url)).text()).toBe("data: 1\n\ndata: 2\n\n")
  expect(streams[0]).toMatchObject({ losses: [], writer: { gone: false } })
})

test("a client that leaves is noticed within 100 ms, once, and writing on is harmless", async () => {
  const { client, stream } = await opened()
  stream.writer.write("data: 1\n\n")
  await until(() => client.text.includes("data: 1"))
  const left = performance.now()
  client.destroy()
  await until(() => stream.losses.length > 0)
  expect(performance.now() - left).toBeLessThan(1_000)
  for (let i = 0; i < 10; i++) {
    stream.writer.write("data: late\n\n")
    await new Promise((resolve) => setImmediate(resolve))
  }
  stream.writer.end()
  expect(stream).toMatchObject({ losses: ["client_left"], writer: { gone: true } })
})

test("a client that left before the response began is noticed too", async () => {
  let release = (): void => {}
  hold = new Promise((resolve) => {
    release = resolve
  })
  const client = open()
  await until(() => server.pendingRequests > 0)
  client.destroy()
  await until(() => server.pendingRequests === 0)
  release()
  await until(() => streams[0] !== undefined && streams[0].losses.length > 0)
  expect(streams[0]!.losses).toEqual(["client_left"])
})

test("a client that leaves while frames are written every tick does no harm", async () => {
  for (let round = 0; round < 20; round++) {
    const { client, stream } = await opened()
    let ticks = 0
    while (stream.losses.length === 0) {
      stream.writer.write(`data: ${"x".repeat(200)}\n\n`)
      if (++ticks === round + 1) client.destroy()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(stream.losses).toEqual(["client_left"])
  }
  begin = (writer) => writer.end()
  expect((await fetch(server.url)).status).toBe(200)
})

const block = `data: ${"x".repeat(16 * 1024)}\n\n`

/** Writes blocks until the kernel takes no more and `held` more units wait in the process. */
async function fill(stream: Stream, blocks: number): Promise<void> {
  for (let i = 0; i < blocks && !stream.writer.gone; i++) {
    stream.writer.write(block)
    if (i % 8 === 7) await new Promise((resolve) => setImmediate(resolve))
  }
}

test("a client that begins to read late gets everything, in order, also behind the end", async () => {
  bufferedBytesMax = largeLimit
  const { client, stream } = await opened()
  client.pause()
  // 24 MB: more than the kernel takes for a client that does not read.
  let written = ""
  for (let i = 0; i < 2_000; i++) {
    const frame = `data: ${i} ${"y".repeat(12_000)}\n\n`
    stream.writer.write(frame)
    written += frame
    if (i % 8 === 7) await new Promise((resolve) => setImmediate(resolve))
  }
  stream.writer.end()
  expect(server.pendingRequests).toBeGreaterThan(0)
  client.resume()
  await until(() => client.ended || client.failed)
  expect(stream.losses).toEqual([])
  expect(chunks(client.text).join("") === written).toBe(true)
}, 20_000)

test("frames with a text are whole for a client that begins to read late, though their buffer goes on", async () => {
  bufferedBytesMax = largeLimit
  const { client, stream } = await opened()
  client.pause()
  // 16 MB in small writes: first the kernel takes them, then Bun holds them, then they wait here.
  const frame = new DeltaFrame("data: ", new FramePart(` ${"z".repeat(1_500)} `), new FramePart("\n\n"))
  let written = ""
  for (let i = 0; i < 10_000; i++) {
    stream.writer.writeDelta(frame, `no. ${i}`, i)
    written += frame.with(`no. ${i}`, i)
    if (i % 4 === 3) await new Promise((resolve) => setImmediate(resolve))
  }
  stream.writer.end()
  expect(server.pendingRequests).toBeGreaterThan(0)
  client.resume()
  await until(() => client.ended || client.failed)
  expect(stream.losses).toEqual([])
  expect(chunks(client.text).join("") === written).toBe(true)
}, 20_000)

test("a client that leaves with frames still held is noticed", async () => {
  bufferedBytesMax = largeLimit
  const { client, stream } = await opened()
  client.pause()
  await fill(stream, 1_024)
  expect(stream.losses).toEqual([])
  client.destroy()
  await until(() => stream.losses.length > 0)
  expect(stream.losses).toEqual(["client_left"])
})

test("clients that never read are cut off in bounded memory, while others are served", async () => {
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  const stalled: Awaited<ReturnType<typeof opened>>[] = []
  for (let i = 0; i < 16; i++) {
    const each = await opened()
    each.client.pause()
    stalled.push(each)
  }
  const sound = await opened()
  // 16 MB for each stream: far over what kernel (4 to 10 MB) and limit (256 KB) hold.
  await Promise.all(stalled.map(({ stream }) => fill(stream, 1_024)))
  await until(() => stalled.every(({ stream }) => stream.losses.length > 0))
  expect(stalled.map(({ stream }) => stream.losses)).toEqual(stalled.map(() => ["client_too_slow"]))
  // The runner holds what earlier files left to be collected: what counts is that it all goes.
  await until(() => {
    Bun.gc(true)
    return (process.memoryUsage.rss() - before) / 1_048_576 < 96
  })
  sound.stream.writer.write("data: still here\n\n")
  await until(() => sound.client.text.includes("still here"))
  sound.stream.writer.end()
  await until(() => sound.client.ended)
  expect(chunks(sound.client.text)).toEqual(["data: still here\n\n"])
  for (const { client } of stalled) client.resume()
  await until(() => stalled.every(({ client }) => client.failed || client.destroyed))
}, 30_000)

test("a silent stream gets comments, a busy one does not, and none comes after the end", async () => {
  keepAliveSeconds = 0.2
  const silent = await opened()
  const busy = await opened()
  const start = performance.now()
  while (!silent.client.text.includes(": keep-alive\n\n: keep-alive\n\n") && chunks(silent.client.text).length < 2) {
    busy.stream.writer.write("data: 1\n\n")
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(performance.now() - start).toBeGreaterThan(300)
  expect(busy.client.text).not.toContain("keep-alive")
  silent.stream.writer.end()
  busy.stream.writer.end()
  await until(() => silent.client.ended && busy.client.ended)
  expect(chunks(silent.client.text)).toEqual([": keep-alive\n\n", ": keep-alive\n\n"])
})

test("256 streams at once each get their own frames", async () => {
  const clients = Array.from({ length: 256 }, open)
  await until(() => streams.length === 256)
  for (let step = 0; step < 20; step++) {
    for (const [i, { writer }] of streams.entries()) writer.write(`data: ${i}.${step}\n\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (const { writer } of streams) writer.end()
  await until(() => clients.every((client) => client.ended))
  const texts = new Set(clients.map((client) => chunks(client.text).join("")))
  expect(texts).toEqual(
    new Set(streams.map((_, i) => Array.from({ length: 20 }, (_, step) => `data: ${i}.${step}\n\n`).join(""))),
  )
  expect(streams.flatMap(({ losses }) => losses)).toEqual([])
})

test("a stream that was ended is not reported as lost when its client leaves", async () => {
  const { client, stream } = await opened()
  stream.writer.write("data: 1\n\n")
  stream.writer.end()
  await until(() => client.ended)
  client.destroy()
  await until(() => server.pendingRequests === 0)
  expect(stream).toMatchObject({ losses: [], writer: { gone: false } })
})
