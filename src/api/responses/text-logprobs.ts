import type { Fold, PositionLogprobs, StepMark } from "../fold"
import type { TokenName } from "../logprobs"

/** Text that one item got between two marks. */
interface Growth {
  readonly item: number
  readonly isText: boolean
  readonly text: string
}

/**
 * Tells which tokens made the text of which message, so that a message lists the logprobs of its own tokens: those of
 * reasoning, calls and markers are left out. It only reads what the fold keeps, so that a stream, which asks after each
 * step, and a whole reply, which asks once, find the same.
 *
 * What an item got is looked for in the texts of the tokens that wait; those whose text was held back (half a character,
 * what may become a stop string) wait on. Where it is not found, all that wait count.
 */
export class TextLogprobs {
  private readonly fold: Fold
  private readonly tokenText: TokenName
  private readonly byItem = new Map<number, PositionLogprobs[]>()
  private readonly taken = new Map<number, number>()
  private nextMark = 0
  private last: StepMark = { positions: 0, item: -1, units: 0 }
  /** The first position that no item has. */
  private waiting = 0

  constructor(fold: Fold, tokenText: TokenName) {
    this.fold = fold
    this.tokenText = tokenText
  }

  /** Takes in the steps since the last call. */
  advance(): void {
    const { marks } = this.fold
    while (this.nextMark < marks.length) {
      this.moveTo(marks[this.nextMark]!)
      this.nextMark += 1
    }
  }

  /** The choice ended: what was held back until now has come out behind the last step. */
  finish(): void {
    this.advance()
    this.moveTo(this.fold.mark())
  }

  /** Positions of an item, by its place. */
  of(item: number): readonly PositionLogprobs[] {
    return this.byItem.get(item) ?? []
  }

  /** Those of them that were not taken yet. */
  take(item: number): readonly PositionLogprobs[] {
    const all = this.of(item)
    const fresh = all.slice(this.taken.get(item) ?? 0)
    this.taken.set(item, all.length)
    return fresh
  }

  private moveTo(mark: StepMark): void {
    const growths = this.growthsTo(mark)
    this.last = mark
    if (growths.length === 0) return
    const ends: number[] = []
    let text = ""
    for (let i = this.waiting; i < mark.positions; i++) {
      text += this.tokenText(this.fold.logprobs[i]!.tokenIds[0]!)
      ends.push(text.length)
    }
    const first = this.waiting
    let from = 0
    for (const growth of growths) {
      const found = find(text, growth.text, from)
      if (found === null) {
        // A parser may write a call's arguments anew; its tokens must not pile up.
        if (growth.isText) this.assign(growth.item, mark.positions)
        else if (growth === growths.at(-1)) this.waiting = mark.positions
        continue
      }
      const { at, behind } = found
      // Both ends lie inside of a token or at its border.
      this.waiting = Math.max(this.waiting, first + ends.findIndex((end) => end > at))
      const end = first + ends.findIndex((each) => each >= behind) + 1
      if (growth.isText) this.assign(growth.item, end)
      else this.waiting = Math.max(this.waiting, end)
      from = behind
    }
  }

  /** All that waits up to `end` belongs to an item. */
  private assign(item: number, end: number): void {
    const positions = this.byItem.get(item) ?? []
    this.byItem.set(item, positions)
    for (; this.waiting < end; this.waiting++) positions.push(this.fold.logprobs[this.waiting]!)
  }

  private growthsTo(mark: StepMark): Growth[] {
    const growths: Growth[] = []
    for (let item = Math.max(0, this.last.item); item <= mark.item; item++) {
      const { kind, text } = this.fold.items[item]!
      const from = item === this.last.item ? this.last.units : 0
      const grown = text.slice(from, item === mark.item ? mark.units : text.length)
      if (grown !== "") growths.push({ item, isText: kind === "text", text: grown })
    }
    return growths
  }
}

/**
 * Where `wanted` stands in `text`, [at, behind). Tokens that hold parts of a character read as U+FFFD, so outside of
 * ASCII any characters may stand for those that are wanted.
 */
function find(text: string, wanted: string, from: number): { readonly at: number; readonly behind: number } | null {
  const at = text.indexOf(wanted, from)
  if (at !== -1) return { at, behind: at + wanted.length }
  if (!text.includes("\ufffd", from)) return null
  const escaped = wanted.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")
  const pattern = new RegExp(escaped.replace(/[\u0080-\uffff]+/g, "[\\u0080-\\uffff]+"), "g")
  pattern.lastIndex = from
  const match = pattern.exec(text)
  return match === null ? null : { at: match.index, behind: match.index + match[0].length }
}
