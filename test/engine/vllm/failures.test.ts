/** What becomes of sequences when an engine breaks, one way after the other. */
import { afterEach, describe, expect, test } from "bun:test"
import { RequestIds } from "../../../src/engine/vllm/request-id"
import type { EngineSequence } from "../../../src/ir/engine"
import { outputOf } from "../../support/engine-outputs"
import { intAs, type Packable, pack } from "../../support/message-pack"
import type { TestEngine } from "../../support/test-engine"
import { until } from "../../support/test-server"
import { requestOf, samplingOf, submitTo } from "../contract"
import { RecordingReceiver } from "../recording-receiver"
import { endless, eosTokenId, OpenedEngine, scripted } from "./opened-engine"

let front: OpenedEngine
afterEach(async () => {
  expect(await front.dispose()).toEqual([])
  expect(broken.splice(0).flatMap((receiver) => receiver.brokenRules)).toEqual([])
})

const broken: RecordingReceiver[] = []
function submit(request = endless()): { readonly receiver: RecordingReceiver; readonly sequence: EngineSequence } {
  const submitted = submitTo(front.engine, request)
  broken.push(submitted.receiver)
  return submitted
}

async function answers(): Promise<void> {
  const { receiver } = submit(scripted([10, 11]))
  expect(await receiver.ended).toBe("stop")
  expect(receiver.tokenIds).toEqual([10, 11, eosTokenId])
}

/** An engine that steps only when it is told to, and has these requests. */
async function withRunning(count: number): Promise<{ engine: TestEngine; running: ReturnType<typeof submit>[] }> {
  front = new OpenedEngine()
  const engine = await front.attach({ stepMs: null })
  const running = Array.from({ length: count }, () => submit())
  await engine.until(() => engine.live.length === count)
  return { engine, running }
}

describe("an engine that is lost", () => {
  const ways: readonly (readonly [string, (engine: TestEngine) => void, RegExp])[] = [
    ["says ENGINE_CORE_DEAD", (engine) => engine.die(), /fatal failure/],
    ["is killed", (engine) => engine.vanish(), /connection closed/],
    ["goes deaf", (engine) => engine.deafen(), /input connection closed/],
    ["sends no MessagePack", (engine) => engine.say(Uint8Array.of(0xc1)), /cannot be read/],
    ["sends half a message", (engine) => engine.say(pack([0, [], null]).subarray(0, 2)), /cannot be read/],
    ["sends an empty frame", (engine) => engine.say(new Uint8Array(0)), /cannot be read/],
    ["sends text", (engine) => engine.say(new TextEncoder().encode("ENGINE_CORE_ALIVE")), /cannot be read/],
    ["sends outputs that are none", (engine) => engine.sayOutputs([1, "x"]), /cannot be read/],
  ]
  for (const [way, breakIt, why] of ways) {
    test(`because it ${way} fails what runs at once, and nothing else is ready`, async () => {
      const { engine, running } = await withRunning(3)
      breakIt(engine)
      for (const { receiver } of running) {
        expect(await receiver.ended).toBe("engine_dead")
        expect(receiver.error?.message).toMatch(why)
      }
      expect(front.engine.status()).toMatchObject({ running: 0, waiting: 0 })
      // Its rank is taken by the next one, or it dials again itself; either way it is asked before it gets requests.
      expect(front.news.slice(0, 2)).toEqual(["ready 0", `lost 0: ${front.news[1]!.slice("lost 0: ".length)}`])
      const refused = front.engine.submit(scripted([1]), new RecordingReceiver())
      expect(refused).toMatchObject({ ok: false, error: { kind: "engine_retryable" } })
    })
  }

  test("sends what cannot be read, dials again, and is used again with its old sequences aborted", async () => {
    const { engine, running } = await withRunning(2)
    const ids = [...engine.live]
    engine.say(Uint8Array.of(0xc1))
    await Promise.all(running.map(({ receiver }) => receiver.ended))
    await front.until(() => front.news.length === 3)
    await engine.until(() => engine.aborted.length === 2)
    expect(engine.aborted.toSorted()).toEqual(ids.toSorted())
    const next = submit(scripted([]))
    await engine.until(() => engine.live.length === 1)
    engine.step()
    expect(await next.receiver.ended).toBe("stop")
  })

  test("ends what runs with abort at SIGTERM, and is gone then", async () => {
    const { engine, running } = await withRunning(3)
    engine.terminate()
    expect(await Promise.all(running.map(({ receiver }) => receiver.ended))).toEqual(["abort", "abort", "abort"])
    await front.until(() => front.news.length === 2)
    expect(front.engine.status()).toMatchObject({ alive: false, ready: false, running: 0, waiting: 0 })
    await front.attach()
    await answers()
  })

  test("takes only its own sequences with it, and the others go on", async () => {
    front = new OpenedEngine({ dataParallelSize: 2 })
    const [first, second] = [await front.attach(), await front.attach({ rank: 1 })]
    const running = [submit(), submit(), submit(), submit()]
    await first.until(() => first.live.length === 2)
    await second.until(() => second.live.length === 2)
    first.vanish()
    expect(await Promise.all([running[0]!.receiver.ended, running[2]!.receiver.ended])).toEqual([
      "engine_dead",
      "engine_dead",
    ])
    expect(front.engine.status()).toMatchObject({ alive: true, ready: true, running: 2 })
    for (let i = 0; i < 3; i++) await answers()
    expect([running[1]!.receiver.error, running[3]!.receiver.error]).toEqual([null, null])
    const at = { ...scripted([1]), dataParallelRank: 0 }
    expect(front.engine.submit(at, new RecordingReceiver())).toMatchObject({
      ok: false,
      error: { kind: "engine_retryable" },
    })
    await front.attach()
    const back = submit(at)
    expect(await back.receiver.ended).toBe("stop")
  })
})

