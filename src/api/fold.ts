import type { EngineError, LogprobRows } from "../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../ir/item-event"

/** An item with all its text so far. */
export interface FoldedItem extends ItemOpening {
  text: string
  isOpen: boolean
  /** The reply limit ended it. */
  cut: boolean
}

/** The logprobs of one position: the chosen token first, then alternatives by rank. */
export interface PositionLogprobs {
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
  /** Vocabulary rank of the chosen token. */
  readonly rank: number
}

/** Where the text stood when a step with logprobs was over. */
export interface StepMark {
  /** Positions in `Fold.logprobs` so far. */
  readonly positions: number
  /** The last item's place in `Fold.items`, -1 before the first, and the UTF-16 units of its text so far. */
  readonly item: number
  readonly units: number
}

/**
 * Keeps what one choice was: its items, token ids and logprobs, and how it ended. The reply as one object is made from
 * this alone, and streams watch it, so that both say the same.
 */
export class Fold implements ItemSink {
  readonly items: FoldedItem[] = []
  /** Filled when the request wants steps. */
  readonly tokenIds: number[] = []
  readonly logprobs: PositionLogprobs[] = []
  /** One for each step with logprobs. */
  readonly marks: StepMark[] = []
  /** One entry for each prompt token but the first; null when not asked for. */
  prompt: PositionLogprobs[] | null = null
  outcome: Outcome | null = null
  failure: { readonly error: EngineError; readonly usage: ChoiceUsage | null } | null = null
  private last: FoldedItem | null = null

  promptLogprobs(rows: LogprobRows): void {
    this.prompt = []
    for (let row = 0; row < rows.ranks.length; row++) this.prompt.push(copyRow(rows, row))
  }

  open(item: ItemOpening): void {
    this.last = { ...item, text: "", isOpen: true, cut: false }
    this.items.push(this.last)
  }

  /** Hot (bench/fold.ts). */
  delta(text: string): void {
    this.last!.text += text
  }

  close(cut: boolean): void {
    this.last!.isOpen = false
    this.last!.cut = cut
  }

  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void {
    for (let i = start; i < end; i++) {
      this.tokenIds.push(tokenIds[i]!)
      if (logprobs !== null) this.logprobs.push(copyRow(logprobs, i - start))
    }
    if (logprobs !== null) this.marks.push(this.mark())
  }

  /** Where the text stands now. */
  mark(): StepMark {
    return { positions: this.logprobs.length, item: this.items.length - 1, units: this.last?.text.length ?? 0 }
  }

  flush(): void {}

  done(outcome: Outcome): void {
    this.outcome = outcome
  }

  fail(error: EngineError, usage: ChoiceUsage | null): void {
    this.failure = { error, usage }
  }

  /** The item that was opened last. */
  get current(): FoldedItem {
    return this.last!
  }

  /** All text of one kind, in order, as one. */
  text(kind: "reasoning" | "text"): string {
    let text = ""
    for (const item of this.items) if (item.kind === kind) text += (item.joiner ?? "") + item.text
    return text
  }
}

/** The engine owns the rows, so they are copied. Unused entries (id -1) are left out. */
function copyRow(rows: LogprobRows, row: number): PositionLogprobs {
  const from = row * rows.width
  let used = rows.width
  while (used > 1 && rows.tokenIds[from + used - 1] === -1) used -= 1
  return {
    tokenIds: rows.tokenIds.slice(from, from + used),
    logprobs: rows.logprobs.slice(from, from + used),
    rank: rows.ranks[row] ?? 1,
  }
}
