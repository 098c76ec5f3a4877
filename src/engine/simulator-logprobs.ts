import type { LogprobRows } from "../ir/engine"

/** Which log probabilities a row shows beside the sampled token's. */
export type Alternatives = number | readonly number[]

/** Alternatives reported when all are asked for (-1): a whole vocabulary in each row would be 200,000 entries. */
export const allAlternativesMax = 1_024
/** Entries of all rows of one output together; rows get narrower rather than exceed it. */
export const rowEntriesMax = 4 * 1_024 * 1_024

/** Log probability in unused entries, which have id -1; finite, as everything here is. */
const unusedLogprob = -9_999

/** One position of one sequence: what decides its made-up distribution. */
export interface SampledToken {
  readonly seed: number
  readonly position: number
  readonly tokenId: number
  /** Greedy sampling always takes the most likely token. */
  readonly greedy: boolean
}

/** Rows whose arrays are kept from one output to the next and only grow; row count = tokens of the output. */
export class ReusedRows implements LogprobRows {
  width = 1
  tokenIds = new Int32Array(64)
  logprobs = new Float32Array(64)
  ranks = new Int32Array(16)

  /** Makes room for `rows` rows of `width` entries. What was in them is lost. */
  reset(rows: number, width: number): void {
    this.width = width
    if (this.tokenIds.length < rows * width) {
      this.tokenIds = new Int32Array(rows * width)
      this.logprobs = new Float32Array(rows * width)
    }
    if (this.ranks.length < rows) this.ranks = new Int32Array(rows)
  }
}

/**
 * Made-up distributions over a vocabulary, each decided by seed, position and token alone. All ranks of one position
 * are distinct tokens, log probabilities fall strictly with the rank, and their sum stays below 1; so asking for ids
 * and asking for the best give the same numbers.
 */
export class SimulatedLogprobs {
  private readonly vocabSize: number
  /** Ranks walk the vocabulary in strides that share no factor with its size, so each token has one rank. */
  private readonly stride: number
  private readonly strideInverse: number

  constructor(vocabSize: number) {
    this.vocabSize = vocabSize
    let stride = Math.max(1, Math.floor(vocabSize * 0.618))
    while (commonFactor(stride, vocabSize) !== 1) stride += 1
    this.stride = stride
    this.strideInverse = inverse(stride, vocabSize)
  }

  /** Entries of a row: the sampled token and its alternatives. `rows` of that width fit `rowEntriesMax`. */
  rowWidth(alternatives: Alternatives, rows: number): number {
    const wanted = typeof alternatives !== "number" ? alternatives.length : this.alternativeCount(alternatives)
    return Math.max(1, Math.min(wanted + 1, Math.floor(rowEntriesMax / Math.max(1, rows))))
  }

  /**
   * Writes row `row`: the sampled token, then the top alternatives by rank or the ids asked for. An alternative that
   * is the sampled token is not repeated, so such a row ends with an unused entry.
   */
  fill(rows: LogprobRows, row: number, sampled: SampledToken, alternatives: Alternatives): void {
    const { width } = rows
    const mixed = mix(mix(sampled.seed, sampled.position), sampled.tokenId)
    const rank = sampled.greedy ? 1 : this.sampledRank(mixed)
    const base = 0.15 + (mix(sampled.seed, ~sampled.position) >>> 0) / 0x1_0000_0000
    let at = row * width
    const end = at + width
    rows.ranks[row] = rank
    rows.tokenIds[at] = sampled.tokenId
    rows.logprobs[at++] = logprobOfRank(rank, base)
    const count = typeof alternatives === "number" ? width - 1 : alternatives.length
    for (let i = 0; i < count && at < end; i++) {
      const other = typeof alternatives === "number" ? i + 1 : this.rankOf(alternatives[i]!, sampled.tokenId, rank)
      if (other === rank) continue
      rows.tokenIds[at] = this.tokenOfRank(other, sampled.tokenId, rank)
      rows.logprobs[at++] = logprobOfRank(other, base)
    }
    for (; at < end; at++) {
      rows.tokenIds[at] = -1
      rows.logprobs[at] = unusedLogprob
    }
  }

  private alternativeCount(asked: number): number {
    return Math.min(asked === -1 ? allAlternativesMax : asked, this.vocabSize)
  }

  /** Three of four tokens are the most likely one, the others one of the next six. */
  private sampledRank(mixed: number): number {
    return (mixed & 3) !== 0 ? 1 : Math.min(this.vocabSize, 2 + ((mixed >>> 2) % 6))
  }

  private tokenOfRank(rank: number, tokenId: number, tokenRank: number): number {
    return modulo(tokenId + modulo(rank - tokenRank, this.vocabSize) * this.stride, this.vocabSize)
  }

  private rankOf(other: number, tokenId: number, tokenRank: number): number {
    const steps = modulo(other - tokenId, this.vocabSize) * this.strideInverse
    return modulo(tokenRank - 1 + steps, this.vocabSize) + 1
  }
}

/** A 32-bit mix of two numbers, each of whose bits matters. */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e37_79b9, 0x85eb_ca6b) ^ Math.imul(b + 0x7f4a_7c15, 0xc2b2_ae35)
  h ^= h >>> 15
  h = Math.imul(h, 0x2c1b_3c6d)
  h ^= h >>> 13
  h = Math.imul(h, 0x297a_2d39)
  return h ^ (h >>> 16)
}

/** The tail falls as 1 / rank², which keeps the sum of all ranks below 1 for every base from 0.15 up. */
function logprobOfRank(rank: number, base: number): number {
  return rank === 1 ? -base : -base - 1.5 - 2 * Math.log(rank)
}

/** Products stay below 2^53: both factors are below the size of a vocabulary. */
function modulo(value: number, size: number): number {
  const rest = value % size
  return rest < 0 ? rest + size : rest
}

function commonFactor(a: number, b: number): number {
  return b === 0 ? a : commonFactor(b, a % b)
}

/** The number that `a` must be multiplied with to give 1 modulo `size` (extended Euclid). */
function inverse(a: number, size: number): number {
  let [rest, nextRest] = [size, a]
  let [factor, nextFactor] = [0, 1]
  while (nextRest !== 0) {
    const quotient = Math.floor(rest / nextRest)
    ;[rest, nextRest] = [nextRest, rest - quotient * nextRest]
    ;[factor, nextFactor] = [nextFactor, factor - quotient * nextFactor]
  }
  return modulo(factor, size)
}
