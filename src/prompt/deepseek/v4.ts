import type { Conversation, Json } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { functionJson } from "../function-json"
import { type ConversationRefused, refused } from "../renderer"
import { callsText, v4Tags, v41Tags } from "./dsml"
import { effortText } from "./effort-text"
import { readsAsTrue, readV4Setting, readV41Setting, type V4Setting } from "./setting"
import { taskTokens, tokens } from "./tokens"
import { responseFormatText, v4ToolsText } from "./tool-text"
import { emptyTurn, readOpenEnd, readTurns, refusedRole, type Turn, type V4Version } from "./turn"
import { lastQuestion, mergeTurns, sortResults, type V4Turn, withoutOldTurns } from "./v4-turns"

/** Roles that V4.1 knows. */
const v41Roles: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool"])

/**
 * A conversation as DeepSeek V4 and V4.1 read it:
 * `<bos>Be brief.<｜User｜>Hello<｜Assistant｜></think>Hi.<eos><｜User｜>…<｜Assistant｜><think>`, where V4.1 puts
 * `<｜System｜>` before system turns. A request's tools are told in the first of them. Source: vLLM 0.33.0,
 * `deepseek_v4.py`, `deepseek_v41.py` and their encoders; there the reply's beginning is always written, and a last
 * message never gone on with.
 */
export function v4Text(conversation: Conversation, version: V4Version): Result<string, ConversationRefused> {
  const kwargs = conversation.templateKwargs
  const setting = version === "v4" ? ok(readV4Setting(kwargs)) : readV41Setting(kwargs)
  if (!setting.ok) return setting
  const given = readTurns(conversation, version)
  if (!given.ok) return given
  const isOpen = readOpenEnd(conversation)
  if (!isOpen.ok) return isOpen
  const stranger = version === "v4" ? undefined : given.value.find(({ role }) => !v41Roles.has(role))
  if (stranger !== undefined) return refusedRole(stranger.role)
  const turns = sortResults(mergeTurns(withTools(given.value, conversation.tools.map(functionJson))))
  const dropsReasoning = setting.value.dropsReasoning && turns.every(({ tools }) => tools.length === 0)
  const isShortened = setting.value.isThinking && dropsReasoning
  const shown = isShortened ? withoutOldTurns(turns, version) : turns
  return new V4Writer(shown, { ...setting.value, dropsReasoning }, version).write(
    conversation.addGenerationPrompt,
    isOpen.value,
  )
}

/** A request's tools in the first system turn, in place of its own; one is made where there is none. */
function withTools(turns: readonly Turn[], tools: readonly Json[]): readonly Turn[] {
  if (tools.length === 0) return turns
  const place = turns.findIndex(({ role }) => role === "system")
  return place < 0 ? [{ ...emptyTurn("system"), tools }, ...turns] : turns.with(place, { ...turns[place]!, tools })
}

class V4Writer {
  private readonly turns: readonly V4Turn[]
  private readonly setting: V4Setting
  private readonly version: V4Version
  private readonly question: number

  constructor(turns: readonly V4Turn[], setting: V4Setting, version: V4Version) {
    this.turns = turns
    this.setting = setting
    this.version = version
    this.question = lastQuestion(turns, version)
  }

  /** `opensReply`: the reply's beginning is written behind the last turn. `isOpen`: the last turn has no end. */
  write(opensReply: boolean, isOpen: boolean): Result<string, ConversationRefused> {
    let text = tokens.bos + this.front()
    for (let i = 0; i < this.turns.length; i++) {
      const isLast = i === this.turns.length - 1
      const written = this.turn(i, isLast && isOpen)
      if (!written.ok) return written
      const asked = this.reply(i)
      if (!asked.ok) return asked
      text += written.value + (isLast && !opensReply ? "" : asked.value)
    }
    return ok(text)
  }

  /** What stands before the first turn: the effort, and V4.1's mark for it and for a system's first turn. */
  private front(): string {
    const effort = effortText(this.setting)
    const isMarked = this.version === "v41" && (effort !== "" || this.turns[0]?.role === "system")
    return (isMarked ? tokens.system : "") + effort
  }

  private turn(index: number, isOpen: boolean): Result<string, ConversationRefused> {
    const turn = this.turns[index]!
    switch (turn.role) {
      case "system": {
        const mark = this.version === "v41" && index > 0 ? tokens.system : ""
        return ok(mark + turn.text + this.sections(turn))
      }
      case "developer":
        if (turn.text === "") return refused("a developer message must have content for this model.")
        return ok(tokens.user + turn.text + this.sections(turn))
      case "user":
        return ok(tokens.user + turn.blocks.map(blockText).join("\n\n"))
      case "latest_reminder":
        return ok(tokens.latestReminder + turn.text)
      case "assistant":
        return ok(this.answer(index, isOpen))
      default:
        return refusedRole(turn.role)
    }
  }

  private sections({ tools, responseFormat }: V4Turn): string {
    const texts: string[] = []
    if (tools.length > 0) texts.push(v4ToolsText(tools, this.tags))
    if (readsAsTrue(responseFormat)) texts.push(responseFormatText(responseFormat))
    return texts.map((text) => `\n\n${text}`).join("")
  }

  private answer(index: number, isOpen: boolean): string {
    const { text, reasoning, calls } = this.turns[index]!
    // What answers a quick instruction is not thought about.
    const isTask = (this.turns[index - 1]?.task ?? null) !== null
    const shows = this.setting.isThinking && !isTask && (!this.setting.dropsReasoning || index > this.question)
    const thought = shows ? reasoning + tokens.thinkEnd : ""
    return thought + text + callsText(calls, this.tags) + (isOpen ? "" : tokens.eos)
  }

  /** What stands behind a turn that is answered next: a quick instruction's token, or the beginning of a reply. */
  private reply(index: number): Result<string, ConversationRefused> {
    const { role, task } = this.turns[index]!
    const next = this.turns[index + 1]
    if (next !== undefined && next.role !== "assistant" && next.role !== "latest_reminder") return ok("")
    const { isThinking, dropsReasoning } = this.setting
    if (task !== null) {
      const token = taskTokens.get(task)
      if (token === undefined) return refused(`task must be one of ${[...taskTokens.keys()].join(", ")}.`)
      if (task !== "action") return ok(token)
      return ok(tokens.assistant + (isThinking ? tokens.thinkStart : tokens.thinkEnd) + token)
    }
    if (role !== "user" && role !== "developer" && !this.systemAsks(index)) return ok("")
    const thinks = isThinking && (!dropsReasoning || index >= this.question)
    return ok(tokens.assistant + (thinks ? tokens.thinkStart : tokens.thinkEnd))
  }

  /** A system's turn is answered like a question: V4.1's behind the first, V4's where nothing else comes in between. */
  private systemAsks(index: number): boolean {
    if (this.turns[index]!.role !== "system") return false
    if (this.version === "v41") return index > 0
    const next = this.turns[index + 1]
    return next === undefined || next.role === "assistant"
  }

  private get tags() {
    return this.version === "v4" ? v4Tags : v41Tags
  }
}

function blockText({ kind, text }: V4Turn["blocks"][number]): string {
  return kind === "text" ? text : `<tool_result>${text}</tool_result>`
}
