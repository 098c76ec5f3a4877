import { expect, test } from "bun:test"
import { RequestIds, slotsMax } from "../../../src/engine/vllm/request-id"
import { type RunningSequence, RunningSequences, type SequenceHome } from "../../../src/engine/vllm/running-sequences"
import { RecordingReceiver } from "../recording-receiver"

class Home implements SequenceHome {
  readonly running = new Set<RunningSequence>()
  readonly aborted: string[] = []

  abort(id: string): void {
    this.aborted.push(id)
  }
}

test("a slot is used again under another serial, and its old outputs find nobody", () => {
  const sequences = new RunningSequences(new RequestIds(7))
  const home = new Home()
  const first = sequences.add("a", home, new RecordingReceiver())!
  const second = sequences.add("b", home, new RecordingReceiver())!
  expect([first.slot, second.slot, sequences.size, home.running.size]).toEqual([0, 1, 2, 2])
  expect(sequences.find(first.slot, first.serial)).toBe(first)
  first.abort()
  first.abort()
  expect([home.aborted, home.running.size, sequences.size, first.ended]).toEqual([[first.id], 1, 1, true])
  expect(sequences.find(first.slot, first.serial)).toBeNull()
  const third = sequences.add("c", home, new RecordingReceiver())!
  expect(third.slot).toBe(first.slot)
  expect([sequences.find(third.slot, third.serial), sequences.find(first.slot, first.serial)]).toEqual([third, null])
  sequences.remove(second)
  sequences.remove(second)
  expect(sequences.size).toBe(1)
  for (const [slot, serial] of [
    [-1, 0],
    [1, second.serial],
    [99, 1],
    [slotsMax, 1],
  ] as const) {
    expect(sequences.find(slot, serial)).toBeNull()
  }
})

test("ids are those of the engine: readable, and different for every sequence", () => {
  const sequences = new RunningSequences(new RequestIds(0xabc))
  const home = new Home()
  const ids = Array.from({ length: 100 }, (_, i) => {
    const sequence = sequences.add("chatcmpl-1", home, new RecordingReceiver())!
    if (i % 2 === 0) sequences.remove(sequence)
    return sequence.id
  })
  expect(new Set(ids).size).toBe(100)
  expect(ids.every((id) => /^chatcmpl-1-00000abc-[0-9a-f]{12}$/.test(id))).toBe(true)
})
