/**
 * An engine of our own over our own ZMTP: it dials, registers and answers as a headless vLLM engine does
 * (ENGINE_PROTOCOL), and breaks in every way that a test orders. Requests say in `extra_args` which tokens they want
 * (`mock_tokens`, as the stand-in engine knows it) and how they shall fail (`test_fail`, `test_fail_after`). Every
 * message it gets is judged by `StrictEngine`: what a real engine would die of is kept in `deaths`.
 */
import { connectZmtp } from "../../src/engine/zmtp/dialer"
import type { SocketType, ZmtpDialer, ZmtpHandler, ZmtpPeer } from "../../src/engine/zmtp/peer"
import { schedulerStats } from "./engine-outputs"
import { float, type Packable, pack } from "./message-pack"
import { type ScriptedFailure, ScriptedSequence } from "./scripted-sequence"
import { type DecodedRequest, StrictEngine } from "./strict-decoder"
import { readWire, type WireValue } from "./wire-value"

/** What a test engine is started with; all but the address has a default. */
export interface TestEngineOptions {
  /** The handshake address of the front end. */
  readonly address: string
  readonly rank?: number
  readonly version?: string
  /** Keys on top of the registration's; null = the empty payload of old engines. */
  readonly facts?: { readonly [key: string]: Packable } | null
  /** Elements of an output: 18 before 0.33. */
  readonly outputSize?: 18 | 19
  /** Milliseconds between steps; null = only `step()` makes one. */
  readonly stepMs?: number | null
  readonly vocabSize?: number
  readonly maxModelLen?: number
  /** What is done only when `register`, `openOutput` or `sayReady` is called. */
  readonly holds?: readonly ("registration" | "output" | "ready")[]
  /** The answer to a call of one of its methods, in place of the right one; undefined = none. */
  readonly answer?: (callId: number, method: string) => Packable | undefined
}

/** A call of one of the engine's methods. */
export interface RecordedCall {
  readonly callId: number
  readonly method: string
  readonly args: readonly unknown[]
}

const text = new TextEncoder()
const engineDead = text.encode("ENGINE_CORE_DEAD")
const abortFinish = 2

/** One connection that is dialled again when it is lost; what is sent meanwhile waits, as with libzmq. */
class Line {
  private peer: ZmtpPeer | null = null
  private readonly dialer: ZmtpDialer
  private readonly unsent: (readonly Uint8Array[])[] = []
  private ends = false

  constructor(address: string, socketType: SocketType, identity: Uint8Array, handler: Partial<ZmtpHandler>) {
    const dialing = connectZmtp({
      address,
      socketType,
      identity,
      retryMs: 5,
      handler: {
        ready: (peer) => {
          this.peer = peer
          handler.ready?.(peer)
          for (const frames of this.unsent.splice(0)) peer.send(frames)
          if (this.ends) this.close()
        },
        message: (peer, frames) => handler.message?.(peer, frames),
        closed: (peer, reason) => {
          this.peer = null
          handler.closed?.(peer, reason)
        },
      },
    })
    if (!dialing.ok) throw new Error(dialing.error.message)
    this.dialer = dialing.value
  }

  get isOpen(): boolean {
    return this.peer !== null
  }

  send(...frames: Uint8Array[]): void {
    if (this.peer === null) this.unsent.push(frames)
    else this.peer.send(frames)
  }

  /** Loses the connection; it comes back by itself. */
  blink(): void {
    this.peer?.close()
  }

  /** Closes as soon as everything is sent. */
  end(): void {
    this.ends = true
    if (this.peer !== null) this.close()
  }

  /** Loses the connection for good. */
  close(): void {
    this.dialer.close()
  }
}

/** See the head of this file. */
export class TestEngine {
  readonly rank: number
  /** Requests in the order in which they came. */
  readonly adds: DecodedRequest[] = []
  /** Ids of all ABORTs. */
  readonly aborted: string[] = []
  readonly calls: RecordedCall[] = []
  /** START_DP_WAVE: wave, and the engine that needs no telling. */
  readonly waves: (readonly [number, number | null])[] = []
  /** What a real engine would not have survived. */
  readonly deaths: string[] = []
  /** INIT, once it has come. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it; a wrong path fails them
  init: any = null
  isHung = false
  /** How often connections to the front end were lost. */
  lost = 0
  private readonly options: Required<TestEngineOptions>
  private readonly strict: StrictEngine
  private readonly identity: Uint8Array
  private readonly running = new Map<string, ScriptedSequence>()
  private readonly delayed: (readonly Uint8Array[])[] = []
  private handshake: Line | null
  private input: Line | null = null
  private output: Line | null = null
  private coordinatorInput: Line | null = null
  private coordinatorOutput: Line | null = null
  private timer: Timer | null = null
  private closed = false
  private waiting: { readonly holds: () => boolean; readonly resolve: () => void }[] = []

