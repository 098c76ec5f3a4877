import { DeltaFrame, FramePart } from "../../http/delta-frame"
import type { ItemOpening } from "../../ir/item-event"
import type { Fold, FoldedItem } from "../fold"
import { jsonLine } from "../frames"
import { CustomInput } from "./custom-input"
import type { ResponseAsk } from "./lower"
import { itemId, presentItem } from "./present"
import { callName } from "./tools"

/** Where events go: the stream numbers them. */
export interface EventWriter {
  event(type: string, fields: object): void
  /** Hot (bench/fold.ts): the frame was made when the item opened. */
  deltaEvent(frame: DeltaFrame, text: string): void
}

const deltaTypes = {
  reasoning: "response.reasoning_text.delta",
  text: "response.output_text.delta",
  call: "response.function_call_arguments.delta",
  custom: "response.custom_tool_call_input.delta",
} as const

/** Behind a delta, up to the sequence number; and what stands behind that. */
const plainTail = new FramePart(',"sequence_number":')
const textTail = new FramePart(',"logprobs":[],"sequence_number":')
const deltaEnd = new FramePart("}\n\n")

/** Writes what happens to items as events (RESPONSES 10). Knows one open item. */
export class ItemEvents {
  private readonly writer: EventWriter
  private readonly ask: ResponseAsk
  private readonly fold: Fold
  private deltaHead = ""
  private frame = new DeltaFrame("", plainTail)
  /** Of the open item, when it is a call of a custom tool. */
  private custom: CustomInput | null = null

  constructor(writer: EventWriter, ask: ResponseAsk, fold: Fold) {
    this.writer = writer
    this.ask = ask
    this.fold = fold
  }

  open(item: ItemOpening): void {
    const { names } = this.ask
    const isCustom = item.kind === "call" && callName(names, item.name).kind === "custom"
    this.custom = isCustom ? new CustomInput() : null
    const at = { item_id: itemId(item, names), output_index: item.index }
    this.writer.event("response.output_item.added", { output_index: item.index, item: this.opened(item) })
    if (item.kind !== "call") {
      const part =
        item.kind === "reasoning"
          ? { type: "reasoning_text", text: "" }
          : { type: "output_text", text: "", annotations: [], logprobs: [] }
      this.writer.event("response.content_part.added", { ...at, content_index: 0, part })
    }
    const type = deltaTypes[isCustom ? "custom" : item.kind]
    const place = item.kind === "call" ? at : { ...at, content_index: 0 }
    this.deltaHead = `event: ${type}\ndata: ${jsonLine({ type, ...place }).slice(0, -1)},"delta":`
    this.frame = new DeltaFrame(this.deltaHead, item.kind === "text" ? textTail : plainTail, deltaEnd)
  }

  /** Hot (bench/fold.ts): more of the open item's text. */
  delta(text: string): void {
    if (this.custom === null) {
      this.writer.deltaEvent(this.frame, text)
      return
    }
    const input = this.custom.push(text)
    if (input !== "") this.writer.deltaEvent(this.frame, input)
  }

  /** More of the open message, with the logprobs of its tokens. */
  textDelta(text: string, logprobs: readonly object[]): void {
    const tail = new FramePart(`,"logprobs":${jsonLine(logprobs)}${plainTail.text}`)
    this.writer.deltaEvent(new DeltaFrame(this.deltaHead, tail, deltaEnd), text)
  }

  /** The open item ended; `logprobs` null = it shows none. A cut item waits for the fold's outcome. */
  close(item: FoldedItem, logprobs: readonly object[] | null): void {
    const { writer } = this
    const { text } = item
    const { names } = this.ask
    const at = { item_id: itemId(item, names), output_index: item.index }
    const place = { ...at, content_index: 0 }
    const presented = presentItem(item, this.fold, names, logprobs)
    if (this.custom !== null) {
      const rest = this.custom.finish()
      if (rest !== "") writer.deltaEvent(this.frame, rest)
      writer.event("response.custom_tool_call_input.done", { ...at, input: Reflect.get(presented, "input") })
    } else if (item.kind === "call") {
      const { name } = callName(names, item.name)
      writer.event("response.function_call_arguments.done", { ...at, name, arguments: text })
    } else if (item.kind === "reasoning") {
      writer.event("response.reasoning_text.done", { ...place, text })
      writer.event("response.content_part.done", { ...place, part: { type: "reasoning_text", text } })
    } else {
      writer.event("response.output_text.done", { ...place, text, logprobs: logprobs ?? [] })
      const part = { type: "output_text", text, annotations: [], logprobs }
      writer.event("response.content_part.done", { ...place, part })
    }
    writer.event("response.output_item.done", { output_index: item.index, item: presented })
  }

  /** An item as it is announced: no content yet. */
  private opened(item: ItemOpening): object {
    const presented = presentItem({ ...item, text: "", isOpen: true, cut: false }, this.fold, this.ask.names, null)
    return item.kind === "call" ? presented : { ...presented, content: [] }
  }
}
