import { describe, expect, test } from "bun:test"
import { EngineChoice } from "../../../src/engine/vllm/engine-choice"
import { EngineLink, type EngineLinkState, newCounters } from "../../../src/engine/vllm/engine-link"
import { RequestIds } from "../../../src/engine/vllm/request-id"
import { RunningSequences } from "../../../src/engine/vllm/running-sequences"
import { RecordingReceiver } from "../recording-receiver"

interface Load {
  readonly running?: number
  readonly waiting?: number
  readonly kvCacheUsage?: number
  /** What we sent and have not seen end. */
  readonly sent?: number
  readonly state?: EngineLinkState
}

function links(...loads: readonly Load[]): EngineLink[] {
  const sequences = new RunningSequences(new RequestIds(1))
  return loads.map(({ running = 0, waiting = 0, kvCacheUsage = 0, sent = 0, state = "ready" }, rank) => {
    const link = new EngineLink(rank, null, newCounters())
    link.state = state
    link.load = { running, waiting, kvCacheUsage }
    for (let i = 0; i < sent; i++) sequences.add("a", link, new RecordingReceiver())
    return link
  })
}

function chosen(choice: EngineChoice, among: readonly (EngineLink | null)[]): number {
  return choice.choose(among)?.rank ?? -1
}

describe("an engine is chosen", () => {
  test("in turns when all have as much to do", () => {
    const choice = new EngineChoice()
    const idle = links({}, {}, {})
    expect(Array.from({ length: 7 }, () => chosen(choice, idle))).toEqual([0, 1, 2, 0, 1, 2, 0])
  })

  test("by what we sent it, or what it reported, whichever is more", () => {
    expect(chosen(new EngineChoice(), links({ sent: 2 }, { sent: 1 }, { sent: 3 }))).toBe(1)
    expect(chosen(new EngineChoice(), links({ running: 5 }, { sent: 4 }))).toBe(1)
    expect(chosen(new EngineChoice(), links({ running: 2, waiting: 3 }, { sent: 4 }))).toBe(1)
    expect(chosen(new EngineChoice(), links({ running: 9, sent: 2 }, { running: 1, sent: 8 }))).toBe(1)
  })

  test("by what waits there the more, the fuller its cache is", () => {
    const full = { running: 1, waiting: 2, kvCacheUsage: 1 }
    expect(chosen(new EngineChoice(), links(full, { running: 8 }))).toBe(1)
    expect(chosen(new EngineChoice(), links({ ...full, kvCacheUsage: 0.5 }, { running: 8 }))).toBe(0)
    expect(chosen(new EngineChoice(), links({ running: 3, kvCacheUsage: 1 }, { running: 4 }))).toBe(0)
  })

  test("among those that are ready alone, and is none when there is none", () => {
    for (const state of ["starting", "silent", "gone"] as const) {
      const choice = new EngineChoice()
      const one = links({ state }, { running: 50 }, { state })
      expect([chosen(choice, one), chosen(choice, one)]).toEqual([1, 1])
      expect(chosen(choice, links({ state }))).toBe(-1)
    }
    const [first, , third] = links({}, {}, {})
    expect(chosen(new EngineChoice(), [null, null, third!])).toBe(2)
    expect(chosen(new EngineChoice(), [null, first!])).toBe(0)
    expect(chosen(new EngineChoice(), [null])).toBe(-1)
    expect(chosen(new EngineChoice(), [])).toBe(-1)
  })
})
