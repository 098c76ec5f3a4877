import { seededRandom } from "./random"

/** Sequences up to this long are cut in every possible way; 2^(n-1) of them. */
const allWaysMax = 9

/**
 * Ways to cut `count` things into pieces that follow each other: each way is the list of where its pieces end. Short
 * sequences get every way; longer ones every single cut, even pieces of 1, 2, 3, 7 and 16, the whole, and 20 random ways.
 */
export function everySplit(count: number): number[][] {
  if (count === 0) return [[]]
  const ways: number[][] = []
  if (count <= allWaysMax) {
    for (let mask = 0; mask < 2 ** (count - 1); mask++) {
      const ends: number[] = []
      for (let i = 1; i < count; i++) if ((mask >> (i - 1)) & 1) ends.push(i)
      ways.push([...ends, count])
    }
    return ways
  }
  ways.push([count])
  for (let cut = 1; cut < count; cut++) ways.push([cut, count])
  for (const size of [1, 2, 3, 7, 16]) {
    const ends: number[] = []
    for (let end = size; end < count; end += size) ends.push(end)
    ways.push([...ends, count])
  }
  const random = seededRandom(count)
  for (let i = 0; i < 20; i++) {
    const ends: number[] = []
    for (let at = 1; at < count; at++) if (random() < 0.4) ends.push(at)
    ways.push([...ends, count])
  }
  return ways
}
