/** Token counts and timings as the chat and completions APIs show them (CHAT 3, RESPONSES 8). */
import type { ChoiceUsage, Outcome } from "../ir/item-event"
import type { Exchange } from "./endpoint"
import type { Fold } from "./fold"

/** The `usage` object of chat and completions. */
export interface UsageBody {
  readonly prompt_tokens: number
  readonly total_tokens: number
  readonly completion_tokens: number
  readonly prompt_tokens_details: {
    readonly cached_tokens: number
    readonly created_cache_tokens: number
    readonly multimodal_tokens: null
  } | null
  readonly completion_tokens_details: { readonly reasoning_tokens: number } | null
}

/** The counts of a choice however it ended; null when the engine never told. */
export function choiceUsage(fold: Fold): ChoiceUsage | null {
  return fold.outcome?.usage ?? fold.failure?.usage ?? null
}

/** Prompts count once however many choices they have; replies add up. */
export function usageBody<Ask>(exchange: Exchange<Ask>, folds: readonly Fold[], isChat: boolean): UsageBody {
  let promptTokens = 0
  let outputTokens = 0
  let reasoningTokens = 0
  let cachedTokens = 0
  let cacheWriteTokens = 0
  folds.forEach((fold, index) => {
    const usage = choiceUsage(fold)
    const isFirst = index % exchange.choicesPerPrompt === 0
    if (isFirst) {
      // Where media were expanded only the engine knows how long its prompt was.
      const given = exchange.prompts[index / exchange.choicesPerPrompt]!.tokenIds.length
      promptTokens += usage?.promptTokens ?? given
    }
    if (usage === null) return
    outputTokens += usage.outputTokens
    reasoningTokens += usage.reasoningTokens
    if (!isFirst) return
    cachedTokens += usage.cachedTokens
    cacheWriteTokens += usage.cacheWriteTokens
  })
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
    prompt_tokens_details: exchange.config.enablePromptTokensDetails
      ? { cached_tokens: cachedTokens, created_cache_tokens: cacheWriteTokens, multimodal_tokens: null }
      : null,
    completion_tokens_details: isChat && exchange.facts.parsesReasoning ? { reasoning_tokens: reasoningTokens } : null,
  }
}

/** Usage as a stream's last chunk has it: without what is null (CHAT 7). */
export function usageChunk(usage: UsageBody): object {
  const { prompt_tokens_details: details, completion_tokens_details, ...counts } = usage
  return {
    ...counts,
    ...(details !== null && {
      prompt_tokens_details: {
        cached_tokens: details.cached_tokens,
        created_cache_tokens: details.created_cache_tokens,
      },
    }),
    ...(completion_tokens_details !== null && { completion_tokens_details }),
  }
}

/** Counts while a choice runs, for `continuous_usage_stats`. */
export function runningUsage(promptTokens: number, outputTokens: number): object {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
  }
}

/** The `metrics` object; each figure is null where a moment is unknown. Milliseconds, tokens per second. */
export function timingBody(outcome: Outcome): object {
  const { queuedAt, scheduledAt, firstTokenAt, lastTokenAt } = outcome.timing
  const tokens = outcome.usage.outputTokens
  const between = (from: number, to: number): number | null => (from < 0 || to < 0 ? null : to - from)
  const ms = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1000)
  const generating = between(firstTokenAt, lastTokenAt)
  const sinceScheduled = between(scheduledAt, lastTokenAt)
  return {
    time_to_first_token_ms: ms(between(scheduledAt, firstTokenAt)),
    generation_time_ms: ms(generating),
    queue_time_ms: ms(between(queuedAt, scheduledAt)),
    mean_itl_ms: generating === null || tokens < 2 ? null : ms(generating / (tokens - 1)),
    tokens_per_second: sinceScheduled === null || sinceScheduled <= 0 ? null : tokens / sinceScheduled,
    speculative_decoding: null,
  }
}
