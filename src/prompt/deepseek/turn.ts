import type { Conversation, HistoryCall, Json, Message } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { isObject } from "../json-object"
import { type ConversationRefused, refused } from "../renderer"
import { tokens } from "./tokens"

/** The formats, by the models that read them. */
export type DeepseekVersion = "v32" | "v4" | "v41"

/** Those in which tools' results are part of the user's turn. */
export type V4Version = Exclude<DeepseekVersion, "v32">

/** A turn as the formats need it. */
export interface Turn {
  readonly role: string
  /** All of its content, images as their placeholder. */
  readonly text: string
  /** "" = none. */
  readonly reasoning: string
  readonly calls: readonly HistoryCall[]
  /** The call that a tool's turn answers; "" = it does not say. */
  readonly callId: string
  /** Functions that are told here, in the order of their keys: name, description, parameters. */
  readonly tools: readonly Json[]
  /** A schema for replies that is told here; null = none. */
  readonly responseFormat: Json
  /** A quick instruction; null = none. */
  readonly task: string | null
}

/** A turn with nothing but its role. */
export function emptyTurn(role: string): Turn {
  return { role, text: "", reasoning: "", calls: [], callId: "", tools: [], responseFormat: null, task: null }
}

/**
 * The turns of a conversation. What a version does not look at is left out: V3.2 has no tasks, V3.2 and V4 know tools of
 * a message only from developers, and schemas for replies only V4.1.
 */
export function readTurns(
  { messages }: Conversation,
  version: DeepseekVersion,
): Result<readonly Turn[], ConversationRefused> {
  if (messages.length === 0) return refused("messages must hold at least one message.")
  const turns: Turn[] = []
  for (const message of messages) {
    const text = readText(message, version)
    if (!text.ok) return text
    const tools = readTools(message, version)
    if (!tools.ok) return tools
    turns.push({
      role: message.role,
      text: text.value,
      reasoning: message.reasoning ?? "",
      calls: message.toolCalls,
      callId: message.toolCallId ?? "",
      tools: tools.value,
      responseFormat: version === "v41" ? (message.responseFormat ?? null) : null,
      task: version === "v32" ? null : (message.task ?? null),
    })
  }
  return ok(turns)
}

/**
 * How parts are put together differs by version, and for V4's tools. V3.2 knows no images; where V4's tools return one,
 * the model reads that it is not there.
 */
function readText({ role, content }: Message, version: DeepseekVersion): Result<string, ConversationRefused> {
  if (content === null || typeof content === "string") return ok(content ?? "")
  const isResult = version === "v4" && role === "tool"
  const texts: string[] = []
  for (const part of content) {
    if (part.type === "text") texts.push(part.text)
    else if (isResult) texts.push(`[Unsupported ${part.type}]`)
    else if (part.type === "image" && version !== "v32") texts.push(tokens.image)
    else return refused(`content of type ${part.type} has no place in this model's prompts.`)
  }
  const hasMedia = content.some(({ type }) => type !== "text")
  return ok(texts.join(version === "v32" || (isResult && !hasMedia) ? "\n" : "\n\n"))
}

function readTools(
  { role, tools = [] }: Message,
  version: DeepseekVersion,
): Result<readonly Json[], ConversationRefused> {
  if (version !== "v41" && role !== "developer") return ok([])
  const functions: Json[] = []
  for (const tool of tools) {
    const described = isObject(tool) ? tool.function : undefined
    if (described === undefined) return refused("each tool of a message must be an object with a function.")
    functions.push(described)
  }
  return ok(functions)
}

/**
 * Whether the model goes on with the last turn, which must be the assistant's and hold text: a call is whole, and the
 * formats have no beginning of one.
 */
export function readOpenEnd(conversation: Conversation): Result<boolean, ConversationRefused> {
  if (!conversation.continueFinalMessage) return ok(false)
  const last = conversation.messages.at(-1)
  const canGoOn = last?.role === "assistant" && last.content !== null && last.toolCalls.length === 0
  return canGoOn
    ? ok(true)
    : refused("continue_final_message needs a last message of the assistant with text, and no calls.")
}

/** A role that the version does not know. */
export function refusedRole(role: string): Result<never, ConversationRefused> {
  return refused(`messages of role '${role.slice(0, 64)}' have no place in this model's prompts.`)
}
