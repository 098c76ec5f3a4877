import { afterEach, describe, expect, test } from "bun:test"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { packCommand, packReady } from "../../../src/engine/zmtp/command"
import { connectZmtp } from "../../../src/engine/zmtp/dialer"
import { packGreeting } from "../../../src/engine/zmtp/greeting"
import { listenZmtp } from "../../../src/engine/zmtp/listener"
import { Flag } from "../../../src/engine/zmtp/message-reader"
import {
  defaultZmtpLimits,
  type SocketType,
  type ZmtpDialer,
  type ZmtpLimits,
  type ZmtpListener,
} from "../../../src/engine/zmtp/peer"
import { frameBytes, handshakeBytes, messageBytes, RawPeer, text } from "./raw-peer"
import { RecordingHandler } from "./recording-handler"

const folder = mkdtempSync(join(tmpdir(), "sluice-zmtp-"))
const open: { close(): void }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

const tcp = "tcp://127.0.0.1:0"
let sockets = 0
function socketPath(): string {
  sockets += 1
  return join(folder, `${sockets}.sock`)
}

interface Options {
  readonly limits?: Partial<ZmtpLimits>
  readonly identity?: Uint8Array
  readonly handler?: RecordingHandler
}

function listen(socketType: SocketType, options: Options = {}, address = tcp) {
  const handler = options.handler ?? new RecordingHandler()
  const limits = { ...defaultZmtpLimits, ...options.limits }
  const listening = listenZmtp({ address, socketType, handler, limits, identity: options.identity })
  if (!listening.ok) throw new Error(listening.error.message)
  open.push(listening.value)
  return { handler, listener: listening.value as ZmtpListener, address: listening.value.address }
}

function dial(socketType: SocketType, address: string, options: Options = {}) {
  const handler = options.handler ?? new RecordingHandler()
  const limits = { ...defaultZmtpLimits, ...options.limits }
  const dialing = connectZmtp({ address, socketType, handler, limits, identity: options.identity, retryMs: 5 })
  if (!dialing.ok) throw new Error(dialing.error.message)
  open.push(dialing.value)
  return { handler, dialer: dialing.value as ZmtpDialer }
}

async function raw(address: string): Promise<RawPeer> {
  const peer = await RawPeer.dial(address)
  open.push(peer)
  return peer
}

/** A raw peer that ended its handshake. */
async function rawReady(address: string, socketType: string, identity: Uint8Array | null = null): Promise<RawPeer> {
  const peer = await raw(address)
  peer.write(handshakeBytes(socketType, identity))
  return peer
}

function command(name: string, ...parts: Uint8Array[]): Uint8Array {
  return frameBytes(Flag.command, packCommand(name, ...parts))
}

/** A greeting with some bytes changed. */
function greeting(...changes: readonly (readonly [at: number, value: number])[]): Uint8Array {
  const bytes = packGreeting()
  for (const [at, value] of changes) bytes[at] = value
  return bytes
}

const ready = (socketType: string) => frameBytes(Flag.command, packReady(socketType, null))

