/** Engines that come, go and return, as the whole client sees them. The engines are ours (test/support/test-engine.ts). */
import { afterEach, describe, expect, test } from "bun:test"
import { connectZmtp } from "../../../src/engine/zmtp/dialer"
import type { ZmtpPeer } from "../../../src/engine/zmtp/peer"
import { freePorts } from "../../support/free-ports"
import { pack } from "../../support/message-pack"
import { submitTo } from "../contract"
import { RecordingReceiver } from "../recording-receiver"
import { frameBytes, handshakeBytes, RawPeer } from "../zmtp/raw-peer"
import { endless, eosTokenId, OpenedEngine, scripted } from "./opened-engine"

const opened: OpenedEngine[] = []

function open(...given: ConstructorParameters<typeof OpenedEngine>): OpenedEngine {
  const front = new OpenedEngine(...given)
  opened.push(front)
  return front
}

afterEach(async () => {
  const deaths = await Promise.all(opened.splice(0).map((front) => front.dispose()))
  expect(deaths.flat()).toEqual([])
})

/** Runs a request to its end. */
async function answers(front: OpenedEngine, tokenIds: readonly number[] = [10, 11]): Promise<void> {
  const { receiver } = submitTo(front.engine, scripted(tokenIds))
  expect(await receiver.ended).toBe("stop")
  expect(receiver.tokenIds).toEqual([...tokenIds, eosTokenId])
}

describe("an engine that starts", () => {
  test("is not ready before it has come, registered and said READY, in either order", async () => {
    for (const holds of [["registration"], ["output"], ["ready"], ["registration", "output", "ready"]] as const) {
      const front = open()
      expect(front.engine.status()).toMatchObject({ alive: false, ready: false, engines: [] })
      const engine = front.dial({ holds })
      await engine.until(() => engine.init !== null)
      await front.said("engine 0 connected and starts")
      const refused = front.engine.submit(scripted([1]), new RecordingReceiver())
      expect(refused).toMatchObject({ ok: false, error: { kind: "engine_retryable" } })
      expect(front.engine.status()).toMatchObject({ alive: false, ready: false })
      for (const hold of [...holds].reverse()) {
        expect(front.news).toEqual([])
        if (hold === "registration") engine.register()
        else if (hold === "output") engine.openOutput()
        else engine.sayReady()
      }
      await front.until(() => front.news.includes("ready 0"))
      expect(front.engine.status()).toMatchObject({ alive: true, ready: true, running: 0, waiting: 0 })
      await answers(front)
    }
  })

  test("may dial before the front end listens", async () => {
    const rpcPort = freePorts(3)
    const early = new OpenedEngine()
    const engine = early.dial({ address: `tcp://127.0.0.1:${rpcPort}` })
    const front = open({ rpcPort })
    await front.until(() => front.news.includes("ready 0"))
    await answers(front)
    engine.vanish()
    await early.dispose()
  })

  test("may say nothing of itself, or something that is no map", async () => {
    const front = open()
    await front.attach({ facts: null })
    await answers(front)
    expect(front.engine.status().engines[0]).toMatchObject({ cacheBlockTokens: null, lora: null })
    const other = open()
    const engine = other.dial({ holds: ["registration"] })
    await engine.until(() => engine.init !== null)
    await other.said("connected")
    engine.sendInput(pack([1, 2]))
    await other.until(() => other.news.length > 0)
    expect(other.news).toEqual(["lost 0: its registration cannot be read: a map was expected"])
  })

  test("tells its window, and no longer prompt goes to it", async () => {
    const windows: number[] = []
    const front = open({ dataParallelSize: 2 }, { window: (tokens) => windows.push(tokens) })
    const first = await front.attach({ facts: { max_model_len: 3 } })
    await front.said("the window is engine 0's, 3 tokens, not 4096")
    const refused = front.engine.submit(scripted([1]), new RecordingReceiver())
    expect(refused).toMatchObject({ ok: false, error: { kind: "engine_validation", param: "prompt" } })
    await front.attach({ rank: 1, facts: { max_model_len: 5 } })
    first.vanish()
    await front.until(() => front.news.some((line) => line.startsWith("lost 0")))
    await front.attach({ facts: { max_model_len: 9_999 } })
    // The smallest that is known; never more than the model's own.
    expect(windows).toEqual([3, 3, 5])
  })

  test("is sent away when its rank is none, or its greeting is no HELLO", async () => {
    const front = open({ dataParallelSize: 2 })
    const stranger = front.dial({ rank: 2 })
    await front.said("unexpected data-parallel rank")
    stranger.vanish()
    for (const words of [pack(7), pack({ status: 1 }), Uint8Array.of(0xc1)]) {
      const raw = await RawPeer.dial(front.engine.address)
      raw.write(handshakeBytes("DEALER", Uint8Array.of(1, 0)), frameBytes(0, words))
      await raw.until(() => raw.isClosed)
    }
    await front.said("engine 1 sent a message that cannot be read")
    await front.attach({ rank: 1 })
    await answers(front)
  })

  test("leaves while it starts, and another one comes", async () => {
    const front = open()
    const first = front.dial({ holds: ["ready"] })
    await front.said("connected and starts")
    first.vanish()
    await front.until(() => front.news.length > 0)
    expect(front.news.map((line) => line.split(":")[0])).toEqual(["lost 0"])
    await front.attach()
    await answers(front)
  })

  test("may lose the handshake connection between HELLO and READY", async () => {
    for (const isConnected of [false, true]) {
      const front = open()
      const engine = front.dial({ holds: ["ready"] })
      await engine.until(() => engine.init !== null && (!isConnected || engine.isConnected))
      engine.blink("handshake")
      engine.sayReady()
      await front.until(() => front.news.includes("ready 0"))
      await answers(front)
    }
  })

  test("and gives the first call no answer in time is cut off, dials again, and is asked again", async () => {
    const front = open({ utilityTimeoutMs: 50 })
    let isAnswering = false
    const engine = front.dial({ answer: (callId) => (isAnswering ? [callId, null, [null, false]] : undefined) })
    await front.until(() => front.news.length >= 2)
    const lost = "lost 0: the engine did not answer is_sleeping within 50 ms"
    expect(front.news.slice(0, 2)).toEqual([lost, lost])
    expect(front.engine.status().ready).toBe(false)
    isAnswering = true
    await front.until(() => front.news.includes("ready 0"))
    await answers(front)
    expect(engine.calls.length).toBeGreaterThan(2)
  })

  test("works when its answer came, whether or not it can be read", async () => {
    for (const answer of [
      (callId: number) => [callId, 7, null],
      (callId: number) => [callId, null, [null]],
      (callId: number) => [callId, null, ["type", false, "more"]],
      () => ["no number", null, null],
      () => "no answer",
    ]) {
      const front = open()
      await front.attach({ answer })
      expect(front.log.some((line) => line.startsWith("engine 0: an answer cannot be read"))).toBe(true)
      await answers(front)
    }
  })
})

