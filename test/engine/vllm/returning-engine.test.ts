/** Engines that outlive the process which they registered with, and serve the next one without a HELLO. */
import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { VllmConfig } from "../../../src/config"
import type { VllmPorts } from "../../../src/engine/vllm/client"
import { connectZmtp } from "../../../src/engine/zmtp/dialer"
import { outputOf } from "../../support/engine-outputs"
import { freePorts } from "../../support/free-ports"
import type { TestEngine, TestEngineOptions } from "../../support/test-engine"
import { until } from "../../support/test-server"
import { submitTo } from "../contract"
import { RecordingReceiver } from "../recording-receiver"
import { endless, eosTokenId, OpenedEngine, scripted } from "./opened-engine"

const folder = mkdtempSync(join(tmpdir(), "sluice-engines-"))
afterAll(() => rmSync(folder, { recursive: true }))
let folders = 0

const opened: OpenedEngine[] = []
afterEach(async () => {
  const deaths = await Promise.all(opened.splice(0).map((front) => front.dispose()))
  expect(deaths.flat()).toEqual([])
})

/** A front end, and those that take its place one after the other. */
class Succession {
  readonly rpcPort = freePorts(5)
  readonly recordsDir = join(folder, `${folders++}`)
  private readonly config: Partial<VllmConfig>
  private readonly ports: Partial<VllmPorts>

  constructor(config: Partial<VllmConfig> = {}, ports: Partial<VllmPorts> = {}) {
    this.config = config
    this.ports = ports
  }

  open(config: Partial<VllmConfig> = {}, ports: Partial<VllmPorts> = {}): OpenedEngine {
    const { rpcPort, recordsDir } = this
    const front = new OpenedEngine({ rpcPort, recordsDir, ...this.config, ...config }, { ...this.ports, ...ports })
    opened.push(front)
    return front
  }
}

/** Ends a front end as SIGKILL does: its connections close, and no engine is told anything. */
function kill(front: OpenedEngine): void {
  // Private: nothing outside can close the sockets without the last messages.
  const inner = front.engine as unknown as { readonly pool: { close(reason: string): void } }
  inner.pool.close("it was killed")
}

/** Runs a request to its end. */
async function answers(front: OpenedEngine, rank: number | null = null): Promise<void> {
  const { receiver } = submitTo(front.engine, { ...scripted([10, 11]), dataParallelRank: rank })
  expect(await receiver.ended).toBe("stop")
  expect(receiver.tokenIds).toEqual([10, 11, eosTokenId])
}

/** An engine that says again what it said when it registered. */
const willing = (facts: { readonly [name: string]: number | string }): Partial<TestEngineOptions> => ({
  answer: (callId, method) => [callId, null, [null, method === "_make_ready_response" ? facts : false]],
})

const backLine = "engine 0 is back from an earlier process of this server"

