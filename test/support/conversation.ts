import type { Conversation, Message } from "../../src/ir/conversation"

/** A message with nothing but its role, and `rest` on top. */
export function messageOf(role: string, content: Message["content"], rest: Partial<Message> = {}): Message {
  return { role, content, reasoning: null, toolCalls: [], toolCallId: null, name: null, ...rest }
}

/** A conversation with nothing but these turns, a user's where none is said, and `rest` on top. */
export function conversationOf(turns: readonly Partial<Message>[], rest: Partial<Conversation> = {}): Conversation {
  return {
    kind: "conversation",
    messages: turns.map((turn) => ({ ...messageOf("user", null), ...turn })),
    tools: [],
    toolChoice: { kind: "auto" },
    addGenerationPrompt: true,
    continueFinalMessage: false,
    addSpecialTokens: false,
    documents: null,
    chatTemplate: null,
    templateKwargs: {},
    ...rest,
  }
}