describe("a second engine of a rank", () => {
  test("is sent away while the first one lives, which goes on", async () => {
    const front = open()
    const first = await front.attach()
    const running = submitTo(front.engine, endless())
    const second = front.dial()
    await front.said("a second engine 0 came while the first one lives")
    await first.until(() => first.live.length === 1)
    expect([front.news, second.init, running.receiver.error]).toEqual([["ready 0"], null, null])
    await answers(front)
  })

  test("takes its place when the first one is gone, and its counters go on", async () => {
    const front = open()
    const first = await front.attach()
    await answers(front)
    first.vanish()
    await front.until(() => front.news.length === 2)
    expect(front.engine.status()).toMatchObject({ alive: false, ready: false })
    const second = await front.attach()
    await answers(front)
    expect([first.adds.length, second.adds.length]).toEqual([1, 1])
    expect(front.news.map((line) => line.split(":")[0])).toEqual(["ready 0", "lost 0", "ready 0"])
  })

  test("takes its place when the first one answers no PING, once however many there are", async () => {
    const front = open()
    const frozen = await RawPeer.dial(front.engine.address)
    frozen.write(
      handshakeBytes("DEALER", Uint8Array.of(0, 0)),
      frameBytes(0, pack({ status: "HELLO", local: false, headless: true })),
    )
    await front.said("connected and starts")
    const knocking = [front.dial(), front.dial(), front.dial()]
    await front.until(() => front.news.includes("ready 0"))
    await front.said("was sent away")
    await answers(front)
    expect(knocking.filter((engine) => engine.adds.length > 0)).toHaveLength(1)
    expect(front.news).toEqual(["lost 0: another process took its place", "ready 0"])
    frozen.close()
  })
})

