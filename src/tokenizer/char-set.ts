/** Sorted, disjoint `[first, last]` code point pairs, flat: `[first0, last0, first1, last1, …]`. Both ends belong. */
export type CharRanges = ArrayLike<number>

const codePointMax = 0x10ffff

/** Sorts and joins ranges that touch or overlap. */
function joined(pairs: readonly (readonly [number, number])[]): number[] {
  const sorted = [...pairs].sort((a, b) => a[0] - b[0])
  const result: number[] = []
  for (const [first, last] of sorted) {
    const end = result.length - 1
    if (end > 0 && first <= result[end]! + 1) result[end] = Math.max(result[end]!, last)
    else result.push(first, last)
  }
  return result
}

function pairsOf(ranges: CharRanges): [number, number][] {
  const pairs: [number, number][] = []
  for (let i = 0; i < ranges.length; i += 2) pairs.push([ranges[i]!, ranges[i + 1]!])
  return pairs
}

/** Characters that are in any of the sets. */
export function unionOf(sets: readonly CharRanges[]): number[] {
  return joined(sets.flatMap((each) => pairsOf(each)))
}

/** Characters that are not in the set. */
export function complementOf(ranges: CharRanges): number[] {
  const result: number[] = []
  let next = 0
  for (let i = 0; i < ranges.length; i += 2) {
    if (ranges[i]! > next) result.push(next, ranges[i]! - 1)
    next = ranges[i + 1]! + 1
  }
  if (next <= codePointMax) result.push(next, codePointMax)
  return result
}

/** Characters that are in both sets. */
export function intersectionOf(a: CharRanges, b: CharRanges): number[] {
  return complementOf(unionOf([complementOf(a), complementOf(b)]))
}

/** A set of code points made for fast questions: a bit for each of the first 65 536, a search above. */
export class CharSet {
  private readonly bits = new Uint32Array(2048)
  private readonly high: CharRanges

  constructor(ranges: CharRanges) {
    const high: number[] = []
    for (let i = 0; i < ranges.length; i += 2) {
      const last = ranges[i + 1]!
      for (let code = ranges[i]!; code <= Math.min(last, 0xffff); code++) this.bits[code >> 5]! |= 1 << (code & 31)
      if (last > 0xffff) high.push(Math.max(ranges[i]!, 0x10000), last)
    }
    this.high = high
  }

  /** Hot: whether the code point belongs. */
  has(code: number): boolean {
    if (code <= 0xffff) return (this.bits[code >> 5]! & (1 << (code & 31))) !== 0
    let low = 0
    let top = this.high.length >> 1
    while (low < top) {
      const middle = (low + top) >> 1
      if (code > this.high[2 * middle + 1]!) low = middle + 1
      else top = middle
    }
    return 2 * low < this.high.length && code >= this.high[2 * low]!
  }
}
