/**
 * One end of a pair for bench/zmtp.ts, in a process of its own: `zmtp-peer.ts KIND ROLE ADDRESS BYTES SECONDS [LIBRARY]`.
 * KIND is sluice, or libzmq by its C interface. `receive` and `echo` listen and print their address first; at the end
 * `receive`, `send` and `ask` print what they measured. A message of one byte ends a run.
 */
import { CString, dlopen, ptr } from "bun:ffi"
import { connectZmtp } from "../../src/engine/zmtp/dialer"
import { listenZmtp } from "../../src/engine/zmtp/listener"
import { defaultZmtpLimits, type ZmtpHandler, type ZmtpPeer } from "../../src/engine/zmtp/peer"

const [kind, role, address, bytesText, secondsText, library] = Bun.argv.slice(2)
const bytes = Number(bytesText)
const nanoseconds = Number(secondsText) * 1e9
/** Bodies up to this length carry their number, which the receiver checks; larger ones are not written to. */
const numberedBytesMax = 1_024
const highWaterMark = 10_000
const end = Uint8Array.of(46)

function tell(what: object): void {
  console.log(JSON.stringify(what))
}

/** Counts and times from the first message on, which is not counted. */
class Meter {
  count = 0
  private startedAt = 0
  private cpu = process.cpuUsage()

  start(): void {
    this.startedAt = Bun.nanoseconds()
    this.cpu = process.cpuUsage()
  }
  get spent(): number {
    return Bun.nanoseconds() - this.startedAt
  }
  tell(): void {
    const seconds = this.spent / 1e9
    const { user, system } = process.cpuUsage(this.cpu)
    tell({ count: this.count, seconds, cpu: (user + system) / 1e6 })
  }
}

function checkNumber(frame: Uint8Array, wanted: number): void {
  if (frame.length !== bytes) throw new Error(`a message of ${frame.length} bytes`)
  if (bytes > numberedBytesMax) return
  const number = frame[0]! | (frame[1]! << 8) | (frame[2]! << 16)
  if (number !== (wanted & 0xff_ffff)) throw new Error(`message ${wanted} says ${number}`)
}

function putNumber(body: Uint8Array, number: number): void {
  if (bytes > numberedBytesMax) return
  body[0] = number
  body[1] = number >> 8
  body[2] = number >> 16
}

const none = { ready() {}, message() {}, closed() {} }

function sluice(): void {
  const limits = { ...defaultZmtpLimits, sendBufferBytesMax: 8 * 2 ** 20 }
  const meter = new Meter()
  const listen = (socketType: "PULL" | "ROUTER", handler: ZmtpHandler): void => {
    const listening = listenZmtp({
      address: address!,
      socketType,
      limits,
      handler: {
        ...handler,
        closed: (_, reason) => {
          if (reason.startsWith("an exception")) throw new Error(reason)
          if (listening.ok) listening.value.close()
        },
        fault: (reason) => {
          console.error(reason)
          process.exit(1)
        },
      },
    })
    if (!listening.ok) throw new Error(listening.error.message)
    tell({ address: listening.value.address })
  }
  const dial = (socketType: "PUSH" | "DEALER", handler: ZmtpHandler) => {
    const dialing = connectZmtp({ address: address!, socketType, limits, handler })
    if (!dialing.ok) throw new Error(dialing.error.message)
    return dialing.value
  }
  if (role === "receive") {
    let isFirst = true
    listen("PULL", {
      ...none,
      message(peer, [frame]) {
        if (isFirst) {
          isFirst = false
          meter.start()
        } else if (frame!.length === 1) {
          meter.tell()
          peer.close()
        } else {
          checkNumber(frame!, meter.count)
          meter.count += 1
        }
      },
    })
  } else if (role === "echo") {
    listen("ROUTER", { ...none, message: (peer, frames) => void peer.send(frames) })
  } else if (role === "send") {
    const body = new Uint8Array(bytes)
    const frames = [body]
    let isWaiting = false
    const pump = (peer: ZmtpPeer): void => {
      for (let i = 0; i < 1_000; i++) {
        putNumber(body, meter.count)
        isWaiting = !peer.send(frames)
        if (isWaiting) return // goes on when drained
        meter.count += 1
      }
      if (meter.spent < nanoseconds) setImmediate(pump, peer)
      else finish(peer)
    }
    const finish = (peer: ZmtpPeer): void => {
      isWaiting = !peer.send([end])
      if (!isWaiting) meter.tell()
    }
    // The receiver closes when it has everything.
    const dialer = dial("PUSH", {
      ...none,
      ready(peer) {
        peer.send([new Uint8Array(bytes)])
        meter.start()
        setImmediate(pump, peer)
      },
      drained(peer) {
        if (isWaiting) (meter.spent < nanoseconds ? pump : finish)(peer)
      },
      closed: () => dialer.close(),
    })
  } else {
    const body = new Uint8Array(bytes)
    const micros: number[] = []
    let startedAt = 0
    let askedAt = 0
    const dialer = dial("DEALER", {
      ...none,
      ready(peer) {
        startedAt = askedAt = Bun.nanoseconds()
        peer.send([body])
      },
      message(peer, [frame]) {
        if (frame!.length === 1) return dialer.close()
        const now = Bun.nanoseconds()
        micros.push((now - askedAt) / 1e3)
        askedAt = now
        if (now - startedAt < nanoseconds) peer.send([body])
        else {
          peer.send([end])
          tell({ micros })
        }
      },
    })
  }
}