describe("an engine whose server was killed", () => {
  test("serves the next one: what ran is aborted, and nothing is loaded or registered again", async () => {
    const succession = new Succession()
    const first = succession.open()
    const engine = await first.attach({ facts: { max_model_len: 3_900 } })
    const running = [submitTo(first.engine, endless()), submitTo(first.engine, endless())]
    await until(() => engine.live.length === 2 && running.every(({ receiver }) => receiver.tokenIds.length > 2))
    const old = [...engine.live]
    kill(first)
    await engine.until(() => engine.lost === 2)
    const windows: number[] = []
    const second = succession.open({}, { window: (tokens) => windows.push(tokens) })
    expect(second.engine.status()).toMatchObject({ alive: false, ready: false })
    await second.until(() => second.news.includes("ready 0"))
    await engine.until(() => engine.aborted.length === 2)
    expect([engine.aborted.toSorted(), engine.live]).toEqual([old.toSorted(), []])
    expect(second.log).toContain("engine 0 sends what an earlier process of this server asked for: that is aborted")
    expect(second.log).toContain(`${backLine}, vLLM 0.33.0, window 3900, 64 sequences at once`)
    expect(windows.at(-1)).toBe(3_900)
    expect(second.engine.status()).toMatchObject({ alive: true, ready: true, engines: [{ cacheBlocks: 1_000 }] })
    const long = second.engine.submit(
      { ...scripted([1]), promptTokenIds: new Uint32Array(3_900) },
      new RecordingReceiver(),
    )
    expect(long).toMatchObject({ ok: false, error: { kind: "engine_validation", param: "prompt" } })
    await answers(second)
    expect(engine.adds).toHaveLength(3)
  })

  test("serves the one after that, and one that was stopped in order", async () => {
    const succession = new Succession()
    let front = succession.open()
    const engine = await front.attach()
    for (const end of [kill, kill, (each: OpenedEngine) => each.engine.close()]) {
      await answers(front)
      await end(front)
      await engine.until(() => !engine.isConnected)
      front = succession.open()
      await front.until(() => front.news.includes("ready 0"))
    }
    await answers(front)
    expect(engine.adds).toHaveLength(4)
  })

  test("is lost, comes back and is replaced as any other", async () => {
    const succession = new Succession({ hangTimeoutMs: 200 })
    const first = succession.open()
    const engine = await first.attach()
    kill(first)
    const second = succession.open()
    await second.until(() => second.news.includes("ready 0"))
    engine.blink("input")
    await second.said("engine 0 is back")
    await second.until(() => second.news.length === 3)
    const hung = submitTo(second.engine, endless())
    await engine.until(() => engine.live.length === 1)
    engine.hang()
    expect(await hung.receiver.ended).toBe("engine_dead")
    const heir = await second.attach()
    expect(second.log.filter((line) => line.startsWith("engine 0 is ready"))).toHaveLength(1)
    await answers(second)
    expect(heir.adds).toHaveLength(1)
    kill(second)
    engine.vanish()
    const third = succession.open()
    await third.until(() => third.news.includes("ready 0"))
    await answers(third)
    expect(heir.adds).toHaveLength(2)
  })

  test("tells itself what it is, whatever was kept of another one", async () => {
    for (const recordsDir of [null, undefined] as const) {
      const succession = new Succession(recordsDir === null ? { recordsDir } : {})
      const first = succession.open()
      await first.attach({
        facts: { max_model_len: 3_000 },
        ...willing({ max_model_len: 200, vllm_version: "0.32.0" }),
      })
      kill(first)
      const windows: number[] = []
      const second = succession.open({}, { window: (tokens) => windows.push(tokens) })
      await second.said(`${backLine}, vLLM 0.32.0, window 200`)
      expect(windows.at(-1)).toBe(200)
    }
  })

  test("has the model's window when nobody tells what it is, and that is said", async () => {
    for (const spoil of ["{}", "null", "x", '{"form":1}', " ".repeat(70_000), null]) {
      const succession = new Succession()
      const first = succession.open()
      await first.attach()
      kill(first)
      const [name] = readdirSync(succession.recordsDir)
      expect(name).toBe(`127.0.0.1_${succession.rpcPort + 1}-rank0.json`)
      const path = join(succession.recordsDir, name!)
      const good = readFileSync(path, "utf8")
      writeFileSync(path, spoil ?? good.replace('"rank":0', '"rank":1'))
      const second = succession.open()
      await second.until(() => second.news.includes("ready 0"))
      expect(second.log).toContain(
        "engine 0 does not say what it is: its window is taken to be the model's, 4096 tokens",
      )
      await answers(second)
    }
  })

  test("is kept out when it was started for another model, and one that is started again is taken", async () => {
    const succession = new Succession({}, { modelNames: ["acme/a", "/models/a"] })
    const first = succession.open()
    const engine = await first.attach()
    kill(first)
    for (const [ports, why] of [
      [{ modelNames: ["acme/b", "/models/b"] }, "it was started for acme/a, and acme/b is served now"],
      [{ vocabSize: 301 }, "it was started for a vocabulary of 300 tokens, and one of 301 is served now"],
    ] as const) {
      const other = succession.open({}, ports)
      const refusal = `engine 0 served an earlier process of this server and must be started again: ${why}`
      await other.said(refusal)
      await engine.until(() => engine.isConnected)
      expect([other.news, other.engine.status().engines]).toEqual([[], []])
      if ("vocabSize" in ports) {
        const heir = await other.attach()
        await answers(other)
        expect([heir.adds.length, engine.adds.length, engine.calls.length]).toEqual([1, 0, 1])
        heir.vanish()
      }
      kill(other)
      await engine.until(() => !engine.isConnected)
      expect(other.log.filter((line) => line === refusal)).toHaveLength(1)
    }
  })

  test("keeps its own name or its own folder, and is the same model", async () => {
    const succession = new Succession({}, { modelNames: ["./a", "/models/a"] })
    const first = succession.open()
    await first.attach()
    kill(first)
    const second = succession.open({}, { modelNames: ["/models/a", "/models/a"] })
    await second.until(() => second.news.includes("ready 0"))
    await answers(second)
  })

  test("is one of several, each at ports of its own", async () => {
    const succession = new Succession({ dataParallelSize: 2 })
    const first = succession.open()
    const engines = [await first.attach(), await first.attach({ rank: 1, facts: { max_model_len: 50 } })] as const
    kill(first)
    engines[0].vanish()
    const second = succession.open()
    await second.until(() => second.news.includes("ready 1"))
    await answers(second)
    expect(second.log.some((line) => line.startsWith("engine 1 is back") && line.includes("window 50"))).toBe(true)
    const heir = await second.attach()
    await answers(second, 0)
    await answers(second, 1)
    expect([heir.adds.length, engines[1].adds.length]).toEqual([1, 2])
  })

  test("steps together with others: it is told apart, and must be started again", async () => {
    const succession = new Succession({ dataParallelSize: 2 }, { isMixtureOfExperts: true })
    const first = succession.open()
    const pair = (front: OpenedEngine): TestEngine[] => [front.dial(), front.dial({ rank: 1 })]
    const engines = pair(first)
    await first.until(() => first.news.length === 2)
    kill(first)
    for (const coordinator of ["auto", "off"] as const) {
      const next = succession.open({ coordinator })
      for (const rank of [0, 1]) {
        await next.said(
          `engine ${rank} served an earlier process of this server and must be started again: engines that step ` +
            "together begin together",
        )
      }
      expect(next.news).toEqual([])
      kill(next)
      await engines[0]!.until(() => engines.every((engine) => !engine.isConnected))
    }
    for (const engine of engines) engine.vanish()
    const last = succession.open()
    const heirs = pair(last)
    await last.until(() => last.news.length === 2)
    await answers(last)
    expect(heirs.flatMap((engine) => engine.adds)).toHaveLength(1)
  })
})