describe("the handshake", () => {
  test("is, byte for byte, what RFC 37 shows", async () => {
    const { address } = listen("ROUTER", { identity: text("us") })
    const peer = await rawReady(address, "DEALER")
    const signature = "ff00000000000000007f"
    const rest = `0301${"4e554c4c".padEnd(40, "0")}00${"".padEnd(62, "0")}`
    const readyHex = "05524541445" + "9" // length and READY
    const socketType = "0b536f636b65742d5479706500000006524f55544552"
    const identity = "084964656e74697479000000027573"
    const body = readyHex + socketType + identity
    const wanted = `${signature}${rest}04${(body.length / 2).toString(16).padStart(2, "0")}${body}`
    const bytes = await peer.bytes(wanted.length / 2)
    expect(Buffer.from(bytes).toString("hex")).toBe(wanted)
  })

  test("gives the peer's type and identity, 255 bytes of it at most", async () => {
    const { address, handler } = listen("ROUTER")
    await rawReady(address, "DEALER", Uint8Array.of(1, 0))
    await handler.until(() => handler.peers.length === 1)
    await rawReady(address, "REQ", new Uint8Array(255).fill(0xab))
    await handler.until(() => handler.peers.length === 2)
    await rawReady(address, "ROUTER")
    await handler.until(() => handler.peers.length === 3)
    expect(handler.events).toEqual(["ready DEALER 0100", `ready REQ ${"ab".repeat(255)}`, "ready ROUTER"])
    expect(handler.peers[0]!.remote).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(`tcp://${handler.peers[0]!.local}`).toBe(address)
  })

  test("works byte by byte, and with messages right behind it", async () => {
    const { address, handler } = listen("PULL")
    const peer = await raw(address)
    for (const byte of handshakeBytes("PUSH")) peer.write(Uint8Array.of(byte))
    peer.write(messageBytes(text("one")))
    await handler.until(() => handler.messages.length === 1)
    const other = await raw(address)
    other.write(handshakeBytes("PUSH"), messageBytes(text("two"), text("")))
    await handler.until(() => handler.messages.length === 2)
    expect(handler.events).toEqual(["ready PUSH", "message 3", "ready PUSH", "message 3 0"])
  })

  test("takes properties in any case and order, skips those it does not know", async () => {
    const { address, handler } = listen("ROUTER")
    const property = (name: string, value: Uint8Array) =>
      Buffer.concat([Uint8Array.of(name.length), text(name), Uint8Array.of(0, 0, 0, value.length), value])
    const peer = await raw(address)
    const properties = [
      property("X-Of-Ours", text("?")),
      property("IDENTITY", Uint8Array.of(7)),
      property("socket-type", text("DEALER")),
    ]
    peer.write(packGreeting(), command("READY", ...properties))
    await handler.until(() => handler.events.length === 1)
    expect(handler.events).toEqual(["ready DEALER 07"])
  })

  test("takes newer versions and speaks its own", async () => {
    const { address, handler } = listen("PULL")
    const greetings = [
      greeting([11, 0]),
      greeting([11, 9]),
      greeting([10, 4], [11, 0]),
      greeting([3, 0xaa], [8, 1], [40, 9]), // the signature's padding and the filler mean nothing
    ]
    for (const bytes of greetings) {
      const peer = await raw(address)
      peer.write(bytes, ready("PUSH"))
    }
    await handler.until(() => handler.events.length === 4)
    expect(handler.events).toEqual(Array(4).fill("ready PUSH"))
  })

  const notZmtp = "the peer does not speak ZMTP 3: its signature is wrong"
  const broken = "the peer broke the protocol: "
  const table: readonly (readonly [title: string, bytes: Uint8Array, reason: string])[] = [
    ["an HTTP request", text("GET / HTTP/1.1\r\n"), notZmtp],
    ["ZMTP 1.0", Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0, 0), notZmtp],
    ["a signature with another end", greeting([9, 0x7e]).subarray(0, 10), notZmtp],
    ["ZMTP 2.0", greeting([10, 1]).subarray(0, 12), "the peer speaks ZMTP major version 1, 3 is needed"],
    [
      "another mechanism",
      greeting([12, 0x43], [13, 0x55], [14, 0x52], [15, 0x56], [16, 0x45]),
      'the peer wants the security mechanism "CURVE", only NULL is spoken',
    ],
    [
      "no mechanism",
      greeting([12, 0], [13, 0], [14, 0], [15, 0]),
      'the peer wants the security mechanism "", only NULL is spoken',
    ],
    [
      "a mechanism that only begins alike",
      greeting([16, 0x4c]),
      'the peer wants the security mechanism "NULLL", only NULL is spoken',
    ],
    [
      "a message before READY",
      Buffer.concat([packGreeting(), messageBytes(text("x"))]),
      `${broken}a message before READY`,
    ],
    [
      "a PING before READY",
      Buffer.concat([packGreeting(), command("PING", Uint8Array.of(0, 0))]),
      `${broken}PING before READY`,
    ],
    [
      "an empty command",
      Buffer.concat([packGreeting(), frameBytes(Flag.command, text(""))]),
      `${broken}a command without a name`,
    ],
    [
      "a command's name that is cut off",
      Buffer.concat([packGreeting(), frameBytes(Flag.command, text("\x06READY"))]),
      `${broken}a command without a name`,
    ],
    [
      "reserved flags",
      Buffer.concat([packGreeting(), frameBytes(0x80, text("x"))]),
      `${broken}a frame with reserved flags: 128`,
    ],
    ["a READY without a type", Buffer.concat([packGreeting(), command("READY")]), "READY: no Socket-Type"],
    [
      "a property without a name",
      Buffer.concat([packGreeting(), command("READY", text("\0\0\0\0\0"))]),
      "READY: a property is cut off",
    ],
    [
      "a property that is cut off",
      Buffer.concat([packGreeting(), command("READY", text("\x01a\0\0\0\x05abcd"))]),
      "READY: a property is cut off",
    ],
    [
      "a property's length that is cut off",
      Buffer.concat([packGreeting(), command("READY", text("\x01a\0\0"))]),
      "READY: a property is cut off",
    ],
    [
      "a property of 4 GB",
      Buffer.concat([packGreeting(), command("READY", text("\x01a\xff\xff\xff\xff"))]),
      "READY: a property is cut off",
    ],
    [
      "an identity of 256 bytes",
      handshakeBytes("DEALER", new Uint8Array(256)),
      "READY: the identity is longer than 255 bytes",
    ],
    ["a type that does not fit", handshakeBytes("PUSH"), "a ROUTER does not talk with a PUSH"],
    ["a type that does not exist", handshakeBytes("PAIRS\n"), "a ROUTER does not talk with a PAIRS\n"],
    ["an ERROR", Buffer.concat([packGreeting(), command("ERROR", text("\x04nope"))]), "the peer says: nope"],
    ["an ERROR that is cut off", Buffer.concat([packGreeting(), command("ERROR")]), "the peer says: "],
  ]
  for (const [title, bytes, reason] of table) {
    test(`is refused with its reason and closed for ${title}; another peer does not notice`, async () => {
      const { address, handler } = listen("ROUTER")
      const good = await rawReady(address, "DEALER")
      await handler.peer()
      const bad = await raw(address)
      bad.write(bytes)
      await bad.until(() => bad.isClosed)
      good.write(messageBytes(text("still here")))
      await handler.until(() => handler.messages.length === 1)
      expect(handler.events).toEqual(["ready DEALER", `fault: ${reason}`, "message 10"])
    })
  }

  test("tells the peer with an ERROR why its READY was refused", async () => {
    const { address } = listen("ROUTER")
    const peer = await rawReady(address, "SUB")
    await peer.until(() => peer.isClosed)
    const said = command("ERROR", text("\x21a ROUTER does not talk with a SUB"))
    expect(Buffer.from(peer.received.slice(-said.length)).toString("latin1")).toBe(Buffer.from(said).toString("latin1"))
  })

  test("that does not come to its end is ended", async () => {
    const { address, handler } = listen("ROUTER", { limits: { handshakeMs: 20 } })
    const peer = await raw(address)
    peer.write(packGreeting())
    await peer.until(() => peer.isClosed)
    expect(handler.events).toEqual(["fault: no handshake within 20 ms"])
  })

  test("that is done has no time limit any more", async () => {
    const { address, handler } = listen("ROUTER", { limits: { handshakeMs: 20 } })
    await rawReady(address, "DEALER")
    await handler.peer()
    const later = await raw(address)
    await later.until(() => later.isClosed) // its own 20 ms are over, and so are those of the first
    expect(handler.events).toEqual(["ready DEALER", "fault: no handshake within 20 ms"])
  })

  test("is not begun with more peers than are allowed, and is again when one has left", async () => {
    const { address, handler } = listen("ROUTER", { limits: { peersMax: 2 } })
    const first = await raw(address)
    await first.bytes(64)
    const second = await rawReady(address, "DEALER")
    await second.bytes(64)
    const third = await raw(address)
    await third.until(() => third.isClosed)
    expect(third.received.length).toBe(0)
    first.close()
    await handler.until(() => handler.faults.length === 2)
    await rawReady(address, "DEALER")
    await handler.until(() => handler.peers.length === 2)
    expect(handler.events.toSorted()).toEqual([
      "fault: the peer closed the connection",
      "fault: there are 2 peers already",
      "ready DEALER",
      "ready DEALER",
    ])
  })
})

