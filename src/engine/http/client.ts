/**
 * The Engine plug over HTTP: remote services that take token ids and give token ids (`/inference/v1/generate`: vLLM's, or
 * Sluice's own). Each sequence is one streamed request to the service with the fewest of ours. What fails before the first
 * token is tried elsewhere; what fails later is told.
 */
import type { HttpEngineConfig } from "../../config"
import type { Engine, EngineError, EngineReceiver, EngineSequence, EngineStatus } from "../../ir/engine"
import type { GenerateRequest } from "../../ir/generate-request"
import { err, ok, type Result } from "../../result"
import { RemoteSequence } from "./remote-sequence"
import { chooseUpstream, Upstream } from "./upstream"

/** What the engine is given by the root. */
export interface HttpPorts {
  /** Sequences that may run at once; more are refused as retryable. null = no limit. */
  readonly queuedRequestsMax: number | null
  log(line: string): void
}

/** Longest wait for an answer about a service's health. */
const healthTimeoutMs = 5_000
/** A service that is down by its health for so many looks, and gives a sequence nothing meanwhile, has lost it. */
const silentLooksMax = 5
/** Between looks at the sequences, at most. */
const sequenceIntervalMsMax = 1_000

/** Engines behind HTTP (see the head of this file). */
export class HttpEngine implements Engine {
  readonly name = "http"
  private readonly config: HttpEngineConfig
  private readonly ports: HttpPorts
  private readonly upstreams: readonly Upstream[]
  private readonly sequences = new Set<RemoteSequence>()
  private readonly timers: readonly ReturnType<typeof setInterval>[]
  private turn = 0
  private closed = false

  constructor(config: HttpEngineConfig, ports: HttpPorts) {
    this.config = config
    this.ports = ports
    this.upstreams = config.urls.map((url) => new Upstream(url))
    this.timers = [
      setInterval(() => this.lookAround(), config.healthIntervalMs),
      setInterval(() => this.lookAtSequences(), Math.min(config.healthIntervalMs, sequenceIntervalMsMax)),
    ]
    for (const timer of this.timers) timer.unref()
    this.lookAround()
  }

  submit(request: GenerateRequest, receiver: EngineReceiver): Result<EngineSequence, EngineError> {
    if (this.closed) return err({ kind: "engine_dead", message: "the engine was closed" })
    const { queuedRequestsMax } = this.ports
    if (queuedRequestsMax !== null && this.sequences.size >= queuedRequestsMax) {
      return err({ kind: "engine_retryable", message: `${queuedRequestsMax} sequences run already` })
    }
    const sequence: RemoteSequence = new RemoteSequence(request, receiver, {
      apiKey: this.config.apiKey,
      choose: (tried) => chooseUpstream(this.upstreams, tried, this.turn++),
      failed: (upstream, reason, isDown) => {
        if (isDown) this.markDown(upstream, reason)
        else this.ports.log(`engine ${upstream.url}: ${reason}`)
      },
      ended: () => this.sequences.delete(sequence),
    })
    this.sequences.add(sequence)
    void sequence.run()
    return ok(sequence)
  }

  status(): EngineStatus {
    const alive = !this.closed && this.upstreams.some((upstream) => upstream.healthy)
    return { alive, ready: alive, running: this.sequences.size, waiting: 0, kvCacheUsage: 0, engines: [] }
  }

  async close(): Promise<void> {
    this.closed = true
    for (const timer of this.timers) clearInterval(timer)
    const error: EngineError = { kind: "engine_dead", message: "the engine was closed" }
    for (const sequence of [...this.sequences]) sequence.fail(error)
  }

  private lookAround(): void {
    for (const upstream of this.upstreams) void this.look(upstream)
  }

  private lookAtSequences(): void {
    const now = performance.now()
    for (const sequence of [...this.sequences]) sequence.look(now, silentLooksMax * this.config.healthIntervalMs)
  }

  /** Asks a service whether it lives. */
  private async look(upstream: Upstream): Promise<void> {
    try {
      const reply = await fetch(`${upstream.url}/health`, {
        signal: AbortSignal.timeout(healthTimeoutMs),
        redirect: "manual",
      })
      await reply.body?.cancel()
      if (!reply.ok) this.markDown(upstream, `its /health says ${reply.status}`)
      else if (!upstream.healthy && !this.closed) {
        upstream.downSince = null
        this.ports.log(`engine ${upstream.url}: is there`)
      }
    } catch (cause) {
      this.markDown(upstream, cause instanceof Error ? cause.message : String(cause))
    }
  }

  private markDown(upstream: Upstream, reason: string): void {
    if (upstream.healthy && !this.closed) this.ports.log(`engine ${upstream.url}: is not there: ${reason}`)
    upstream.downSince ??= performance.now()
  }
}
