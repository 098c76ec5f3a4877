import type { ItemKind, ItemSink } from "../ir/item-event"
import type { ParserSink } from "../parser/parser"

/** Where ids of items and calls come from; injected so that tests can fix them. */
export interface ItemIds {
  /** 32 hex digits. */
  item(): string
  /** For calls whose model gives them none. */
  call(): string
}

/** What of the model's output the request wants to see. */
export interface ItemOptions {
  readonly includeReasoning: boolean
  /** False: calls after the first are dropped. */
  readonly parallelToolCalls: boolean
}

/** Between messages that an API shows as one text. Source: PARSERS 4.12. */
const messageJoiner = "\n"

/** `muted` = a call or reasoning that the request does not want: it is swallowed and takes no index. */
type Open = ItemKind | "nothing" | "muted"

/**
 * The one owner of "which item is open": turns a parser's calls into items. Items open on their first non-empty text
 * (calls on their name) and close when the next one opens, because only the end of the sequence tells whether the last
 * item was cut. Source: RESPONSES 10.
 */
export class Items implements ParserSink {
  /** Calls shown so far. */
  calls = 0
  private open: Open = "nothing"
  /** Whether the model has ended the open call. */
  private callEnded = false
  /** True from a call to the next text or reasoning. */
  private afterCall = false
  /** White space since the call, kept in case that text follows. */
  private gap = ""
  private nextIndex = 0
  /** Whether the model began a message since the last item opened, and what it has shown before. */
  private breaks = false
  private hasReasoning = false
  private hasText = false
  private seenCalls = 0
  private readonly sink: ItemSink
  private readonly options: ItemOptions
  private readonly ids: ItemIds

  constructor(sink: ItemSink, options: ItemOptions, ids: ItemIds) {
    this.sink = sink
    this.options = options
    this.ids = ids
  }

  /** Hot (bench/fold.ts). */
  reasoning(text: string): void {
    if (!this.options.includeReasoning) {
      this.mute()
      return
    }
    this.leaveCall()
    if (this.open !== "reasoning" || this.breaks) this.begin("reasoning", "", "")
    this.hasReasoning = true
    this.sink.delta(text)
  }

  /** Hot (bench/fold.ts). */
  text(text: string): void {
    if (this.afterCall) this.textAfterCall(text)
    else this.showText(text)
  }

  private showText(text: string): void {
    if (this.open !== "text" || this.breaks) this.begin("text", "", "")
    this.hasText = true
    this.sink.delta(text)
  }

  /** White space behind and between calls is the model's layout, no message (PARSERS 1, rule 12). */
  private textAfterCall(text: string): void {
    this.gap += text
    if (this.gap.trim() === "") return
    const whole = this.gap
    this.leaveCall()
    this.showText(whole)
  }

  private leaveCall(): void {
    this.afterCall = false
    this.gap = ""
  }

  callStart(name: string, id: string): void {
    this.seenCalls += 1
    this.afterCall = true
    this.gap = ""
    if (this.seenCalls > 1 && !this.options.parallelToolCalls) {
      this.mute()
      return
    }
    this.calls += 1
    this.callEnded = false
    this.begin("call", id === "" ? this.ids.call() : id, name)
  }

  callArguments(text: string): void {
    if (this.open === "call") this.sink.delta(text)
  }

  callEnd(): void {
    // The call stays open: if nothing follows, the finish reason decides how it closes.
    this.callEnded = true
  }

  /** Each message of the model is an item of its own; one without text is none. */
  messageBreak(): void {
    this.breaks = true
  }

  /** The sequence ended; `cut` when the reply limit ended it. A call that the model did not end is cut in any case. */
  end(cut: boolean): void {
    this.closeOpen(cut || (this.open === "call" && !this.callEnded))
    this.open = "nothing"
  }

  private begin(kind: ItemKind, callId: string, name: string): void {
    this.closeOpen(false)
    this.open = kind
    const opening = { kind, index: this.nextIndex, id: this.ids.item(), callId, name }
    const continues = (kind === "reasoning" && this.hasReasoning) || (kind === "text" && this.hasText)
    this.sink.open(this.breaks && continues ? { ...opening, joiner: messageJoiner } : opening)
    this.breaks = false
    this.nextIndex += 1
  }

  private mute(): void {
    this.closeOpen(false)
    this.open = "muted"
  }

  private closeOpen(cut: boolean): void {
    if (this.open !== "nothing" && this.open !== "muted") this.sink.close(cut)
  }
}