describe("a ready connection", () => {
  test("hands over all messages of a chunk in order, and keeps its frames as they are", async () => {
    const { address, handler } = listen("PULL")
    const peer = await rawReady(address, "PUSH")
    for (let round = 0; round < 20; round++) {
      const messages = Array.from({ length: 50 }, (_, i) =>
        messageBytes(text(`${round}.${i}`), new Uint8Array(i * 9).fill(i)),
      )
      peer.write(...messages)
      await handler.until(() => handler.messages.length === 50 * (round + 1))
    }
    const said = handler.messages.map(([first]) => Buffer.from(first!).toString())
    expect(said).toEqual(Array.from({ length: 1_000 }, (_, n) => `${Math.floor(n / 50)}.${n % 50}`))
    // The very frames, after later chunks came: received chunks are not reused.
    expect(handler.held.map((frames) => frames.map((frame) => Uint8Array.from(frame)))).toEqual(
      handler.messages.map((frames) => frames.map((frame) => Uint8Array.from(frame))),
    )
    expect(handler.held[0]![0]).not.toBeInstanceOf(Buffer)
  })

  test("answers PING with its context, between the frames of a message too", async () => {
    const { address, handler } = listen("PULL")
    const peer = await rawReady(address, "PUSH")
    await handler.peer()
    const before = handshakeBytes("PULL").length
    await peer.bytes(before)
    peer.write(
      command("PING", Uint8Array.of(0, 0)),
      frameBytes(Flag.more, text("a")),
      command("PING", Uint8Array.of(1, 0), text("sixteen bytes :)")),
      frameBytes(0, text("b")),
    )
    const wanted = Buffer.concat([command("PONG"), command("PONG", text("sixteen bytes :)"))])
    expect(Buffer.from((await peer.bytes(before + wanted.length)).slice(before)).toString("latin1")).toBe(
      wanted.toString("latin1"),
    )
    expect(handler.events).toEqual(["ready PUSH", "message 1 1"])
  })

  test("pings, and gives the PONG's context", async () => {
    const { address, handler } = listen("PULL")
    dial("PUSH", address)
    const peer = await handler.peer()
    expect(peer.ping(text("are you there?"))).toBe(true)
    await handler.until(() => handler.events.length === 2)
    expect(handler.events).toEqual(["ready PUSH", "pong are you there?"])
    expect(() => peer.ping(new Uint8Array(17))).toThrow("at most 16 bytes")
  })

  const broken = "closed: the peer broke the protocol: "
  const table: readonly (readonly [title: string, bytes: Uint8Array, event: string])[] = [
    ["reserved flags", Uint8Array.of(0x10, 0), `${broken}a frame with reserved flags: 16`],
    [
      "a frame beyond the limit",
      frameBytes(0, new Uint8Array(2_000)),
      `${broken}a frame of 2000 bytes, 1000 are allowed`,
    ],
    ["a second READY", ready("DEALER"), `${broken}READY twice`],
    ["a PING that is too short", command("PING", Uint8Array.of(0)), `${broken}a PING of 1 bytes`],
    ["a PING that is too long", command("PING", new Uint8Array(19)), `${broken}a PING of 19 bytes`],
    ["an ERROR", command("ERROR", text("\x03why")), "closed: the peer says: why"],
  ]
  for (const [title, bytes, event] of table) {
    test(`is closed for ${title}; what came before is handed over, what follows is not`, async () => {
      const { address, handler } = listen("ROUTER", { limits: { frameBytesMax: 1_000 } })
      const peer = await rawReady(address, "DEALER")
      peer.write(messageBytes(text("before")), bytes, messageBytes(text("behind")))
      await peer.until(() => peer.isClosed)
      expect(handler.events).toEqual(["ready DEALER", "message 6", event])
    })
  }

  test("ignores commands that it does not know", async () => {
    const { address, handler } = listen("ROUTER")
    const peer = await rawReady(address, "DEALER")
    peer.write(command("HELLO", text("?")), command("SUBSCRIBE", text("x")), command("JOIN"), messageBytes(text("a")))
    await handler.until(() => handler.messages.length === 1)
    expect(handler.events).toEqual(["ready DEALER", "message 1"])
  })

  test("ends when the peer half-closes, once, after what it had sent", async () => {
    const { address, handler } = listen("PULL")
    const peer = await rawReady(address, "PUSH")
    peer.write(messageBytes(text("last words")))
    peer.shutdown()
    await peer.until(() => peer.isClosed)
    const [first] = handler.peers
    expect(first!.send === undefined).toBe(false)
    first!.close()
    first!.close()
    expect(handler.events).toEqual(["ready PUSH", "message 10", "closed: the peer closed the connection"])
  })

  test("ends when the connection is reset", async () => {
    const { address, handler } = listen("PULL")
    const peer = await rawReady(address, "PUSH")
    await handler.peer()
    peer.reset()
    await handler.until(() => handler.events.length === 2)
    expect(handler.events[1]).toStartWith("closed: the ")
  })

  for (const how of ["shutdown", "close", "reset"] as const) {
    test(`ends at once when a peer that does not read says ${how} while much waits for it`, async () => {
      const { address, handler } = listen("PUSH")
      const other = await rawReady(address, "PULL")
      const peer = await handler.peer()
      await other.bytes(handshakeBytes("PUSH").length)
      other.pause()
      const frame = new Uint8Array(1_000_000)
      while (peer.bufferedBytes < 10_000_000) peer.send([frame, text("and a small one")])
      other[how]()
      await handler.until(() => handler.events.length === 2)
      expect(handler.events[1]).toStartWith("closed: the ")
      expect([peer.bufferedBytes, peer.send([frame])]).toEqual([0, false])
    })
  }

  test("is closed once by close(), and sends nothing any more", async () => {
    const { address, handler } = listen("ROUTER")
    const other = await rawReady(address, "DEALER")
    const peer = await handler.peer()
    expect(peer.send([text("last")])).toBe(true)
    peer.close()
    peer.close()
    expect([peer.send([text("late")]), peer.ping(text("")), peer.bufferedBytes]).toEqual([false, false, 0])
    await other.until(() => other.isClosed)
    const wanted = Buffer.concat([handshakeBytes("ROUTER", text("")), messageBytes(text("last"))])
    expect(Buffer.compare(other.received, wanted)).toBe(0)
    expect(handler.events).toEqual(["ready DEALER", "closed: closed by this side"])
  })

  test("that is closed by a message hands over nothing more, and leaves that message whole", async () => {
    const handler = new RecordingHandler()
    const after: number[] = []
    handler.onMessage = (peer, frames) => {
      peer.close()
      after.push(frames.length)
    }
    const { address } = listen("PULL", { handler })
    const peer = await rawReady(address, "PUSH")
    peer.write(messageBytes(text("a"), text("b")), messageBytes(text("c")))
    await peer.until(() => peer.isClosed)
    expect([handler.events, after]).toEqual([["ready PUSH", "message 1 1", "closed: closed by this side"], [2]])
  })

  test("sends what was sent in one turn together", async () => {
    const { address, handler } = listen("ROUTER")
    const other = await rawReady(address, "DEALER")
    const peer = await handler.peer()
    await other.bytes(handshakeBytes("ROUTER", text("")).length)
    for (let i = 0; i < 10; i++) peer.send([text("a"), text("b")])
    expect(peer.bufferedBytes).toBe(60)
    await Promise.resolve()
    expect(peer.bufferedBytes).toBe(0)
  })

  test("refuses what goes beyond its send buffer, sends nothing of it, and takes messages again after the drain", async () => {
    const limits = { sendBufferBytesMax: 3_000_000 }
    const { address, handler } = listen("ROUTER", { limits })
    const other = await rawReady(address, "DEALER")
    const peer = await handler.peer()
    other.pause()
    const chunk = new Uint8Array(500_000).fill(1)
    let accepted = 0
    while (accepted < 100 && peer.send([Uint8Array.of(accepted), chunk])) accepted += 1
    expect(accepted).toBeLessThan(100) // the kernel's buffers are smaller than that
    expect(peer.bufferedBytes).toBeLessThanOrEqual(3_000_000)
    expect(peer.bufferedBytes).toBeGreaterThan(2_000_000)
    expect([peer.send([new Uint8Array(4_000_000)]), peer.send([chunk, chunk, chunk])]).toEqual([false, false])
    expect(handler.drainedBytes).toEqual([])
    other.resume()
    await handler.until(() => handler.drainedBytes.length > 0)
    expect(handler.drainedBytes).toEqual([0])
    const handshake = handshakeBytes("ROUTER", text("")).length
    const each = 3 + 9 + 500_000
    const bytes = await other.bytes(handshake + accepted * each)
    const firsts = Array.from({ length: accepted }, (_, i) => bytes[handshake + i * each + 2]!)
    expect(firsts).toEqual(Array.from({ length: accepted }, (_, i) => i))
    expect([peer.bufferedBytes, peer.send([text("again")])]).toEqual([0, true])
    expect(peer.send([new Uint8Array(3_000_000)])).toBe(false)
  })

  test("asserts what only its caller can get wrong", async () => {
    const { address, handler } = listen("PULL")
    await rawReady(address, "PUSH")
    const peer = await handler.peer()
    expect(() => peer.send([text("x")])).toThrow("a PULL sends no messages")
    const router = listen("ROUTER")
    await rawReady(router.address, "DEALER")
    const dealer = await router.handler.peer()
    expect(() => dealer.subscribe(text(""), true)).toThrow("a ROUTER subscribes to nothing")
    expect(() => dealer.send([])).toThrow("at least one frame")
    expect(() => listen("ROUTER", { identity: new Uint8Array(256) })).toThrow("an identity of 256 bytes")
  })

  test("an exception of the handler costs the peer its connection and nobody else", async () => {
    const handler = new RecordingHandler()
    handler.onMessage = (_, frames) => {
      if (frames[0]!.length === 4) throw new Error("a bug")
    }
    handler.onClosed = () => {
      throw new Error("another bug")
    }
    const { address } = listen("PULL", { handler })
    const good = await rawReady(address, "PUSH")
    const bad = await rawReady(address, "PUSH")
    await handler.until(() => handler.peers.length === 2)
    bad.write(messageBytes(text("boom")), messageBytes(text("never")))
    await bad.until(() => bad.isClosed)
    good.write(messageBytes(text("fine!")))
    await handler.until(() => handler.messages.length === 2)
    const firstLines = handler.events.map((event) => event.split("\n")[0])
    expect(firstLines).toEqual([
      "ready PUSH",
      "ready PUSH",
      "message 4",
      "closed: an exception: Error: a bug",
      "fault: closed() threw: Error: another bug",
      "message 5",
    ])
  })

  test("an exception from `ready` costs the peer its connection", async () => {
    const handler = new RecordingHandler()
    handler.onReady = () => {
      throw new Error("not ready for this")
    }
    const { address } = listen("PULL", { handler })
    const peer = await rawReady(address, "PUSH")
    await peer.until(() => peer.isClosed)
    expect(handler.events.map((event) => event.split("\n")[0])).toEqual([
      "ready PUSH",
      "closed: an exception: Error: not ready for this",
    ])
  })

  test("drops messages that come where none may come", async () => {
    const { address, handler } = listen("PUSH")
    const peer = await rawReady(address, "PULL")
    peer.write(messageBytes(text("?")), command("PING", Uint8Array.of(0, 0)))
    await peer.bytes(handshakeBytes("PUSH").length + 7)
    expect(handler.events).toEqual(["ready PULL"])
  })
})