describe("an engine that hangs", () => {
  test("is noticed by its silence, fails what runs, and is used again when it wakes", async () => {
    front = new OpenedEngine({ hangTimeoutMs: 200 })
    const engine = await front.attach()
    const { receiver } = submit()
    await engine.until(() => engine.live.length === 1)
    const ids = [...engine.live]
    engine.hang()
    expect(await receiver.ended).toBe("engine_dead")
    expect(receiver.error?.message).toContain("engine 0 hangs: it has not answered for")
    expect(front.engine.status()).toMatchObject({ alive: false, ready: false, running: 0 })
    expect(front.engine.submit(scripted([1]), new RecordingReceiver())).toMatchObject({
      ok: false,
      error: { kind: "engine_retryable" },
    })
    engine.wake()
    await front.until(() => front.news.length === 3)
    expect(front.news.map((line) => line.split(":")[0])).toEqual(["ready 0", "lost 0", "ready 0"])
    await engine.until(() => engine.aborted.length === 1)
    expect([engine.aborted, engine.live]).toEqual([ids, []])
    await answers()
  })

  test("makes room for another process at once", async () => {
    front = new OpenedEngine({ hangTimeoutMs: 200 })
    const engine = await front.attach()
    const { receiver } = submit()
    await engine.until(() => engine.live.length === 1)
    engine.hang()
    await receiver.ended
    await front.attach()
    await answers()
    engine.wake()
    await answers()
    expect(engine.adds).toHaveLength(1)
  })

  test("and one that only has nothing to say are told apart", async () => {
    front = new OpenedEngine({ hangTimeoutMs: 200 })
    // It computes nothing, but its loop answers.
    const engine = await front.attach({ stepMs: null })
    const { receiver, sequence } = submit()
    // More than two timeouts of silence.
    const calls = engine.calls.length
    await engine.until(() => engine.calls.length >= calls + 10)
    expect([receiver.error, front.engine.status().ready, front.news]).toEqual([null, true, ["ready 0"]])
    sequence.abort()
  })

  test("and one whose answers cannot be read are told apart", async () => {
    front = new OpenedEngine({ hangTimeoutMs: 200 })
    const engine = await front.attach({ stepMs: null, answer: (callId) => [callId, null, []] })
    const { receiver, sequence } = submit()
    const calls = engine.calls.length
    await engine.until(() => engine.calls.length >= calls + 10)
    expect([receiver.error, front.engine.status().ready, front.news]).toEqual([null, true, ["ready 0"]])
    sequence.abort()
  })
})

