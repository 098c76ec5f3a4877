/**
 * The families of /metrics, by the names, labels and buckets that dashboards for vLLM expect (SERVER 5): what a front
 * end knows by itself. Figures of the engines' own are in engine-metrics.ts.
 */
import { type EngineStatus, type FinishReason, finishReasons } from "../ir/engine"
import type { ChoiceTiming, ChoiceUsage } from "../ir/item-event"
import { EngineMetrics } from "./engine-metrics"
import { type Counter, type Family, type Gauge, type Histogram, Registry } from "./prometheus"

/** What all figures of the engine family are labelled with, and the window that bounds token counts. */
export interface MetricsOptions {
  readonly modelName: string
  readonly contextTokensMax: number
}

/**
 * One choice that ended. `finish`: `abort` when the client went away, `error` when it failed; null = the engine would
 * not have it, and only cached tokens are counted.
 */
export interface EndedChoice {
  readonly finish: FinishReason | null
  readonly usage: ChoiceUsage
  readonly timing: ChoiceTiming
}

/** Counts what the server does. Times are seconds on one monotonic clock. */
export interface Metrics {
  /** A reply's status and duration; `handler` is the route's pattern, or `none`. */
  http(method: string, handler: string, status: number, seconds: number): void
  /** A request reached the engine. */
  started(choices: number, replyTokensMax: number): void
  /** New tokens, as they come; prompt tokens with the first of a choice. */
  tokens(promptTokens: number, outputTokens: number): void
  choiceEnded(choice: EndedChoice, startedAt: number, endedAt: number): void
  /** A prompt whose foreign text spelled special tokens that could not be kept apart. */
  unguardedPrompt(): void
  /** What request bodies hold now. */
  bodyBytes(bytes: number): void
  /** Prometheus text, with the engines' own figures as they are now. */
  render(status: Pick<EngineStatus, "running" | "waiting" | "kvCacheUsage" | "engines">): string
}

const engineRank = "0"

const latencyBounds = [
  ...[0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
]
const firstTokenBounds = [
  ...[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75],
  ...[1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560],
]
const tokenGapBounds = [
  ...[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
]
const choiceBounds = [1, 2, 5, 10, 20]
const httpBounds = [0.1, 0.5, 1]
const httpFineBounds = [
  ...[0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60],
]

/** Clients choose their methods freely; labels must not follow them. */
const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])

/** The families of one server. */
export function createMetrics(options: MetricsOptions): Metrics {
  return new ServerMetrics(options)
}

/** 1, 2, 5, 10, 20, 50 … up to the window. */
function tokenBounds(tokensMax: number): number[] {
  const bounds: number[] = []
  for (let power = 1; ; power *= 10) {
    for (const step of [1, 2, 5]) {
      if (step * power > tokensMax) return bounds
      bounds.push(step * power)
    }
  }
}

class ServerMetrics implements Metrics {
  private readonly registry = new Registry()
  private readonly requests: Family<Counter>
  private readonly requestSeconds: Family<Histogram>
  /** Both series of a method, status and route, so that a request looks up one string. */
  private readonly replies = new Map<string, { readonly count: Counter; readonly seconds: Histogram }>()
  private readonly requestSecondsFine: Histogram
  private readonly engines: EngineMetrics
  private readonly promptTokens: Counter
  private readonly generationTokens: Counter
  private readonly cachedTokens: Counter
  private readonly unguarded: Counter
  private readonly heldBytes: Gauge
  private readonly finished: ReadonlyMap<FinishReason, Counter>
  private readonly firstToken: Histogram
  private readonly tokenGap: Histogram
  private readonly meanTokenGap: Histogram
  private readonly whole: Histogram
  private readonly queue: Histogram
  private readonly inference: Histogram
  private readonly prefill: Histogram
  private readonly decode: Histogram
  private readonly promptTokensEach: Histogram
  private readonly generationTokensEach: Histogram
  private readonly choicesEach: Histogram
  private readonly tokensMaxEach: Histogram

