/**
 * Our ZMTP against libzmq itself, both ways round, over both transports, and through a proxy that cuts the bytes at
 * random places.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connectZmtp } from "../../../src/engine/zmtp/dialer"
import { listenZmtp } from "../../../src/engine/zmtp/listener"
import { MessageReader } from "../../../src/engine/zmtp/message-reader"
import { defaultZmtpLimits, type SocketType, type ZmtpPeer } from "../../../src/engine/zmtp/peer"
import { missingPython } from "../../support/python-environment"
import { CuttingProxy } from "./cutting-proxy"
import { digestOf, type FrameSpec, frameOf, Libzmq } from "./libzmq"
import { text } from "./raw-peer"
import { RecordingHandler } from "./recording-handler"

const reason = missingPython()
if (reason !== null) console.log(`zmtp interop: skipped, ${reason}`)
const seed = Math.floor(Math.random() * 1_000_000)

/** Every length at which framing or copying changes its ways, alone and together. */
const lengths = [0, 1, 254, 255, 256, 16_383, 16_384, 16_385, 65_526, 65_536, 65_537, 200_000, 1_048_577, 5_000_000]
const assorted: readonly (readonly FrameSpec[])[] = [
  ...lengths.map((length): readonly FrameSpec[] => [[length, 1]]),
  lengths.map((length, i): FrameSpec => [length, i]),
  [
    [0, 0],
    [0, 0],
    [0, 0],
  ],
]
/** Many small ones, numbered by their second frame. */
const many: readonly (readonly FrameSpec[])[] = Array.from({ length: 3_000 }, (_, i): readonly FrameSpec[] => [
  [(i * 7) % 300, i & 255],
  [4, i & 255],
])

const digests = (messages: readonly (readonly FrameSpec[])[]) =>
  messages.map((frames) => frames.map((frame) => digestOf(frameOf(frame))))
const got = (handler: RecordingHandler) => handler.messages.map((frames) => frames.map(digestOf))

