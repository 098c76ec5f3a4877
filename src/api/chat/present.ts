import type { ToolChoice } from "../../ir/conversation"
import type { FinishReason } from "../../ir/engine"
import { tokenList } from "../../ir/token-list"
import type { Exchange } from "../endpoint"
import type { Fold } from "../fold"
import { chatLogprob, promptLogprobs, tokenName } from "../logprobs"
import { timingBody, usageBody } from "../usage"
import { systemFingerprint } from "../version"
import type { ChatAsk } from "./lower"

/**
 * `tool_calls` only when the model chose to call, and the call is whole; a named function was the client's choice
 * (CHAT 3).
 */
export function chatFinishReason(finish: FinishReason, choice: ToolChoice, fold: Fold): string {
  const chosen = choice.kind === "auto" || choice.kind === "required"
  const hasCall = fold.items.some((item) => item.kind === "call" && !item.cut)
  return finish === "stop" && chosen && hasCall ? "tool_calls" : finish
}

/** The chat reply as one object. */
export function presentChat(exchange: Exchange<ChatAsk>, folds: readonly Fold[]): object {
  const { ask, prompts, facts, config } = exchange
  const prompt = prompts[0]!
  const outcome = folds.length === 1 ? folds[0]!.outcome : null
  const promptRows = folds[0]!.prompt
  return {
    id: exchange.id,
    object: "chat.completion",
    created: exchange.createdAt,
    model: exchange.model,
    choices: folds.map((fold, index) => presentChoice(exchange, fold, index)),
    service_tier: null,
    system_fingerprint: systemFingerprint,
    usage: usageBody(exchange, folds, true),
    prompt_logprobs: promptRows === null ? null : promptLogprobs(promptRows, facts.tokenText),
    prompt_token_ids: ask.returnTokenIds ? tokenList(prompt.tokenIds) : null,
    prompt_text: ask.returnPromptText ? prompt.text : null,
    kv_transfer_params: outcome?.kvTransferParams ?? null,
    ec_transfer_params: outcome?.ecTransferParams ?? null,
    metrics: config.enablePerRequestMetrics && outcome !== null ? timingBody(outcome) : null,
  }
}

function presentChoice(exchange: Exchange<ChatAsk>, fold: Fold, index: number): object {
  const { ask, facts } = exchange
  const { topLogprobs } = ask
  const name = tokenName(facts.tokenText, ask.tokensAsIds)
  const outcome = fold.outcome!
  return {
    index,
    message: chatMessage(fold, ask.toolChoice, ask.role, ask.echo),
    logprobs:
      topLogprobs === null
        ? null
        : { content: fold.logprobs.map((position) => chatLogprob(position, topLogprobs, name)) },
    finish_reason: chatFinishReason(outcome.finish, ask.toolChoice, fold),
    stop_reason: outcome.stopReason,
    token_ids: ask.returnTokenIds ? fold.tokenIds : null,
    routed_experts: null,
    weight_versions: null,
  }
}

/** The assistant's message of one choice; `echo` stands in front of its text (CHAT 3). */
export function chatMessage(fold: Fold, choice: ToolChoice, role: string, echo: string): object {
  const calls = fold.items.filter((item) => item.kind === "call")
  const text = echo + fold.text("text")
  const reasoning = fold.text("reasoning")
  const forced = choice.kind === "required" || choice.kind === "named"
  const emptyContent = calls.length > 0 && forced ? "" : null
  return {
    role,
    content: text === "" ? emptyContent : text,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => ({
        id: call.callId,
        type: "function",
        function: { name: call.name, arguments: call.text },
      })),
    }),
    reasoning: reasoning === "" ? null : reasoning,
  }
}
