import { heapStats } from "bun:jsc"
import { describe, expect, test } from "bun:test"
import { Flag, MessageReader, type MessageSink } from "../../../src/engine/zmtp/message-reader"
import { defaultZmtpLimits, type ZmtpLimits } from "../../../src/engine/zmtp/peer"
import { everySplit } from "../../support/every-split"
import { seededRandom } from "../../support/random"
import { frameBytes, messageBytes, text } from "./raw-peer"

/** Calls as a list; frames are copied when they come and held as well. */
class RecordingSink implements MessageSink {
  readonly calls: unknown[] = []
  readonly held: Uint8Array[] = []
  onMessage: () => void = () => {}

  message(frames: readonly Uint8Array[]): void {
    this.calls.push(frames.map((frame) => frame.slice()))
    this.held.push(...frames)
    this.onMessage()
  }
  command(body: Uint8Array): void {
    this.calls.push({ command: Buffer.from(body).toString("latin1") })
  }
  malformed(reason: string): void {
    this.calls.push(reason)
  }
}

/** Pushes the bytes in pieces, each a chunk of its own, as a socket gives them. */
function read(bytes: Uint8Array, ends: readonly number[] = [bytes.length], limits: Partial<ZmtpLimits> = {}) {
  const sink = new RecordingSink()
  const reader = new MessageReader({ ...defaultZmtpLimits, ...limits }, sink)
  let at = 0
  for (const end of ends) {
    reader.push(bytes.slice(at, end), 0)
    at = end
  }
  return sink
}

function filled(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + seed * 7 + (i >> 8)) & 255)
}

describe("any way to cut the bytes", () => {
  const short = Buffer.concat([frameBytes(Flag.command, text("\x01A")), messageBytes(text("b"), text(""))])
  const wantedShort = [{ command: "\x01A" }, [Uint8Array.of(98), new Uint8Array(0)]]
  const long = Buffer.concat([
    messageBytes(filled(300, 1), new Uint8Array(0), filled(255, 2), filled(256, 3)),
    frameBytes(Flag.more, text("part")),
    frameBytes(Flag.command, text("\x04PING\0\0between")),
    messageBytes(text("whole")),
    frameBytes(0, text("long without need"), true),
    messageBytes(new Uint8Array(0)),
  ])
  const wantedLong = [
    [filled(300, 1), new Uint8Array(0), filled(255, 2), filled(256, 3)],
    { command: "\x04PING\0\0between" },
    [Uint8Array.from(text("part")), Uint8Array.from(text("whole"))],
    [Uint8Array.from(text("long without need"))],
    [new Uint8Array(0)],
  ]

  test("gives the same messages and commands, every way", () => {
    for (const ends of everySplit(short.length)) expect(read(short, ends).calls).toEqual(wantedShort)
  })

  test("gives the same messages and commands when it is long", () => {
    for (const ends of everySplit(long.length)) {
      const { calls } = read(long, ends)
      if (!Bun.deepEquals(calls, wantedLong)) expect({ ends, calls }).toEqual({ ends, calls: wantedLong })
    }
  })

  test("gives the same for random messages, randomly cut", () => {
    const seed = Math.floor(Math.random() * 1_000_000)
    const random = seededRandom(seed)
    const pick = (max: number) => Math.floor(random() * max)
    for (let round = 0; round < 60; round++) {
      const messages = Array.from({ length: 1 + pick(5) }, () =>
        Array.from({ length: 1 + pick(4) }, () => filled(pick(2) === 0 ? pick(600) : pick(30_000), pick(100))),
      )
      const bytes = Buffer.concat(messages.map((frames) => messageBytes(...frames)))
      const ends: number[] = []
      for (let at = 0; at < bytes.length; ) {
        at = Math.min(bytes.length, at + 1 + pick(pick(3) === 0 ? 10 : 20_000))
        ends.push(at)
      }
      const { calls } = read(bytes, ends)
      if (!Bun.deepEquals(calls, messages)) throw new Error(`seed ${seed}, round ${round}: other messages`)
    }
  })
})

