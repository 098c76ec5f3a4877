/** Logprobs as chat, completions and Responses show them (CHAT 5). */
import type { PositionLogprobs } from "./fold"

/** How tokens are printed: as text, or as `token_id:N`. */
export type TokenName = (id: number) => string

/** JSON has no −∞. */
const logprobMin = -9999
const utf8 = new TextEncoder()

/** One token of chat's `content` list. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  readonly bytes: number[]
}

/** The name of tokens in one reply. */
export function tokenName(tokenText: TokenName, asIds: boolean): TokenName {
  return asIds ? (id) => `token_id:${id}` : tokenText
}

function entry(position: PositionLogprobs, i: number, name: TokenName): TokenLogprob {
  const token = name(position.tokenIds[i]!)
  return { token, logprob: clamp(position.logprobs[i]!), bytes: Array.from(utf8.encode(token)) }
}

function clamp(logprob: number): number {
  return Math.max(logprobMin, logprob)
}

/**
 * The alternatives of a position: the first `count` by rank, or all when `count` is -1. Engines give the chosen token
 * first and then the most likely ones in order, so that the chosen one only has to be put in its place.
 */
function alternatives(position: PositionLogprobs, count: number): number[] {
  const rows: number[] = []
  const { tokenIds, logprobs } = position
  const chosen = logprobs[0]!
  let isPlaced = false
  for (let i = 1; i < tokenIds.length; i++) {
    if (tokenIds[i] === tokenIds[0]) continue
    if (!isPlaced && chosen >= logprobs[i]!) {
      rows.push(0)
      isPlaced = true
    }
    rows.push(i)
  }
  if (!isPlaced) rows.push(0)
  return count === -1 ? rows : rows.slice(0, count)
}

/** An entry of chat's `logprobs.content`, and of Responses' `logprobs`. */
export function chatLogprob(position: PositionLogprobs, count: number, name: TokenName): object {
  return {
    ...entry(position, 0, name),
    top_logprobs: alternatives(position, count).map((i) => entry(position, i, name)),
  }
}

/** The four parallel lists of completions; `offset` is where the first token's text begins. */
export class CompletionLogprobs {
  readonly text_offset: number[] = []
  readonly token_logprobs: (number | null)[] = []
  readonly tokens: string[] = []
  readonly top_logprobs: ({ [token: string]: number } | null)[] = []

  /** Adds a position; gives the offset behind it. `position` null = the first prompt token, which has no logprob. */
  add(id: number, position: PositionLogprobs | null, count: number, name: TokenName, offset: number): number {
    const token = name(id)
    this.text_offset.push(offset)
    this.tokens.push(token)
    if (position === null) {
      this.token_logprobs.push(null)
      this.top_logprobs.push(null)
      return offset + token.length
    }
    this.token_logprobs.push(clamp(position.logprobs[0]!))
    const top: { [token: string]: number } = {}
    const shown = count === -1 ? position.tokenIds.length : count + 1
    for (let i = 0; i < position.tokenIds.length && i < shown; i++) {
      top[name(position.tokenIds[i]!)] = clamp(position.logprobs[i]!)
    }
    this.top_logprobs.push(top)
    return offset + token.length
  }
}

/** `prompt_logprobs`: null for the first prompt token, then a map from token id to its figures. */
export function promptLogprobs(positions: readonly PositionLogprobs[], tokenText: TokenName): (object | null)[] {
  const list: (object | null)[] = [null]
  for (const position of positions) {
    const byId: { [id: string]: object } = {}
    const { tokenIds, logprobs } = position
    // The chosen token's rank is known; the others follow in order of theirs.
    let rank = 0
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!
      if (i > 0 && id === tokenIds[0]) continue
      if (i > 0) rank += rank + 1 === position.rank ? 2 : 1
      byId[String(id)] = {
        logprob: clamp(logprobs[i]!),
        rank: i === 0 ? position.rank : rank,
        decoded_token: tokenText(id),
      }
    }
    list.push(byId)
  }
  return list
}