describe("an engine that was loading its model when its server was killed", () => {
  test("registers with the next one", async () => {
    const succession = new Succession()
    const first = succession.open()
    const engine = first.dial({ holds: ["registration", "output", "ready"], facts: { max_model_len: 70 } })
    await engine.until(() => engine.init !== null)
    kill(first)
    const second = succession.open()
    engine.register()
    engine.openOutput()
    engine.sayReady()
    await second.said("window 70")
    await second.until(() => second.news.includes("ready 0"))
    expect(engine.calls.map(({ method }) => method)).toEqual(["is_sleeping"])
    await answers(second)
  })
})

describe("an engine that lost its rank", () => {
  test("dials while its successor loads, and is left out", async () => {
    const succession = new Succession()
    const first = succession.open()
    const old = await first.attach()
    // Cut off for long enough that another one was started.
    kill(first)
    await old.until(() => !old.isConnected)
    const second = succession.open()
    await second.until(() => second.news.includes("ready 0"))
    old.hang()
    kill(second)
    const third = succession.open()
    const heir = third.dial({ holds: ["registration", "output", "ready"] })
    await heir.until(() => heir.init !== null)
    await old.until(() => old.isConnected)
    heir.register()
    heir.openOutput()
    heir.sayReady()
    await third.until(() => third.news.includes("ready 0"))
    await answers(third)
    await third.said("engine 0 opened a connection twice")
    old.wake()
    const dials = old.lost
    await old.until(() => old.lost > dials + 3)
    await answers(third)
    expect([heir.adds.length, old.adds.length]).toEqual([2, 0])
    // It dials for ever, and is spoken of once.
    expect(third.log.filter((line) => line.includes("opened a connection twice"))).toHaveLength(1)
  })

  test("does not read any more: a new one takes its place at once", async () => {
    const succession = new Succession()
    const first = succession.open()
    const deaf = await first.attach()
    deaf.deafen()
    await first.until(() => first.news.length === 2)
    kill(first)
    const second = succession.open()
    await second.said("engine 0 served an earlier process of this server; it is asked whether it works")
    await second.said("engine 0 of an earlier process opens no input connection: it must be started again")
    expect(second.engine.status()).toMatchObject({ alive: false, ready: false })
    await second.attach()
    await answers(second)
  })
})

