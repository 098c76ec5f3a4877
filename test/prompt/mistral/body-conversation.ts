import { parseJsonText } from "../../../src/http/json-text"
import type { ContentPart, Conversation, HistoryCall, Json, Message } from "../../../src/ir/conversation"
import { conversationOf, messageOf } from "../../support/conversation"

type JsonObject = { readonly [key: string]: Json }

/** A chat completion's body, in JSON, as the conversation that endpoints make of it. */
export function conversationOfBody(body: string): Conversation {
  const parsed = parseJsonText(body, 600)
  if (!parsed.ok) throw new Error(parsed.error.message)
  const { messages, tools, continue_final_message, add_generation_prompt, reasoning_effort } = objectOf(parsed.value)
  const continues = continue_final_message === true
  const effort = textOf(reasoning_effort)
  return conversationOf(listOf(messages).map(messageOfBody), {
    tools: listOf(tools).map((tool) => {
      const { name, description, parameters, strict } = objectOf(objectOf(tool).function)
      const isStrict = typeof strict === "boolean" ? strict : null
      return {
        name: textOf(name) ?? "",
        description: textOf(description),
        parameters: parameters ?? null,
        strict: isStrict,
      }
    }),
    continueFinalMessage: continues,
    addGenerationPrompt: add_generation_prompt === undefined ? !continues : add_generation_prompt === true,
    templateKwargs: effort === null ? {} : { reasoning_effort: effort, enable_thinking: effort !== "none" },
  })
}

function messageOfBody(given: Json): Message {
  const { role, content, reasoning, tool_calls, tool_call_id, name } = objectOf(given)
  const parts = Array.isArray(content) ? content.map(partOf) : textOf(content)
  return messageOf(textOf(role) ?? "", parts, {
    reasoning: textOf(reasoning),
    toolCalls: listOf(tool_calls).map(callOf),
    toolCallId: textOf(tool_call_id),
    name: textOf(name),
  })
}

function partOf(given: Json): ContentPart {
  const { type, text, thinking, closed } = objectOf(given)
  if (type === "text") return { type, text: textOf(text) ?? "" }
  if (type === "input_audio") return { type: "audio", source: null }
  if (type !== "thinking") return { type: "image", source: null }
  return { type: "text", text: textOf(thinking) ?? "", thinking: closed === false ? "open" : "closed" }
}

function callOf(given: Json): HistoryCall {
  const { id, function: called } = objectOf(given)
  const { name, arguments: args } = objectOf(called)
  const made = { id: textOf(id), name: textOf(name) ?? "" }
  if (typeof args !== "string") return { ...made, arguments: args ?? {} }
  return { ...made, arguments: {}, argumentsText: args }
}

function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null
}
