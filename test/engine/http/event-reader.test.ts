import { describe, expect, test } from "bun:test"
import { EventReader } from "../../../src/engine/http/event-reader"
import { everySplit } from "../../support/every-split"

/** The data of all events of a stream that comes in these chunks. */
function eventsOf(chunks: readonly Uint8Array[]): string[] {
  const events: string[] = []
  const reader = new EventReader({ event: (data) => void events.push(data) })
  for (const chunk of chunks) expect(reader.push(chunk)).toBe(true)
  return events
}

describe("an event stream", () => {
  test("has the same events however it is cut", () => {
    const bytes = new TextEncoder().encode(
      ': hi\n\ndata: {"é":"🎉"}\r\n\r\nevent: x\ndata:two\n\n\ndata:\ndata:  [DONE]\nrest',
    )
    const events = ['{"é":"🎉"}', "two", "", " [DONE]"]
    for (const ends of everySplit(bytes.length)) {
      const chunks = ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end))
      expect([ends, eventsOf(chunks)]).toEqual([ends, events])
    }
  })

  test("may have a long event in many chunks, which is put together once", () => {
    // Searched or copied again with each chunk, this would be 64 GB.
    const chunk = new Uint8Array(1_024).fill(120)
    const chunks = Array.from({ length: 16_384 }, () => chunk)
    const [event, ...others] = eventsOf([Buffer.from("data: "), ...chunks, Buffer.from("\n")])
    expect([event!.length, others]).toEqual([16_384 * 1_024, []])
  })

  test("is none when an event does not end", () => {
    const reader = new EventReader({ event: () => {} })
    const chunk = new Uint8Array(16 * 1024 * 1024).fill(120)
    expect([1, 2, 3, 4, 5].map(() => reader.push(chunk))).toEqual([true, true, true, true, false])
  })
})