describe("memory", () => {
  test("a frame that lies in one chunk is a view into it", () => {
    const bytes = Uint8Array.from(messageBytes(filled(100, 1), filled(1_000, 2)))
    const sink = new RecordingSink()
    new MessageReader(defaultZmtpLimits, sink).push(bytes, 0)
    expect(sink.held.map((frame) => [frame.buffer === bytes.buffer, frame.byteOffset, frame.length])).toEqual([
      [true, 2, 100],
      [true, 111, 1_000],
    ])
  })

  test("a frame that spans chunks is one buffer of exactly its length, also when its memory grew", () => {
    for (const length of [10, 70_000, 2 ** 20, 2 ** 20 + 1, 9_000_000]) {
      const body = filled(length, 5)
      const bytes = messageBytes(body)
      const ends: number[] = []
      for (let at = 65_536; at < bytes.length; at += 65_536) ends.push(at)
      if (ends.length === 0) ends.push(5)
      const [frame] = read(bytes, [...ends, bytes.length]).held
      expect([frame!.byteLength, frame!.buffer.byteLength]).toEqual([length, length])
      expect(Buffer.compare(frame!, body)).toBe(0)
    }
  })

  test("a frame that is only announced takes no memory to speak of", () => {
    const readers: MessageReader[] = []
    Bun.gc(true)
    const before = heapStats().extraMemorySize
    for (let i = 0; i < 20; i++) {
      const reader = new MessageReader(defaultZmtpLimits, new RecordingSink())
      const announced = Buffer.alloc(9)
      announced[0] = Flag.long
      announced.writeBigUInt64BE(2n ** 30n, 1)
      reader.push(announced, 0)
      reader.push(new Uint8Array(1_000), 0)
      readers.push(reader)
    }
    expect(heapStats().extraMemorySize - before).toBeLessThan(20 * 2 ** 21)
    expect(readers.length).toBe(20)
  })

  test("the array of frames is reused, and is whole for a sink that stops the reader", () => {
    const arrays = new Set<readonly Uint8Array[]>()
    const lengths: number[] = []
    const reader: MessageReader = new MessageReader(defaultZmtpLimits, {
      message(frames) {
        arrays.add(frames)
        if (lengths.length === 2) reader.stop()
        lengths.push(frames.length)
      },
      command() {},
      malformed() {},
    })
    const one = messageBytes(text("a"), text("b"))
    reader.push(Buffer.concat([one, one, one, one, one]), 0)
    expect([arrays.size, lengths]).toEqual([1, [2, 2, 2]])
  })
})

describe("limits and malformed bytes", () => {
  const hugeLong = Uint8Array.of(Flag.long, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
  const limits = { frameBytesMax: 1_000, messageBytesMax: 1_500, messageFramesMax: 3 }
  const table: readonly (readonly [title: string, bytes: Uint8Array, calls: readonly unknown[]])[] = [
    ["a frame at the limit", messageBytes(filled(1_000, 1)), [[filled(1_000, 1)]]],
    ["a frame beyond the limit", messageBytes(filled(1_001, 1)), ["a frame of 1001 bytes, 1000 are allowed"]],
    ["the longest length there is", hugeLong, ["a frame of 18446744073709552000 bytes, 1000 are allowed"]],
    [
      "a message beyond its limit",
      messageBytes(filled(1_000, 1), filled(501, 1)),
      ["a message of more than 1500 bytes"],
    ],
    [
      "as many frames as are allowed",
      messageBytes(text("1"), text("2"), text("3")),
      [["1", "2", "3"].map((one) => Uint8Array.from(text(one)))],
    ],
    [
      "more frames than are allowed",
      messageBytes(text("1"), text("2"), text("3"), text("4")),
      ["a message of more than 3 frames"],
    ],
    ["reserved flags", frameBytes(8, text("x")), ["a frame with reserved flags: 8"]],
    ["flags of a greeting", Uint8Array.of(0xff, 0, 0, 0, 0, 0, 0, 0, 1), ["a frame with reserved flags: 255"]],
    [
      "a command with MORE",
      frameBytes(Flag.command | Flag.more, text("\x01A")),
      ["a command that wants to go on in another frame"],
    ],
    ["a long command", frameBytes(Flag.command, filled(65_537, 1)), ["a command of 65537 bytes, 65536 are allowed"]],
  ]
  for (const [title, bytes, calls] of table) {
    test(`${title}: whole and byte by byte`, () => {
      const after = messageBytes(text("after"))
      const isError = typeof calls[0] === "string"
      const all = isError ? Buffer.concat([bytes, after]) : bytes
      const expected: unknown = calls
      expect(read(all, [all.length], limits).calls).toEqual(expected as unknown[])
      const byteByByte = Array.from({ length: bytes.length }, (_, i) => i + 1)
      expect(read(bytes, byteByByte, limits).calls).toEqual(expected as unknown[])
    })
  }

  test("what one message used of its limit is given back for the next", () => {
    const one = messageBytes(filled(700, 1), filled(700, 2))
    const bytes = Buffer.concat([one, one, one])
    expect(read(bytes, [bytes.length], limits).calls.length).toBe(3)
  })
})