describe("subscriptions", () => {
  test("reach an XPUB as commands and as messages; other messages are handed over", async () => {
    const { address, handler } = listen("XPUB")
    const peer = await rawReady(address, "XSUB")
    peer.write(
      messageBytes(Uint8Array.of(1)),
      command("SUBSCRIBE", text("topic")),
      messageBytes(text("\x01a")),
      messageBytes(text("\x00a")),
      command("CANCEL", text("topic")),
      messageBytes(text("upstream")),
      messageBytes(text("\x01a"), text("b")),
      messageBytes(text("")),
    )
    await handler.until(() => handler.events.length === 9)
    expect(handler.events).toEqual([
      "ready XSUB",
      "subscribed",
      "subscribed topic",
      "subscribed a",
      "cancelled a",
      "cancelled topic",
      "message 8",
      "message 2 1",
      "message 0",
    ])
  })

  test("are sent as the peer's version has them", async () => {
    const wanted: readonly (readonly [minor: number, bytes: Uint8Array])[] = [
      [1, Buffer.concat([command("SUBSCRIBE", text("to")), command("CANCEL", text(""))])],
      [0, Buffer.concat([messageBytes(text("\x01to")), messageBytes(text("\x00"))])],
    ]
    for (const [minor, bytes] of wanted) {
      const { address, handler } = listen("SUB")
      const other = await raw(address)
      other.write(greeting([11, minor]), ready("PUB"))
      const peer = await handler.peer()
      peer.subscribe(text("to"), true)
      peer.subscribe(text(""), false)
      const before = handshakeBytes("SUB").length
      const all = await other.bytes(before + bytes.length)
      expect(Buffer.from(all.slice(before)).toString("hex")).toBe(Buffer.from(bytes).toString("hex"))
    }
  })
})