  constructor({ modelName, contextTokensMax }: MetricsOptions) {
    const { registry } = this
    const labels = { model_name: modelName, engine: engineRank }
    const tokens = tokenBounds(contextTokensMax)
    const counter = (name: string, help: string): Counter => registry.counter(`vllm:${name}`, help).with(labels)
    const histogram = (name: string, help: string, bounds: readonly number[]): Histogram =>
      registry.histogram(`vllm:${name}`, help, bounds).with(labels)

    this.requests = registry.counter("http_requests_total", "Requests by method, status and route.")
    this.requestSeconds = registry.histogram("http_request_duration_seconds", "Time to the reply by route.", httpBounds)
    this.requestSecondsFine = registry
      .histogram("http_request_duration_highr_seconds", "Time to the reply, in fine steps.", httpFineBounds)
      .with({})

    this.engines = new EngineMetrics(registry, modelName)

    this.promptTokens = counter("prompt_tokens_total", "Prompt tokens, each choice's with its first token.")
    this.generationTokens = counter("generation_tokens_total", "Generated tokens, as they come.")
    this.cachedTokens = counter("prompt_tokens_cached_total", "Prompt tokens that the prefix cache held.")
    this.unguarded = registry
      .counter("sluice:unguarded_prompts_total", "Prompts whose foreign text spelled special tokens and stayed so.")
      .with(labels)
    this.heldBytes = registry
      .gauge("sluice:body_bytes_in_flight", "Bytes of long request bodies that are held now.")
      .with({ model_name: modelName })
    const success = registry.counter("vllm:request_success_total", "Choices that ended, by finish reason.")
    this.finished = new Map(
      finishReasons.map((reason) => [reason, success.with({ ...labels, finished_reason: reason })]),
    )

    this.firstToken = histogram("time_to_first_token_seconds", "Arrival to first token.", firstTokenBounds)
    this.tokenGap = histogram("inter_token_latency_seconds", "Time between tokens (a choice's mean).", tokenGapBounds)
    this.meanTokenGap = histogram(
      "request_time_per_output_token_seconds",
      "A choice's mean time between tokens.",
      tokenGapBounds,
    )
    this.whole = histogram("e2e_request_latency_seconds", "Arrival to the end.", latencyBounds)
    this.queue = histogram("request_queue_time_seconds", "Time in the engine's queue.", latencyBounds)
    this.inference = histogram("request_inference_time_seconds", "Time in the engine behind the queue.", latencyBounds)
    this.prefill = histogram("request_prefill_time_seconds", "Start of work to first token.", latencyBounds)
    this.decode = histogram("request_decode_time_seconds", "First to last token.", latencyBounds)
    this.promptTokensEach = histogram("request_prompt_tokens", "Prompt tokens of a choice.", tokens)
    this.generationTokensEach = histogram("request_generation_tokens", "Generated tokens of a choice.", tokens)
    this.choicesEach = histogram("request_params_n", "Choices asked for.", choiceBounds)
    this.tokensMaxEach = histogram("request_params_max_tokens", "Tokens that a choice may have.", tokens)
  }

  http(method: string, handler: string, status: number, seconds: number): void {
    const replies = this.repliesOf(
      knownMethods.has(method) ? method : "other",
      `${Math.floor(status / 100)}xx`,
      handler,
    )
    replies.count.add(1)
    replies.seconds.observe(seconds)
    this.requestSecondsFine.observe(seconds)
  }

  started(choices: number, replyTokensMax: number): void {
    this.choicesEach.observe(choices)
    this.tokensMaxEach.observe(replyTokensMax)
  }

  /** Hot (bench/serve.ts). */
  tokens(promptTokens: number, outputTokens: number): void {
    if (promptTokens > 0) this.promptTokens.add(promptTokens)
    this.generationTokens.add(outputTokens)
  }

  unguardedPrompt(): void {
    this.unguarded.add(1)
  }

  bodyBytes(bytes: number): void {
    this.heldBytes.set(bytes)
  }

  choiceEnded(choice: EndedChoice, startedAt: number, endedAt: number): void {
    const { finish, usage } = choice
    this.cachedTokens.add(Math.max(0, usage.cachedTokens))
    if (finish === null) return
    this.finished.get(finish)!.add(1)
    this.promptTokensEach.observe(usage.promptTokens)
    this.generationTokensEach.observe(usage.outputTokens)
    this.whole.observe(endedAt - startedAt)
    this.observeTiming(choice.timing, usage.outputTokens, startedAt)
  }

  render(status: Pick<EngineStatus, "running" | "waiting" | "kvCacheUsage" | "engines">): string {
    this.engines.update(status)
    return this.registry.render()
  }

  private repliesOf(method: string, status: string, handler: string) {
    const key = `${method} ${status} ${handler}`
    let replies = this.replies.get(key)
    if (replies === undefined) {
      replies = {
        count: this.requests.with({ method, status, handler }),
        seconds: this.requestSeconds.with({ method, handler }),
      }
      this.replies.set(key, replies)
    }
    return replies
  }

  /** Moments that are unknown (-1) give no observation. */
  private observeTiming(timing: ChoiceTiming, outputTokens: number, startedAt: number): void {
    const { queuedAt, scheduledAt, firstTokenAt, lastTokenAt, firstTokenCameAt } = timing
    if (queuedAt >= 0 && scheduledAt >= 0) this.queue.observe(scheduledAt - queuedAt)
    if (firstTokenAt < 0) return
    this.firstToken.observe(firstTokenCameAt - startedAt)
    if (scheduledAt >= 0) this.prefill.observe(firstTokenAt - scheduledAt)
    if (lastTokenAt < 0) return
    if (scheduledAt >= 0) this.inference.observe(lastTokenAt - scheduledAt)
    this.decode.observe(lastTokenAt - firstTokenAt)
    if (outputTokens < 2) return
    // Sum and count are exact; the buckets see the mean, since single tokens are not timed.
    const gap = (lastTokenAt - firstTokenAt) / (outputTokens - 1)
    this.tokenGap.observeMany(gap, outputTokens - 1)
    this.meanTokenGap.observe(gap)
  }
}
