import type { ParserSink } from "./parser"

/** What is being gathered. */
const Kind = { none: 0, reasoning: 1, text: 2, arguments: 3 } as const
type Kind = (typeof Kind)[keyof typeof Kind]

/** A sink for the time before the first push: nothing may come out then. */
const noSink: ParserSink = {
  reasoning: unexpected,
  text: unexpected,
  callStart: unexpected,
  callArguments: unexpected,
  callEnd: unexpected,
}

function unexpected(): never {
  throw new Error("a parser gave something out before it was pushed to")
}

/**
 * The way out of one sequence's machines: joins what they give out within one push, so that each kind of text is one
 * delta a step, and keeps the order between reasoning, text and calls.
 */
export class Emission {
  private kind: Kind = Kind.none
  private pending = ""
  private sink: ParserSink = noSink

  /** Hot (bench/fold.ts): the sink of the push that begins. */
  begin(sink: ParserSink): void {
    this.sink = sink
  }

  /** Hot (bench/fold.ts). */
  reasoning(text: string): void {
    if (this.kind !== Kind.reasoning) this.change(Kind.reasoning)
    this.pending += text
  }

  /** Hot (bench/fold.ts). */
  text(text: string): void {
    if (this.kind !== Kind.text) this.change(Kind.text)
    this.pending += text
  }

  /** Hot (bench/fold.ts). */
  callArguments(text: string): void {
    if (this.kind !== Kind.arguments) this.change(Kind.arguments)
    this.pending += text
  }

  callStart(name: string, id: string): void {
    this.flush()
    this.sink.callStart(name, id)
  }

  callEnd(): void {
    this.flush()
    this.sink.callEnd()
  }

  messageBreak(): void {
    this.flush()
    this.sink.messageBreak?.()
  }

  /** Hot (bench/fold.ts): the push ends; gathered text goes to the sink. */
  flush(): void {
    const { pending } = this
    if (pending === "") return
    this.pending = ""
    switch (this.kind) {
      case Kind.reasoning:
        this.sink.reasoning(pending)
        return
      case Kind.text:
        this.sink.text(pending)
        return
      case Kind.arguments:
        this.sink.callArguments(pending)
    }
  }

  private change(kind: Kind): void {
    this.flush()
    this.kind = kind
  }
}