describe.skipIf(reason !== null)(`libzmq, seed ${seed}`, () => {
  let libzmq: Libzmq
  const folder = mkdtempSync(join(tmpdir(), "sluice-zmtp-"))
  const open: { close(): unknown }[] = []
  let files = 0

  beforeAll(async () => {
    libzmq = await Libzmq.start()
  }, 300_000)
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close()
  })
  afterAll(async () => {
    expect(await libzmq.end()).toBe(0)
    rmSync(folder, { recursive: true, force: true })
  })

  const ipc = () => `ipc://${folder}/${++files}.sock`
  const tcp = () => "tcp://127.0.0.1:0"
  const transports = [
    { title: "tcp", address: tcp, cut: false },
    { title: "ipc", address: ipc, cut: false },
    { title: "tcp, cut at random", address: tcp, cut: true },
  ]

  function through(address: string, cut: boolean): string {
    if (!cut) return address
    const proxy = new CuttingProxy(address, seed)
    open.push(proxy)
    return proxy.address
  }

  /** We listen and libzmq connects. */
  async function listening(type: SocketType, theirs: string, at: string, cut: boolean, options = {}) {
    const handler = new RecordingHandler()
    const listener = listenZmtp({ address: at, socketType: type, handler })
    if (!listener.ok) throw new Error(listener.error.message)
    const socket = await libzmq.socket(theirs, options)
    open.push(socket, listener.value)
    await socket.connect(through(listener.value.address, cut))
    return { handler, socket, peer: await handler.peer() }
  }

  /** libzmq listens and we dial. */
  async function dialing(type: SocketType, theirs: string, at: string, cut: boolean, identity?: Uint8Array) {
    const handler = new RecordingHandler()
    const socket = await libzmq.socket(theirs)
    const address = await socket.bind(at.replace(":0", ":*"))
    const dialer = connectZmtp({ address: through(address, cut), socketType: type, identity, handler })
    if (!dialer.ok) throw new Error(dialer.error.message)
    open.push(dialer.value, socket)
    return { handler, socket, peer: await handler.peer() }
  }

  function sendAll(peer: ZmtpPeer, messages: readonly (readonly FrameSpec[])[], before: readonly Uint8Array[] = []) {
    for (const frames of messages) {
      if (!peer.send([...before, ...frames.map(frameOf)])) throw new Error("the send buffer is full")
    }
  }

  for (const { title, address, cut } of transports) {
    describe(`over ${title}`, () => {
      test("DEALER → our ROUTER and back: every length, thousands in order, the identity", async () => {
        const { handler, socket, peer } = await listening("ROUTER", "DEALER", address(), cut, { ROUTING_ID: "0100" })
        expect([peer.socketType, [...peer.identity]]).toEqual(["DEALER", [1, 0]])
        const messages = [...assorted, ...many]
        await socket.send(...messages)
        await handler.until(() => handler.messages.length === messages.length)
        expect(got(handler)).toEqual(digests(messages))
        sendAll(peer, messages)
        expect(await socket.receive(messages.length)).toEqual(digests(messages))
      })

      test("our DEALER → ROUTER and back, which routes by the identity that we gave", async () => {
        const identity = Uint8Array.of(0, 0)
        const { handler, socket, peer } = await dialing("DEALER", "ROUTER", address(), cut, identity)
        sendAll(peer, assorted)
        expect(await socket.echo(assorted.length)).toBe(assorted.length)
        await handler.until(() => handler.messages.length === assorted.length)
        expect(got(handler)).toEqual(digests(assorted))
        sendAll(peer, many)
        const wanted = digests(many).map((frames) => [digestOf(identity), ...frames])
        expect(await socket.receive(many.length)).toEqual(wanted)
      })

      test("PUSH → our PULL", async () => {
        const { handler, socket } = await listening("PULL", "PUSH", address(), cut)
        await socket.send(...assorted, ...many)
        await handler.until(() => handler.messages.length === assorted.length + many.length)
        expect(got(handler)).toEqual(digests([...assorted, ...many]))
      })

      test("our PUSH → PULL", async () => {
        const { socket, peer } = await dialing("PUSH", "PULL", address(), cut)
        sendAll(peer, [...assorted, ...many])
        expect(await socket.receive(assorted.length + many.length)).toEqual(digests([...assorted, ...many]))
      })

      test("our XPUB → SUB, which subscribes and takes that back", async () => {
        const { handler, socket, peer } = await listening("XPUB", "SUB", address(), cut, { SUBSCRIBE: "" })
        await handler.until(() => handler.events.length === 2)
        sendAll(peer, assorted)
        expect(await socket.receive(assorted.length)).toEqual(digests(assorted))
        expect(handler.events).toEqual(["ready SUB", "subscribed"])
      })

      test("our XPUB ↔ XSUB, which subscribes with an ordinary message as engines do", async () => {
        const { handler, socket, peer } = await listening("XPUB", "XSUB", address(), cut)
        await socket.sendBytes(Uint8Array.of(1))
        await handler.until(() => handler.events.length === 2)
        sendAll(peer, assorted)
        expect(await socket.receive(assorted.length)).toEqual(digests(assorted))
        await socket.sendBytes(text("upstream"))
        await socket.sendBytes(Uint8Array.of(0))
        await handler.until(() => handler.events.length === 4)
        expect(handler.events).toEqual(["ready XSUB", "subscribed", "message 8", "cancelled"])
      })

      for (const ours of ["SUB", "XSUB"] as const) {
        test(`our ${ours} ← XPUB, which filters by our subscriptions`, async () => {
          const { handler, socket, peer } = await dialing(ours, "XPUB", address(), cut)
          expect([peer.subscribe(text("a"), true), peer.subscribe(text("b"), true)]).toEqual([true, true])
          peer.subscribe(text("b"), false)
          const subscriptions = ["\x01a", "\x01b", "\x00b"].map((one) => [digestOf(text(one))])
          expect(await socket.receive(3)).toEqual(subscriptions)
          for (const topic of ["b1", "a1", "c1", "a2"]) await socket.sendBytes(text(topic), text("!"))
          await handler.until(() => handler.messages.length === 2)
          expect(handler.messages.map(([topic]) => Buffer.from(topic!).toString())).toEqual(["a1", "a2"])
        })
      }
    })
  }

  test("names of the abstract namespace are the same names to both", async () => {
    const at = () => `ipc://@sluice-interop-${process.pid}-${++files}`
    const ours = await listening("PULL", "PUSH", at(), false)
    await ours.socket.send([[5, 1]])
    await ours.handler.until(() => ours.handler.messages.length === 1)
    const theirs = await dialing("PUSH", "PULL", at(), false)
    theirs.peer.send([text("hello")])
    expect(await theirs.socket.receive(1)).toEqual([[digestOf(text("hello"))]])
  })

  test("our SUB ← PUB", async () => {
    const { handler, socket, peer } = await dialing("SUB", "PUB", tcp(), false)
    peer.subscribe(text("a"), true)
    // A PUB does not tell when it has the subscription.
    while (handler.messages.length === 0) await socket.sendBytes(text("a"))
    expect(new Set(handler.events)).toEqual(new Set(["ready PUB", "message 1"]))
  })

  test("our PUB → SUB hears of each topic", async () => {
    const { handler, socket, peer } = await listening("PUB", "SUB", tcp(), false, { SUBSCRIBE: "6162" })
    await handler.until(() => handler.events.length === 2)
    peer.send([text("abc")])
    peer.send([text("other")]) // the subscriber filters once more by itself
    peer.send([text("abd")])
    expect(await socket.receive(2)).toEqual([[digestOf(text("abc"))], [digestOf(text("abd"))]])
    expect(handler.events).toEqual(["ready SUB", "subscribed ab"])
  })

  test("REQ and REP talk with our ROUTER and DEALER, with their empty frame", async () => {
    const router = await listening("ROUTER", "REQ", tcp(), false)
    await router.socket.sendBytes(text("question"))
    await router.handler.until(() => router.handler.messages.length === 1)
    expect(router.handler.events).toEqual(["ready REQ", "message 0 8"])
    router.peer.send([new Uint8Array(0), text("answer")])
    expect(await router.socket.receive(1)).toEqual([[digestOf(text("answer"))]])
    const dealer = await dialing("DEALER", "REP", tcp(), false)
    dealer.peer.send([new Uint8Array(0), text("question")])
    expect(await dealer.socket.receive(1)).toEqual([[digestOf(text("question"))]])
  })

  test("heartbeats of libzmq are answered while it waits for nothing else", async () => {
    const handler = new RecordingHandler()
    const listener = listenZmtp({ address: tcp(), socketType: "PULL", handler })
    if (!listener.ok) throw new Error(listener.error.message)
    let pongs = 0
    let greetingLeft = 64
    let enough = () => {}
    const answered = new Promise<void>((resolve) => {
      enough = resolve
    })
    const reader = new MessageReader(defaultZmtpLimits, {
      message() {},
      malformed() {},
      command(body) {
        if (body[1] === 0x50) pongs += 1 // PONG
        if (pongs === 10) enough()
      },
    })
    const proxy = new CuttingProxy(listener.value.address, seed, (bytes) => {
      const from = Math.min(greetingLeft, bytes.length)
      greetingLeft -= from
      reader.push(bytes.slice(from), 0)
    })
    const socket = await libzmq.socket("PUSH", { HEARTBEAT_IVL: 20, HEARTBEAT_TIMEOUT: 10_000, HEARTBEAT_TTL: 10_000 })
    open.push(socket, proxy, listener.value)
    await socket.connect(proxy.address)
    await answered
    await socket.send([[3, 0]])
    await handler.until(() => handler.messages.length === 1)
    expect(handler.events).toEqual(["ready PUSH", "message 3"])
  })

  test("a libzmq whose type does not fit is refused, and the next one is served", async () => {
    const handler = new RecordingHandler()
    const listener = listenZmtp({ address: tcp(), socketType: "PULL", handler })
    if (!listener.ok) throw new Error(listener.error.message)
    const wrong = await libzmq.socket("SUB")
    const right = await libzmq.socket("PUSH")
    open.push(wrong, right, listener.value)
    await wrong.connect(listener.value.address)
    await handler.until(() => handler.faults.length > 0)
    await right.connect(listener.value.address)
    await handler.peer()
    expect(handler.events.filter((event) => event.startsWith("ready"))).toEqual(["ready PUSH"])
  })

  test("a libzmq that is closed is seen at once, its last messages first", async () => {
    const { handler, socket } = await listening("PULL", "PUSH", ipc(), false)
    await socket.send([[100_000, 1]], [[5, 2]])
    await socket.close()
    open.splice(0, 1)
    await handler.until(() => handler.events.length === 4)
    expect(handler.events).toEqual([
      "ready PUSH",
      "message 100000",
      "message 5",
      "closed: the peer closed the connection",
    ])
  })
})
