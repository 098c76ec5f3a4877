import type { Server } from "../../test/support/server-process"

/** What an engine is told to generate: ids, and the text that they stand for. */
export interface Script {
  readonly tokenIds: readonly number[]
  readonly text: string
}

const prose =
  "A kettle hums beside the window while rain draws thin lines down the glass. Someone counts the cups, finds one " +
  "short, and borrows a jar from the shelf. Outside, a tram rings twice and turns toward the river, carrying wet " +
  "umbrellas and the smell of bread. By noon the clouds have moved on, and the street shows its colours again. "

/** Exactly `count` tokens of prose, by the server's own tokenizer. */
export async function proseScript({ origin }: Server, count: number): Promise<Script> {
  const ask = async <T>(path: string, body: object): Promise<T> => {
    const headers = { "content-type": "application/json" }
    return (await fetch(`${origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json()
  }
  const { tokens } = await ask<{ tokens: number[] }>("/tokenize", { prompt: prose.repeat(1 + Math.ceil(count / 60)) })
  const tokenIds = tokens.slice(0, count)
  if (tokenIds.length !== count) throw new Error(`the prose has only ${tokens.length} tokens`)
  const { prompt } = await ask<{ prompt: string }>("/detokenize", { tokens: tokenIds })
  return { tokenIds, text: prompt }
}
