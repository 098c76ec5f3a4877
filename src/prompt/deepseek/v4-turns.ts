/** Turns as V4 and V4.1 take them: there are no turns of tools, their results stand in the user's. */
import type { Turn, V4Version } from "./turn"

/** What a user's turn is made of. */
export interface Block {
  readonly kind: "text" | "result"
  readonly text: string
  /** Of a result; "" = unknown. */
  readonly callId: string
}

/** A turn; only a user's has blocks. */
export interface V4Turn extends Turn {
  readonly blocks: readonly Block[]
}

/**
 * Users' texts and tools' results that follow each other become one turn of the user. A turn that carries a quick
 * instruction takes no more texts, but does take results.
 */
export function mergeTurns(turns: readonly Turn[]): readonly V4Turn[] {
  const merged: (V4Turn & { readonly blocks: Block[] })[] = []
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "tool") {
      merged.push({ ...turn, blocks: [] })
      continue
    }
    const isResult = turn.role === "tool"
    const block: Block = { kind: isResult ? "result" : "text", text: turn.text, callId: turn.callId }
    const last = merged.at(-1)
    if (last?.role === "user" && (isResult || last.task === null)) {
      last.blocks.push(block)
    } else {
      const { task, tools, responseFormat } = turn
      const kept = isResult ? { task: null, tools: [], responseFormat: null } : { task, tools, responseFormat }
      merged.push({ ...turn, ...kept, role: "user", blocks: [block] })
    }
  }
  return merged
}

/** Results in the order of the calls that they answer; the texts between them stay where they are. */
export function sortResults(turns: readonly V4Turn[]): readonly V4Turn[] {
  let places = new Map<string, number>()
  return turns.map((turn) => {
    if (turn.role === "assistant" && turn.calls.length > 0) {
      places = new Map()
      for (const [place, { id }] of turn.calls.entries()) if (id !== null && id !== "") places.set(id, place)
    }
    if (places.size === 0) return turn
    const placeOf = ({ callId }: Block): number => places.get(callId) ?? 0
    const results = turn.blocks.filter(({ kind }) => kind === "result").sort((a, b) => placeOf(a) - placeOf(b))
    const sorted = results.values()
    return { ...turn, blocks: turn.blocks.map((block) => (block.kind === "result" ? sorted.next().value! : block)) }
  })
}

/**
 * Place of the last turn that asks for something, -1 where none does. To V4.1 a system's turn behind the first asks as
 * well, and results alone ask nothing new.
 */
export function lastQuestion(turns: readonly V4Turn[], version: V4Version): number {
  return turns.findLastIndex(({ role, blocks }, index) => {
    if (version === "v4") return role === "user" || role === "developer"
    if (role === "user") return blocks.some(({ kind }) => kind === "text")
    return role === "developer" || (role === "system" && index > 0)
  })
}

/** Roles whose turns stay when a new question comes. */
const lasting: ReadonlySet<string> = new Set(["user", "system", "latest_reminder", "direct_search_results"])

/** What a new question makes old: reasoning before it, and all that developers said. */
export function withoutOldTurns(turns: readonly V4Turn[], version: V4Version): readonly V4Turn[] {
  const question = lastQuestion(turns, version)
  return turns.flatMap((turn, index) => {
    if (index >= question || lasting.has(turn.role)) return [turn]
    return turn.role === "assistant" ? [{ ...turn, reasoning: "" }] : []
  })
}
