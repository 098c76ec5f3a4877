/**
 * The built-in engine: a batch of sequences that get tokens at a set pace, without a model. Requests say with
 * `vllm_xargs.sim_*` what is generated; without a script a sequence repeats what it was asked. Everything made up is
 * decided by seeds.
 */
import type { SimulatorConfig } from "../config"
import {
  type Engine,
  type EngineError,
  type EngineOutput,
  type EngineReceiver,
  type EngineSequence,
  type EngineStatus,
  emptyOutput,
  Finish,
  type LogprobRows,
} from "../ir/engine"
import type { GenerateRequest } from "../ir/generate-request"
import { err, ok, type Result } from "../result"
import { type Clock, systemClock } from "./clock"
import { type Alternatives, mix, ReusedRows, SimulatedLogprobs } from "./simulator-logprobs"
import { encodeOrdinary, simulatedReply } from "./simulator-reply"
import { readScript, type SimulatedFailure, type SimulatorScript } from "./simulator-script"
import { Phase, SimulatedSequence } from "./simulator-sequence"

/** What the simulator is given by the root: text functions over the served vocabulary, and bounds. */
export interface SimulatorPorts {
  /** Special tokens spelled out in the text become their ids; nothing else is added. */
  encode(text: string): Uint32Array
  /** Special tokens come out spelled. */
  decode(tokenIds: Uint32Array): string
  readonly vocabSize: number
  /** Requests that may wait; more are refused as retryable. Absent or null = no limit. */
  readonly queuedRequestsMax?: number | null
  /** The process's own clock unless a test brings one. */
  readonly clock?: Clock
}

/** What a script's failures look like. */
const scriptedErrors: { readonly [failure in SimulatedFailure]: EngineError } = {
  retryable: { kind: "engine_retryable", message: "scripted: overloaded" },
  validation: { kind: "engine_validation", message: "scripted: the engine refuses the request", param: null },
  disconnect: { kind: "engine_disconnected", message: "scripted: the connection was lost" },
  fatal: { kind: "engine_dead", message: "scripted: the engine died" },
}

/** Timers fire on whole milliseconds, so a sequence due this much later is part of the step. */
const stepToleranceMs = 0.5

/** Simulated engine (see the head of this file). One timer drives all sequences; those due together share a tick. */
export class Simulator implements Engine {
  readonly name = "simulator"
  private readonly config: SimulatorConfig
  private readonly ports: SimulatorPorts
  private readonly clock: Clock
  private readonly logprobs: SimulatedLogprobs
  /** In the order they began; ended ones stay until the step is over. */
  private running: SimulatedSequence[] = []
  /** By priority, then in the order they came. */
  private waiting: SimulatedSequence[] = []
  private runningCount = 0
  private stepping = false
  private closed = false
  private deadUntilMs = -1
  private armedForMs = Number.POSITIVE_INFINITY
  private disarm: (() => void) | null = null
  private readonly rows = new ReusedRows()
  private readonly output = emptyOutput(new Uint32Array(64))
  /** The `n` choices of a request bring the same text: encoded once. */
  private lastText: { readonly text: string; readonly ordinary: boolean; readonly ids: Uint32Array } | null = null

  constructor(config: SimulatorConfig, ports: SimulatorPorts) {
    this.config = config
    this.ports = ports
    this.clock = ports.clock ?? systemClock
    this.logprobs = new SimulatedLogprobs(ports.vocabSize)
  }

