/** The coordinator of engines that step together: who may begin, and which wave runs (ENGINE_PROTOCOL 12 and 14). */
import { afterEach, describe, expect, test } from "bun:test"
import { schedulerStats } from "../../support/engine-outputs"
import type { TestEngine } from "../../support/test-engine"
import { until } from "../../support/test-server"
import { submitTo } from "../contract"
import { endless, eosTokenId, OpenedEngine, scripted } from "./opened-engine"

const opened: OpenedEngine[] = []
afterEach(async () => {
  const deaths = await Promise.all(opened.splice(0).map((front) => front.dispose()))
  expect(deaths.flat()).toEqual([])
})

function open(engines: number): OpenedEngine {
  const front = new OpenedEngine({ dataParallelSize: engines }, { isMixtureOfExperts: true })
  opened.push(front)
  return front
}

/** A front end, and a group of engines that are ready. */
async function group(engines: number, version: string): Promise<{ front: OpenedEngine; members: TestEngine[] }> {
  const front = open(engines)
  const members = Array.from({ length: engines }, (_, rank) => front.dial({ rank, version, stepMs: null }))
  await front.until(() => front.news.length === engines)
  return { front, members }
}

function waves(members: readonly TestEngine[]): (readonly (readonly [number, number | null])[])[] {
  return members.map((member) => member.waves)
}

describe("the engines of a group", () => {
  test("wait for rank 0, on whose machine they meet, and begin together", async () => {
    const front = open(3)
    const second = front.dial({ rank: 1 })
    const third = front.dial({ rank: 2 })
    await front.said("engine 2 connected and starts")
    expect([second.init, third.init]).toEqual([null, null])
    const first = front.dial({ rank: 0 })
    await front.until(() => front.news.length === 3)
    const told = [first, second, third].map((engine) => engine.init.parallel_config)
    expect(told[0]).toMatchObject({ data_parallel_master_ip: "127.0.0.1", data_parallel_size: 3 })
    expect([told[1], told[2]]).toEqual([told[0], told[0]])
    expect(front.news.toSorted()).toEqual(["ready 0", "ready 1", "ready 2"])
  })

  test("are not ready before all have subscribed", async () => {
    const front = open(2)
    const first = front.dial()
    await until(() => first.isConnected)
    expect(front.news).toEqual([])
    expect(front.engine.status()).toMatchObject({ alive: false, ready: false })
    front.dial({ rank: 1 })
    await front.until(() => front.news.length === 2)
  })

  test("may lose a member, which joins again and is ready by itself", async () => {
    const { front, members } = await group(2, "0.33.0")
    members[1]!.vanish()
    await front.until(() => front.news.length === 3)
    expect(front.engine.status()).toMatchObject({ alive: true, ready: true })
    const heir = await front.attach({ rank: 1 })
    expect(heir.init.parallel_config).toEqual(members[0]!.init.parallel_config)
    const { receiver } = submitTo(front.engine, { ...scripted([5]), dataParallelRank: 1 })
    expect(await receiver.ended).toBe("stop")
    expect(receiver.tokenIds).toEqual([5, eosTokenId])
  })

  test("that all went begin anew, from wave 0", async () => {
    const { front, members } = await group(2, "0.32.0")
    members[0]!.sayWave({ complete: 4 })
    await until(() => waveOf(front) === 5)
    for (const member of members) member.vanish()
    await front.until(() => front.news.length === 4)
    const again = [front.dial(), front.dial({ rank: 1 })]
    await front.until(() => front.news.length === 6)
    expect(waveOf(front)).toBe(0)
    submitTo(front.engine, endless())
    await until(() => again.some((engine) => engine.adds.length === 1))
    expect(again.flatMap((engine) => engine.adds.map((add) => add.current_wave))).toEqual([0])
  })
})

