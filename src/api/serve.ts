/**
 * A generation request from body to reply: validate → lower → prepare → generate → fold, and on a stream a view that
 * watches the fold. Async at its two ends only.
 */
import type { TSchema } from "@sinclair/typebox"
import { type Choice, Generation } from "../generate/generate"
import { readJsonBody } from "../http/body"
import { type MediaBody, readMediaBody } from "../http/media-body"
import { type SseWriter, sseResponse } from "../http/sse"
import type { EngineError, FinishReason } from "../ir/engine"
import { jsonText } from "../ir/exact-json"
import type { GenerateRequest, LoraAdapter } from "../ir/generate-request"
import type { HeldTexts } from "../ir/held-texts"
import type { ItemSink } from "../ir/item-event"
import { err, ok, type Result } from "../result"
import type { Endpoint, Exchange, LowerContext, Lowered } from "./endpoint"
import { type ApiError, errorResponse } from "./errors"
import { headerFields, makeExchange, readingOf, samplingOf } from "./exchange"
import { Fold } from "./fold"
import type { PassesOn } from "./media-places"
import { isServed, namedAdapter } from "./models"
import type { RequestEntry } from "./request-entry"
import { lowerContext, type PromptRoom, type RunningRequest, type ServeRoom } from "./room"
import type { BodyCheck } from "./schema"

/** Headers of every reply to this request, streams included. */
export type ReplyHeaders = { readonly [name: string]: string }

/** A generation route: reads the request, answers it. Never rejects for what a client, model or engine does. */
export type Serve = (request: Request, headers: ReplyHeaders, entry: RequestEntry) => Promise<Response>

/** Makes the route of an endpoint. `passesOn`: where its bodies hold media; null = nowhere. */
export function serve<Body, Ask>(endpoint: Endpoint<Body, Ask>, room: ServeRoom, passesOn: PassesOn | null): Serve {
  return async (request, headers, entry) => {
    // Admission comes after the body: clients that send theirs slowly must not keep others out.
    const body = await readBody(request, endpoint.check, room, passesOn, entry)
    if (!body.ok) return errorResponse(body.error, headers)
    if (!room.admission.enter()) {
      const { concurrentRequestsMax } = room.config.limits
      const message = `The server is handling ${concurrentRequestsMax} requests already; please try again.`
      return errorResponse({ kind: "overloaded", message }, headers)
    }
    return await new Call(endpoint, room, request, headers, entry, body.value.held).answer(body.value.body)
  }
}

/** A checked body, and what of it was left as bytes. */
export interface ReadBody<Body> {
  readonly body: Body
  readonly held: HeldTexts | null
}

/** Reads and checks a body, and the model that it names. `passesOn`: where it may hold media; null = nowhere. */
export async function readBody<Body>(
  request: Request,
  check: BodyCheck<TSchema & { readonly static: Body }>,
  room: PromptRoom,
  passesOn: PassesOn | null,
  entry: RequestEntry,
): Promise<Result<ReadBody<Body>, ApiError>> {
  const read = await readPassingOn(request, room, passesOn, entry)
  if (!read.ok) return read
  const checked = check.check(read.value.value)
  if (!checked.ok) return checked
  const fault = modelFault(checked.value, room)
  return fault === null ? ok({ body: checked.value, held: read.value.held }) : err(fault)
}

/** Reads a body that nothing was checked of yet. */
export async function readPassingOn(
  request: Request,
  { config }: Pick<PromptRoom, "config">,
  passesOn: PassesOn | null,
  { claim }: RequestEntry,
): Promise<Result<MediaBody, ApiError>> {
  if (passesOn !== null) return await readMediaBody(request, config.limits, claim, passesOn)
  const read = await readJsonBody(request, config.limits, claim)
  return read.ok ? ok({ value: read.value, held: null }) : read
}

/** An unknown `model`, or null. */
export function modelFault(body: unknown, room: PromptRoom): ApiError | null {
  const model: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "model") : null
  if (typeof model !== "string" || isServed(model, room.facts, room.config.skipModelNameValidation)) return null
  return {
    kind: "model_not_found",
    model: model.slice(0, 256),
    names: [...room.facts.names, ...room.facts.adapters.map((adapter) => adapter.name)],
  }
}

/** One request on its way. Leaves admission exactly once, when its reply is complete or its client is gone. */
class Call<Body, Ask> implements RunningRequest {
  private readonly endpoint: Endpoint<Body, Ask>
  private readonly room: ServeRoom
  private readonly request: Request
  private readonly headers: ReplyHeaders
  private readonly entry: RequestEntry
  private readonly held: HeldTexts | null
  private readonly context: LowerContext
  private readonly startedAt: number
  private adapter: LoraAdapter | null = null
  private folds: Fold[] = []
  private generation: Generation | null = null
  private onEnded: () => void = () => {}
  private failSinks: (error: EngineError) => void = () => {}

