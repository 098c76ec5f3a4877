import type { Conversation, HistoryCall, Message } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { type ConversationRefused, refused } from "../renderer"
import { jsonText } from "./json-text"
import { developerMessage, type HarmonyMessage, harmonyMessage, systemMessage } from "./message"
import { type HarmonySetting, readSystemFacts } from "./setting"

/** A conversation in the Harmony format. */
export interface HarmonyConversation {
  readonly messages: readonly HarmonyMessage[]
  /** The model goes on with the last message: it has no end yet. */
  readonly isOpen: boolean
}

/**
 * A conversation as Harmony messages: the system message and, where there are instructions or functions, a developer
 * message come first; then the turns. An assistant's turn is up to three kinds of message: what it said before its calls
 * (commentary), its reasoning (analysis), then its calls or its answer (final). Source: vLLM 0.33.0,
 * `harmony_utils.py`.
 */
export function harmonyConversation(
  conversation: Conversation,
  setting: HarmonySetting,
): Result<HarmonyConversation, ConversationRefused> {
  const { messages: turns, tools } = conversation
  const hasFunctions = tools.length > 0
  const facts = readSystemFacts(conversation.templateKwargs, hasFunctions, setting)
  if (!facts.ok) return facts
  const first = turns[0]
  const isPeeled = first !== undefined && (first.role === "system" || first.role === "developer")
  const instructions = isPeeled ? textOf(first) : null
  const inSystem = setting.instructionsIn === "system"
  const messages = [systemMessage(inSystem ? withInstructions(facts.value, instructions) : facts.value)]
  const developer = inSystem ? null : instructions
  if (hasFunctions || (developer !== null && developer !== "")) messages.push(developerMessage(developer, tools))

  const names = callNames(turns)
  for (const turn of isPeeled ? turns.slice(1) : turns) {
    const fault = addTurn(turn, names, messages, inSystem ? facts.value : null)
    if (fault !== null) return fault
  }
  if (!conversation.continueFinalMessage) return ok({ messages: withoutOldAnalysis(messages, false), isOpen: false })
  const last = messages.at(-1)
  const isOpen = turns.at(-1)?.role === "assistant" && last?.role === "assistant" && last.recipient === null
  if (!isOpen) return refused("continue_final_message needs a last message of the assistant with text", null)
  return ok({ messages: withoutOldAnalysis(messages, true), isOpen })
}

type SystemFacts = Parameters<typeof systemMessage>[0]

function withInstructions(facts: SystemFacts, instructions: string | null): SystemFacts {
  if (instructions === null) return facts
  const { modelIdentity } = facts
  return { ...facts, modelIdentity: modelIdentity === "" ? instructions : `${modelIdentity}\n${instructions}` }
}

/** Adds a turn's messages; gives a refusal of it, or null. `facts`: instructions go into system messages. */
function addTurn(
  turn: Message,
  names: ReadonlyMap<string, string>,
  messages: HarmonyMessage[],
  facts: SystemFacts | null,
): Result<never, ConversationRefused> | null {
  switch (turn.role) {
    case "assistant":
      addAssistantTurn(turn, messages)
      return null
    case "tool":
    case "function": {
      const name = (turn.toolCallId === null ? undefined : names.get(turn.toolCallId)) ?? turn.name
      if (name === null) {
        const message = `No call message found for ${turn.toolCallId ?? "a tool message without tool_call_id"}`
        return refused(message, null)
      }
      const header = { name: functionName(name), channel: "commentary", recipient: "assistant" }
      messages.push(harmonyMessage("tool", [textOf(turn) ?? ""], header))
      return null
    }
    case "system":
    case "developer": {
      const instructions = textOf(turn)
      if (instructions === null) return null
      const isSystem = facts !== null && turn.role === "system"
      messages.push(
        isSystem ? systemMessage(withInstructions(facts, instructions)) : developerMessage(instructions, []),
      )
      return null
    }
    case "user":
      messages.push(harmonyMessage("user", textsOf(turn)))
      return null
    default:
      return refused(`messages of role '${turn.role.slice(0, 64)}' have no place in the Harmony format.`)
  }
}

function addAssistantTurn(turn: Message, messages: HarmonyMessage[]): void {
  const reasoning = turn.reasoning ?? ""
  const text = textOf(turn) ?? ""
  const hasCalls = turn.toolCalls.length > 0
  if (hasCalls && text !== "") messages.push(harmonyMessage("assistant", [text], { channel: "commentary" }))
  if (reasoning !== "") messages.push(harmonyMessage("assistant", [reasoning], { channel: "analysis" }))
  if (!hasCalls && text !== "") messages.push(harmonyMessage("assistant", textsOf(turn), { channel: "final" }))
  for (const call of turn.toolCalls) {
    // `json` without the special token: as the reference found that the model does best.
    const header = { channel: "commentary", recipient: functionName(call.name), contentType: "json" }
    messages.push(harmonyMessage("assistant", [argumentsOf(call)], header))
  }
}

/** The model's own text where the client sent it back: it may be no JSON, and blanks in it are tokens. */
function argumentsOf(call: HistoryCall): string {
  return call.argumentsText ?? jsonText(call.arguments)
}

function functionName(name: string): string {
  return name.startsWith("functions.") ? name : `functions.${name}`
}

/** Names of functions by the id of the call. */
function callNames(turns: readonly Message[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const turn of turns) for (const call of turn.toolCalls) if (call.id !== null) names.set(call.id, call.name)
  return names
}

/**
 * Reasoning is not shown again once the answer that it led to is there: what stands before the last final message. One
 * that is not whole yet is still being reasoned about.
 */
function withoutOldAnalysis(messages: readonly HarmonyMessage[], lastIsOpen: boolean): readonly HarmonyMessage[] {
  const whole = lastIsOpen ? messages.slice(0, -1) : messages
  const answered = whole.findLastIndex(({ role, channel }) => role === "assistant" && channel === "final")
  return messages.filter(({ channel }, index) => index >= answered || channel !== "analysis")
}

/** All text of a turn; null when it has none at all. */
function textOf({ content }: Message): string | null {
  if (content === null || typeof content === "string") return content
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []))
  return texts.length === 0 ? null : texts.join("")
}

/** The texts of a turn one by one: the reference encodes each by itself. */
function textsOf({ content }: Message): string[] {
  if (content === null || typeof content === "string") return [content ?? ""]
  return content.flatMap((part) => (part.type === "text" ? [part.text] : []))
}
