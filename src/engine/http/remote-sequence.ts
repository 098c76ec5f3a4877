import { type EngineError, type EngineReceiver, type EngineSequence, emptyOutput, Finish } from "../../ir/engine"
import { jsonText } from "../../ir/exact-json"
import { generateBody } from "../../ir/generate-body"
import type { GenerateRequest } from "../../ir/generate-request"
import { boundedText } from "./bounded-text"
import { ChunkReader, errorOf, statusError } from "./chunk"
import { EventReader, type EventSink } from "./event-reader"
import type { Upstream } from "./upstream"

/** What a sequence needs of its engine. */
export interface SequencePorts {
  readonly apiKey: string | null
  /** A service for the next try; null when all were tried. */
  choose(tried: ReadonlySet<Upstream>): Upstream | null
  /** A try did not work. `isDown`: there was no answer at all. */
  failed(upstream: Upstream, reason: string, isDown: boolean): void
  /** Called once. */
  ended(): void
}

/** Of a refusal's body, what is looked at, and how long it may take to come. */
const refusalBytesMax = 10_000
const refusalMsMax = 2_000
/** Bytes of a whole reply: with logprobs of a long prompt there are many. */
const wholeBytesMax = 512 * 1024 * 1024
/** Wait for the counts that come behind the last tokens; a service that has none may keep its stream open all the same. */
const countsMsMax = 1_000

/** One sequence that a remote service computes. */
export class RemoteSequence implements EngineSequence, EventSink {
  private readonly request: GenerateRequest
  private readonly receiver: EngineReceiver
  private readonly ports: SequencePorts
  private readonly reader: ChunkReader
  private cancel = new AbortController()
  private readonly output = emptyOutput(new Uint32Array(16))
  /** vLLM's streams leave logprobs of the prompt out: whoever wants them gets the reply as a whole. */
  private readonly streams: boolean
  private hasOutput = false
  private tokens = 0
  private upstream: Upstream | null = null
  /** When the running try last gave anything, or began. */
  private heardAt = 0
  /** A last output that waits for the counts that come behind it. */
  private held = false
  private ended = false
  /** What went wrong with the running try, and whether another service may do better. */
  private trouble: { readonly error: EngineError; readonly retry: boolean } | null = null

  constructor(request: GenerateRequest, receiver: EngineReceiver, ports: SequencePorts) {
    this.request = request
    this.receiver = receiver
    this.ports = ports
    this.streams = request.sampling.promptLogprobs === null
    this.reader = new ChunkReader(request.promptTokenIds, request.media?.contentParts != null)
  }

  abort(): void {
    if (this.ended) return
    this.end()
    // Services end what nobody reads.
    this.cancel.abort()
  }

  /** Ends it with an error, from outside. */
  fail(error: EngineError): void {
    if (this.ended) return
    this.end()
    this.cancel.abort()
    this.receiver.fail(error)
  }

  /**
   * Called now and then. A last output does not wait long for its counts; a try that was silent for `silentMsMax` at a
   * service that is not there any more is given up, though its connection stands: a machine that is gone closes none.
   */
  look(now: number, silentMsMax: number): void {
    if (this.ended) return
    if (this.held) {
      if (now - this.heardAt < countsMsMax) return
      this.deliver()
      this.cancel.abort()
      return
    }
    const downSince = this.upstream?.downSince ?? null
    if (downSince === null || now - Math.max(downSince, this.heardAt) < silentMsMax) return
    const message = "the service is not there any more"
    this.trouble = this.hasOutput
      ? disconnected(message)
      : { error: { kind: "engine_retryable", message }, retry: true }
    this.cancel.abort()
  }

  /** Tries services until one takes the sequence to its end, or one has given tokens and failed. Never rejects. */
  async run(): Promise<void> {
    const body = this.body()
    const tried = new Set<Upstream>()
    // Nothing may be called before `submit` returned.
    await null
    let error: EngineError = { kind: "engine_retryable", message: "no service could be tried" }
    while (!this.ended) {
      const upstream = this.ports.choose(tried)
      if (upstream === null) return this.fail(error)
      tried.add(upstream)
      this.trouble = null
      this.cancel = new AbortController()
      this.upstream = upstream
      this.heardAt = performance.now()
      upstream.running += 1
      await this.attempt(upstream, body)
      upstream.running -= 1
      this.upstream = null
      if (this.isOver()) return
      const trouble = this.trouble ?? disconnected("the stream ended without a finish")
      if (this.hasOutput || !trouble.retry) return this.fail(trouble.error)
      error = trouble.error
    }
  }

