import type { Json } from "../../ir/conversation"
import { finishCode, type LogprobRows } from "../../ir/engine"
import { promptLogprobRows, tokenLogprobRows } from "../../ir/logprob-json"
import { err, ok, type Result } from "../../result"
import { type ApiError, invalid } from "../errors"
import { readingOf } from "../exchange"
import { Fold } from "../fold"
import type { RenderRoom } from "../room"
import type { GenerateResponseBody } from "./derender-schema"
import { type AnsweredRequest, answerRequest, type Derendering, replayedRequest, type WholeParts } from "./derendering"
import { cachedTokens, Replay } from "./replay"

/** The whole answer that the API would have given, as an object. */
export function derenderWhole<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  model: string | null,
  parts: WholeParts,
  headers: Headers,
  room: RenderRoom,
): Result<object, ApiError> {
  const { responses } = parts
  const fault = wholeFault(parts, room)
  if (fault !== null) return err(fault)
  const [first] = responses
  if (first!.choices.length > 1 && !derendering.hasChoices) {
    return err(invalid("choices", "a response of this API has one choice."))
  }
  const answered = answerRequest(
    derendering,
    parts.request,
    {
      requestId: first!.request_id,
      createdAt: room.unixTime(),
      model: model ?? first!.model ?? null,
      promptTokenIds: parts.promptTokenIds ?? echoedPrompts(responses),
      promptTokens: parts.promptTokens ?? responses.map(countedPrompt),
    },
    headers,
    room,
  )
  if (!answered.ok) return answered
  const exchange = { ...answered.value.exchange, choicesPerPrompt: first!.choices.length }
  if (exchange.prompts.length !== responses.length) {
    return err(invalid("generate_responses", "there must be one generated response a prompt."))
  }
  const folds = responses.flatMap((response, promptIndex) =>
    foldResponse(response, exchange.prompts[promptIndex]!.tokenIds, answered.value, room),
  )
  const failure = folds.find((fold) => fold.failure !== null)?.failure ?? null
  return failure === null ? ok(derendering.endpoint.present(exchange, folds)) : err(failure.error)
}

function foldResponse(
  response: GenerateResponseBody,
  promptTokenIds: Uint32Array,
  answered: AnsweredRequest<unknown>,
  room: RenderRoom,
): Fold[] {
  const choices = response.choices.toSorted((a, b) => a.index - b.index)
  return choices.map((choice, index) => {
    const fold = new Fold()
    const stopString = typeof choice.stop_reason === "string" ? choice.stop_reason : ""
    const told = replayedRequest(answered, promptTokenIds, stopString, room)
    const seed = `${response.request_id}/${index}`
    const replay = new Replay(room, told, fold, readingOf(answered.lowered, room), seed)
    replay.prompt(cachedTokens(response), promptLogprobRows(response.prompt_logprobs ?? null, promptTokenIds))
    const ids = Uint32Array.from(choice.token_ids)
    const rows = tokenLogprobRows((choice.logprobs?.content ?? null) as Json, ids.length) // a part of a body
    const shown = rows === null ? 0 : stepBefore(replay, ids, rows)
    replay.step(
      ids.subarray(shown),
      rows === null ? null : rowsFrom(rows, shown, ids.length),
      choice,
      response.kv_transfer_params ?? null,
    )
    return fold
  })
}

/**
 * Whose logprobs a token's are is told from what each step added, so tokens with logprobs come one by one, as engines give
 * them. Gives how many came: all but the last.
 */
function stepBefore(replay: Replay, ids: Uint32Array, rows: LogprobRows): number {
  const last = Math.max(0, ids.length - 1)
  for (let i = 0; i < last; i++) replay.step(ids.subarray(i, i + 1), rowsFrom(rows, i, i + 1), null, null)
  return last
}

/** Rows of the tokens in [start, end); views. */
function rowsFrom({ width, tokenIds, logprobs, ranks }: LogprobRows, start: number, end: number): LogprobRows {
  return {
    width,
    tokenIds: tokenIds.subarray(start * width, end * width),
    logprobs: logprobs.subarray(start * width, end * width),
    ranks: ranks.subarray(start, end),
  }
}

function wholeFault({ responses, promptTokenIds, promptTokens }: WholeParts, room: RenderRoom): ApiError | null {
  const { contextTokensMax, vocabSize } = room.facts
  const { choicesMax } = room.config.limits
  if (responses.length * responses[0]!.choices.length > choicesMax) {
    return invalid("choices", `at most ${choicesMax} choices can be derendered at once.`)
  }
  for (const [name, list] of [
    ["prompt_token_ids", promptTokenIds],
    ["prompt_tokens", promptTokens],
  ] as const) {
    if (list !== null && list.length !== responses.length) {
      return invalid(name, `${name} must have one entry for each generated response.`)
    }
  }
  if (promptTokens?.some((tokens) => tokens < 0 || tokens > promptTokensMax) === true) {
    return invalid("prompt_tokens", `prompt_tokens must be from 0 to ${promptTokensMax}.`)
  }
  for (const { choices, output_mode } of responses) {
    if (output_mode != null && output_mode !== "tokens") {
      return invalid("output_mode", "only responses in output_mode tokens can be derendered.")
    }
    if (choices.length !== responses[0]!.choices.length) {
      return invalid("choices", "all generated responses must have the same number of choices.")
    }
    if (new Set(choices.map(({ index }) => index)).size < choices.length) {
      return invalid("choices", "two choices have the same index.")
    }
    if (choices.some(({ token_ids: ids }) => ids.length > contextTokensMax || ids.some((id) => id >= vocabSize))) {
      return invalid("token_ids", "a choice has more tokens than the window, or such that do not exist.")
    }
    const unfinished = choices.find((choice) => finishCode(choice.finish_reason) === null)
    if (unfinished !== undefined) {
      return invalid("finish_reason", "every choice must have ended with stop, length, abort, error or repetition.")
    }
  }
  return null
}

/** A count is as good as a prompt only within reason: no window is larger. */
const promptTokensMax = 16 * 1024 * 1024

/** Prompts that the responses carry, when all do. */
function echoedPrompts(responses: readonly GenerateResponseBody[]): readonly (readonly number[])[] | null {
  const prompts = responses.map((response) => response.prompt_token_ids ?? null)
  return prompts.every((prompt) => prompt !== null) ? prompts : null
}

function countedPrompt({ usage }: GenerateResponseBody): number {
  const tokens = usage?.prompt_tokens
  return typeof tokens === "number" && Number.isInteger(tokens) && tokens >= 0 ? Math.min(tokens, promptTokensMax) : 0
}
