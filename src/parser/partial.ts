/**
 * A fixed text that may arrive in pieces: how much of its beginning the text seen so far ends with. The matched part is
 * always the beginning of the text itself, so nothing needs to be stored to give it back.
 */
export class PartialText {
  readonly whole: string
  /** UTF-16 units matched at the end of what was seen; `whole.length` = all of it is there. */
  matched = 0
  /** `fallbacks[i]`: the longest proper end of `whole[0, i)` that is a beginning of it. */
  private readonly fallbacks: Uint16Array

  constructor(whole: string) {
    this.whole = whole
    this.fallbacks = fallbacksOf(whole)
  }

  /** What is matched, as text. */
  get held(): string {
    return this.whole.slice(0, this.matched)
  }

  get complete(): boolean {
    return this.matched === this.whole.length
  }

  /**
   * Hot (bench/fold.ts): takes one UTF-16 unit. Gives how many units, of those held before and this one, can no longer
   * belong to the text: they come first, `held` afterwards.
   */
  step(unit: number): number {
    const before = this.matched
    if (this.complete) this.matched = this.fallbacks[before]!
    while (this.matched > 0 && this.whole.charCodeAt(this.matched) !== unit) {
      this.matched = this.fallbacks[this.matched]!
    }
    if (this.whole.charCodeAt(this.matched) === unit) this.matched += 1
    return before + 1 - this.matched
  }

  reset(): void {
    this.matched = 0
  }
}

/**
 * Hot (bench/fold.ts): units at the end of a text that may belong to a frame of which the beginning may be missing: an
 * end of the frame, or, where the rest is still to come, a part of it.
 */
export function frameTail(text: string, frame: string): number {
  const most = Math.min(text.length, frame.length)
  let length = 0
  // What a part of the frame ends with is a part of it, too; most texts end at the first look.
  while (length < most && frame.includes(text.slice(text.length - length - 1))) length += 1
  return length
}

function fallbacksOf(whole: string): Uint16Array {
  const fallbacks = new Uint16Array(whole.length + 1)
  let length = 0
  for (let i = 1; i < whole.length; i++) {
    while (length > 0 && whole[i] !== whole[length]) length = fallbacks[length]!
    if (whole[i] === whole[length]) length += 1
    fallbacks[i + 1] = length
  }
  return fallbacks
}
