/** Input items → messages (RESPONSES 2). */
import type { ContentPart, HistoryCall, Json, Message } from "../../ir/conversation"
import type { PromptMedia } from "../../ir/prompt-media"
import { err, ok, type Result } from "../../result"
import { lowerPart, type MediaUse, mediaFault } from "../content-part"
import { argumentsText, lowerArguments } from "../conversation"
import type { LowerContext } from "../endpoint"
import { type InvalidRequest, invalid } from "../errors"
import { forwardedMedia } from "../media-forwarding"
import { isRecord } from "../schema"
import type { ResponseBody } from "./schema"
import { customArguments, flatToolName, unless } from "./tools"

/** The messages, and whether the model goes on with the last one. */
export interface LoweredInput {
  readonly messages: readonly Message[]
  readonly media: PromptMedia | null
  readonly continueFinalMessage: boolean
}

type Item = { readonly [key: string]: Json }
type Fault = Result<never, InvalidRequest>

function fault(index: number, message: string, param = "input"): Fault {
  return err(invalid(param, `input[${index}]: ${message}`))
}

/** `input` and `instructions` as messages. */
export function lowerInput(
  input: ResponseBody["input"],
  instructions: string | null,
  context: LowerContext,
): Result<LoweredInput, InvalidRequest> {
  const messages: Message[] = []
  if (instructions !== null && instructions !== "") messages.push(plainMessage("system", instructions))
  if (typeof input === "string") {
    messages.push(plainMessage("user", input))
    return ok({ messages, media: null, continueFinalMessage: false })
  }
  const items = new ItemReader(messages, context)
  for (const [index, item] of input.entries()) {
    if (!isRecord(item)) return fault(index, "an item must be an object.")
    const refused = items.read(item, index)
    if (refused !== null) return refused
  }
  items.flush()
  const refused = mediaFault(items.media, "input", context)
  if (refused !== null) return err(refused)
  const media = forwardedMedia(items.media, "input")
  if (!media.ok) return media
  if (messages.length === 0) return err(invalid("input", "input holds nothing that makes a message."))

  const last = input.at(-1)
  const continueFinalMessage = isRecord(last) && isUnfinished(last)
  if (continueFinalMessage && !hasText(messages.at(-1))) {
    return err(invalid("input", "the last item is unfinished but has no assistant text to go on from."))
  }
  return ok({ messages, media: media.value, continueFinalMessage })
}

/** An assistant turn or its reasoning that the client marks as cut: generation goes on with it. */
function isUnfinished(item: Item): boolean {
  const isAssistant = item.type === "reasoning" || (isMessage(item) && item.role === "assistant")
  return isAssistant && (item.status === "in_progress" || item.status === "incomplete")
}

function isMessage(item: Item): boolean {
  return item.type === "message" || ((item.type === undefined || item.type === null) && typeof item.role === "string")
}

function hasText(message: Message | undefined): boolean {
  if (message === undefined || message.role !== "assistant" || message.content === null) return false
  if (typeof message.content === "string") return message.content !== ""
  return message.content.some((part) => part.type !== "text" || part.text !== "")
}

function plainMessage(role: string, content: Message["content"]): Message {
  return { role, content, reasoning: null, toolCalls: [], toolCallId: null, name: null }
}

/** An assistant turn that is being put together from several items. */
interface Pending {
  content: Message["content"]
  reasoning: string | null
  toolCalls: HistoryCall[]
}

/** Walks items from left to right; consecutive assistant items become one message. */
class ItemReader {
  /** Media parts, in order. */
  readonly media: MediaUse[] = []
  private readonly messages: Message[]
  private readonly takesCustomCalls: boolean
  private readonly joinsReasoning: boolean
  private pending: Pending | null = null

  constructor(messages: Message[], { config, model }: LowerContext) {
    this.messages = messages
    this.takesCustomCalls = config.responsesExtensions.includes("custom_tools")
    this.joinsReasoning = model.writesHarmony
  }

  /** Gives a fault, or null when the item was taken. */
  read(item: Item, index: number): Fault | null {
    if (isMessage(item)) return this.message(item, index)
    switch (item.type) {
      case "reasoning":
        return this.reasoning(item, index)
      case "function_call":
        return this.call(item, index)
      case "function_call_output":
        return this.output(item, index)
      case "custom_tool_call":
        return this.takesCustomCalls ? this.customCall(item, index) : unsupported(item.type, index)
      case "custom_tool_call_output":
        return this.takesCustomCalls ? this.output(item, index) : unsupported(item.type, index)
      case "item_reference":
        return fault(
          index,
          "item references need stored responses, which this server has none of.",
          "previous_response_id",
        )
      case undefined:
      case null:
        return fault(index, "an item needs a type or a role.")
      default:
        return unsupported(String(item.type), index)
    }
  }

  flush(): void {
    if (this.pending === null) return
    this.messages.push({ ...plainMessage("assistant", null), ...this.pending })
    this.pending = null
  }

  private assistant(): Pending {
    this.pending ??= { content: null, reasoning: null, toolCalls: [] }
    return this.pending
  }

  private message(item: Item, index: number): Fault | null {
    const { role } = item
    if (typeof role !== "string") return fault(index, "a message needs a role.")
    if (role !== "assistant" && role !== "user" && role !== "system" && role !== "developer") {
      return fault(index, `messages of role '${role.slice(0, 64)}' are not supported.`)
    }
    const content = this.parts(item.content ?? null, role, index)
    if (!content.ok) return content
    if (role !== "assistant") {
      this.flush()
      this.messages.push(plainMessage(role, content.value))
      return null
    }
    if (this.pending !== null && this.pending.content !== null) this.flush()
    this.assistant().content = content.value
    return null
  }

