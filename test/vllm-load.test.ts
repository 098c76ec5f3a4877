/** Many streams at once: no token is lost or mixed up, slots are used again, and nothing is kept of what has ended. */
import { heapStats } from "bun:jsc"
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { outputOf } from "./support/engine-outputs"
import { buildMockEngine, MockEngine } from "./support/mock-engine"
import { seededRandom } from "./support/random"
import { until } from "./support/test-server"
import { startVllmServer, type VllmTestServer } from "./support/vllm-server"

setDefaultTimeout(60_000)

const path = "/v1/completions"

function bodyOf(tokenIds: readonly number[]): object {
  return { prompt: "Hi", max_tokens: 1_000, return_token_ids: true, vllm_xargs: { mock_tokens: tokenIds } }
}

/** Ids that no two streams share in a place. */
function script(stream: number, tokens: number): number[] {
  return Array.from({ length: tokens }, (_, i) => 1_000 + ((stream * 37 + i * 7_919) % 90_000))
}

/** Streams a reply; gives the ids that came, without the end. */
async function stream(server: VllmTestServer, tokenIds: readonly number[]): Promise<number[]> {
  const events = await server.events(path, bodyOf(tokenIds))
  expect(events.at(-1)!.data).toBe("[DONE]")
  const choices = events.slice(0, -1).map((event) => event.json.choices[0])
  expect(choices.at(-1).finish_reason).toBe("stop")
  return choices.flatMap((choice) => choice.token_ids ?? []).slice(0, -1)
}

/** Objects that are alive. */
function alive(): number {
  Bun.gc(true)
  return heapStats().objectCount
}

async function allAtOnce(server: VllmTestServer, streams: number, tokens: number): Promise<void> {
  const scripts = Array.from({ length: streams }, (_, i) => script(i, tokens))
  const came = await Promise.all(scripts.map((tokenIds) => stream(server, tokenIds)))
  expect(came).toEqual(scripts)
}

describe("an engine of our own", () => {
  let server: VllmTestServer
  beforeAll(async () => {
    server = await startVllmServer()
  })
  afterAll(() => server.stop())

  test("serves 256 streams at once, round after round, in the same slots, and nothing is left of them", async () => {
    const engine = await server.attach({ stepMs: 0 })
    await allAtOnce(server, 256, 12)
    engine.adds.length = 0
    server.log.length = 0
    const before = alive()
    for (let round = 0; round < 3; round++) await allAtOnce(server, 256, 12)
    const ids = engine.adds.splice(0).map((add) => String(add.request_id))
    server.log.length = 0
    const slots = ids.map((id) => Number.parseInt(id.slice(-12, -7), 16))
    expect(ids).toHaveLength(3 * 256)
    expect(Math.max(...slots)).toBeLessThan(256)
    expect(new Set(ids).size).toBe(3 * 256)
    // A stream takes dozens while it runs. A timer or a socket may hold the last ones for a moment.
    await until(() => alive() - before < 3 * 256, 10_000)
    expect([engine.live, engine.deaths, await server.counts()]).toEqual([[], [], { running: 0, waiting: 0, inside: 0 }])
    engine.vanish()
    await until(async () => (await server.get("/health")).status === 503)
  })

  test("goes on through storms of clients that leave", async () => {
    const engine = await server.attach({ stepMs: 0 })
    const random = seededRandom(11)
    const staying = Array.from({ length: 16 }, (_, i) => ({
      ids: script(i, 300),
      came: stream(server, script(i, 300)),
    }))
    for (let storm = 0; storm < 4; storm++) {
      const leave = new AbortController()
      const leaving = Array.from({ length: 64 }, async () => {
        const sent = fetch(server.url + path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ ...bodyOf(script(3, 500)), stream: random() < 0.5, ignore_eos: true }),
          signal: leave.signal,
        })
        await sent.then((response) => response.text()).catch(() => null)
      })
      const adds = engine.adds.length
      await until(() => engine.adds.length > adds + 32 * random(), 10_000)
      leave.abort()
      await Promise.all(leaving)
    }
    for (const { ids, came } of staying) expect(await came).toEqual(ids)
    await until(() => engine.live.length === 0, 10_000)
    expect(engine.deaths).toEqual([])
    await until(async () => Object.values(await server.counts()).every((count) => count === 0))
    engine.vanish()
    await until(async () => (await server.get("/health")).status === 503)
  })

  test("is told to drop the stream of a client that does not read, and others go on", async () => {
    const engine = await server.attach({ stepMs: null })
    const { hostname, port } = new URL(server.url)
    const socket = await Bun.connect({ hostname, port: Number(port), socket: { data() {}, error() {} } })
    const body = JSON.stringify({ ...bodyOf([]), max_tokens: 40_000, stream: true, ignore_eos: true })
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    socket.pause()
    await until(() => engine.live.length === 1)
    const requestId = engine.live[0]!
    const tokenIds = Array.from({ length: 2_000 }, (_, i) => 1_000 + i)
    // Each makes some 20 KB of a reply; what is held and what the kernel takes end somewhere.
    for (let sent = 0; engine.aborted.length === 0 && sent < 4_000; sent++) {
      engine.sayOutputs([outputOf({ requestId, tokenIds })])
      if (sent % 20 === 0) await Bun.sleep(0)
    }
    await until(() => engine.aborted.length === 1, 10_000)
    expect(engine.aborted).toEqual([requestId])
    const other = stream(server, [1_000, 1_001])
    await until(() => engine.live.length === 1)
    for (let step = 0; step < 3; step++) engine.step()
    expect(await other).toEqual([1_000, 1_001])
    socket.terminate()
    engine.vanish()
  })
})

const mock = buildMockEngine()
describe.skipIf(!mock.ok)("the stand-in engine", () => {
  test("serves 512 streams at once as fast as it can, and none loses a token", async () => {
    const server = await startVllmServer()
    const flags = ["--step-ms", "0", "--vocab", "100000", "--sndhwm", "0"]
    await using engine = MockEngine.start(mock.ok ? mock.value : "", server.address, flags)
    await server.said("engine 0 is ready")
    for (let round = 0; round < 2; round++) await allAtOnce(server, 512, 64)
    expect(engine.pid).toBeGreaterThan(0)
    expect(await server.counts()).toEqual({ running: 0, waiting: 0, inside: 0 })
    await server.stop()
  })
})
