import type { ContentPart, Conversation, HistoryCall, Message } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { type ConversationRefused, refused } from "../renderer"

/** A stretch of a message's content. */
export type MistralChunk =
  | { readonly type: "text"; readonly text: string }
  /** `isClosed`: the thinking is over. */
  | { readonly type: "thinking"; readonly thinking: string; readonly isClosed: boolean }
  /** Its place: whoever generates brings it there. */
  | { readonly type: "image" }

/** Content as the client sent it: a text and a list of one text are not always the same. */
export type MistralContent = string | readonly MistralChunk[]

/** A call of the history, with an id as the format wants it. */
export interface MistralCall {
  readonly id: string
  readonly call: HistoryCall
}

/** One turn. */
export type MistralMessage =
  | { readonly role: "system"; readonly content: MistralContent }
  | { readonly role: "user"; readonly content: MistralContent }
  | {
      readonly role: "assistant"
      readonly content: MistralContent | null
      readonly calls: readonly MistralCall[]
      /** The model goes on with it. */
      readonly isOpen: boolean
    }
  | { readonly role: "tool"; readonly content: MistralContent; readonly callId: string; readonly name: string | null }

/** Characters of a call's id; of longer ones the last count. */
const callIdLength = 9

/**
 * A conversation's turns as messages of the format. Developers speak as the system does, reasoning comes first in its
 * turn, and long ids of calls are cut. Source: vLLM 0.33.0, `truncate_tool_call_ids`; mistral-common 1.13.1,
 * `convert_openai_messages`.
 */
export function mistralMessages(conversation: Conversation): Result<MistralMessage[], ConversationRefused> {
  const made: MistralMessage[] = []
  const last = conversation.messages.length - 1
  for (const [index, turn] of conversation.messages.entries()) {
    const message = mistralMessage(turn, conversation.continueFinalMessage && index === last)
    if (!message.ok) return message
    made.push(message.value)
  }
  return ok(made)
}

function mistralMessage(turn: Message, isOpen: boolean): Result<MistralMessage, ConversationRefused> {
  const content = contentOf(turn)
  if (!content.ok) return content
  switch (turn.role) {
    case "assistant": {
      const calls: MistralCall[] = []
      for (const call of turn.toolCalls) {
        if (call.id === null) return refused("each tool call of an assistant message needs an id")
        calls.push({ id: shortId(call.id), call })
      }
      const whole = withReasoning(content.value, turn.reasoning)
      return whole.ok ? ok({ role: "assistant", content: whole.value, calls, isOpen }) : whole
    }
    case "system":
    case "developer":
    case "user": {
      if (content.value === null) return refused(`a ${turn.role} message needs content`)
      if (turn.role !== "user") return ok({ role: "system", content: content.value })
      if (hasThinking(content.value)) return refused("a user message cannot hold thinking")
      return ok({ role: "user", content: content.value })
    }
    case "tool":
      if (content.value === null) return refused("a tool message needs content")
      if (hasThinking(content.value)) return refused("a tool message cannot hold thinking")
      if (turn.toolCallId === null) return refused("a tool message needs tool_call_id")
      return ok({ role: "tool", content: content.value, callId: shortId(turn.toolCallId), name: turn.name })
    default:
      return refused(`messages of role '${turn.role.slice(0, 64)}' have no place in Mistral's format`)
  }
}

/** Whether any of it is thinking. */
export function hasThinking(content: MistralContent | null): boolean {
  return content !== null && typeof content !== "string" && content.some(({ type }) => type === "thinking")
}

/** Whether there is anything in it, if only an empty part. */
export function isFilled(content: MistralContent | null): boolean {
  return content !== null && content.length > 0
}

function contentOf({ role, content }: Message): Result<MistralContent | null, ConversationRefused> {
  if (content === null || typeof content === "string") return ok(content)
  const chunks: MistralChunk[] = []
  for (const part of content) {
    if (part.type === "text") chunks.push(chunkOf(part))
    else if (part.type === "image" && role === "user") chunks.push({ type: "image" })
    else return refused(`${part.type} parts of a ${role} message have no place in Mistral's format here`)
  }
  return ok(chunks)
}

function chunkOf({ text, thinking }: Extract<ContentPart, { type: "text" }>): MistralChunk {
  if (thinking === undefined) return { type: "text", text }
  return { type: "thinking", thinking: text, isClosed: thinking === "closed" }
}

function withReasoning(
  content: MistralContent | null,
  reasoning: string | null,
): Result<MistralContent | null, ConversationRefused> {
  if (reasoning === null) return ok(content)
  if (hasThinking(content)) return refused("an assistant message has its thinking either as parts or as reasoning")
  const chunk: MistralChunk = { type: "thinking", thinking: reasoning, isClosed: true }
  if (content === null) return ok([chunk])
  return ok([chunk, ...(typeof content === "string" ? [{ type: "text", text: content } as const] : content)])
}

function shortId(id: string): string {
  return id.length <= callIdLength ? id : Array.from(id).slice(-callIdLength).join("")
}