describe("a listener", () => {
  test("gives the address that it really has", () => {
    expect(listen("PULL").address).toMatch(/^tcp:\/\/127\.0\.0\.1:[1-9]\d+$/)
    expect(listen("PULL", {}, "tcp://*:*").address).toMatch(/^tcp:\/\/0\.0\.0\.0:[1-9]\d+$/)
    const path = socketPath()
    expect(listen("PULL", {}, `ipc://${path}`).address).toBe(`ipc://${path}`)
  })

  test("takes names of the abstract namespace, and IPv6", async () => {
    for (const address of [`ipc://@sluice-zmtp-${process.pid}`, "tcp://[::1]:0"]) {
      const listening = listen("PULL", {}, address)
      const { handler } = dial("PUSH", listening.address)
      const peer = await handler.peer()
      peer.send([text("hello")])
      await listening.handler.until(() => listening.handler.messages.length === 1)
      expect(listening.handler.events).toEqual(["ready PUSH", "message 5"])
    }
  })

  test("fails where somebody listens, and at addresses that cannot be", () => {
    const taken = listen("PULL")
    const path = socketPath()
    listen("PULL", {}, `ipc://${path}`)
    const file = join(folder, "plain-file")
    writeFileSync(file, "keep me")
    const failures = [
      taken.address,
      `ipc://${path}`,
      `ipc://${file}`,
      `ipc://${folder}/none/x.sock`,
      "tcp://no-such-host.invalid:0",
      "udp://127.0.0.1:1",
    ].map((address) => {
      const listening = listenZmtp({ address, socketType: "PULL", handler: new RecordingHandler() })
      return listening.ok ? "listens" : `${listening.error.kind} ${listening.error.message}`
    })
    expect(failures).toEqual([
      `zmtp_listen ${taken.address}: EADDRINUSE`,
      `zmtp_listen ipc://${path}: EADDRINUSE`,
      `zmtp_listen ipc://${file}: EADDRINUSE`,
      `zmtp_listen ipc://${folder}/none/x.sock: ENOENT`,
      "zmtp_listen tcp://no-such-host.invalid:0: Failed to listen at no-such-host.invalid",
      'zmtp_address "udp://127.0.0.1:1": an address begins with tcp:// or ipc://',
    ])
    expect([existsSync(file), existsSync(path)]).toEqual([true, true])
  })

  test("removes its socket file, and replaces one whose owner was killed", async () => {
    const path = socketPath()
    const script = `Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } }); console.log("listens")`
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" })
    const reader = child.stdout.getReader()
    await reader.read()
    child.kill("SIGKILL")
    await child.exited
    expect(existsSync(path)).toBe(true)
    const { listener } = listen("PULL", {}, `ipc://${path}`)
    const { handler } = dial("PUSH", `ipc://${path}`)
    await handler.peer()
    listener.close()
    expect(existsSync(path)).toBe(false)
  })

  test("closes its peers with it, once", async () => {
    const { address, handler, listener } = listen("ROUTER")
    const half = await raw(address)
    await half.bytes(64)
    const peer = await rawReady(address, "DEALER")
    await handler.peer()
    listener.close()
    listener.close()
    await Promise.all([half.until(() => half.isClosed), peer.until(() => peer.isClosed)])
    expect(handler.events.toSorted()).toEqual([
      "closed: the listener was closed",
      "fault: the listener was closed",
      "ready DEALER",
    ])
  })
})

