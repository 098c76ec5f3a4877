import type { EngineError } from "../../ir/engine"
import { err, ok, type Result } from "../../result"

/** Sequences of token ids that the engine has room for (vLLM's VLLM_MAX_NUM_BAD_WORDS). */
export const badWordSequencesMax = 128

/**
 * Token ids of words that must not be generated, as vLLM makes them: each word as it starts a text, and also as it
 * follows a space, where that gives as many tokens with another first one. `encode` adds no special tokens.
 */
export function badWordTokenIds(
  words: readonly string[],
  encode: (text: string) => ArrayLike<number>,
): Result<readonly (readonly number[])[], EngineError> {
  const found: number[][] = []
  for (const word of new Set(words)) {
    const bare = word.trimStart()
    const atStart = Array.from(encode(bare))
    if (atStart.length === 0) return err(refusal("a bad word must have at least one token"))
    found.push(atStart)
    const afterSpace = Array.from(encode(` ${bare}`))
    if (afterSpace.length === atStart.length && afterSpace[0] !== atStart[0]) found.push(afterSpace)
    if (found.length > badWordSequencesMax) {
      return err(refusal(`bad_words are more than ${badWordSequencesMax} sequences of tokens`))
    }
  }
  return ok(found)
}

function refusal(message: string): EngineError {
  return { kind: "engine_validation", message, param: "bad_words" }
}
