import type { EngineError, LogprobRows } from "../../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../../ir/item-event"
import type { Exchange, StreamView } from "../endpoint"
import type { Fold } from "../fold"
import { jsonLine, jsonString } from "../frames"
import type { ResponseAsk } from "./lower"
import { itemId, presentItem, presentResponse } from "./present"

/** The Responses stream: one event each for what happens to the response, its items and their text (RESPONSES 10). */
export class ResponseStream implements StreamView {
  private readonly exchange: Exchange<ResponseAsk>
  private readonly write: (frame: string) => void
  private sequenceNumber = 0

  constructor(exchange: Exchange<ResponseAsk>, write: (frame: string) => void) {
    this.exchange = exchange
    this.write = write
  }

  begin(): void {
    const response = presentResponse(this.exchange, null)
    this.event("response.created", { response })
    this.event("response.in_progress", { response })
  }

  choice(_index: number, fold: Fold): ItemSink {
    return new ResponseItems(this, fold)
  }

  /** The terminal event was written by `done` or `fail`; there is no `[DONE]`. */
  end(): void {}

  /** Writes an event. Numbers run through the whole stream without gaps. */
  event(type: string, fields: object): void {
    this.write(`event: ${type}\ndata: ${jsonLine({ type, sequence_number: this.take(), ...fields })}\n\n`)
  }

  /** Hot (bench/fold.ts): a delta event whose text up to the delta is `head`, made when the item opened. */
  deltaEvent(head: string, text: string, tail: string): void {
    this.write(`${head}${jsonString(text)}${tail}${this.take()}}\n\n`)
  }

  /** The last event, with the whole response. */
  terminal(type: string, fold: Fold): void {
    this.event(type, { response: presentResponse(this.exchange, fold) })
  }

  private take(): number {
    const number = this.sequenceNumber
    this.sequenceNumber += 1
    return number
  }
}

/** The items of the one choice. */
class ResponseItems implements ItemSink {
  private readonly stream: ResponseStream
  private readonly fold: Fold
  private deltaHead = ""
  private deltaTail = ""

  constructor(stream: ResponseStream, fold: Fold) {
    this.stream = stream
    this.fold = fold
  }

  promptLogprobs(rows: LogprobRows): void {
    this.fold.promptLogprobs(rows)
  }

  open(item: ItemOpening): void {
    this.fold.open(item)
    const at = { item_id: itemId(item), output_index: item.index }
    this.stream.event("response.output_item.added", { output_index: item.index, item: openedItem(item) })
    if (item.kind !== "call") {
      const part =
        item.kind === "reasoning"
          ? { type: "reasoning_text", text: "" }
          : { type: "output_text", text: "", annotations: [], logprobs: [] }
      this.stream.event("response.content_part.added", { ...at, content_index: 0, part })
    }
    const type = deltaTypes[item.kind]
    const place = item.kind === "call" ? at : { ...at, content_index: 0 }
    this.deltaHead = `event: ${type}\ndata: ${jsonLine({ type, ...place }).slice(0, -1)},"delta":`
    this.deltaTail = item.kind === "text" ? ',"logprobs":[],"sequence_number":' : ',"sequence_number":'
  }

  /** Hot (bench/fold.ts). */
  delta(text: string): void {
    this.fold.delta(text)
    this.stream.deltaEvent(this.deltaHead, text, this.deltaTail)
  }

  close(cut: boolean): void {
    this.fold.close(cut)
    const item = this.fold.current
    const { text } = item
    const at = { item_id: itemId(item), output_index: item.index }
    const place = { ...at, content_index: 0 }
    if (item.kind === "call") {
      this.stream.event("response.function_call_arguments.done", { ...at, name: item.name, arguments: text })
    } else if (item.kind === "reasoning") {
      this.stream.event("response.reasoning_text.done", { ...place, text })
      this.stream.event("response.content_part.done", { ...place, part: { type: "reasoning_text", text } })
    } else {
      this.stream.event("response.output_text.done", { ...place, text, logprobs: [] })
      const part = { type: "output_text", text, annotations: [], logprobs: null }
      this.stream.event("response.content_part.done", { ...place, part })
    }
    this.stream.event("response.output_item.done", { output_index: item.index, item: presentItem(item) })
  }

  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void {
    this.fold.step(tokenIds, start, end, logprobs)
  }

  flush(): void {}

  done(outcome: Outcome): void {
    this.fold.done(outcome)
    this.stream.terminal(outcome.finish === "length" ? "response.incomplete" : "response.completed", this.fold)
  }

  fail(error: EngineError, usage: ChoiceUsage | null): void {
    this.fold.fail(error, usage)
    this.stream.terminal("response.failed", this.fold)
  }
}

const deltaTypes = {
  reasoning: "response.reasoning_text.delta",
  text: "response.output_text.delta",
  call: "response.function_call_arguments.delta",
} as const

/** An item as it is announced: no content yet. */
function openedItem(item: ItemOpening): object {
  const id = itemId(item)
  const status = "in_progress"
  switch (item.kind) {
    case "reasoning":
      return { type: "reasoning", id, summary: [], content: [], encrypted_content: null, status }
    case "text":
      return { type: "message", id, role: "assistant", status, content: [] }
    case "call":
      return { type: "function_call", id, call_id: item.callId, name: item.name, arguments: "", status }
  }
}
