/**
 * Logprobs by token id, as `/inference/v1/generate` writes them, back into rows (RENDER 6). Read by whoever gets replies of
 * a token-in service.
 */
import type { Json } from "./conversation"
import type { LogprobRows } from "./engine"

type Fields = { readonly [name: string]: Json }

interface Entry {
  readonly id: number
  readonly logprob: number
  readonly rank: number
}

interface Position extends Entry {
  /** The alternatives, by rank, without the token itself. */
  readonly others: readonly Entry[]
}

/** Rows of generated tokens from `logprobs.content`; null where it is none, or not of `tokens` positions. */
export function tokenLogprobRows(content: Json, tokens: number): LogprobRows | null {
  if (!Array.isArray(content) || content.length !== tokens) return null
  const positions: Position[] = []
  for (const each of content) {
    const own = listed(each)
    if (own === null || !isRecord(each)) return null
    const top = Array.isArray(each.top_logprobs) ? each.top_logprobs : []
    positions.push({
      ...own,
      others: top.map(listed).filter((other) => other !== null && other.id !== own.id) as Entry[],
    })
  }
  return rowsOf(positions)
}

/** Rows for prompt tokens 1… from `prompt_logprobs`; null where the list does not fit the prompt. */
export function promptLogprobRows(list: Json, promptTokenIds: ArrayLike<number>): LogprobRows | null {
  if (!Array.isArray(list) || list.length !== promptTokenIds.length) return null
  const positions: Position[] = []
  for (let i = 1; i < list.length; i++) {
    const byId = list[i] ?? null
    if (!isRecord(byId)) return null
    const entries = Object.entries(byId).flatMap(([id, value]) => entryOf(Number(id), value) ?? [])
    const own = entries.find((entry) => entry.id === promptTokenIds[i])
    if (own === undefined) return null
    positions.push({ ...own, others: entries.filter((entry) => entry !== own).sort((a, b) => a.rank - b.rank) })
  }
  return rowsOf(positions)
}

/** Rows that only say which tokens there were. */
export function blankLogprobRows(tokenIds: ArrayLike<number>): LogprobRows {
  return rowsOf(Array.from(tokenIds, (id) => ({ id, logprob: 0, rank: 1, others: [] })))
}

function listed(entry: Json): Entry | null {
  return isRecord(entry) && typeof entry.token_id === "number" ? entryOf(entry.token_id, entry) : null
}

function entryOf(id: number, entry: Json): Entry | null {
  if (!isRecord(entry) || typeof entry.logprob !== "number") return null
  return { id, logprob: entry.logprob, rank: typeof entry.rank === "number" ? entry.rank : 1 }
}

function rowsOf(positions: readonly Position[]): LogprobRows {
  const width = 1 + positions.reduce((most, position) => Math.max(most, position.others.length), 0)
  const tokenIds = new Int32Array(positions.length * width).fill(-1)
  const logprobs = new Float32Array(positions.length * width)
  const ranks = new Int32Array(positions.length)
  for (const [row, position] of positions.entries()) {
    ranks[row] = position.rank
    for (const [i, { id, logprob }] of [position, ...position.others].entries()) {
      tokenIds[row * width + i] = id
      logprobs[row * width + i] = logprob
    }
  }
  return { width, tokenIds, logprobs, ranks }
}

function isRecord(value: Json): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
