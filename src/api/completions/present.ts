import { tokenList } from "../../ir/token-list"
import type { Exchange } from "../endpoint"
import type { Fold } from "../fold"
import { CompletionLogprobs, promptLogprobs, tokenName } from "../logprobs"
import { timingBody, type UsageBody, usageBody } from "../usage"
import { systemFingerprint } from "../version"
import type { CompletionAsk } from "./lower"

/** The completion as one object; choices in the order `promptIndex × n + i`. */
export function presentCompletion(exchange: Exchange<CompletionAsk>, folds: readonly Fold[]): object {
  const { ask, facts, config, choicesPerPrompt } = exchange
  const outcome = folds.length === 1 ? folds[0]!.outcome : null
  return {
    id: exchange.id,
    object: "text_completion",
    created: exchange.createdAt,
    model: exchange.model,
    choices: folds.map((fold, index) => {
      const prompt = exchange.prompts[Math.floor(index / choicesPerPrompt)]!
      const logprobs = ask.logprobs === null ? null : new CompletionLogprobs()
      let offset = 0
      if (logprobs !== null && ask.echo) offset = addPromptLogprobs(logprobs, exchange, prompt.tokenIds, fold)
      if (logprobs !== null && !ask.promptOnly) addTokenLogprobs(logprobs, exchange, fold, 0, offset)
      return {
        index,
        text: (ask.echo ? promptText(exchange, index) : "") + (ask.promptOnly ? "" : fold.text("text")),
        logprobs,
        finish_reason: fold.outcome!.finish,
        stop_reason: fold.outcome!.stopReason,
        token_ids: ask.returnTokenIds ? (ask.promptOnly ? [] : fold.tokenIds) : null,
        prompt_logprobs: fold.prompt === null ? null : promptLogprobs(fold.prompt, facts.tokenText),
        prompt_token_ids: ask.returnTokenIds ? tokenList(prompt.tokenIds) : null,
        routed_experts: null,
        weight_versions: null,
      }
    }),
    service_tier: null,
    system_fingerprint: systemFingerprint,
    usage: completionUsage(exchange, folds),
    kv_transfer_params: outcome?.kvTransferParams ?? null,
    ec_transfer_params: outcome?.ecTransferParams ?? null,
    metrics: config.enablePerRequestMetrics && outcome !== null ? timingBody(outcome) : null,
  }
}

/** Counts; the token that only scores a prompt is not one of the reply's. */
export function completionUsage(exchange: Exchange<CompletionAsk>, folds: readonly Fold[]): UsageBody {
  const usage = usageBody(exchange, folds, false)
  return exchange.ask.promptOnly ? { ...usage, completion_tokens: 0, total_tokens: usage.prompt_tokens } : usage
}

/** The prompt of choice `index` as text: as it was sent, or decoded. */
export function promptText(exchange: Exchange<CompletionAsk>, index: number): string {
  const prompt = exchange.prompts[Math.floor(index / exchange.choicesPerPrompt)]!
  return prompt.text ?? exchange.facts.decode(prompt.tokenIds)
}

/** The echoed prompt's part of the lists; gives the offset behind it. */
export function addPromptLogprobs(
  logprobs: CompletionLogprobs,
  exchange: Exchange<CompletionAsk>,
  promptIds: Uint32Array,
  fold: Fold,
): number {
  const { ask, facts } = exchange
  const name = tokenName(facts.tokenText, ask.tokensAsIds)
  let offset = 0
  promptIds.forEach((id, i) => {
    const position = i === 0 ? null : (fold.prompt?.[i - 1] ?? null)
    offset = logprobs.add(id, position, ask.logprobs ?? 0, name, offset)
  })
  return offset
}

/** Generated tokens from `start` on; gives the offset behind them. */
export function addTokenLogprobs(
  logprobs: CompletionLogprobs,
  exchange: Exchange<CompletionAsk>,
  fold: Fold,
  start: number,
  offset: number,
): number {
  const { ask, facts } = exchange
  const name = tokenName(facts.tokenText, ask.tokensAsIds)
  let end = offset
  for (let i = start; i < fold.tokenIds.length; i++) {
    end = logprobs.add(fold.tokenIds[i]!, fold.logprobs[i] ?? null, ask.logprobs ?? 0, name, end)
  }
  return end
}