describe("outputs", () => {
  test("of ids that are unknown, stale, foreign or no ids reach nobody", async () => {
    const { engine, running } = await withRunning(2)
    const [first] = [...engine.live]
    const before = running.map(({ receiver }) => receiver.outputs.length)
    running[0]!.sequence.abort()
    running[0]!.receiver.aborted()
    // A new sequence in the slot of the one that was aborted.
    const heir = submit()
    await engine.until(() => engine.adds.length === 3)
    const heirId = String(engine.adds[2]!.request_id)
    expect(heirId.slice(-12, -7)).toBe(first!.slice(-12, -7))
    const flip = (id: string, at: number): string => {
      const i = id.length + at
      return id.slice(0, i) + (id[i] === "0" ? "1" : "0") + id.slice(i + 1)
    }
    const strange: Packable[] = [
      first!,
      flip(heirId, -1),
      flip(heirId, -22),
      flip(heirId, -20),
      heirId.slice(1, -1),
      "",
      "0",
    ]
    engine.sayOutputs(strange.map((id) => outputOf({ requestId: String(id), tokenIds: [7], fields: { 5: 0 } })))
    engine.sayOutputs([outputOf({ requestId: heirId, tokenIds: [8], fields: { 5: 1 } })])
    expect(await heir.receiver.ended).toBe("length")
    expect(heir.receiver.tokenIds).toEqual([8])
    expect(running.map(({ receiver }) => receiver.outputs.length)).toEqual(before)
  })

  test("of an earlier process of the server are answered with an abort, once for each sequence", async () => {
    const { engine, running } = await withRunning(1)
    const earlier = new RequestIds(0x12345678)
    const [first, second, third] = [1, 2, 3].map((slot) => earlier.make("cmpl-old", slot, 9)) as [
      string,
      string,
      string,
    ]
    const say = (...outputs: readonly (readonly [id: string, finish: number | null])[]) =>
      engine.sayOutputs(outputs.map(([requestId, f]) => outputOf({ requestId, tokenIds: [7], fields: { 5: f } })))
    say([first, null], ["somebody-else-1", null])
    say([first, null], [second, null], [engine.live[0]!, null], [third, 0])
    say([first, 1], [second, null])
    await engine.until(() => engine.aborted.length === 2)
    expect(engine.aborted).toEqual([first, second])
    running[0]!.sequence.abort()
    await engine.until(() => engine.aborted.length === 3)
    expect(engine.aborted).toHaveLength(3)
    expect(running[0]!.receiver.tokenIds).toEqual([7])
    expect(front.log.filter((line) => line.includes("an earlier process"))).toEqual([
      "engine 0 sends what an earlier process of this server asked for: that is aborted",
    ])
  })

  test("of another engine's sequence reach nobody", async () => {
    front = new OpenedEngine({ dataParallelSize: 2 })
    const first = await front.attach({ stepMs: null })
    const second = await front.attach({ rank: 1, stepMs: null })
    const { receiver } = submit({ ...endless(), dataParallelRank: 0 })
    await first.until(() => first.live.length === 1)
    const output = outputOf({ requestId: first.live[0]!, tokenIds: [7], fields: { 5: 0 } })
    second.sayOutputs([output])
    const probe = submit({ ...scripted([]), dataParallelRank: 1 })
    await second.until(() => second.live.length === 1)
    second.step()
    await probe.receiver.ended
    expect(receiver.outputs).toEqual([])
    first.sayOutputs([output])
    expect(await receiver.ended).toBe("stop")
  })

  test("whose parts cannot be read fail their own sequence alone, which is aborted", async () => {
    const bad: readonly { readonly [position: number]: Packable }[] = [
      { 2: "logprobs" },
      { 2: [["<i4", [1, 1], 9], null, null, null] },
      { 3: [1, 2] },
      { 7: [{ type: "x" }] },
      { 11: [] },
    ]
    for (const fields of bad) {
      const { engine, running } = await withRunning(2)
      const [first, second] = [...engine.live]
      engine.sayOutputs([
        outputOf({ requestId: first!, tokenIds: [7], fields }),
        outputOf({ requestId: second!, tokenIds: [8] }),
      ])
      expect(await running[0]!.receiver.ended).toBe("engine_failed")
      await engine.until(() => engine.aborted.length === 1)
      expect(engine.aborted).toEqual([first!])
      expect(running[1]!.receiver.tokenIds).toEqual([8])
      expect(front.engine.status()).toMatchObject({ ready: true, running: 1 })
      expect(await front.dispose()).toEqual([])
    }
  })

  test("that end with an error say whose fault it is; 0.32 does not", async () => {
    front = new OpenedEngine()
    await front.attach()
    const ends: unknown[] = []
    for (const test_fail of ["retryable", "validation", "failed"]) {
      const { receiver } = submit(scripted([1, 2, 3], { test_fail, test_fail_after: 1 }))
      await receiver.ended
      ends.push([receiver.tokenIds, receiver.error])
    }
    expect(ends).toEqual([
      [[1], { kind: "engine_retryable", message: "engine_paused: paused; try again" }],
      [[1], { kind: "engine_validation", message: "this grammar is broken", param: null }],
      [[1], { kind: "engine_failed", message: "the engine ended the sequence with an error" }],
    ])
    expect(await front.dispose()).toEqual([])
    front = new OpenedEngine()
    await front.attach({ outputSize: 18, version: "0.32.0" })
    const old = submit(scripted([1, 2], { test_fail: "validation", test_fail_after: 1 }))
    expect(await old.receiver.ended).toBe("engine_failed")
  })

  test("before the first token of a constrained sequence are the constraint's fault, later ones are not", async () => {
    front = new OpenedEngine()
    await front.attach({ outputSize: 18, version: "0.32.0" })
    const ends: unknown[] = []
    for (const test_fail_after of [0, 1]) {
      const request = scripted([1, 2], { test_fail: "failed", test_fail_after })
      const sampling = { ...request.sampling, structuredOutputs: { grammar: "root ::= other" } }
      const { receiver } = submit({ ...request, sampling })
      await receiver.ended
      ends.push(receiver.error)
    }
    expect(ends).toEqual([
      {
        kind: "engine_validation",
        message: "the engine's grammar back end does not take this constraint",
        param: "structured_outputs",
      },
      { kind: "engine_failed", message: "the engine ended the sequence with an error" },
    ])
  })

  test("with statistics and answers that cannot be read are taken without them", async () => {
    const { engine, running } = await withRunning(1)
    const output = outputOf({ requestId: engine.live[0]!, tokenIds: [7] })
    engine.say(pack([0, [output], "stats", 1, null, null, null, null, null]))
    engine.say(pack([0, [output], { num_running_reqs: "x" }, 1, ["?", 1], null, null, null, null]))
    engine.say(pack([0, [output], null, 1, [intAs(0xd3, 2n ** 62n), null, [null, true]], null, null, null, null]))
    engine.step()
    await until(() => running[0]!.receiver.outputs.length >= 4)
    expect(running[0]!.receiver.tokenIds.slice(0, 3)).toEqual([7, 7, 7])
    expect(front.engine.status()).toMatchObject({ ready: true, running: 1 })
  })

  test("whose receiver throws are told as a fault of ours, and the rest of the message is delivered", async () => {
    const { engine, running } = await withRunning(2)
    running[0]!.receiver.onOutput = () => {
      throw new Error("a bug")
    }
    engine.step()
    expect(await running[0]!.receiver.ended).toBe("engine_failed")
    await engine.until(() => engine.aborted.length === 1)
    expect(running[1]!.receiver.outputs).toHaveLength(1)
    expect(front.log.some((line) => line.includes("internal error") && line.includes("a bug"))).toBe(true)
  })
})

