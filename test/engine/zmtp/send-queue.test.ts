import { describe, expect, test } from "bun:test"
import { Flag } from "../../../src/engine/zmtp/message-reader"
import { type ByteSink, frameWireBytes, SendQueue } from "../../../src/engine/zmtp/send-queue"
import { seededRandom } from "../../support/random"
import { frameBytes, text } from "./raw-peer"

/** Takes as much of each write as it is told, and keeps it. */
class FakeSocket implements ByteSink {
  readonly writes: { readonly bytes: Uint8Array; readonly source: Uint8Array }[] = []
  take: (length: number) => number = (length) => length

  write(bytes: Uint8Array, offset: number, length: number): number {
    if (length <= 0) throw new Error("an empty write")
    const taken = this.take(length)
    if (taken > 0) this.writes.push({ bytes: bytes.slice(offset, offset + taken), source: bytes })
    return taken
  }

  get all(): Uint8Array {
    return Buffer.concat(this.writes.map(({ bytes }) => bytes))
  }
}

describe("a send queue", () => {
  test("gathers small frames into one write", () => {
    const socket = new FakeSocket()
    const queue = new SendQueue(socket)
    queue.add(Flag.more, text("a"))
    queue.add(0, new Uint8Array(0))
    queue.add(Flag.command, new Uint8Array(300))
    expect([socket.writes.length, queue.bufferedBytes]).toEqual([0, 3 + 2 + 309])
    queue.flush()
    expect(socket.writes.map(({ bytes }) => bytes.length)).toEqual([3 + 2 + 309])
    expect(
      Buffer.compare(
        socket.all,
        Buffer.concat([Uint8Array.of(1, 1, 97, 0, 0), frameBytes(Flag.command, new Uint8Array(300))]),
      ),
    ).toBe(0)
    expect([queue.bufferedBytes, queue.blocked]).toEqual([0, false])
  })

  test("writes a large body from where it lies, behind its header", () => {
    const socket = new FakeSocket()
    const queue = new SendQueue(socket)
    const body = new Uint8Array(100_000).fill(7)
    queue.add(0, body)
    queue.add(0, text("next"))
    queue.flush()
    expect(socket.writes.map(({ bytes, source }) => [bytes.length, source === body])).toEqual([
      [9, false],
      [100_000, true],
      [6, false],
    ])
  })

  test("keeps no reference to a small body", () => {
    const socket = new FakeSocket()
    const queue = new SendQueue(socket)
    const body = text("before")
    queue.add(0, body)
    body.fill(0)
    queue.flush()
    expect(Buffer.from(socket.all).toString("latin1")).toBe("\0\x06before")
  })

  test("writes nothing while it is blocked, and everything in order after the drain", () => {
    const socket = new FakeSocket()
    const queue = new SendQueue(socket)
    socket.take = () => 3
    queue.add(0, text("first"))
    queue.flush()
    expect([queue.blocked, queue.bufferedBytes]).toEqual([true, 4])
    for (let i = 0; i < 20; i++) queue.add(0, new Uint8Array(10_000).fill(i))
    expect(socket.writes.length).toBe(1)
    socket.take = (length) => length
    queue.flush()
    const wanted = [frameBytes(0, text("first"))]
    for (let i = 0; i < 20; i++) wanted.push(frameBytes(0, new Uint8Array(10_000).fill(i)))
    expect(Buffer.compare(socket.all, Buffer.concat(wanted))).toBe(0)
    expect([queue.blocked, queue.bufferedBytes]).toEqual([false, 0])
  })

  test("counts nothing as written on a connection that is gone", () => {
    const socket = new FakeSocket()
    socket.take = () => -1
    const queue = new SendQueue(socket)
    queue.add(0, text("lost"))
    queue.flush()
    expect([queue.blocked, queue.bufferedBytes, socket.writes.length]).toEqual([true, 6, 0])
    queue.clear()
    expect(queue.bufferedBytes).toBe(0)
  })

  test("loses, repeats and reorders nothing, whatever the socket takes", () => {
    const seed = Math.floor(Math.random() * 1_000_000)
    const random = seededRandom(seed)
    const pick = (max: number) => Math.floor(random() * max)
    const socket = new FakeSocket()
    const queue = new SendQueue(socket)
    const wanted: Uint8Array[] = []
    let wantedBytes = 0
    for (let step = 0; step < 4_000; step++) {
      socket.take = (length) => (pick(3) === 0 ? length : pick(Math.min(length, 50_000) + 1) - 1)
      const length = [pick(20), pick(300), pick(17_000), 16_384 + pick(40_000)][pick(pick(8) === 0 ? 4 : 2)]!
      const body = new Uint8Array(length).fill(step)
      const flags = pick(2)
      queue.add(flags, body)
      wanted.push(frameBytes(flags, body))
      wantedBytes += frameWireBytes(length)
      if (pick(5) === 0) queue.flush()
    }
    const written = socket.writes.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const { bufferedBytes } = queue
    socket.take = (length) => length
    queue.flush()
    const same = Buffer.compare(socket.all, Buffer.concat(wanted)) === 0
    expect({ seed, same, bufferedBytes, left: queue.bufferedBytes }).toEqual({
      seed,
      same: true,
      bufferedBytes: wantedBytes - written,
      left: 0,
    })
  })
})
