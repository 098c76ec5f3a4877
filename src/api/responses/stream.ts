import type { DeltaFrame, WriteDelta } from "../../http/delta-frame"
import type { EngineError } from "../../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../../ir/item-event"
import type { Exchange, StreamView } from "../endpoint"
import type { Fold, FoldedItem } from "../fold"
import { FoldView } from "../fold-view"
import { jsonLine } from "../frames"
import { type EventWriter, ItemEvents } from "./item-events"
import type { ResponseAsk } from "./lower"
import { presentLogprobs, presentResponse } from "./present"
import { TextLogprobs } from "./text-logprobs"

/** The Responses stream: one event each for what happens to the response, its items and their text (RESPONSES 10). */
export class ResponseStream implements StreamView, EventWriter {
  private readonly exchange: Exchange<ResponseAsk>
  private readonly write: (frame: string) => void
  private readonly writeDelta: WriteDelta
  private sequenceNumber = 0

  constructor(exchange: Exchange<ResponseAsk>, write: (frame: string) => void, writeDelta?: WriteDelta) {
    this.exchange = exchange
    this.write = write
    this.writeDelta = writeDelta ?? ((frame, text, number) => write(frame.with(text, number)))
  }

  begin(): void {
    const response = presentResponse(this.exchange, null)
    this.event("response.created", { response })
    this.event("response.in_progress", { response })
  }

  choice(_index: number, fold: Fold): ItemSink {
    const { ask } = this.exchange
    const events = new ItemEvents(this, ask, fold)
    return ask.shownLogprobs === null
      ? new ResponseItems(this, fold, events)
      : new LogprobItems(this, fold, events, this.exchange)
  }

  /** The terminal event was written by `done` or `fail`; there is no `[DONE]`. */
  end(): void {}

  /** Writes an event. Numbers run through the whole stream without gaps. */
  event(type: string, fields: object): void {
    this.write(`event: ${type}\ndata: ${jsonLine({ type, sequence_number: this.take(), ...fields })}\n\n`)
  }

  /** Hot (bench/fold.ts). */
  deltaEvent(frame: DeltaFrame, text: string): void {
    this.writeDelta(frame, text, this.take())
  }

  /** The last event, with the whole response. */
  terminal(fold: Fold): void {
    const { outcome } = fold
    const ending = outcome === null ? "failed" : outcome.finish === "length" ? "incomplete" : "completed"
    this.event(`response.${ending}`, { response: presentResponse(this.exchange, fold) })
  }

  private take(): number {
    const number = this.sequenceNumber
    this.sequenceNumber += 1
    return number
  }
}

/** The items of the one choice, each event written as it happens. */
class ResponseItems extends FoldView {
  private readonly stream: ResponseStream
  private readonly events: ItemEvents

  constructor(stream: ResponseStream, fold: Fold, events: ItemEvents) {
    super(fold)
    this.stream = stream
    this.events = events
  }

  override open(item: ItemOpening): void {
    super.open(item)
    this.events.open(item)
  }

  /** Hot (bench/fold.ts). */
  override delta(text: string): void {
    super.delta(text)
    this.events.delta(text)
  }

  /** Only the last item is cut; whether that makes it incomplete is known with the finish reason. */
  override close(cut: boolean): void {
    super.close(cut)
    if (!cut) this.events.close(this.fold.current, null)
  }

  override done(outcome: Outcome): void {
    super.done(outcome)
    this.end()
  }

  override fail(error: EngineError, usage: ChoiceUsage | null): void {
    super.fail(error, usage)
    this.end()
  }

  private end(): void {
    const last = this.fold.items.at(-1)
    if (last?.cut === true) this.events.close(last, null)
    this.stream.terminal(this.fold)
  }
}

/** What happened since the last flush; a run of deltas is one. */
interface Happened {
  readonly what: "open" | "delta" | "close"
  readonly item: FoldedItem
  text: string
}

/**
 * The same with logprobs. A step's tokens are known only after its items, so events wait until the step is over and
 * leave with the logprobs of their tokens.
 */
class LogprobItems extends FoldView {
  private readonly stream: ResponseStream
  private readonly events: ItemEvents
  private readonly exchange: Exchange<ResponseAsk>
  private readonly logprobs: TextLogprobs
  private happened: Happened[] = []

  constructor(stream: ResponseStream, fold: Fold, events: ItemEvents, exchange: Exchange<ResponseAsk>) {
    super(fold)
    this.stream = stream
    this.events = events
    this.exchange = exchange
    this.logprobs = new TextLogprobs(fold, exchange.facts.tokenText)
  }

  override open(item: ItemOpening): void {
    super.open(item)
    this.happened.push({ what: "open", item: this.fold.current, text: "" })
  }

  override delta(text: string): void {
    super.delta(text)
    const last = this.happened.at(-1)
    if (last?.what === "delta") last.text += text
    else this.happened.push({ what: "delta", item: this.fold.current, text })
  }

  override close(cut: boolean): void {
    super.close(cut)
    this.happened.push({ what: "close", item: this.fold.current, text: "" })
  }

  override flush(): void {
    this.logprobs.advance()
    this.tell()
  }

  override done(outcome: Outcome): void {
    super.done(outcome)
    this.logprobs.finish()
    this.tell()
    this.stream.terminal(this.fold)
  }

  override fail(error: EngineError, usage: ChoiceUsage | null): void {
    super.fail(error, usage)
    this.logprobs.finish()
    this.tell()
    this.stream.terminal(this.fold)
  }

  private tell(): void {
    const { happened, exchange } = this
    this.happened = []
    for (const { what, item, text } of happened) {
      if (what === "open") this.events.open(item)
      else if (what === "close") this.events.close(item, presentLogprobs(exchange, item, this.logprobs.of(item.index)))
      else if (item.kind !== "text") this.events.delta(text)
      else this.events.textDelta(text, presentLogprobs(exchange, item, this.logprobs.take(item.index)) ?? [])
    }
  }
}