  /** The data of one event. */
  event(data: string): void {
    if (this.ended || this.trouble !== null) return
    if (data === "[DONE]") {
      if (this.held) this.deliver()
      return
    }
    switch (this.held ? this.readBehind(data) : this.reader.read(data, this.output)) {
      case "tokens":
        this.tokens += this.output.end - this.output.start
        if (this.tokens > this.request.sampling.maxTokens && this.request.isOpenEnded !== true) {
          this.trouble = disconnected("the service does not stop at max_tokens")
          break
        }
        // What the prefix cache held is told behind the last tokens.
        if (this.output.finish !== Finish.none) this.held = true
        else this.deliver()
        break
      case "usage":
        if (this.held) this.deliver()
        break
      case "error": {
        const error = this.reader.error!
        this.trouble = { error, retry: error.kind === "engine_retryable" || error.kind === "engine_failed" }
        break
      }
      case "malformed":
        this.trouble = disconnected("the service sent something else than a generate stream")
        break
    }
  }

  /** Behind the last tokens only counts matter. */
  private readBehind(data: string): "usage" {
    const { finish, end, logprobs, kvTransferParams, ecTransferParams } = this.output
    const kind = this.reader.read(data, this.output)
    if (kind === "tokens") Object.assign(this.output, { finish, end, logprobs, kvTransferParams, ecTransferParams })
    return "usage"
  }

  private deliver(): void {
    const { output } = this
    const isLast = output.finish !== Finish.none
    this.hasOutput = true
    this.held = false
    if (isLast) this.end()
    this.receiver.output(output)
    output.promptLogprobs = null
  }

  private async attempt(upstream: Upstream, body: string): Promise<void> {
    const held = this.request.held ?? null
    let answers = false
    try {
      const reply = await fetch(`${upstream.url}/inference/v1/generate`, {
        method: "POST",
        headers: { ...this.headers(), ...(held !== null && { "content-length": String(held.bodyBytes(body)) }) },
        // A stream is read once, so each try has its own.
        body: held === null ? body : held.body(body),
        signal: this.cancel.signal,
        // Prompts go where the operator said and nowhere else.
        redirect: "manual",
        // A prompt may take longer than a connection usually stays silent.
        timeout: false,
      })
      answers = true
      if (!reply.ok) {
        await this.refused(upstream, reply)
        return
      }
      if (!this.streams) {
        const { text, isWhole } = await boundedText(reply, wholeBytesMax, null)
        if (isWhole) this.event(text)
        else this.trouble = disconnected("the service's reply is too long")
        if (this.held) this.deliver()
        return
      }
      const events = new EventReader(this)
      for await (const chunk of reply.body ?? []) {
        this.heardAt = performance.now()
        if (!events.push(chunk)) this.trouble = disconnected("the service sent an event without an end")
        if (this.isOver() || this.trouble !== null) return
      }
      if (this.held) this.deliver()
      else if (!this.isOver()) this.ports.failed(upstream, "a stream ended without a finish", false)
    } catch (cause) {
      if (this.isOver() || this.trouble !== null) return
      // What was last is there, only its counts are not.
      if (this.held) return this.deliver()
      const message = cause instanceof Error ? cause.message : String(cause)
      // Where no service can be reached, nothing was begun: the client may try again, as /health says too.
      this.trouble = answers ? disconnected(message) : { error: { kind: "engine_retryable", message }, retry: true }
      this.ports.failed(upstream, message, true)
    }
  }

  private async refused(upstream: Upstream, reply: Response): Promise<void> {
    const { text } = await boundedText(reply, refusalBytesMax, refusalMsMax)
    const error = refusal(reply.status, text)
    this.trouble = { error, retry: error.kind !== "engine_validation" }
    if (error.kind === "engine_failed") this.ports.failed(upstream, error.message, false)
  }

  private headers(): { [name: string]: string } {
    const { dataParallelRank, traceHeaders } = this.request
    return {
      "content-type": "application/json",
      ...(this.ports.apiKey !== null && { authorization: `Bearer ${this.ports.apiKey}` }),
      ...(dataParallelRank !== null && { "x-data-parallel-rank": String(dataParallelRank) }),
      ...traceHeaders,
    }
  }

  private body(): string {
    const { request } = this
    // Stop strings are looked for here, and text is made here.
    const sampling = { ...request.sampling, stop: [], includeStopStrInOutput: false }
    const { sampling_params, ...core } = generateBody({ ...request, sampling })
    return jsonText({
      ...core,
      request_id: request.requestId,
      model: request.lora?.name ?? null,
      sampling_params: { ...sampling_params, detokenize: false, output_kind: 1 },
      stream: this.streams,
      stream_options: this.streams ? { include_usage: true } : null,
    })
  }

  private end(): void {
    this.ended = true
    this.ports.ended()
  }

  /** As a call, since it changes while something is awaited. */
  private isOver(): boolean {
    return this.ended
  }
}

function disconnected(message: string): { readonly error: EngineError; readonly retry: true } {
  return { error: { kind: "engine_disconnected", message }, retry: true }
}

/** The error that a refused request's body tells, or its status alone. */
function refusal(status: number, text: string): EngineError {
  try {
    const { error } = JSON.parse(text)
    if (typeof error === "object" && error !== null) return errorOf({ ...error, code: status })
  } catch {
    // Not our envelope: a proxy's page, say.
  }
  return statusError(status, text.slice(0, 200), null)
}