  submit(request: GenerateRequest, receiver: EngineReceiver): Result<EngineSequence, EngineError> {
    if (this.closed) return err({ kind: "engine_dead", message: "the simulator was closed" })
    const now = this.clock.now()
    if (now < this.deadUntilMs) return err({ kind: "engine_retryable", message: "the simulator is restarting" })
    if (request.media != null) {
      const param = request.media.features === null ? "content_parts" : "features"
      return err({
        kind: "engine_validation",
        message: `${param} need an engine that takes media; the simulator does not`,
        param,
      })
    }
    const { sampling } = request
    const script = readScript(sampling.extraArgs, this.scriptRules())
    if (!script.ok) return script
    const unknownId = sampling.logprobTokenIds?.find((id) => !(id >= 0 && id < this.ports.vocabSize))
    if (unknownId !== undefined) {
      const message = `token id ${unknownId} is not in the vocabulary`
      return err({ kind: "engine_validation", message, param: "logprob_token_ids" })
    }
    const queuedMax = this.ports.queuedRequestsMax ?? null
    const slotFree = this.runningCount < this.config.sequencesMax && this.waiting.length === 0
    if (!slotFree && queuedMax !== null && this.waiting.length >= queuedMax) {
      return err({ kind: "engine_retryable", message: `${this.waiting.length} requests wait already` })
    }
    const seed = sampling.seed === null ? this.config.seed : foldSeed(sampling.seed)
    const text = this.textOf(request, script.value, seed)
    const sequence = new SimulatedSequence({
      request,
      receiver,
      script: script.value,
      text,
      seed,
      stepMs: script.value.stepMs ?? this.config.stepMs,
      // Not `now`: making the text is no time in the queue.
      queuedAtMs: this.clock.now(),
      onAbort: (aborted) => this.abort(aborted),
    })
    this.enqueue(sequence)
    this.schedule()
    return ok(sequence)
  }

  status(): EngineStatus {
    const alive = !this.closed && this.clock.now() >= this.deadUntilMs
    return {
      alive,
      ready: alive,
      running: this.runningCount,
      waiting: this.waiting.length,
      // There is no cache; the share of taken slots rises and falls with the load as a cache's usage would.
      kvCacheUsage: Math.min(1, this.runningCount / Math.max(1, this.config.sequencesMax)),
      engines: [],
    }
  }

