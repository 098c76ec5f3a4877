import { afterEach, describe, expect, test } from "bun:test"
import { EngineLink, newCounters } from "../../../src/engine/vllm/engine-link"
import { HangWatch } from "../../../src/engine/vllm/hang-watch"
import { RequestIds } from "../../../src/engine/vllm/request-id"
import { RunningSequences } from "../../../src/engine/vllm/running-sequences"
import { RecordingReceiver } from "../recording-receiver"

const timeoutMs = 100
const answered = { ok: true, value: false } as const

let watch: HangWatch | null = null
afterEach(() => watch?.stop())

/** Lets the watch tick at these times, one a tick; gives what it did. `at` is run at its tick, before the watch looks. */
function ticks(
  times: readonly number[],
  running: number,
  at: (tick: number, link: EngineLink, answer: () => void) => void = () => {},
): Promise<{ readonly calls: number[]; readonly hangs: (readonly [number, number])[] }> {
  const link = new EngineLink(0, null, newCounters())
  const sequences = new RunningSequences(new RequestIds(1))
  link.state = "ready"
  for (let i = 0; i < running; i++) sequences.add("a", link, new RecordingReceiver())
  const calls: number[] = []
  const hangs: (readonly [number, number])[] = []
  let answer: () => void = () => {}
  let tick = -1
  link.call = () =>
    new Promise((resolve) => {
      calls.push(times[tick]!)
      answer = () => resolve(answered)
    })
  return new Promise((resolve) => {
    watch = new HangWatch(timeoutMs, {
      links: () => [null, link],
      hangs: (_, silentMs) => {
        hangs.push([times[tick]!, silentMs])
        link.state = "silent"
      },
      // Asked once when the watch is made, and once a tick.
      now: () => {
        tick += 1
        if (tick >= times.length) {
          watch?.stop()
          resolve({ calls, hangs })
          return times.at(-1)!
        }
        at(tick, link, answer)
        return times[tick]!
      },
    })
  })
}

describe("an engine with work", () => {
  test("that says nothing is called once, and hangs when the call stays unanswered", async () => {
    const times = Array.from({ length: 20 }, (_, i) => i * 10)
    expect(await ticks(times, 1)).toEqual({ calls: [30], hangs: [[130, 100]] })
  })

  test("that answers is called again, and never hangs", async () => {
    const times = Array.from({ length: 30 }, (_, i) => i * 10)
    const { calls, hangs } = await ticks(times, 1, (_tick, _link, answer) => answer())
    expect(hangs).toEqual([])
    expect(calls.length).toBeGreaterThan(5)
  })

  test("that only gives outputs does not hang, whatever becomes of the call", async () => {
    const times = Array.from({ length: 40 }, (_, i) => i * 10)
    const { hangs } = await ticks(times, 1, (tick, link) => {
      if (tick % 9 === 0) link.heardAt = times[tick]!
    })
    expect(hangs).toEqual([])
  })

  test("is not blamed for the time in which this process stood still", async () => {
    const times = [0, 10, 20, 30, 10_030, 10_040, 10_050]
    // What it had answered meanwhile is read before the next tick.
    const { calls, hangs } = await ticks(times, 1, (tick, _link, answer) => {
      if (tick === 4) answer()
    })
    expect({ calls, hangs }).toEqual({ calls: [30, 10_040], hangs: [] })
    expect((await ticks(times, 1)).hangs).toEqual([[10_040, 10_010]])
  })
})

test("an engine without work is left alone", async () => {
  const times = Array.from({ length: 30 }, (_, i) => i * 10)
  expect(await ticks(times, 0)).toEqual({ calls: [], hangs: [] })
})