  constructor(
    endpoint: Endpoint<Body, Ask>,
    room: ServeRoom,
    request: Request,
    headers: ReplyHeaders,
    entry: RequestEntry,
    held: HeldTexts | null,
  ) {
    this.held = held
    this.endpoint = endpoint
    this.room = room
    this.request = request
    this.headers = headers
    this.entry = entry
    this.context = lowerContext(room, request.headers)
    this.startedAt = room.generate.now()
  }

  async answer(body: Body): Promise<Response> {
    let leaves = true
    try {
      this.adapter = namedAdapter(body, this.room.facts)
      const lowered = this.endpoint.lower(body, this.context)
      if (!lowered.ok) return errorResponse(lowered.error, this.headers)
      const exchange = makeExchange(lowered.value, this.room, this.context, this.adapter)
      if (!exchange.ok) return errorResponse(exchange.error, this.headers)
      this.entry.id = exchange.value.id
      this.logRequest(lowered.value, exchange.value)
      // The client may have gone while its body was read: nothing is generated for nobody.
      if (this.request.signal.aborted) return errorResponse({ kind: "client_gone", message: "" }, this.headers)
      this.room.running.add(this)
      leaves = false
      // The engine may think for longer than a connection may stay silent.
      this.entry.silence(0)
      return lowered.value.stream
        ? this.stream(lowered.value, exchange.value)
        : await this.whole(lowered.value, exchange.value)
    } finally {
      if (leaves) this.room.admission.leave()
    }
  }

  get id(): string {
    return this.entry.id
  }

  abort(): void {
    this.generation?.cancel()
  }

  /** Ends the request with an error that the client sees. */
  shutDown(): void {
    if (this.generation === null || this.generation.isOver) return
    const error: EngineError = { kind: "shutting_down", message: "the server is being stopped" }
    this.failSinks(error)
    this.generation.abort()
  }

  /** Starts all choices with these sinks, or says why the engine will not have them. */
  private start(lowered: Lowered<Ask>, exchange: Exchange<Ask>, sinks: readonly ItemSink[]): EngineError | null {
    const { room } = this
    const choices: Choice[] = sinks.map((sink, index) => ({
      sink,
      request: this.generateRequest(lowered, exchange, index),
    }))
    const reading = readingOf(lowered, room)
    this.failSinks = (error) => {
      for (const [index, sink] of sinks.entries()) {
        const fold = this.folds[index]!
        if (fold.outcome !== null || fold.failure !== null) continue
        if (fold.items.at(-1)?.isOpen === true) sink.close(false)
        sink.fail(error, null)
        break // one failure ends the reply
      }
    }
    this.generation = new Generation(() => this.ended())
    room.observer.started(choices.length, exchange.sampling.maxTokens)
    return this.generation.start(room.generate, choices, reading)
  }

  private generateRequest(lowered: Lowered<Ask>, exchange: Exchange<Ask>, index: number): GenerateRequest {
    const { room } = this
    const promptIndex = Math.floor(index / exchange.choicesPerPrompt)
    const sampling = samplingOf(lowered, exchange, promptIndex, this.context)
    if (sampling.seed !== null) {
      sampling.seed = BigInt.asIntN(64, sampling.seed + BigInt(index % exchange.choicesPerPrompt))
    }
    return {
      // A client may reuse its ids; the engine's must be its own.
      requestId: `${exchange.id}-${index}-${room.newId().slice(0, 8)}`,
      promptTokenIds: exchange.prompts[promptIndex]!.tokenIds,
      sampling,
      eosTokenIds: room.eosTokenIds,
      priority: lowered.priority,
      cacheSalt: lowered.cacheSalt,
      sessionId: lowered.sessionId,
      lora: this.adapter,
      reasoningEnded: exchange.reasoningEnded,
      media: exchange.media,
      held: this.held,
      isOpenEnded: exchange.isOpenEnded,
      ...headerFields(this.request.headers),
    }
  }

  private async whole(lowered: Lowered<Ask>, exchange: Exchange<Ask>): Promise<Response> {
    this.folds = makeFolds(exchange)
    const { signal } = this.request
    const { promise, resolve } = Promise.withResolvers<void>()
    this.onEnded = resolve
    const refused = this.start(lowered, exchange, this.folds)
    if (refused === null) {
      const abort = (): void => this.generation!.abort()
      signal.addEventListener("abort", abort, { once: true })
      await promise
      signal.removeEventListener("abort", abort)
    }
    if (signal.aborted) return errorResponse({ kind: "client_gone", message: "" }, this.headers)
    const failure = refused ?? this.folds.find((fold) => fold.failure !== null)?.failure?.error ?? null
    if (failure !== null) {
      this.logFailure(failure)
      return errorResponse(failure, this.headers)
    }
    const json = jsonText(this.endpoint.present(exchange, this.folds))
    return new Response(json, { headers: { ...this.headers, "content-type": "application/json;charset=utf-8" } })
  }