  /** Sequences that still run or wait get a last output with finish `abort`, as an engine told to stop gives it. */
  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    this.disarm?.()
    this.disarm = null
    // Not the reused one: whoever calls this from inside an output still reads that.
    const output = { ...this.output, tokenIds: new Uint32Array(0) }
    callEach(this.takeAll(), (sequence) => {
      fillOutput(output, sequence, 0, Finish.abort)
      sequence.receiver.output(output)
    })
  }

  private scriptRules(): { readonly allowScripts: boolean; readonly vocabSize: number } {
    return { allowScripts: this.config.allowScripts, vocabSize: this.ports.vocabSize }
  }

  private textOf(request: GenerateRequest, script: SimulatorScript, seed: number): Uint32Array {
    if (script.tokenIds !== null) return script.tokenIds
    const { encode, decode } = this.ports
    const ordinary = script.text === null
    const text = script.text ?? simulatedReply(request.promptTokenIds, (ids) => decode(ids), seed)
    if (this.lastText?.text === text && this.lastText.ordinary === ordinary) return this.lastText.ids
    const ids = ordinary ? encodeOrdinary(text, (piece) => encode(piece)) : encode(text)
    this.lastText = { text, ordinary, ids }
    return ids
  }

  private enqueue(sequence: SimulatedSequence): void {
    let at = this.waiting.length
    while (at > 0 && this.waiting[at - 1]!.request.priority > sequence.request.priority) at -= 1
    this.waiting.splice(at, 0, sequence)
  }

  /** Fills free slots from the queue and sees to it that the timer stands at the next due moment. */
  private schedule(): void {
    if (this.stepping || this.closed) return
    const now = this.clock.now()
    let admitted = 0
    while (admitted < this.waiting.length && this.runningCount < this.config.sequencesMax) {
      const sequence = this.waiting[admitted++]!
      sequence.phase = Phase.running
      sequence.scheduledAtMs = now
      // A script's slower pace begins with the first token, so that this one comes as early as everyone's.
      const gridMs = Math.min(sequence.stepMs, this.config.stepMs)
      sequence.dueAtMs = gridAtOrAfter(now + this.config.prefillMs, gridMs)
      this.running.push(sequence)
      this.runningCount += 1
    }
    if (admitted > 0) this.waiting.splice(0, admitted)
    let next = Number.POSITIVE_INFINITY
    for (const sequence of this.running) if (sequence.dueAtMs < next) next = sequence.dueAtMs
    this.arm(next, now)
  }

  private arm(atMs: number, now: number): void {
    if (this.disarm !== null && this.armedForMs === atMs) return
    this.disarm?.()
    this.armedForMs = atMs
    this.disarm = atMs === Number.POSITIVE_INFINITY ? null : this.clock.after(Math.max(0, atMs - now), this.runStep)
  }

  /** Hot (bench/serve.ts): gives all due sequences their tokens. Receivers may abort, submit and close from inside. */
  private readonly runStep = (): void => {
    this.disarm = null
    this.stepping = true
    const bugs: unknown[] = []
    const now = this.clock.now()
    this.output.at = now / 1_000
    const batch = this.running
    const count = batch.length
    for (let i = 0; i < count; i++) {
      const sequence = batch[i]!
      if (sequence.phase !== Phase.running || sequence.dueAtMs > now + stepToleranceMs) continue
      sequence.dueAtMs = stepAfter(sequence.dueAtMs, now, sequence.stepMs)
      try {
        this.stepOne(sequence)
      } catch (bug) {
        bugs.push(bug)
        this.end(sequence)
      }
    }
    this.stepping = false
    if (!this.closed) {
      this.dropEnded()
      this.schedule()
    }
    raiseFirst(bugs)
  }

  private stepOne(sequence: SimulatedSequence): void {
    const { output } = this
    const budget = sequence.nextStepTokens()
    if (budget === 0 && !sequence.failsNow) return
    if (output.tokenIds.length < budget) output.tokenIds = new Uint32Array(budget * 2)
    const firstPosition = sequence.generated
    const count = sequence.take(output.tokenIds, budget)
    const finished = sequence.finish !== Finish.none
    if (finished) this.end(sequence)
    if (count > 0 || finished) {
      fillOutput(output, sequence, count, sequence.finish)
      this.fillLogprobs(sequence, firstPosition)
      sequence.receiver.output(output)
    }
    // The receiver may have aborted it.
    if (sequence.phase === Phase.running && sequence.failsNow) this.fail(sequence)
  }

  private fillLogprobs(sequence: SimulatedSequence, firstPosition: number): void {
    const { output } = this
    const { logprobs, logprobTokenIds, promptLogprobs } = sequence.request.sampling
    if (promptLogprobs !== null && firstPosition === 0) {
      output.promptLogprobs = this.promptRows(sequence, promptLogprobs)
    }
    if (logprobs === null && logprobTokenIds === null) return
    const alternatives = logprobTokenIds ?? logprobs ?? 0
    const count = output.end - output.start
    this.rows.reset(count, this.logprobs.rowWidth(alternatives, count))
    const { promptTokenIds } = sequence.request
    for (let i = 0; i < count; i++) {
      const position = promptTokenIds.length + firstPosition + i
      this.fillRow(this.rows, i, sequence, position, output.tokenIds[i]!, alternatives)
    }
    output.logprobs = this.rows
  }

  /** Rows for prompt tokens 1…, in arrays of their own: they come once a sequence. */
  private promptRows(sequence: SimulatedSequence, alternatives: number): LogprobRows {
    const { promptTokenIds } = sequence.request
    const count = Math.max(0, promptTokenIds.length - 1)
    const width = this.logprobs.rowWidth(alternatives, count)
    const rows = {
      width,
      tokenIds: new Int32Array(count * width),
      logprobs: new Float32Array(count * width),
      ranks: new Int32Array(count),
    }
    for (let i = 0; i < count; i++) this.fillRow(rows, i, sequence, i + 1, promptTokenIds[i + 1]!, alternatives)
    return rows
  }

  private fillRow(
    rows: LogprobRows,
    row: number,
    sequence: SimulatedSequence,
    position: number,
    tokenId: number,
    alternatives: Alternatives,
  ): void {
    const greedy = sequence.request.sampling.temperature === 0
    this.logprobs.fill(rows, row, { seed: sequence.seed, position, tokenId, greedy }, alternatives)
  }

  private fail(sequence: SimulatedSequence): void {
    const error = scriptedErrors[sequence.script.failure]
    if (error.kind === "engine_dead") {
      this.die(error)
      return
    }
    this.end(sequence)
    sequence.receiver.fail(error)
  }

  /** Takes every sequence down, and the engine with them until `restartMs` have passed. */
  private die(error: EngineError): void {
    this.deadUntilMs = this.clock.now() + this.config.restartMs
    callEach(this.takeAll(), (sequence) => sequence.receiver.fail(error))
  }

  private abort(sequence: SimulatedSequence): void {
    if (sequence.phase === Phase.ended) return
    this.end(sequence)
    if (this.stepping) return
    this.dropEnded()
    this.schedule()
  }

  /** Counts are right from here on; a running sequence's place in the batch is cleared after the step. */
  private end(sequence: SimulatedSequence): void {
    if (sequence.phase === Phase.running) this.runningCount -= 1
    else if (sequence.phase === Phase.waiting) this.waiting.splice(this.waiting.indexOf(sequence), 1)
    sequence.phase = Phase.ended
  }

  private dropEnded(): void {
    if (this.runningCount === this.running.length) return
    this.running = this.running.filter((sequence) => sequence.phase === Phase.running)
  }

  private takeAll(): SimulatedSequence[] {
    const all = [...this.running, ...this.waiting].filter((sequence) => sequence.phase !== Phase.ended)
    for (const sequence of all) sequence.phase = Phase.ended
    this.running = []
    this.waiting = []
    this.runningCount = 0
    return all
  }
}

