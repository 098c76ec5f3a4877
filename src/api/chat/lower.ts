import type { Message, ToolChoice } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { lowerConversation, lowerMessages, mediaKwargsFault, untrustedTemplate } from "../conversation"
import type { LowerContext, Lowered } from "../endpoint"
import { type InvalidRequest, invalid } from "../errors"
import {
  asNumber,
  lowerReply,
  lowerReplySampling,
  lowerUsageOptions,
  replyFault,
  replyTokensFault,
  requestId,
  sessionId,
} from "../reply-fields"
import { isRecord } from "../schema"
import type { ChatBody } from "./schema"

/** What both views of a chat reply must know. */
export interface ChatAsk {
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  /** Alternatives for each token in the reply; null = no logprobs. */
  readonly topLogprobs: number | null
  readonly tokensAsIds: boolean
  readonly returnTokenIds: boolean
  readonly returnPromptText: boolean
  readonly toolChoice: ToolChoice
  readonly role: string
  /** Text of the continued message, to be repeated in front of the reply; "" = no echo. */
  readonly echo: string
}

/** Chat body → the intermediate representation (CHAT 1 and 2). */
export function lowerChat(body: ChatBody, context: LowerContext): Result<Lowered<ChatAsk>, InvalidRequest> {
  const { config } = context
  const fault = replyFault(body, context) ?? chatFault(body, context)
  if (fault !== null) return err(fault)

  const messages = lowerMessages(body.messages, context)
  if (!messages.ok) return messages
  const unsent = messages.value.media === null ? null : mediaKwargsFault(body, false)
  if (unsent !== null) return err(invalid(unsent.param, `${unsent.param} cannot be forwarded with the media.`))
  const toolChoice = lowerToolChoice(body)
  if (!toolChoice.ok) return toolChoice
  const conversation = lowerConversation(body, messages.value.messages, toolChoice.value, context)
  if (!conversation.ok) return conversation

  const wantsLogprobs = body.logprobs === true
  const topLogprobs = wantsLogprobs ? (body.top_logprobs ?? 0) : null
  const hidesTokens = body.include_reasoning === false && context.model.parsesReasoning
  const sampling = lowerReplySampling(body, topLogprobs, body.prompt_logprobs ?? null, context)
  if (!sampling.ok) return sampling

  const shows = hidesTokens ? null : topLogprobs
  // With logprob_token_ids, exactly those come back: all of what the engine returns is shown.
  const shownLogprobs = shows !== null && sampling.value.logprobTokenIds !== null ? -1 : shows
  const returnTokenIds = body.return_token_ids === true && !hidesTokens
  const usage = lowerUsageOptions(body, context)
  const last = messages.value.messages.at(-1)
  const role = conversation.value.addGenerationPrompt ? config.responseRole : (last?.role ?? config.responseRole)
  return ok({
    id: `chatcmpl-${requestId(body.request_id ?? null, context)}`,
    prompts: [conversation.value],
    media: messages.value.media,
    sampling: sampling.value,
    replyTokensMax: asNumber(body.max_completion_tokens ?? body.max_tokens),
    parsing: { isChat: true, calls: toolChoice.value.kind !== "none" },
    includeReasoning: body.include_reasoning ?? true,
    parallelToolCalls: body.parallel_tool_calls ?? true,
    wantsSteps: shownLogprobs !== null || returnTokenIds || body.prompt_logprobs != null || usage.continuousUsage,
    ...lowerReply(body, context),
    sessionId: sessionId(body.session_id ?? null, context),
    ask: {
      ...usage,
      topLogprobs: shownLogprobs,
      tokensAsIds: body.return_tokens_as_token_ids ?? config.returnTokensAsTokenIds,
      returnTokenIds,
      returnPromptText: body.return_prompt_text ?? false,
      toolChoice: toolChoice.value,
      role,
      echo: body.echo === true && last !== undefined && last.role === role ? plainText(last) : "",
    },
  })
}

function chatFault(body: ChatBody, context: LowerContext): InvalidRequest | null {
  if (body.messages.length === 0) return invalid("messages", "messages must not be empty.")
  if (body.tools?.length === 0) {
    return invalid("tools", "`tools` must not be an empty array: give at least one tool or leave the field out.")
  }
  if (body.tools?.some((tool) => tool.function.name === "")) return invalid("tools", "a function needs a name.")
  const top = body.top_logprobs ?? 0
  if (top < -1) return invalid("top_logprobs", `top_logprobs must be -1 or at least 0, got ${top}.`)
  if (top !== 0 && body.logprobs !== true) {
    return invalid("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
  }
  if (body.add_generation_prompt === true && body.continue_final_message === true) {
    return invalid(
      "continue_final_message",
      "`continue_final_message` and `add_generation_prompt` cannot both be true.",
    )
  }
  if (body.continue_final_message === true && body.messages.at(-1)?.role !== "assistant") {
    return invalid("continue_final_message", "`continue_final_message` needs a last message of the assistant.")
  }
  if (body.chat_template != null && !context.config.trustRequestChatTemplate) return untrustedTemplate
  const field = body.max_completion_tokens != null ? "max_completion_tokens" : "max_tokens"
  return (
    replyTokensFault(body[field] ?? null, field, context) ?? mediaKwargsFault(body, context.config.trustRequestMmKwargs)
  )
}

function lowerToolChoice(body: ChatBody): Result<ToolChoice, InvalidRequest> {
  const tools = body.tools ?? null
  const choice = body.tool_choice ?? null
  if (choice === null) return ok({ kind: tools === null ? "none" : "auto" })
  if (typeof choice === "string") {
    if (choice === "none") return ok({ kind: "none" })
    if (choice !== "auto" && choice !== "required") {
      return err(invalid("tool_choice", `tool_choice must be none, auto, required or a function, got '${choice}'.`))
    }
    if (tools === null) return err(invalid("tool_choice", "When using `tool_choice`, `tools` must be set."))
    return ok({ kind: choice })
  }
  if (tools === null) return err(invalid("tool_choice", "When using `tool_choice`, `tools` must be set."))
  const named = choice.function
  if (choice.type !== "function" || !isRecord(named)) {
    return err(invalid("tool_choice.function", "tool_choice must be {type: 'function', function: {name}}."))
  }
  if (typeof named.name !== "string" || named.name === "") {
    return err(invalid("tool_choice.function.name", "tool_choice.function needs a name."))
  }
  const { name } = named
  if (!tools.some((tool) => tool.function.name === name)) {
    return err(invalid("tool_choice", "The tool in `tool_choice` does not match any of the `tools`."))
  }
  return ok({ kind: "named", name })
}

function plainText(message: Message): string {
  if (message.content === null || typeof message.content === "string") return message.content ?? ""
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n")
}