  private stream(lowered: Lowered<Ask>, exchange: Exchange<Ask>): Response {
    this.folds = makeFolds(exchange)
    let writer: SseWriter | null = null
    const response = sseResponse({
      headers: this.headers,
      bufferedBytesMax: this.room.config.limits.streamBufferedBytesMax,
      keepAliveSeconds: this.room.config.sseKeepAliveSeconds,
      onGone: () => this.generation?.abort(),
      start: (opened) => {
        writer = opened
      },
    })
    const events: SseWriter = writer! // `start` was called before `sseResponse` returned
    const view = this.endpoint.stream(
      exchange,
      (frames) => events.write(frames),
      (frame, text, number) => events.writeDelta(frame, text, number),
    )
    view.begin()
    const refused = this.start(
      lowered,
      exchange,
      this.folds.map((fold, index) => view.choice(index, fold)),
    )
    if (refused !== null) {
      // Nothing has left yet, so the refusal can still have its own status.
      events.end()
      this.logFailure(refused)
      return errorResponse(refused, this.headers)
    }
    this.onEnded = () => {
      const failure = this.folds.find((fold) => fold.failure !== null)?.failure ?? null
      if (failure !== null) this.logFailure(failure.error)
      if (!events.gone) view.end(this.folds)
      events.end()
    }
    // The stream itself tells when its client leaves, unless the client left before the stream was read at all.
    this.request.signal.addEventListener("abort", () => this.generation?.abort(), { once: true })
    this.entry.deferred = true
    return response
  }

  /** Once, when all choices are done, one failed, or the client went away. */
  private ended(): void {
    const { room } = this
    room.running.delete(this)
    room.admission.leave()
    this.entry.silence(null)
    const endedAt = room.generate.now()
    for (const [index, fold] of this.folds.entries()) {
      const progress = this.generation?.progress(index) ?? nothingDone
      const record = { finish: this.finishOf(fold), ...progress }
      room.observer.choiceEnded(record, this.startedAt, endedAt)
    }
    this.entry.note = this.summary()
    this.logOutputs()
    this.onEnded()
    if (this.entry.deferred) this.entry.end(200)
  }

  /** How a choice ended, in the metrics' words. */
  private finishOf(fold: Fold): FinishReason | null {
    if (fold.outcome !== null) return fold.outcome.finish
    if (fold.failure !== null) return "error"
    return this.generation?.refused == null ? "abort" : null
  }

  private summary(): string {
    const other = this.generation?.refused?.kind ?? "client_gone"
    const finishes = this.folds.map((fold) => fold.outcome?.finish ?? fold.failure?.error.kind ?? other)
    let tokens = 0
    for (const index of this.folds.keys()) tokens += this.generation?.progress(index)?.usage.outputTokens ?? 0
    return `${tokens} tokens, ${[...new Set(finishes)].join(" ")}`
  }

  private logRequest(lowered: Lowered<Ask>, exchange: Exchange<Ask>): void {
    const { config, log } = this.room
    if (!config.enableLogRequests) return
    const promptTokens = exchange.prompts.reduce((sum, prompt) => sum + prompt.tokenIds.length, 0)
    const { temperature, topP, maxTokens, seed } = exchange.sampling
    const stream = lowered.stream ? "stream" : "no stream"
    log(
      `request ${exchange.id}: ${promptTokens} prompt tokens, max_tokens ${maxTokens}, temperature ${temperature}, ` +
        `top_p ${topP}, seed ${seed}, ${stream}`,
    )
  }

  private logOutputs(): void {
    const { enableLogRequests, enableLogOutputs, maxLogLength } = this.room.config
    if (!enableLogRequests || !enableLogOutputs) return
    for (const [index, fold] of this.folds.entries()) {
      const parts = fold.items.map((item) => (item.kind === "call" ? `${item.name}(${item.text})` : item.text))
      const text = parts.join("")
      const shown = maxLogLength === null ? text : text.slice(0, maxLogLength)
      this.room.log(`reply ${this.entry.id} choice ${index}: ${JSON.stringify(shown)}`)
    }
  }

  /** Clients get fixed words; the log gets the engine's. */
  private logFailure(error: EngineError): void {
    this.room.log(`request ${this.entry.id}: ${error.kind}: ${error.message}`)
  }
}

/** A choice that was never submitted. */
const nothingDone = {
  usage: { promptTokens: 0, outputTokens: 0, reasoningTokens: 0, cachedTokens: 0, cacheWriteTokens: 0 },
  timing: { queuedAt: -1, scheduledAt: -1, firstTokenAt: -1, lastTokenAt: -1, firstTokenCameAt: -1 },
}

function makeFolds<Ask>(exchange: Exchange<Ask>): Fold[] {
  return Array.from({ length: exchange.prompts.length * exchange.choicesPerPrompt }, () => new Fold())
}
