/**
 * Byte-pair encoding of one long piece in n log n: a linked list of parts and a heap of possible merges. npm tiktoken
 * merges by scanning all parts each time, which takes minutes for 100 KB of one letter; pieces longer than a line go
 * through here instead.
 */

/** Rank of a byte sequence, spelled as a Latin-1 string; undefined when it is no token. Lower merges first. */
export type RankLookup = (bytes: string) => number | undefined

/**
 * The ids of `bytes` (Latin-1, one character a byte). Every single byte must have a rank. Equal to repeated
 * lowest-rank, leftmost-first merging, which is tiktoken's rule.
 */
export function mergeBytes(bytes: string, rankOf: RankLookup, out: number[]): void {
  const length = bytes.length
  const next = new Int32Array(length + 1)
  const previous = new Int32Array(length + 1)
  for (let i = 0; i <= length; i++) {
    next[i] = i + 1
    previous[i] = i - 1
  }
  const heap = new MergeHeap()
  /** Rank at which the part at i may merge with its right neighbour, to tell stale heap entries. */
  const pairRank = new Float64Array(length + 1).fill(Infinity)
  const consider = (start: number): void => {
    const middle = next[start]!
    if (middle >= length) {
      pairRank[start] = Infinity
      return
    }
    const rank = rankOf(bytes.slice(start, next[middle]!))
    pairRank[start] = rank ?? Infinity
    if (rank !== undefined) heap.push(rank, start)
  }
  for (let i = 0; i + 1 < length; i++) consider(i)
  while (heap.size > 0) {
    const start = heap.topPosition()
    const rank = heap.topRank()
    heap.pop()
    if (pairRank[start] !== rank) continue
    const merged = next[start]!
    const after = next[merged]!
    next[start] = after
    if (after <= length) previous[after] = start
    pairRank[merged] = Infinity
    consider(start)
    const before = previous[start]!
    if (before >= 0) consider(before)
  }
  for (let i = 0; i < length; i = next[i]!) out.push(rankOf(bytes.slice(i, next[i]!))!)
}

/** A binary heap of (rank, position), smallest rank first, then leftmost; two flat arrays. */
class MergeHeap {
  size = 0
  private ranks: number[] = []
  private positions: number[] = []

  topRank(): number {
    return this.ranks[0]!
  }

  topPosition(): number {
    return this.positions[0]!
  }

  push(rank: number, position: number): void {
    let i = this.size
    this.size += 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!this.before(rank, position, parent)) break
      this.ranks[i] = this.ranks[parent]!
      this.positions[i] = this.positions[parent]!
      i = parent
    }
    this.ranks[i] = rank
    this.positions[i] = position
  }

  pop(): void {
    this.size -= 1
    const rank = this.ranks[this.size]!
    const position = this.positions[this.size]!
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= this.size) break
      if (child + 1 < this.size && this.before(this.ranks[child + 1]!, this.positions[child + 1]!, child)) child += 1
      if (this.before(rank, position, child)) break
      this.ranks[i] = this.ranks[child]!
      this.positions[i] = this.positions[child]!
      i = child
    }
    this.ranks[i] = rank
    this.positions[i] = position
  }

  private before(rank: number, position: number, other: number): boolean {
    const otherRank = this.ranks[other]!
    return rank < otherRank || (rank === otherRank && position < this.positions[other]!)
  }
}
