import type { EngineError, LogprobRows } from "../../src/ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../../src/ir/item-event"
import type { ParserSink } from "../../src/parser/parser"

/** One call to an `ItemSink`, as a value. */
export type ItemCall =
  | { readonly call: "promptLogprobs"; readonly rows: number }
  | { readonly call: "open"; readonly item: ItemOpening }
  | { readonly call: "delta"; readonly text: string }
  | { readonly call: "close"; readonly cut: boolean }
  | { readonly call: "step"; readonly tokenIds: readonly number[] }
  | { readonly call: "flush" }
  | { readonly call: "done"; readonly outcome: Outcome }
  | { readonly call: "fail"; readonly error: EngineError; readonly usage: ChoiceUsage | null }

/** Turns the calls of one choice into a list, so that whole runs can be compared. */
export class RecordingSink implements ItemSink {
  readonly calls: ItemCall[] = []

  promptLogprobs(rows: LogprobRows): void {
    this.calls.push({ call: "promptLogprobs", rows: rows.ranks.length })
  }

  open(item: ItemOpening): void {
    this.calls.push({ call: "open", item: { ...item } })
  }

  delta(text: string): void {
    this.calls.push({ call: "delta", text })
  }

  close(cut: boolean): void {
    this.calls.push({ call: "close", cut })
  }

  step(tokenIds: Uint32Array, start: number, end: number): void {
    this.calls.push({ call: "step", tokenIds: Array.from(tokenIds.subarray(start, end)) })
  }

  flush(): void {
    this.calls.push({ call: "flush" })
  }

  done(outcome: Outcome): void {
    this.calls.push({ call: "done", outcome })
  }

  fail(error: EngineError, usage: ChoiceUsage | null): void {
    this.calls.push({ call: "fail", error, usage })
  }
}

/** A part of what a model wrote, folded: neighbours of one kind are joined, unless they are messages of their own. */
export type ParsedPart =
  | { readonly kind: "reasoning" | "text"; readonly text: string }
  | {
      readonly kind: "call"
      readonly name: string
      readonly id: string
      readonly arguments: string
      readonly ended: boolean
    }

/**
 * Folds a parser's calls and checks the sink's own rules: no empty text, no arguments outside a call. Messages are parts
 * of their own.
 */
export class ParsedFold implements ParserSink {
  readonly parts: ParsedPart[] = []
  /** Calls to the sink so far. */
  calls = 0
  /** Whether a message began since the last text. */
  private breaks = false

  reasoning(text: string): void {
    this.add("reasoning", text)
  }

  text(text: string): void {
    this.add("text", text)
  }

  messageBreak(): void {
    this.calls += 1
    this.breaks = true
  }

  callStart(name: string, id: string): void {
    this.calls += 1
    if (name === "") throw new Error("a call began without a name")
    this.parts.push({ kind: "call", name, id, arguments: "", ended: false })
  }

  callArguments(text: string): void {
    const call = this.openCall(text)
    this.parts.push({ ...call, arguments: call.arguments + text })
  }

  callEnd(): void {
    this.parts.push({ ...this.openCall("end"), ended: true })
  }

  private openCall(text: string): ParsedPart & { kind: "call" } {
    this.calls += 1
    if (text === "") throw new Error("empty arguments were given out")
    const last = this.parts.pop()
    if (last?.kind !== "call" || last.ended) throw new Error("arguments or an end came outside of a call")
    return last
  }

  private add(kind: "reasoning" | "text", text: string): void {
    this.calls += 1
    if (text === "") throw new Error(`empty ${kind} was given out`)
    const last = this.parts.at(-1)
    const { breaks } = this
    this.breaks = false
    if (last?.kind === kind && !breaks) {
      this.parts.pop()
      this.parts.push({ kind, text: last.text + text })
    } else this.parts.push({ kind, text })
  }
}