describe("a request", () => {
  test("for a rank that is none is refused with the field", async () => {
    front = new OpenedEngine({ dataParallelSize: 2 })
    await front.attach()
    for (const dataParallelRank of [2, -1, 1.5, Number.NaN]) {
      const refused = front.engine.submit({ ...scripted([1]), dataParallelRank }, new RecordingReceiver())
      expect(refused).toMatchObject({ ok: false, error: { kind: "engine_validation", param: "data_parallel_rank" } })
    }
  })

  test("beyond those that may wait is refused until one is done", async () => {
    front = new OpenedEngine({}, { queuedRequestsMax: 0 })
    const engine = await front.attach()
    expect(front.engine.submit(scripted([1]), new RecordingReceiver())).toMatchObject({
      ok: false,
      error: { kind: "engine_retryable" },
    })
    expect(engine.adds).toEqual([])
  })

  test("that the engine would die of is never sent", async () => {
    front = new OpenedEngine()
    const engine = await front.attach({ maxModelLen: 100 })
    const long = requestOf(new Array<number>(100).fill(1), samplingOf({}), [eosTokenId])
    const odd = requestOf([1], samplingOf({ temperature: Number.NaN }), [])
    const outside = requestOf([300], samplingOf({}), [])
    for (const request of [long, odd, outside, requestOf([], samplingOf({}), [])]) {
      const refused = front.engine.submit(request, new RecordingReceiver())
      expect(refused).toMatchObject({ ok: false, error: { kind: "engine_validation" } })
    }
    const { receiver } = submit(requestOf(new Array<number>(99).fill(1), samplingOf({ ignoreEos: true }), []))
    expect(await receiver.ended).toBe("length")
    expect([receiver.tokenIds.length, engine.adds.length]).toEqual([1, 1])
    expect(front.engine.status()).toMatchObject({ running: 0, waiting: 0 })
  })
})

test("closing tells the engine of all that runs", async () => {
  const { engine, running } = await withRunning(20)
  const ids = [...engine.live]
  await front.engine.close()
  expect(await Promise.all(running.map(({ receiver }) => receiver.ended))).toEqual(ids.map(() => "abort"))
  await engine.until(() => engine.aborted.length === 20)
  expect([engine.aborted.toSorted(), engine.live]).toEqual([ids.toSorted(), []])
})