/** All fields but the tokens themselves, of which there are `count`, and the logprobs. */
function fillOutput(output: EngineOutput, sequence: SimulatedSequence, count: number, finish: Finish): void {
  const { script, request } = sequence
  output.start = 0
  output.end = count
  output.finish = finish
  output.stopTokenId = sequence.stopTokenId
  output.logprobs = null
  output.promptLogprobs = null
  // No cache holds more of a prompt than there is.
  output.cachedTokens = Math.min(script.cachedTokens, request.promptTokenIds.length)
  output.cacheWriteTokens = Math.min(script.cacheWriteTokens, request.promptTokenIds.length)
  output.queuedAt = sequence.queuedAtMs / 1_000
  output.scheduledAt = sequence.scheduledAtMs < 0 ? -1 : sequence.scheduledAtMs / 1_000
}

/** The 64 bits of a seed in 32. */
function foldSeed(seed: bigint): number {
  return mix(Number(BigInt.asIntN(32, seed)), Number(BigInt.asIntN(32, seed >> 32n)))
}

/** Steps stand on multiples of `stepMs`, so that sequences of one pace share them; 0 = no grid. */
function gridAtOrAfter(atMs: number, stepMs: number): number {
  return stepMs === 0 ? atMs : Math.ceil(atMs / stepMs) * stepMs
}

/** The step behind the one due at `dueMs`; a late step skips those it missed, as a busy engine does. */
function stepAfter(dueMs: number, nowMs: number, stepMs: number): number {
  if (stepMs === 0) return nowMs
  const next = dueMs + stepMs
  return next > nowMs ? next : next + (Math.floor((nowMs - next) / stepMs) + 1) * stepMs
}

/** A receiver that throws is a bug of ours: the other sequences are still called, then the bug is raised. */
function callEach(sequences: readonly SimulatedSequence[], call: (sequence: SimulatedSequence) => void): void {
  const bugs: unknown[] = []
  for (const sequence of sequences) {
    try {
      call(sequence)
    } catch (bug) {
      bugs.push(bug)
    }
  }
  raiseFirst(bugs)
}

function raiseFirst(bugs: readonly unknown[]): void {
  if (bugs.length > 0) throw bugs[0]
}
