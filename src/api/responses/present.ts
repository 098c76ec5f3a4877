import type { FinishReason } from "../../ir/engine"
import type { ChoiceUsage } from "../../ir/item-event"
import type { Exchange } from "../endpoint"
import type { Fold, FoldedItem, PositionLogprobs } from "../fold"
import { chatLogprob, tokenName } from "../logprobs"
import { choiceUsage, timingBody } from "../usage"
import { customInput } from "./custom-input"
import type { ResponseAsk } from "./lower"
import { TextLogprobs } from "./text-logprobs"
import { callName, type ToolName } from "./tools"

/** Where a response stands. */
export type ResponseStatus = "in_progress" | "completed" | "incomplete" | "cancelled" | "failed"

const statusOf: { readonly [finish in FinishReason]: ResponseStatus } = {
  stop: "completed",
  repetition: "completed",
  length: "incomplete",
  abort: "cancelled",
  error: "failed",
}

/** The status that a fold has come to. */
export function responseStatus(fold: Fold | null): ResponseStatus {
  if (fold === null) return "in_progress"
  if (fold.failure !== null) return "failed"
  return fold.outcome === null ? "in_progress" : statusOf[fold.outcome.finish]
}

/**
 * The response object; `fold` null = nothing generated yet. Every key is always there, null where unset
 * (RESPONSES 8).
 */
export function presentResponse(exchange: Exchange<ResponseAsk>, fold: Fold | null): object {
  const { ask, sampling, config } = exchange
  const { body } = ask
  const status = responseStatus(fold)
  const usage = fold === null ? null : choiceUsage(fold)
  const outcome = fold?.outcome ?? null
  return {
    id: exchange.id,
    object: "response",
    created_at: exchange.createdAt,
    model: exchange.model,
    status,
    error: fold?.failure == null ? null : { code: "server_error", message: failureMessage(fold.failure) },
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: body.instructions ?? null,
    metadata: body.metadata ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    previous_response_id: null,
    prompt: null,
    reasoning: body.reasoning ?? null,
    text: body.text ?? null,
    user: body.user ?? null,
    top_logprobs: ask.topLogprobs,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    safety_identifier: body.safety_identifier ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    prompt_cache_options: echoCacheOptions(body.prompt_cache_options ?? null),
    prompt_cache_retention:
      body.prompt_cache_retention === "in-memory" ? "in_memory" : (body.prompt_cache_retention ?? null),
    output: fold === null ? [] : presentOutput(exchange, fold),
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    tool_choice: ask.toolChoice,
    tools: ask.tools,
    truncation: ask.truncation,
    background: false,
    service_tier: body.service_tier ?? "auto",
    max_output_tokens: sampling.maxTokens,
    usage: usage === null ? null : responseUsage(usage),
    kv_transfer_params: outcome?.kvTransferParams ?? null,
    ec_transfer_params: outcome?.ecTransferParams ?? null,
    input_messages: null,
    output_messages: null,
    ...(config.enablePerRequestMetrics && outcome !== null && { metrics: timingBody(outcome) }),
  }
}

/** `prewarm` only speaks to the server; it is not echoed. */
function echoCacheOptions(options: object | null): object | null {
  if (options === null) return null
  return Object.fromEntries(Object.entries(options).filter(([name]) => name !== "prewarm"))
}

function presentOutput(exchange: Exchange<ResponseAsk>, fold: Fold): object[] {
  const { names, shownLogprobs } = exchange.ask
  if (shownLogprobs === null) return fold.items.map((item) => presentItem(item, fold, names, null))
  const logprobs = new TextLogprobs(fold, exchange.facts.tokenText)
  logprobs.finish()
  return fold.items.map((item) =>
    presentItem(item, fold, names, presentLogprobs(exchange, item, logprobs.of(item.index))),
  )
}

/** Logprobs of an item's tokens, with bytes; null where none are shown. */
export function presentLogprobs(
  { ask, facts, config }: Exchange<ResponseAsk>,
  item: FoldedItem,
  positions: readonly PositionLogprobs[],
): object[] | null {
  const { shownLogprobs } = ask
  if (shownLogprobs === null || item.kind !== "text") return null
  const name = tokenName(facts.tokenText, config.returnTokensAsTokenIds)
  return positions.map((position) => chatLogprob(position, shownLogprobs, name))
}

/**
 * An output item of a fold. The same function makes `output_item.done` and the terminal output, so they are equal. Only
 * the reply limit makes an item incomplete, not a stop string or a failure within it (RESPONSES 9).
 */
export function presentItem(
  item: FoldedItem,
  fold: Fold,
  names: ReadonlyMap<string, ToolName>,
  logprobs: readonly object[] | null,
): object {
  const limited = item.cut && fold.outcome?.finish === "length"
  const status = item.isOpen ? "in_progress" : limited ? "incomplete" : "completed"
  const id = itemId(item, names)
  switch (item.kind) {
    case "reasoning":
      return {
        type: "reasoning",
        id,
        summary: [],
        content: [{ type: "reasoning_text", text: item.text }],
        encrypted_content: null,
        status,
      }
    case "text":
      return {
        type: "message",
        id,
        role: "assistant",
        status,
        content: [{ type: "output_text", text: item.text, annotations: [], logprobs }],
      }
    case "call": {
      const { kind, name, namespace } = callName(names, item.name)
      const called =
        kind === "custom"
          ? { type: "custom_tool_call", id, call_id: item.callId, name, input: customInput(item.text), status }
          : { type: "function_call", id, call_id: item.callId, name, arguments: item.text, status }
      return namespace === null ? called : { ...called, namespace }
    }
  }
}

/** The item's id with its kind's prefix. */
export function itemId(
  { kind, id, name }: Pick<FoldedItem, "kind" | "id" | "name">,
  names: ReadonlyMap<string, ToolName>,
): string {
  if (kind === "reasoning") return `rs_${id}`
  if (kind === "text") return `msg_${id}`
  return `${callName(names, name).kind === "custom" ? "ctc_" : "fc_"}${id}`
}

/**
 * Counts alone. vLLM adds lists of counts per turn of built-in tools, which do not exist here; the Agents SDK for
 * JavaScript takes nothing but numbers among the details, and would end each stream with an error.
 */
function responseUsage(usage: ChoiceUsage): object {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      tool_output_tokens: 0,
    },
    total_tokens: usage.promptTokens + usage.outputTokens,
  }
}

/**
 * Three fixed texts: an engine's own may tell about its insides (RESPONSES 11). Counts are there exactly where the engine
 * itself ended the sequence.
 */
function failureMessage({ error, usage }: NonNullable<Fold["failure"]>): string {
  if (usage !== null) return "The model failed to produce a response."
  switch (error.kind) {
    case "engine_failed":
      return "The model failed to produce a response."
    case "engine_disconnected":
      return "The stream ended before the response was complete."
    default:
      return "The stream failed before the response was complete."
  }
}