describe("a dialer", () => {
  test("dials until somebody listens, and again after each loss", async () => {
    const path = `ipc://${socketPath()}`
    const { handler } = dial("DEALER", path, { identity: Uint8Array.of(1, 0) })
    await handler.until(() => handler.faults.length >= 2)
    const first = listen("ROUTER", {}, path)
    await first.handler.peer()
    first.listener.close()
    await handler.until(() => handler.events.some((event) => event.startsWith("closed")))
    const second = listen("ROUTER", {}, path)
    const peer = await second.handler.peer()
    expect(second.handler.events).toEqual(["ready DEALER 0100"])
    peer.close()
    await second.handler.until(() => second.handler.peers.length === 2)
    expect(handler.faults[0]).toBe(`${path}: ENOENT`)
    expect(new Set(handler.events.filter((event) => !event.startsWith("fault")))).toEqual(
      new Set(["ready ROUTER", "closed: the peer closed the connection"]),
    )
  })

  test("that is closed closes its connection and dials no more", async () => {
    const { address, handler } = listen("ROUTER")
    const dialing = dial("DEALER", address)
    await dialing.handler.peer()
    await handler.peer()
    dialing.dialer.close()
    dialing.dialer.close()
    await handler.until(() => handler.events.length === 2)
    expect(dialing.handler.events).toEqual(["ready ROUTER", "closed: the dialer was closed"])
    expect(handler.events).toEqual(["ready DEALER", "closed: the peer closed the connection"])
  })

  test("that is closed while it dials or waits never gets a peer", async () => {
    const { address, handler } = listen("ROUTER")
    dial("DEALER", address).dialer.close()
    const waiting = dial("DEALER", `ipc://${socketPath()}`)
    await waiting.handler.until(() => waiting.handler.faults.length === 1)
    waiting.dialer.close()
    const dialing = dial("DEALER", address)
    await Promise.resolve() // it dials now
    dialing.dialer.close()
    dial("DEALER", address)
    await handler.peer()
    expect(handler.events.filter((event) => event.startsWith("ready"))).toEqual(["ready DEALER"])
    expect(waiting.handler.faults.length).toBe(1)
  })

  test("tells of each dial that fails, never before it is returned", async () => {
    const { handler } = dial("DEALER", "tcp://no-such-host.invalid:1")
    const { handler: refused } = dial("DEALER", `ipc://${socketPath()}`)
    expect([handler.events, refused.events]).toEqual([[], []])
    await handler.until(() => handler.faults.length === 1)
    await refused.until(() => refused.faults.length === 3)
    expect(handler.faults[0]).toBe("tcp://no-such-host.invalid:1: ENOTFOUND")
    expect(refused.events).toEqual(Array(3).fill("fault: ENOENT"))
  })

  test("fails at an address that says not where to", () => {
    const dialing = connectZmtp({ address: "tcp://*:5555", socketType: "PUSH", handler: new RecordingHandler() })
    expect(dialing).toEqual({
      ok: false,
      error: { kind: "zmtp_address", message: '"tcp://*:5555": a host to dial is needed' },
    })
  })

  test("and a listener let the process end when they are closed", async () => {
    const script = `
      import { connectZmtp } from "${import.meta.dir}/../../../src/engine/zmtp/dialer"
      import { listenZmtp } from "${import.meta.dir}/../../../src/engine/zmtp/listener"
      const none = { ready() {}, message() {}, closed() {} }
      const listening = listenZmtp({ address: "tcp://127.0.0.1:0", socketType: "PULL", handler: none }).value
      const nowhere = connectZmtp({ address: "ipc:///nowhere/x.sock", socketType: "PUSH", handler: none, retryMs: 60_000 }).value
      const dialing = connectZmtp({ address: listening.address, socketType: "PUSH", handler: { ...none, ready() {
        dialing.close(); nowhere.close(); listening.close(); console.log("closed")
      } } }).value`
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" })
    expect([await new Response(child.stdout).text(), await child.exited]).toEqual(["closed\n", 0])
  })
})