  private reasoning(item: Item, index: number): Fault | null {
    const encrypted = item.encrypted_content ?? null
    if (encrypted !== null && encrypted !== "") return fault(index, "encrypted reasoning is not supported.")
    const content = reasoningTexts(item.content ?? null)
    const summary = reasoningTexts(item.summary ?? null)
    if (content === null || summary === null) return fault(index, "reasoning must be a list of parts with text.")
    // Harmony shows the model all of its analysis, chat templates have room for one text (RESPONSES 2).
    const text = (this.joinsReasoning ? content.join("\n") : content[0]) || summary[0] || ""
    if (text === "") return null
    if (this.pending !== null && this.pending.reasoning !== null) this.flush()
    this.assistant().reasoning = text
    return null
  }

  private call(item: Item, index: number): Fault | null {
    const { call_id, name } = item
    if (typeof name !== "string" || name === "") return fault(index, "a function_call needs a name.")
    if (typeof call_id !== "string" || call_id === "") return fault(index, "a function_call needs a call_id.")
    const given = item.arguments ?? null
    if (given !== null && typeof given !== "string" && !isRecord(given)) {
      return fault(index, "the arguments of a function_call must be JSON text.")
    }
    const flatName = flatToolName(item.namespace, name)
    const call = { id: call_id, name: flatName, arguments: lowerArguments(given), ...argumentsText(given) }
    this.assistant().toolCalls.push(call)
    return null
  }

  private customCall(item: Item, index: number): Fault | null {
    const { call_id, name, input } = item
    if (typeof name !== "string" || name === "") return fault(index, "a custom_tool_call needs a name.")
    if (typeof call_id !== "string" || call_id === "") return fault(index, "a custom_tool_call needs a call_id.")
    if (typeof input !== "string") return fault(index, "the input of a custom_tool_call must be text.")
    const flatName = flatToolName(item.namespace, name)
    this.assistant().toolCalls.push({ id: call_id, name: flatName, arguments: customArguments(input) })
    return null
  }

  private output(item: Item, index: number): Fault | null {
    const { call_id, output } = item
    const type = String(item.type)
    if (typeof call_id !== "string" || call_id === "") return fault(index, `a ${type} needs a call_id.`)
    if (typeof output !== "string" && !Array.isArray(output)) {
      return fault(index, "the output must be text, or a list of text parts.")
    }
    const content = this.parts(output, "tool", index, "output")
    if (!content.ok) return content
    this.flush()
    this.messages.push({ ...plainMessage("tool", joinTexts(content.value)), toolCallId: call_id })
    return null
  }

  /** Content as text or parts; an only text part is its text. Media are noted. */
  private parts(
    content: Json,
    role: string,
    index: number,
    field: "content" | "output" = "content",
  ): Result<Message["content"], InvalidRequest> {
    if (content === null || typeof content === "string") return ok(content)
    if (!Array.isArray(content)) return fault(index, `${field} must be text or a list of parts.`)
    const parts: ContentPart[] = []
    for (const [at, part] of content.entries()) {
      if (typeof part === "string") {
        parts.push({ type: "text", text: part })
        continue
      }
      if (!isRecord(part) || typeof part.type !== "string") return fault(index, "a content part needs a type.")
      const { type } = part
      if (!(acceptedTypes.includes(type) || (type === "refusal" && role === "assistant"))) {
        return fault(index, `content parts of type '${type.slice(0, 64)}' are not supported.`)
      }
      const lowered = lowerPart({ ...part, type })
      if (!lowered.ok) {
        const { error } = lowered
        const message = error.kind === "malformed" ? error.message : `unknown content part type '${error.type}'.`
        return fault(index, message)
      }
      const { type: kind } = lowered.value
      const place = `input[${index}].${field}[${at}]`
      if (kind !== "text") this.media.push({ kind, type, place, role, part: lowered.value })
      parts.push(lowered.value)
    }
    if (parts.length === 0) return ok(null)
    const [only] = parts
    return ok(parts.length === 1 && only?.type === "text" ? only.text : parts)
  }
}

/** Types of parts that items may hold; refusals only where the assistant speaks. */
const acceptedTypes = ["input_text", "output_text", "text", "input_image", "input_audio", "input_file"]

function unsupported(type: string, index: number): Fault {
  const isCustom = type === "custom_tool_call" || type === "custom_tool_call_output"
  return fault(
    index,
    `items of type '${type.slice(0, 64)}' are not supported${isCustom ? unless("custom_tools") : ""}.`,
  )
}

/** Texts of an output join without anything between them (RESPONSES, Decided); with media among them they stay parts. */
function joinTexts(content: Message["content"]): Message["content"] {
  if (content === null) return ""
  if (typeof content === "string") return content
  let text = ""
  for (const part of content) {
    if (part.type !== "text") return content
    text += part.text
  }
  return text
}

/** The texts of a reasoning item's parts; null when they are none. */
function reasoningTexts(parts: Json): string[] | null {
  if (parts === null) return []
  if (!Array.isArray(parts)) return null
  const texts: string[] = []
  for (const part of parts) {
    if (!isRecord(part) || typeof part.text !== "string") return null
    texts.push(part.text)
  }
  return texts
}