describe("a network that fails for a moment", () => {
  for (const which of [["input"], ["output"], ["input", "output"]] as const) {
    test(`takes ${which.join(" and ")}: what ran fails, is aborted, and the engine is back without a HELLO`, async () => {
      const front = open()
      const engine = await front.attach()
      const { receiver } = submitTo(front.engine, endless())
      await engine.until(() => engine.live.length === 1)
      const [id] = engine.live
      engine.blink(...which)
      expect(await receiver.ended).toBe("engine_dead")
      await front.until(() => front.news.filter((line) => line === "ready 0").length === 2)
      await engine.until(() => engine.aborted.length > 0)
      expect([engine.aborted, engine.live]).toEqual([[id!], []])
      await answers(front)
    })
  }

  test("takes the connections again and again while the engine is on its way back", async () => {
    const front = open()
    const engine = await front.attach()
    for (let round = 0; round < 10; round++) {
      await engine.until(() => engine.isConnected)
      engine.blink(round % 2 === 0 ? "input" : "output")
    }
    // It may take a request before it notices the last of these.
    let end: string | null = null
    while (end !== "stop") {
      await front.until(() => front.engine.status().ready)
      end = await submitTo(front.engine, scripted([10])).receiver.ended
    }
  })

  test("tells the engine of aborts that had not left", async () => {
    const front = open()
    const engine = await front.attach()
    const { sequence } = submitTo(front.engine, endless())
    await engine.until(() => engine.live.length === 1)
    const [id] = engine.live
    // The abort waits for the end of the tick in which the connection is lost.
    const link = linkOf(front)
    sequence.abort()
    link.input!.close()
    await front.until(() => front.news.filter((line) => line === "ready 0").length === 2)
    await engine.until(() => engine.aborted.length > 0)
    expect(engine.aborted).toEqual([id!])
  })
})

/** The client's own view of engine 0, to break it at a moment that no peer can choose. */
function linkOf(front: OpenedEngine): { readonly input: ZmtpPeer | null } {
  // Private fields: nothing outside can close a connection in the same tick.
  const inner = front.engine as unknown as {
    readonly pool: { readonly links: readonly { readonly input: ZmtpPeer | null }[] }
  }
  return inner.pool.links[0]!
}

describe("strange connections", () => {
  test("beside those of an engine are closed, and the engine goes on", async () => {
    const front = open()
    const engine = await front.attach()
    const { inputs, outputs } = engine.init.addresses
    for (const [address, type] of [
      [inputs[0], "DEALER"],
      [outputs[0], "PUSH"],
    ]) {
      const raw = await RawPeer.dial(address)
      raw.write(handshakeBytes(type, type === "DEALER" ? Uint8Array.of(0, 0) : null))
      await raw.until(() => raw.isClosed)
    }
    await answers(front)
    expect(front.news).toEqual(["ready 0"])
  })

  test("to the input of another engine are closed", async () => {
    const front = open({ dataParallelSize: 2 })
    const engine = front.dial({ holds: ["ready"] })
    await engine.until(() => engine.init !== null)
    const raw = await RawPeer.dial(engine.init.addresses.inputs[0])
    raw.write(handshakeBytes("DEALER", Uint8Array.of(1, 0)))
    await raw.until(() => raw.isClosed)
    await front.said("somebody else than engine 0")
    engine.sayReady()
    await front.until(() => front.news.includes("ready 0"))
    await answers(front)
  })
})

describe("addresses", () => {
  for (const [address, host] of [
    ["127.0.0.1", "127.0.0.1"],
    ["0.0.0.0", "127.0.0.1"],
    ["::1", "[::1]"],
    ["::", "[::1]"],
  ] as const) {
    test(`of data sockets at ${address} are those that the engine can dial`, async () => {
      for (const isMixtureOfExperts of [false, true]) {
        const front = open({ address, dataParallelSize: isMixtureOfExperts ? 2 : 1 }, { isMixtureOfExperts })
        const port = front.engine.address.slice(front.engine.address.lastIndexOf(":") + 1)
        const at = { address: `tcp://${host}:${port}` }
        const engines = isMixtureOfExperts ? [front.dial(at), front.dial({ ...at, rank: 1 })] : [front.dial(at)]
        await front.until(() => front.news.length === engines.length)
        const { coordinator_input, coordinator_output, ...data } = engines[0]!.init.addresses
        const told = [...data.inputs, ...data.outputs, coordinator_input, coordinator_output].filter(
          (each) => each !== null,
        )
        expect(told.map((each: string) => each.replace(/\d+$/, ""))).toEqual(told.map(() => `tcp://${host}:`))
        await answers(front)
      }
    })
  }

  test("that are taken are a failure with the address", () => {
    const front = open()
    const port = Number(front.engine.address.split(":").at(-1))
    expect(() => open({ rpcPort: port })).toThrow(`tcp://127.0.0.1:${port}`)
  })
})

test("a dialler that never greets costs nothing", async () => {
  const front = open()
  const silent = connectZmtp({
    address: front.engine.address,
    socketType: "DEALER",
    identity: Uint8Array.of(0, 0),
    handler: { ready() {}, message() {}, closed() {} },
  })
  await front.attach()
  await answers(front)
  if (silent.ok) silent.value.close()
})
