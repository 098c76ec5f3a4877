/**
 * Fields that chat and completions share beside sampling: their schemas and their rules (CHAT 1).
 */
import { type Static, Type } from "@sinclair/typebox"
import type { SamplingParams } from "../ir/sampling"
import type { Result } from "../result"
import type { LowerContext, Lowered } from "./endpoint"
import { type InvalidRequest, invalid } from "./errors"
import { lowerFormat, lowerSampling, samplingFields } from "./sampling"
import { anyJson, int32, jsonObject, optional } from "./schema"

/** Fields that chat and completions share beside sampling. */
export const replyFields = {
  model: optional(Type.String()),
  n: optional(int32, "Choices, default 1"),
  stream: optional(Type.Boolean()),
  stream_options: optional(
    Type.Object({ include_usage: optional(Type.Boolean()), continuous_usage_stats: optional(Type.Boolean()) }),
  ),
  response_format: optional(jsonObject),
  prompt_logprobs: optional(int32, "Not with stream, unless 0"),
  return_token_ids: optional(Type.Boolean()),
  return_tokens_as_token_ids: optional(Type.Boolean(), "Print tokens of logprobs as token_id:N"),
  truncate_prompt_tokens: optional(int32, "Keep that many prompt tokens; -1 = as many as fit"),
  truncation_side: optional(Type.Union([Type.Literal("left"), Type.Literal("right")])),
  use_beam_search: optional(Type.Boolean()),
  length_penalty: optional(Type.Number()),
  user: optional(anyJson),
}

/** `X-Request-Id` wins over the body, which wins over a fresh id. */
export function requestId(asked: string | null, context: LowerContext): string {
  const header = context.headers.get("x-request-id")
  if (header !== null && header !== "") return header.slice(0, requestIdUnitsMax)
  return asked !== null && asked !== "" ? asked : context.newId()
}

const requestIdUnitsMax = 512

/** Body, then header; empty strings count as absent (RESPONSES 1). */
export function sessionId(asked: string | null, context: LowerContext): string | null {
  return asked || context.headers.get("x-session-id") || null
}

const replyBody = Type.Object({ ...samplingFields, ...replyFields })

/** A checked body, as far as chat and completions agree. */
export type ReplyBody = Static<typeof replyBody>

/** Faults that chat and completions share. */
export function replyFault(body: ReplyBody, context: LowerContext): InvalidRequest | null {
  if (body.use_beam_search === true) {
    return invalid("use_beam_search", "Beam search is not supported by this server.")
  }
  const n = body.n ?? 1
  const { choicesMax } = context.config.limits
  if (n < 1) return invalid("n", `n must be at least 1, got ${n}.`)
  if (n > choicesMax) return invalid("n", `n must be at most ${choicesMax}, got ${n}.`)
  const temperature = body.temperature ?? context.model.samplingDefaults.temperature ?? 1
  if (n > 1 && temperature === 0) return invalid("n", "n must be 1 when temperature is 0 (greedy sampling).")
  if (body.stream_options != null && body.stream !== true) {
    return invalid("stream_options", "Stream options can only be defined when `stream=True`.")
  }
  const promptLogprobs = body.prompt_logprobs ?? 0
  if (body.stream === true && promptLogprobs !== 0) {
    return invalid("prompt_logprobs", "prompt_logprobs are not available when `stream=True`.")
  }
  const keep = body.truncate_prompt_tokens ?? null
  if (keep !== null && (keep < -1 || keep === 0 || keep > context.model.contextTokensMax)) {
    return invalid(
      "truncate_prompt_tokens",
      `truncate_prompt_tokens must be -1 or from 1 to ${context.model.contextTokensMax}, got ${keep}.`,
    )
  }
  return null
}

/** `max_tokens` and the like: at least 1 and within the window. */
export function replyTokensFault(
  value: number | bigint | null,
  param: string,
  context: LowerContext,
): InvalidRequest | null {
  const { contextTokensMax } = context.model
  if (value === null) return null
  if (value < 1) return invalid(param, `${param} must be at least 1, got ${value}.`)
  if (value <= contextTokensMax) return null
  return invalid(
    param,
    `${param}=${value} cannot be greater than max_model_len=${contextTokensMax}. Please request fewer output tokens.`,
  )
}

/** Sampling of chat and completions, with their `response_format`. */
export function lowerReplySampling(
  body: ReplyBody,
  logprobs: number | null,
  promptLogprobs: number | null,
  context: LowerContext,
): Result<SamplingParams, InvalidRequest> {
  const format = lowerFormat(body.response_format ?? null, "response_format")
  if (!format.ok) return format
  return lowerSampling(body, { logprobs, promptLogprobs, format: format.value }, context)
}

/** A length that was checked, as a number. */
export function asNumber(value: number | bigint | null | undefined): number | null {
  return value === null || value === undefined ? null : Number(value)
}

/** Truncation as chat and completions spell it. */
function lowerTruncation(body: ReplyBody): Lowered<unknown>["truncation"] {
  const keep = body.truncate_prompt_tokens ?? null
  if (keep === null) return null
  return { tokensMax: keep, side: body.truncation_side ?? "left" }
}

/** Which usage frames a stream gets. */
export function lowerUsageOptions(
  body: ReplyBody,
  context: LowerContext,
): { readonly includeUsage: boolean; readonly continuousUsage: boolean } {
  const forced = context.config.enableForceIncludeUsage && body.stream === true
  const options = body.stream_options ?? null
  // The reference's default inside stream_options is include_usage = true.
  const includeUsage = forced || (options !== null && options.include_usage !== false)
  return { includeUsage, continuousUsage: forced || (includeUsage && options?.continuous_usage_stats === true) }
}

type Delivery = Pick<Lowered<unknown>, "intervalTokens" | "stream" | "priority" | "cacheSalt">

/** What chat and completions lower alike. */
export function lowerReply(
  body: ReplyBody,
  context: LowerContext,
): Delivery & Pick<Lowered<unknown>, "choicesPerPrompt" | "truncation"> {
  return {
    choicesPerPrompt: body.n ?? 1,
    truncation: lowerTruncation(body),
    ...lowerDelivery(body, context),
  }
}

/** How a reply is delivered and scheduled, the same for every API. */
export function lowerDelivery(
  body: Pick<ReplyBody, "stream" | "stream_interval" | "priority" | "cache_salt">,
  context: LowerContext,
): Delivery {
  return {
    intervalTokens: Math.max(context.config.streamIntervalTokens, body.stream_interval ?? 1),
    stream: body.stream ?? false,
    priority: body.priority ?? 0,
    cacheSalt: body.cache_salt ?? null,
  }
}