  constructor(options: TestEngineOptions) {
    this.options = {
      rank: 0,
      version: "0.33.0",
      facts: {},
      outputSize: 19,
      stepMs: 1,
      vocabSize: 300,
      maxModelLen: 4_096,
      holds: [],
      answer: rightAnswer,
      ...options,
    }
    const { rank, maxModelLen, vocabSize } = this.options
    this.rank = rank
    this.strict = new StrictEngine({ maxModelLen, vocabSize })
    this.identity = Uint8Array.of(rank & 0xff, rank >> 8)
    this.handshake = new Line(options.address, "DEALER", this.identity, {
      message: (_, frames) => this.initialized(frames[0]!.slice()),
    })
    this.handshake.send(pack({ status: "HELLO", local: false, headless: true }))
  }

  /** Ids of requests that it computes. */
  get live(): readonly string[] {
    return [...this.running.keys()]
  }

  /** Resolves as soon as the condition holds; looks again after everything that comes. */
  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ holds, resolve }))
  }

  /** It is dead, or was ended. */
  get isEnded(): boolean {
    return this.closed
  }

  /** Whether both data connections are open, as far as it knows. */
  get isConnected(): boolean {
    return this.input?.isOpen === true && this.output?.isOpen === true
  }

  /** The registration on the input connection. */
  register(): void {
    const { facts, version, maxModelLen } = this.options
    const known = { max_model_len: maxModelLen, max_num_seqs: 64, block_size: 16, num_gpu_blocks: 1_000 }
    this.input?.send(facts === null ? new Uint8Array(0) : pack({ ...known, vllm_version: version, ...facts }))
  }

  /** Dials the address for outputs. */
  openOutput(): void {
    this.output ??= new Line(this.init.addresses.outputs[0], "PUSH", new Uint8Array(0), {
      ready: () => this.look(),
      closed: () => this.left(),
    })
  }

  /** READY, behind which the handshake connection is closed. */
  sayReady(): void {
    this.handshake?.send(pack({ status: "READY", local: false, headless: true }))
    this.handshake?.end()
    this.handshake = null
  }

  /** One step: every running request gets a token. */
  step(): void {
    if (this.isHung || this.closed || this.running.size === 0) return
    const outputs: (readonly Packable[])[] = []
    for (const sequence of [...this.running.values()]) {
      if (sequence.failsNow && this.breaksBy(sequence.failure)) return
      const { output, isLast } = sequence.step(this.options.outputSize)
      outputs.push(output)
      if (isLast) this.forget(sequence.id)
    }
    this.sayOutputs(outputs)
  }

  /** A failure that is not the request's alone. */
  private breaksBy(failure: ScriptedFailure | null): boolean {
    if (failure === "dead") this.die()
    else if (failure === "vanish") this.vanish()
    else if (failure === "deaf") this.deafen()
    else return false
    return true
  }

  /** A message with these outputs. */
  sayOutputs(outputs: readonly Packable[], finished: readonly string[] | null = null): void {
    const stats = schedulerStats(this.running.size)
    this.say(pack([this.rank, outputs, stats, float(performance.now() / 1000), null, finished, null, null, "default"]))
  }

  /** Any frames on the output connection. */
  say(...frames: Uint8Array[]): void {
    this.output?.send(...frames)
  }

  /** Any frames on the input connection. */
  sendInput(...frames: Uint8Array[]): void {
    this.input?.send(...frames)
  }

  /** To the coordinator: the end or the start of a wave. */
  sayWave(wave: { readonly complete?: number; readonly start?: number }): void {
    const { complete = null, start = null } = wave
    this.sayToCoordinator(null, complete, start)
  }

  /** To the coordinator: statistics, or anything else. */
  sayToCoordinator(stats: Packable, complete: number | null = null, start: number | null = null): void {
    this.coordinatorOutput?.send(pack([this.rank, [], stats, float(0), null, null, complete, start, null]))
  }

  /** To the coordinator: any frame. */
  sayRawToCoordinator(frame: Uint8Array): void {
    this.coordinatorOutput?.send(frame)
  }

  /** Its input thread has died: the input connection closes, and all else goes on. */
  deafen(): void {
    this.input?.close()
    this.input = null
  }

  /** Neither steps nor answers any more, though its connections live and answer PINGs. */
  hang(): void {
    this.isHung = true
  }

  /** Goes on, with everything that came meanwhile. */
  wake(): void {
    this.isHung = false
    for (const frames of this.delayed.splice(0)) this.take(frames)
    this.look()
  }

  /** An exception in its loop: says so, and ends. */
  die(): void {
    this.say(engineDead)
    this.vanish()
  }

  /** SIGKILL: all connections close without a word. */
  vanish(): void {
    this.closed = true
    if (this.timer !== null) clearTimeout(this.timer)
    for (const line of [this.handshake, this.input, this.output, this.coordinatorInput, this.coordinatorOutput]) {
      line?.close()
    }
    this.look()
  }

  /** SIGTERM: what runs ends with ABORT, then it goes. */
  terminate(): void {
    const ids = this.live
    this.sayOutputs(
      ids.map((id) => this.running.get(id)!.ended(abortFinish, this.options.outputSize)),
      ids,
    )
    this.running.clear()
    this.vanish()
  }

  /** The network fails for a moment: these connections close, and are dialled again without another HELLO. */
  blink(...which: readonly ("handshake" | "input" | "output")[]): void {
    for (const name of which) this[name]?.blink()
  }

  private initialized(body: Uint8Array): void {
    this.init = plain(readWire(body))
    const { holds } = this.options
    const { inputs, coordinator_input, coordinator_output } = this.init.addresses
    this.input = new Line(inputs[0], "DEALER", this.identity, {
      ready: () => this.look(),
      message: (_, frames) => this.came(frames.map((frame) => frame.slice())),
      closed: () => this.left(),
    })
    if (!holds.includes("registration")) this.register()
    if (!holds.includes("output")) this.openOutput()
    if (coordinator_input === null) {
      if (!holds.includes("ready")) this.sayReady()
    } else {
      this.coordinatorOutput = new Line(coordinator_output, "PUSH", new Uint8Array(0), {})
      this.coordinatorInput = new Line(coordinator_input, "XSUB", new Uint8Array(0), {
        ready: (peer) => peer.subscribe(new Uint8Array(0), true),
        message: (_, frames) => this.coordinated(frames),
      })
    }
    this.look()
  }

  private coordinated(frames: readonly Uint8Array[]): void {
    if (frames.length === 1) this.sayReady()
    else {
      const [wave, knows] = plain(readWire(frames[1]!)) as [number, number | null] // START_DP_WAVE's body
      this.waves.push([wave, knows])
    }
    this.look()
  }

  private came(frames: readonly Uint8Array[]): void {
    if (this.closed) return
    if (this.isHung) this.delayed.push(frames)
    else this.take(frames)
    this.look()
  }

  private take(frames: readonly Uint8Array[]): void {
    const body = frames[1]!
    try {
      switch (frames[0]![0]) {
        case 0:
          this.add(body)
          break
        case 1:
          for (const id of this.strict.abort(body)) {
            this.aborted.push(id)
            this.running.delete(id)
          }
          break
        case 3:
          this.call(body)
          break
        default:
          this.deaths.push(`a message of type ${frames[0]}`)
      }
    } catch (cause) {
      // As the real one: its input thread ends, and it says nothing of it.
      this.deaths.push(String(cause))
      this.deafen()
    }
  }

  private add(body: Uint8Array): void {
    const request = this.strict.add(body)
    this.adds.push(request)
    const sequence = new ScriptedSequence(request)
    this.running.set(sequence.id, sequence)
    this.plan()
  }

  private call(body: Uint8Array): void {
    const { callId, method, args } = this.strict.utility(body)
    this.calls.push({ callId: Number(callId), method: String(method), args: args as readonly unknown[] })
    const answer = this.options.answer(Number(callId), String(method))
    if (answer === undefined) return
    this.say(pack([this.rank, [], null, float(performance.now() / 1000), answer, null, null, null, null]))
  }

  private plan(): void {
    const { stepMs } = this.options
    if (stepMs === null || this.timer !== null) return
    this.timer = setTimeout(() => {
      this.timer = null
      this.step()
      if (this.running.size > 0 && !this.closed) this.plan()
    }, stepMs)
  }

  /** It is done with a request, about which a test has said everything. */
  end(id: string): void {
    this.forget(id)
  }

  private forget(id: string): void {
    this.running.delete(id)
    this.strict.finish(id)
  }

  private left(): void {
    this.lost += 1
    this.look()
  }

  private look(): void {
    const done = this.waiting.filter(({ holds }) => holds())
    this.waiting = this.waiting.filter((each) => !done.includes(each))
    for (const { resolve } of done) resolve()
  }
}

function rightAnswer(callId: number, method: string): Packable {
  if (method === "is_sleeping") return [callId, null, [null, false]]
  return [callId, `Call to ${method} method failed: no such method`, null]
}

/** A decoded message without its types. Messages of the handshake have no numbers beyond 2^53. */
function plain(value: WireValue): unknown {
  switch (value.type) {
    case "nil":
      return null
    case "int":
      return Number(value.value)
    case "array":
      return value.value.map(plain)
    case "map":
      return Object.fromEntries(value.value.map(([key, each]) => [String(plain(key)), plain(each)]))
    default:
      return value.value
  }
}
