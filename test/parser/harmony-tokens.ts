import type { Vocabulary } from "../../src/parser/parser"
import { ordinary, type SpelledToken } from "./spelled-tokens"

/** The special tokens of Harmony, with ids below those of ordinary tokens and above those of other markers. */
const specials: readonly [string, number][] = [
  ["<|return|>", 102],
  ["<|constrain|>", 103],
  ["<|channel|>", 105],
  ["<|start|>", 106],
  ["<|end|>", 107],
  ["<|message|>", 108],
  ["<|call|>", 112],
  ["<|other|>", 109],
]

/** The ordinary token that tells reasoning in a prompt. */
const analysisId = 900

/** A vocabulary of Harmony's special tokens, one of them without a meaning, and characters. */
export const harmonyVocabulary: Vocabulary = {
  tokenToId: (token) => (token === "analysis" ? analysisId : (specials.find(([text]) => text === token)?.[1] ?? -1)),
  isSpecial: (id) => specials.some(([, known]) => known === id),
}

/** A text as tokens: special tokens that it spells out, `analysis`, and one token for each other character. */
export function harmonyTokensOf(text: string): SpelledToken[] {
  const tokens: SpelledToken[] = []
  for (const part of text.split(/(<\|[a-z]+\|>|analysis)/)) {
    const id = part === "analysis" ? analysisId : specials.find(([special]) => special === part)?.[1]
    if (id === undefined) tokens.push(...ordinary(part))
    else tokens.push({ id, text: part })
  }
  return tokens
}

/** Ids of a prompt. */
export function harmonyPrompt(text: string): Uint32Array {
  return Uint32Array.from(harmonyTokensOf(text), (token) => token.id)
}
