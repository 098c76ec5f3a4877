import type { Conversation } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { functionJson } from "../function-json"
import { type ConversationRefused, refused } from "../renderer"
import { callsText, v32Tags } from "./dsml"
import { readV32Thinking } from "./setting"
import { tokens } from "./tokens"
import { v32ToolsText } from "./tool-text"
import { emptyTurn, readOpenEnd, readTurns, refusedRole, type Turn } from "./turn"

/**
 * A conversation as DeepSeek V3.2 reads it:
 * `<bos>Be brief.<｜User｜>Hello<｜Assistant｜></think>Hi.<eos><｜User｜>…<｜Assistant｜><think>`. A request's tools stand in
 * front, in a system turn of their own. Source: vLLM 0.33.0, `deepseek_v32.py` and `deepseek_v32_encoding.py`; there
 * the reply's beginning is always written, and a last message never gone on with.
 */
export function v32Text(conversation: Conversation): Result<string, ConversationRefused> {
  const given = readTurns(conversation, "v32")
  if (!given.ok) return given
  const isOpen = readOpenEnd(conversation)
  if (!isOpen.ok) return isOpen
  const tools = conversation.tools.map(functionJson)
  const turns = tools.length === 0 ? given.value : [{ ...emptyTurn("system"), tools }, ...given.value]
  const isThinking = readV32Thinking(conversation.templateKwargs)
  const asksAgain = given.value.at(-1)?.role === "user"
  const shown = isThinking && asksAgain ? withoutOldReasoning(turns) : ok(turns)
  if (!shown.ok) return shown
  return new V32Writer(shown.value, isThinking).write(conversation.addGenerationPrompt, isOpen.value)
}

/** Place of the last turn that asks for something, -1 where none does. */
function lastQuestion(turns: readonly Turn[]): number {
  return turns.findLastIndex(({ role }) => role === "user" || role === "developer")
}

/**
 * Reasoning before a new question is not shown again. A developer's turn there would have to go as well, which the
 * reference means to do and fails at: what the client wrote must not vanish, so it is refused.
 */
function withoutOldReasoning(turns: readonly Turn[]): Result<readonly Turn[], ConversationRefused> {
  const question = lastQuestion(turns)
  const old = turns.slice(0, question)
  const lost = old.find(({ role }) => !["user", "system", "tool", "assistant"].includes(role))
  if (lost !== undefined) {
    const role = lost.role.slice(0, 64)
    return refused(
      `a message of role '${role}' before the last user's has no place in this model's prompts when it thinks.`,
    )
  }
  return ok([...old.map((turn) => ({ ...turn, reasoning: "" })), ...turns.slice(question)])
}

class V32Writer {
  private readonly turns: readonly Turn[]
  private readonly isThinking: boolean
  private readonly question: number
  /** The turn whose calls are answered next, and how many of them are. */
  private caller: Turn | null = null
  private results = 0

  constructor(turns: readonly Turn[], isThinking: boolean) {
    this.turns = turns
    this.isThinking = isThinking
    this.question = lastQuestion(turns)
  }

  /** `opensReply`: the reply's beginning is written behind the last turn. `isOpen`: the last turn has no end. */
  write(opensReply: boolean, isOpen: boolean): Result<string, ConversationRefused> {
    let text: string = tokens.bos
    for (let i = 0; i < this.turns.length; i++) {
      const isLast = i === this.turns.length - 1
      this.follow(this.turns[i]!)
      const written = this.turn(i, !isLast || opensReply, isLast && isOpen)
      if (!written.ok) return written
      text += written.value
    }
    return ok(text)
  }

  private follow(turn: Turn): void {
    if (turn.role === "tool") {
      this.results += 1
    } else {
      this.caller = turn
      this.results = 0
    }
  }

  /** A turn, and the beginning of the reply that it asks for. */
  private turn(index: number, opensReply: boolean, isOpen: boolean): Result<string, ConversationRefused> {
    const turn = this.turns[index]!
    switch (turn.role) {
      case "system":
        return ok(turn.text + toolsSection(turn))
      case "developer": {
        if (turn.text === "") return refused("a developer message must have content for this model.")
        const text = `${toolsSection(turn)}\n\n# The user's message is: ${turn.text}`
        return ok(tokens.user + text + this.replyTo(index, opensReply))
      }
      case "user":
        return ok(tokens.user + turn.text + this.replyTo(index, opensReply))
      case "tool":
        return this.result(index, opensReply)
      case "assistant":
        return this.answer(index, isOpen)
      default:
        return refusedRole(turn.role)
    }
  }

  /** Only the last question is thought about. */
  private replyTo(index: number, opensReply: boolean): string {
    if (!opensReply) return ""
    return tokens.assistant + (this.isThinking && index === this.question ? tokens.thinkStart : tokens.thinkEnd)
  }

  /** One of the results of a turn's calls, in the order in which they came; the block ends with as many as calls. */
  private result(index: number, opensReply: boolean): Result<string, ConversationRefused> {
    const { caller, results } = this
    if (caller === null || caller.role !== "assistant" || caller.calls.length < results) {
      return refused("a tool message must follow the assistant message with its call.")
    }
    const { text } = this.turns[index]!
    let made = `${results === 1 ? "\n\n<function_results>" : ""}\n<result>${text}</result>`
    if (results < caller.calls.length) return ok(made)
    made += "\n</function_results>"
    if (!opensReply) return ok(made)
    const thinks = this.isThinking && index >= this.question
    return ok(`${made}\n\n${thinks ? tokens.thinkStart : tokens.thinkEnd}`)
  }

  private answer(index: number, isOpen: boolean): Result<string, ConversationRefused> {
    const { text, reasoning, calls } = this.turns[index]!
    let made = ""
    if (this.isThinking && index > this.question) {
      if (reasoning === "" && calls.length === 0) {
        return refused("an assistant message behind the last question needs reasoning or calls when this model thinks.")
      }
      made = reasoning + tokens.thinkEnd
    }
    return ok(made + text + callsText(calls, v32Tags) + (isOpen ? "" : tokens.eos))
  }
}

function toolsSection({ tools }: Turn): string {
  return tools.length === 0 ? "" : `\n\n${v32ToolsText(tools)}`
}