describe("the ports for data", () => {
  test("are free ones where the usual ones are taken, and that is said", async () => {
    const succession = new Succession()
    const holder = Bun.listen({ hostname: "127.0.0.1", port: succession.rpcPort + 2, socket: { data() {} } })
    const front = succession.open()
    expect(front.log).toEqual([
      `engine 0 gets free ports and will not outlive this process: tcp://127.0.0.1:${succession.rpcPort + 2}: EADDRINUSE; ` +
        "--engine-data-port says where, two ports for each engine",
    ])
    expect(front.engine.isOutlived).toBe(false)
    await front.attach()
    await answers(front)
    holder.stop(true)
    expect(readdirSync(folder)).not.toContain(succession.recordsDir)
  })

  test("that were asked for and are taken are a failure", () => {
    const succession = new Succession()
    const front = succession.open({ dataPort: succession.rpcPort + 3 })
    expect(front.engine.isOutlived).toBe(true)
    const other = new Succession()
    expect(() => other.open({ dataPort: succession.rpcPort + 2 })).toThrow(
      `cannot listen for data of engine 0 on tcp://127.0.0.1:${succession.rpcPort + 3}: EADDRINUSE`,
    )
    expect(() => other.open({ dataPort: 65_535 })).toThrow("a port is at most 65535")
  })

  test("may stand anywhere, also where the handshake has a free one", async () => {
    const succession = new Succession({ rpcPort: 0 })
    const dataPort = succession.rpcPort
    const first = succession.open({ dataPort })
    const engine = await first.attach()
    expect(engine.init.addresses).toMatchObject({
      inputs: [`tcp://127.0.0.1:${dataPort}`],
      outputs: [`tcp://127.0.0.1:${dataPort + 1}`],
    })
    kill(first)
    const second = succession.open({ dataPort })
    await second.until(() => second.news.includes("ready 0"))
    await answers(second)
  })

  test("may be dialled by a name, which outlives an address", async () => {
    const succession = new Succession({ address: "0.0.0.0", dataAddress: "localhost" })
    const at = `tcp://127.0.0.1:${succession.rpcPort}`
    const first = succession.open()
    const engine = await first.attach({ address: at })
    expect(engine.init.addresses).toMatchObject({
      inputs: [`tcp://localhost:${succession.rpcPort + 1}`],
      outputs: [`tcp://localhost:${succession.rpcPort + 2}`],
    })
    kill(first)
    const second = succession.open({ address: "127.0.0.1" })
    await second.until(() => second.news.includes("ready 0"))
    await answers(second)
  })

  test("are free ones where the operator says so, and for engines that are started here", async () => {
    const succession = new Succession()
    const none = succession.open({ dataPort: 0 })
    expect(none.engine.isOutlived).toBe(false)
    const command = { words: ["true"], engines: 1 }
    const mixed = new Succession().open({ command, dataParallelSize: 2 })
    const [here, elsewhere] = [await mixed.attach(), await mixed.attach({ rank: 1 })]
    const first = Number(mixed.engine.address.split(":").at(-1)) + 1
    expect(elsewhere.init.addresses.inputs).toEqual([`tcp://127.0.0.1:${first + 2}`])
    expect(here.init.addresses.inputs).not.toEqual([`tcp://127.0.0.1:${first}`])
    expect(mixed.engine.isOutlived).toBe(true)
  })

  test("take no notice of somebody who only connects", async () => {
    const succession = new Succession()
    const front = succession.open()
    const handler = { ready() {}, message() {}, closed() {} }
    const strangers = [
      connectZmtp({
        address: `tcp://127.0.0.1:${succession.rpcPort + 1}`,
        socketType: "DEALER",
        identity: Uint8Array.of(7, 7),
        handler,
      }),
      connectZmtp({ address: `tcp://127.0.0.1:${succession.rpcPort + 2}`, socketType: "PUSH", handler }),
    ]
    await front.said("an input connection of somebody else than engine 0 was closed")
    await front.said("it is asked whether it works")
    const engine = await front.attach()
    engine.sayOutputs([outputOf({ requestId: "nobody", tokenIds: [1] })])
    await answers(front)
    for (const each of strangers) if (each.ok) each.value.close()
  })
})
