import type { EngineError, LogprobRows } from "../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../ir/item-event"
import type { Fold } from "./fold"

/**
 * A sink that watches a fold: the fold gets every call first, whatever the view then makes of it. Views override what
 * they show and begin with `super`.
 */
export abstract class FoldView implements ItemSink {
  protected readonly fold: Fold

  constructor(fold: Fold) {
    this.fold = fold
  }

  promptLogprobs(rows: LogprobRows): void {
    this.fold.promptLogprobs(rows)
  }

  open(item: ItemOpening): void {
    this.fold.open(item)
  }

  /** Hot (bench/fold.ts). */
  delta(text: string): void {
    this.fold.delta(text)
  }

  close(cut: boolean): void {
    this.fold.close(cut)
  }

  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void {
    this.fold.step(tokenIds, start, end, logprobs)
  }

  flush(): void {}

  done(outcome: Outcome): void {
    this.fold.done(outcome)
  }

  fail(error: EngineError, usage: ChoiceUsage | null): void {
    this.fold.fail(error, usage)
  }
}
