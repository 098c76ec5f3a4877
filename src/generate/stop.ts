import { Piece } from "../ir/piece"

/**
 * Looks for stop strings in the text of one sequence and holds back what may become one. The rules are CHAT.md 6: the
 * match that completes first wins, ties go to the earlier string of the list; tokens up to `minTokens` cannot complete
 * a match, though a match may begin in their text.
 */
export class StopFilter {
  /** The string that matched, or null. */
  matched: string | null = null
  private readonly stop: readonly string[]
  private readonly include: boolean
  private readonly minTokens: number
  /** UTF-16 units kept back while no string has matched. */
  private readonly heldUnitsMax: number
  private readonly tailUnits: number
  /** The last `tailUnits` units of everything seen, where a match may begin. */
  private tail = ""
  private seenTokens = 0
  private held = new Piece()
  private spare = new Piece()

  constructor(stop: readonly string[], include: boolean, minTokens: number) {
    this.stop = stop
    this.include = include
    this.minTokens = minTokens
    this.tailUnits = Math.max(...stop.map((each) => each.length)) - 1
    this.heldUnitsMax = include ? 0 : this.tailUnits
  }

  /**
   * Takes one step's text and adds to `released` what is safe to show. Gives the number of the step's tokens that
   * belong to the reply: all of them, or those up to the one that completed a match.
   */
  push(piece: Piece, released: Piece): number {
    let start = 0
    for (let i = 0; i < piece.count; i++) {
      const text = piece.text.slice(start, piece.ends[i]!)
      start = piece.ends[i]!
      this.seenTokens += 1
      this.held.add(piece.ids[i]!, text)
      const excess = this.seenTokens > this.minTokens ? this.search(text) : -1
      if (excess >= 0) {
        this.release(this.held.text.length - excess, released)
        return i + 1
      }
      if (text.length > 0) this.tail = lastUnits(this.tail + text, this.tailUnits)
    }
    this.release(this.held.text.length - this.heldUnitsMax, released)
    return piece.count
  }

  /** The sequence ended without a match: everything comes out. */
  finish(released: Piece): void {
    this.release(this.held.text.length, released)
  }

  /** Looks for a match that completes in `text`. Gives how many units at the end of the seen text are cut off, or -1. */
  private search(text: string): number {
    if (text === "") return -1
    const window = this.tail + text
    let endMin = window.length + 1
    let startOfMatch = 0
    for (const stop of this.stop) {
      const from = Math.max(0, this.tail.length - stop.length + 1)
      const at = window.indexOf(stop, from)
      if (at === -1 || at + stop.length >= endMin) continue
      endMin = at + stop.length
      startOfMatch = at
      this.matched = stop
    }
    if (endMin > window.length) return -1
    return window.length - (this.include ? endMin : startOfMatch)
  }

  /**
   * Moves held text to `released`: all tokens that fit into `units`. Once a match is known the token at the border is
   * cut; before, it stays whole, so that every text keeps its token. Empty tokens at the border go along.
   */
  private release(units: number, released: Piece): void {
    const held = this.held
    let count = 0
    while (count < held.count && held.ends[count]! <= units) count += 1
    let start = 0
    for (let i = 0; i < count; i++) {
      released.add(held.ids[i]!, held.text.slice(start, held.ends[i]!))
      start = held.ends[i]!
    }
    const rest = this.spare
    rest.clear()
    for (let i = count; i < held.count; i++) {
      const text = held.text.slice(start, held.ends[i]!)
      if (this.matched === null) rest.add(held.ids[i]!, text)
      else released.add(held.ids[i]!, held.text.slice(start, Math.max(start, Math.min(units, held.ends[i]!))))
      start = held.ends[i]!
    }
    held.clear()
    this.spare = held
    this.held = rest
  }
}

/** The last `count` units of a text; `count` may be 0. */
function lastUnits(text: string, count: number): string {
  return text.length <= count ? text : text.slice(text.length - count)
}
