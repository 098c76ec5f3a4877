/** What two servers with the same engine must answer alike, taken out of an answer. Ids, times and names differ. */
import type { Loose } from "../support/transcripts"

/** The comparable part of a whole (not streamed) answer. Cached tokens depend on what was asked before. */
export function comparable(path: string, body: Loose): Loose {
  if (path === "/v1/responses") {
    const { status, incomplete_details, output, usage } = body
    return {
      status,
      incomplete_details,
      output: output.map((item: Loose) => ({
        type: item.type,
        content: item.content.map((part: Loose) => ({ type: part.type, text: part.text })),
      })),
      usage: { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens, total_tokens: usage.total_tokens },
    }
  }
  const { prompt_tokens, completion_tokens, total_tokens } = body.usage
  return {
    choices: body.choices.map((choice: Loose) => ({
      index: choice.index,
      ...(choice.message === undefined ? { text: choice.text } : { content: choice.message.content }),
      finish_reason: choice.finish_reason,
      stop_reason: choice.stop_reason ?? null,
      logprobs: choice.logprobs ?? null,
      prompt_logprobs: choice.prompt_logprobs ?? null,
      token_ids: choice.token_ids ?? null,
    })),
    prompt_logprobs: body.prompt_logprobs ?? null,
    usage: { prompt_tokens, completion_tokens, total_tokens },
  }
}

/**
 * How far CPUs with other instructions may be apart: two steps of a bfloat16 logit of this model, and more for tokens far
 * down, since those steps grow with the logit.
 */
function isCloseLogprob(actual: number, expected: number): boolean {
  return Math.abs(actual - expected) <= 0.25 + Math.abs(expected) / 40
}

/** Probability of a token beside which another may be as likely, in nats, with the tolerance in it. */
const contestedLogprob = Math.log(0.65)

/**
 * `actual`, with each logprob and rank that is close to the expected one replaced by it: what then differs differs for
 * real.
 * Logprobs are the numbers that are no integers; both values have the same shape, or come back as they are.
 */
export function withCloseLogprobs(actual: Loose, expected: Loose): Loose {
  if (typeof actual === "number" && typeof expected === "number") {
    const isLogprob = !Number.isInteger(expected) || !Number.isInteger(actual)
    return isLogprob && isCloseLogprob(actual, expected) ? expected : actual
  }
  if (Array.isArray(actual) && Array.isArray(expected)) {
    return actual.map((each, i) => withCloseLogprobs(each, expected[i]))
  }
  if (actual === null || expected === null || typeof actual !== "object" || typeof expected !== "object") return actual
  const close = (key: string): Loose =>
    key === "rank" && isCloseRank(actual.rank, expected.rank, expected.logprob)
      ? expected.rank
      : withCloseLogprobs(actual[key], expected[key])
  return Object.fromEntries(Object.keys(actual).map((key) => [key, close(key)]))
}

/** A token far down changes its rank with every bit; the best one only where another comes near it. */
function isCloseRank(actual: Loose, expected: Loose, expectedLogprob: Loose): boolean {
  if ((actual === 1) !== (expected === 1) && expectedLogprob > contestedLogprob) return false
  return Math.abs(actual - expected) <= 2 + expected / 5
}
