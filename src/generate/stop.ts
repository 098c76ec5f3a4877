import { Piece } from "../ir/piece"

/**
 * Looks for stop strings in the text of one sequence and holds back what may become one. The rules are CHAT 6: the
 * match that completes first wins; of several that complete together the longest does, so that no part of a stop string
 * shows. Tokens up to `minTokens` cannot complete a match, though a match may begin in their text. Only text that is the beginning of a stop string is held, so nothing
 * waits without need (the reference holds the length of the longest string).
 */
export class StopFilter {
  /** The string that matched, or null. */
  matched: string | null = null
  private readonly include: boolean
  private readonly minTokens: number
  private readonly matchers: readonly StopMatcher[]
  private seenTokens = 0
  private held = new Piece()
  private spare = new Piece()

  constructor(stop: readonly string[], include: boolean, minTokens: number) {
    this.include = include
    this.minTokens = minTokens
    this.matchers = stop.map((each) => new StopMatcher(each))
  }

  /**
   * Hot (bench/fold.ts). Takes one step's text and adds to `released` what is safe to show. Gives the number of the
   * step's tokens that belong to the reply: all of them, or those up to the one that completed a match.
   */
  push(piece: Piece, released: Piece): number {
    let start = 0
    for (let i = 0; i < piece.count; i++) {
      const end = piece.ends[i]!
      const heldUnits = this.held.text.length
      this.seenTokens += 1
      const matchEnd = this.read(piece.text, start, end)
      const text = piece.text.slice(start, end)
      if (this.matched !== null) {
        this.held.add(piece.ids[i]!, text)
        const matchUnits = this.include ? 0 : this.matched.length
        this.cut(heldUnits + matchEnd - start - matchUnits, released)
        return i + 1
      }
      start = end
      const keep = this.unitsToHold()
      if (this.held.count === 0 && keep === 0) {
        released.add(piece.ids[i]!, text)
      } else {
        this.held.add(piece.ids[i]!, text)
        this.release(this.held.text.length - keep, released)
      }
    }
    return piece.count
  }

  /** The sequence ended without a match: everything comes out. */
  finish(released: Piece): void {
    this.release(this.held.text.length, released)
  }

  /** Feeds `text[start, end)` to the matchers. Gives the end of the match that it set, or -1. */
  private read(text: string, start: number, end: number): number {
    const mayMatch = this.seenTokens > this.minTokens
    for (let at = start; at < end; at++) {
      const unit = text.charCodeAt(at)
      let longest = ""
      for (let m = 0; m < this.matchers.length; m++) {
        const matcher = this.matchers[m]!
        if (matcher.step(unit) && matcher.stop.length > longest.length) longest = matcher.stop
      }
      if (longest === "" || !mayMatch) continue
      this.matched = longest
      return at + 1
    }
    return -1
  }

  /** UTF-16 units at the end of the seen text that begin some stop string. */
  private unitsToHold(): number {
    if (this.include) return 0
    let units = 0
    for (let m = 0; m < this.matchers.length; m++) {
      if (this.matchers[m]!.matchedUnits > units) units = this.matchers[m]!.matchedUnits
    }
    return units
  }

  /** Moves tokens whose text lies within the first `units` of the held text; a token at the border stays whole. */
  private release(units: number, released: Piece): void {
    const { held } = this
    let count = 0
    while (count < held.count && held.ends[count]! <= units) count += 1
    if (count === 0) return
    let start = 0
    const rest = this.spare
    rest.clear()
    for (let i = 0; i < held.count; i++) {
      const to = i < count ? released : rest
      to.add(held.ids[i]!, held.text.slice(start, held.ends[i]!))
      start = held.ends[i]!
    }
    held.clear()
    this.spare = held
    this.held = rest
  }

  /** A match is known: the first `units` of the held text come out, and the rest is gone. */
  private cut(units: number, released: Piece): void {
    const { held } = this
    let start = 0
    for (let i = 0; i < held.count; i++) {
      const end = Math.max(start, Math.min(units, held.ends[i]!))
      released.add(held.ids[i]!, held.text.slice(start, end))
      start = Math.min(held.ends[i]!, Math.max(start, units))
    }
    held.clear()
  }
}

/**
 * Finds one string in a stream of UTF-16 units without looking back (Knuth, Morris and Pratt): time and memory are
 * bounded by lengths, whatever strings a client sends.
 */
class StopMatcher {
  readonly stop: string
  /** How many units of `stop` the end of the stream is; never all of them. */
  matchedUnits = 0
  /** `fallback[i]` = longest proper beginning of `stop` that ends `stop[0, i]`. */
  private readonly fallback: Int32Array

  constructor(stop: string) {
    this.stop = stop
    this.fallback = new Int32Array(stop.length)
    let length = 0
    for (let i = 1; i < stop.length; i++) {
      while (length > 0 && stop.charCodeAt(i) !== stop.charCodeAt(length)) length = this.fallback[length - 1]!
      if (stop.charCodeAt(i) === stop.charCodeAt(length)) length += 1
      this.fallback[i] = length
    }
  }

  /** Hot. True when this unit completes the string. */
  step(unit: number): boolean {
    const { stop } = this
    let matched = this.matchedUnits
    while (matched > 0 && stop.charCodeAt(matched) !== unit) matched = this.fallback[matched - 1]!
    if (stop.charCodeAt(matched) === unit) matched += 1
    if (matched < stop.length) {
      this.matchedUnits = matched
      return false
    }
    this.matchedUnits = this.fallback[matched - 1]!
    return true
  }
}