describe("a wave", () => {
  test("is announced to the idle siblings of 0.32, once while nobody confirms it, and not while it runs", async () => {
    const { front, members } = await group(3, "0.32.0")
    submitTo(front.engine, { ...endless(), dataParallelRank: 1 })
    submitTo(front.engine, { ...endless(), dataParallelRank: 2 })
    await members[0]!.until(() => members[0]!.waves.length > 0)
    await members[2]!.until(() => members[2]!.adds.length === 1)
    expect(waves(members)).toEqual([[[0, 1]], [[0, 1]], [[0, 1]]])
    expect(members.flatMap((member) => member.adds.map((add) => add.current_wave))).toEqual([0, 0])
    // It is over; the next request belongs to the next one.
    members[0]!.sayWave({ complete: 0 })
    await until(() => waveOf(front) === 1)
    submitTo(front.engine, { ...endless(), dataParallelRank: 0 })
    await members[2]!.until(() => members[2]!.waves.length === 2)
    expect(members[2]!.waves).toEqual([
      [0, 1],
      [1, 0],
    ])
    await members[0]!.until(() => members[0]!.adds.length === 1)
    expect(members[0]!.adds[0]!.current_wave).toBe(1)
  })

  test("is never announced to 0.33, whose engines start it themselves", async () => {
    const { front, members } = await group(2, "0.33.0")
    submitTo(front.engine, { ...endless(), dataParallelRank: 1 })
    await members[1]!.until(() => members[1]!.adds.length === 1)
    members[1]!.sayWave({ start: 0 })
    await members[0]!.until(() => members[0]!.waves.length === 1)
    expect(waves(members)[0]).toEqual([[0, 1]])
  })

  test("that an engine starts is passed on, unless it is old or runs already", async () => {
    const { front, members } = await group(2, "0.33.0")
    members[0]!.sayWave({ start: 3 })
    await until(() => waveOf(front) === 3)
    members[0]!.sayWave({ start: 3 })
    members[0]!.sayWave({ start: 2 })
    members[0]!.sayWave({ complete: 2 })
    members[0]!.sayWave({ start: 4 })
    await members[1]!.until(() => members[1]!.waves.length === 2)
    expect(members[1]!.waves).toEqual([
      [3, 0],
      [4, 0],
    ])
    members[0]!.sayWave({ complete: 4 })
    await until(() => waveOf(front) === 5)
    // The same wave starts again only after it ended.
    members[1]!.sayWave({ start: 5 })
    await members[0]!.until(() => members[0]!.waves.length === 3)
    expect(members[0]!.waves.at(-1)).toEqual([5, 1])
  })

  test("survives messages that cannot be read, and ranks that are none", async () => {
    const { front, members } = await group(2, "0.33.0")
    members[0]!.sayToCoordinator("statistics")
    members[0]!.sayToCoordinator({ num_running_reqs: "x" })
    members[0]!.sayToCoordinator([])
    members[0]!.sayRawToCoordinator(Uint8Array.of(0xc1))
    members[0]!.sayRawToCoordinator(new Uint8Array(0))
    members[0]!.sayWave({ start: 1 })
    await members[1]!.until(() => members[1]!.waves.length === 1)
    expect(front.news).toEqual(expect.arrayContaining(["ready 0", "ready 1"]))
    expect(front.log.filter((line) => line.startsWith("coordinator: a message cannot be read"))).toHaveLength(2)
  })
})

test("loads that engines publish between their steps count for the choice", async () => {
  const { front, members } = await group(2, "0.33.0")
  members[0]!.sayToCoordinator(schedulerStats(9))
  await until(() => loadOf(front, 0) === 9)
  submitTo(front.engine, endless())
  submitTo(front.engine, endless())
  await members[1]!.until(() => members[1]!.adds.length === 2)
  expect(members[0]!.adds).toEqual([])
})

interface Inner {
  readonly pool: {
    readonly coordinator: { readonly wave: number }
    readonly links: readonly { readonly load: { readonly running: number } }[]
  }
}

/** Private: what the next request would carry, before there is one. */
function waveOf(front: OpenedEngine): number {
  return (front.engine as unknown as Inner).pool.coordinator.wave
}

/** Private: a report of the engine before it changed any choice. */
function loadOf(front: OpenedEngine, rank: number): number {
  return (front.engine as unknown as Inner).pool.links[rank]!.load.running
}