/** Numbers of libzmq's C interface. */
const zmq = { DEALER: 5, ROUTER: 6, PULL: 7, PUSH: 8, SNDHWM: 23, RCVHWM: 24, LAST_ENDPOINT: 32, SNDMORE: 2 } as const

function libzmq(): void {
  const { symbols: c } = dlopen(library!, {
    zmq_ctx_new: { args: [], returns: "ptr" },
    zmq_ctx_term: { args: ["ptr"], returns: "int" },
    zmq_socket: { args: ["ptr", "int"], returns: "ptr" },
    zmq_close: { args: ["ptr"], returns: "int" },
    zmq_setsockopt: { args: ["ptr", "int", "ptr", "u64"], returns: "int" },
    zmq_getsockopt: { args: ["ptr", "int", "ptr", "ptr"], returns: "int" },
    zmq_bind: { args: ["ptr", "ptr"], returns: "int" },
    zmq_connect: { args: ["ptr", "ptr"], returns: "int" },
    zmq_send: { args: ["ptr", "ptr", "u64", "int"], returns: "int" },
    zmq_recv: { args: ["ptr", "ptr", "u64", "int"], returns: "int" },
  })
  const context = c.zmq_ctx_new()
  const types = { receive: zmq.PULL, send: zmq.PUSH, echo: zmq.ROUTER, ask: zmq.DEALER }
  const socket = c.zmq_socket(context, types[role as keyof typeof types]) // The bench gives no other roles.
  const mark = Int32Array.of(highWaterMark)
  c.zmq_setsockopt(socket, zmq.SNDHWM, ptr(mark), 4)
  c.zmq_setsockopt(socket, zmq.RCVHWM, ptr(mark), 4)
  const named = Buffer.from(`${address!.replace(/:0$/, ":*")}\0`)
  // Over a buffer of its own: the bytes of a small array would move when a view of them is made.
  const body = new Uint8Array(new ArrayBuffer(Math.max(bytes, 256)))
  const at = ptr(body)
  const meter = new Meter()
  // A call that a signal of the runtime interrupts gives -1 and has done nothing.
  const receive = () => {
    for (;;) {
      const length = c.zmq_recv(socket, at, body.length, 0)
      if (length >= 0) return length
    }
  }
  const send = (length: number) => {
    while (c.zmq_send(socket, at, length, 0) < 0);
  }
  if (role === "receive" || role === "echo") {
    if (c.zmq_bind(socket, ptr(named)) !== 0) throw new Error(`cannot bind ${address}`)
    const endpoint = new Uint8Array(256)
    c.zmq_getsockopt(socket, zmq.LAST_ENDPOINT, ptr(endpoint), ptr(BigUint64Array.of(256n)))
    tell({ address: new CString(ptr(endpoint)).toString() })
  } else if (c.zmq_connect(socket, ptr(named)) !== 0) throw new Error(`cannot connect to ${address}`)

  if (role === "receive") {
    const frame = body.subarray(0, bytes)
    receive()
    meter.start()
    while (receive() !== 1) {
      checkNumber(frame, meter.count)
      meter.count += 1
    }
    meter.tell()
  } else if (role === "send") {
    send(bytes)
    meter.start()
    while (meter.spent < nanoseconds) {
      for (let i = 0; i < 100; i++) {
        putNumber(body, meter.count)
        send(bytes)
        meter.count += 1
      }
    }
    meter.tell()
    send(1)
  } else if (role === "echo") {
    const identity = new Uint8Array(256)
    for (;;) {
      const identityBytes = c.zmq_recv(socket, ptr(identity), 256, 0)
      if (identityBytes < 0) continue
      const length = receive()
      while (c.zmq_send(socket, ptr(identity), identityBytes, zmq.SNDMORE) < 0);
      send(length)
      if (length === 1) break
    }
  } else {
    const micros: number[] = []
    const startedAt = Bun.nanoseconds()
    for (let askedAt = startedAt; askedAt - startedAt < nanoseconds; ) {
      send(bytes)
      receive()
      const now = Bun.nanoseconds()
      micros.push((now - askedAt) / 1e3)
      askedAt = now
    }
    send(1)
    receive()
    tell({ micros })
  }
  c.zmq_close(socket)
  c.zmq_ctx_term(context)
}

if (kind === "sluice") sluice()
else libzmq()
