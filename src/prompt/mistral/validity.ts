import type { FunctionTool } from "../../ir/conversation"
import { isObject } from "../json-object"
import { hasThinking, isFilled, type MistralMessage } from "./message"
import { schemaFault } from "./schema-fault"
import type { MistralVersion } from "./setting"

type Role = MistralMessage["role"]

/** Whose turn may follow whose. */
const followers: { readonly [role in Role]: readonly Role[] } = {
  system: ["user", "assistant", "system"],
  user: ["assistant", "system", "user"],
  assistant: ["assistant", "user", "tool"],
  tool: ["assistant", "tool", "user"],
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}\n?$/
const shortIdPattern = /^[a-zA-Z0-9]{9}$/

/**
 * What the format's rules have against a conversation, in words, or null. They are those of the reference's test mode,
 * which vLLM uses: calls at the end may be unanswered. Source: mistral-common 1.13.1, `validator.py`.
 */
export function conversationFault(messages: readonly MistralMessage[], version: MistralVersion): string | null {
  return (
    orderFault(messages) ??
    (version < 11 ? countFault(messages) : pairFault(messages)) ??
    messages.map((message) => messageFault(message, version)).find((fault) => fault !== null) ??
    null
  )
}

/** What is wrong with a tool, or null. */
export function toolFault({ name, parameters }: FunctionTool): string | null {
  if (!namePattern.test(name)) return nameFault(name)
  if (parameters === null) return null
  const fault = isObject(parameters) ? schemaFault(parameters) : "must be an object"
  return fault === null ? null : `the parameters of ${name} are no JSON Schema of draft 7: ${fault}`
}

function orderFault(messages: readonly MistralMessage[]): string | null {
  const last = messages.at(-1)
  if (last === undefined) return "the conversation has no message"
  if (messages.length === 1 && last.role !== "user" && last.role !== "system") {
    return "a conversation of one message must be the user's or the system's"
  }
  if (last.role === "assistant" && !last.isOpen) {
    return "the last message is the assistant's; set continue_final_message to have it continued"
  }
  for (const [index, { role }] of messages.entries()) {
    const before = messages[index - 1]?.role
    if (before !== undefined && !followers[before].includes(role)) {
      return `a message of role '${role}' cannot follow one of role '${before}'`
    }
  }
  return null
}

const unbalanced = "there are not as many tool messages as calls before the next assistant message"

/** Before v11 results are counted. The first message is not looked at, as in the reference. */
function countFault(messages: readonly MistralMessage[]): string | null {
  let missing = 0
  for (const message of messages.slice(1)) {
    if (message.role === "tool") missing -= 1
    else if (message.role === "assistant") {
      if (missing !== 0) return unbalanced
      missing = message.calls.length
    }
  }
  return null
}

/** From v11 on each result belongs to a call. The first message is not looked at, as in the reference. */
function pairFault(messages: readonly MistralMessage[]): string | null {
  const called = new Set<string>()
  const answered = new Set<string>()
  for (const message of messages.slice(1)) {
    if (message.role === "tool") {
      if (answered.has(message.callId)) return `two tool messages answer the call ${message.callId}`
      if (!called.has(message.callId)) return `no call before it has the tool_call_id ${message.callId}`
      answered.add(message.callId)
    } else if (message.role === "assistant") {
      if (called.size !== answered.size) return unbalanced
      called.clear()
      answered.clear()
      for (const { id } of message.calls) {
        if (called.has(id)) return `two calls of an assistant message have the id ${id}`
        called.add(id)
      }
    }
  }
  return null
}

function messageFault(message: MistralMessage, version: MistralVersion): string | null {
  if (message.role === "user") return null
  if (message.role === "tool") {
    const { name, callId } = message
    return name !== null && !namePattern.test(name) ? nameFault(name) : idFault(callId, version)
  }
  // What v13 thinks in its system prompt is settled by v15.
  const thinks = message.role === "assistant" ? version >= 13 : version === 13
  if (!thinks && hasThinking(message.content)) {
    return `models of version v${version} take no thinking in ${message.role} messages`
  }
  if (message.role === "system") return null
  for (const { id, call } of message.calls) {
    const fault = idFault(id, version) ?? (namePattern.test(call.name) ? null : nameFault(call.name))
    if (fault !== null) return fault
  }
  const hasCalls = message.calls.length > 0
  return version < 7 && hasCalls === isFilled(message.content)
    ? "an assistant message needs either content or tool calls, and models of version v3 take no message with both"
    : null
}

function idFault(id: string, version: MistralVersion): string | null {
  if (version < 13) {
    return shortIdPattern.test(id) ? null : `the id of a tool call must be 9 letters or digits, and is '${id}'`
  }
  return id === "" || id === "null" ? "the id of a tool call must be neither empty nor 'null'" : null
}

function nameFault(name: string): string {
  return `the name of a function must be 1 to 64 letters, digits, underscores and dashes, and is '${name.slice(0, 64)}'`
}
