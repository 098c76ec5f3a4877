/** Numbers in [0, 1) that a seed decides (mulberry32), so that a failing case can be run again. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Choices by such numbers. */
export class RandomChoices {
  private readonly random: () => number

  constructor(random: () => number) {
    this.random = random
  }

  /** A whole number from 0 up to, and without, `limit`. */
  below(limit: number): number {
    return Math.floor(this.random() * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }

  /** True in that part of all cases. */
  chance(part: number): boolean {
    return this.random() < part
  }
}
