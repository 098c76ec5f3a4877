import type { ContentPart, Conversation, FunctionTool, Json, Message } from "../ir/conversation"
import { copyFloats } from "../ir/json-spelling"
import type { MediaPlaceholders } from "../model/media-placeholders"
import { err, type Result } from "../result"
import { functionJson } from "./function-json"
import type { ChatTemplate, ContentFormat, TemplateRefused, TemplateVariables } from "./template"

/** What a model and the server's flags add to a conversation. */
export interface TemplateSetting {
  /** Of the model profile: `bos_token`, `eos_token` … as text. */
  readonly specialTokens: { readonly [name: string]: string }
  /** `--chat-template-content-format`; `auto` asks the template. */
  readonly contentFormat: "auto" | ContentFormat
  /** What stands for media in texts; templates that take parts print it themselves. Absent = no media. */
  readonly mediaPlaceholders?: MediaPlaceholders
}

/** Names that request kwargs cannot take: they are the conversation itself, or steer the renderer. Source: CHAT 1. */
const reservedNames: ReadonlySet<string> = new Set([
  "messages",
  "conversation",
  "tools",
  "documents",
  "add_generation_prompt",
  "continue_final_message",
  "chat_template",
  "tokenize",
])

/** Marks the end of the text to go on from. The blank tells whether the template trims: it is gone then. */
const cutMark = "\u{f8ff}sluice:continue-from-here\u{f8ff} "

/**
 * Renders a conversation. With `continueFinalMessage` everything behind the last message's text is cut, found by a
 * mark of our own, so that the same text elsewhere in the prompt does not mislead. Source: PARSERS 6.
 */
export function renderConversation(
  template: ChatTemplate,
  conversation: Conversation,
  setting: TemplateSetting,
): Result<string, TemplateRefused> {
  if (!conversation.continueFinalMessage) {
    return template.render(templateVariables(template, conversation, setting))
  }
  const marked = withCutMark(conversation.messages)
  if (marked === null) {
    return err({ kind: "template_refused", message: "continue_final_message needs a last message with text" })
  }
  const rendered = template.render(templateVariables(template, { ...conversation, messages: marked }, setting))
  if (!rendered.ok) return rendered
  const untrimmed = rendered.value.lastIndexOf(cutMark)
  if (untrimmed >= 0) return { ok: true, value: rendered.value.slice(0, untrimmed) }
  const trimmed = rendered.value.lastIndexOf(cutMark.trimEnd())
  if (trimmed >= 0) return { ok: true, value: rendered.value.slice(0, trimmed).trimEnd() }
  return err({ kind: "template_refused", message: "the chat template does not render the last message's text" })
}

/**
 * The variables a template sees. Kwargs that it never reads are dropped, reserved names cannot be taken; `tools` and
 * `documents` are None when there are none. Source: CHAT 1 and 2, RENDER 4.
 */
export function templateVariables(
  template: ChatTemplate,
  conversation: Conversation,
  setting: TemplateSetting,
): TemplateVariables {
  const variables: { [name: string]: Json } = { ...setting.specialTokens }
  for (const [name, value] of Object.entries(conversation.templateKwargs)) {
    if (!reservedNames.has(name) && template.reads(name)) variables[name] = value
  }
  copyFloats(conversation.templateKwargs, variables)
  const format = setting.contentFormat === "auto" ? template.contentFormat : setting.contentFormat
  const messages = template.knowsDeveloper ? conversation.messages : withoutDeveloper(conversation.messages)
  const media = new MediaTexts(setting.mediaPlaceholders ?? new Map())
  variables.messages = messages.map((message) => messageVariable(message, format, media))
  variables.tools = conversation.tools.length === 0 ? null : conversation.tools.map(toolVariable)
  variables.documents = conversation.documents === null ? null : [...conversation.documents]
  variables.add_generation_prompt = conversation.addGenerationPrompt && !conversation.continueFinalMessage
  return variables
}

/**
 * Developer messages become system messages, and all system texts one message at the front, when the template does not
 * know the role. One alone at the front keeps its content, and a conversation without developer messages stays as it is.
 * Source: RESPONSES, Decided.
 */
function withoutDeveloper(messages: readonly Message[]): readonly Message[] {
  if (!messages.some((message) => message.role === "developer")) return messages
  const isInstruction = ({ role }: Message): boolean => role === "developer" || role === "system"
  if (messages.every((message, i) => i === 0 || !isInstruction(message))) {
    return messages.map((message) => (isInstruction(message) ? { ...message, role: "system" } : message))
  }
  const texts: string[] = []
  const others: Message[] = []
  for (const message of messages) {
    if (message.role !== "developer" && message.role !== "system") others.push(message)
    else texts.push(typeof message.content === "string" ? message.content : textOf(message.content ?? []))
  }
  const merged: Message = {
    role: "system",
    content: texts.filter((text) => text !== "").join("\n\n"),
    reasoning: null,
    toolCalls: [],
    toolCallId: null,
    name: null,
  }
  return [merged, ...others]
}

/** A message as templates know it: keys that have no value are absent, since templates test `is defined`. */
function messageVariable(message: Message, format: ContentFormat, media: MediaTexts): Json {
  const made: { [key: string]: Json } = { role: message.role, content: contentVariable(message.content, format, media) }
  if (message.reasoning !== null) {
    made.reasoning = message.reasoning
    made.reasoning_content = message.reasoning
  }
  if (message.toolCalls.length > 0) {
    made.tool_calls = message.toolCalls.map((call) => ({
      ...(call.id === null ? {} : { id: call.id }),
      type: "function",
      function: { name: call.name, arguments: call.arguments },
    }))
  }
  if (message.toolCallId !== null) made.tool_call_id = message.toolCallId
  if (message.name !== null) made.name = message.name
  return made
}

/**
 * A text in the format the template wants: parts joined by line breaks with media in front, or a text wrapped as one
 * part. A missing content is an empty one: templates concatenate it, and the reference does not show them None.
 */
function contentVariable(content: Message["content"], format: ContentFormat, media: MediaTexts): Json {
  if (content === null) return format === "string" ? "" : []
  if (typeof content === "string") return format === "string" ? content : [{ type: "text", text: content }]
  if (format === "string") return media.before(textOf(content), content)
  return content.map((part): Json => (part.type === "text" ? { type: "text", text: part.text } : { type: part.type }))
}

function textOf(parts: readonly ContentPart[]): string {
  const texts: string[] = []
  for (const part of parts) if (part.type === "text") texts.push(part.text)
  return texts.join("\n")
}

/**
 * Placeholders of media in a template of texts. Those that the text already spells are taken as the client's own places
 * for them (unless they were guarded: prompt/guarded-text); the others come first, a line each, kind by kind, numbered
 * through the conversation. Source: vLLM's chat utilities.
 */
class MediaTexts {
  private readonly placeholders: MediaPlaceholders
  private readonly counts = new Map<string, number>()

  constructor(placeholders: MediaPlaceholders) {
    this.placeholders = placeholders
  }

  /** The text behind the placeholders of the media among `parts`. */
  before(text: string, parts: readonly ContentPart[]): string {
    const wanted = new Map<string, number>()
    for (const [kind, items] of Map.groupBy(parts, ({ type }) => type)) {
      const spelled = kind === "text" ? null : (this.placeholders.get(kind)?.text ?? null)
      if (spelled === null) continue
      const before = this.counts.get(kind) ?? 0
      this.counts.set(kind, before + items.length)
      for (let i = 1; i <= items.length; i++) {
        const placeholder = spelled.replace("{i}", String(before + i))
        wanted.set(placeholder, (wanted.get(placeholder) ?? 0) + 1)
      }
    }
    const lines: string[] = []
    for (const [placeholder, count] of wanted) {
      const missing = count - (text.split(placeholder).length - 1)
      for (let i = 0; i < missing; i++) lines.push(placeholder)
    }
    if (text !== "" || lines.length === 0) lines.push(text)
    return lines.join("\n")
  }
}

function toolVariable(tool: FunctionTool): Json {
  return { type: "function", function: functionJson(tool) }
}

/** The messages with the mark behind the last one's text; null when it has none. */
function withCutMark(messages: readonly Message[]): readonly Message[] | null {
  const last = messages.at(-1)
  if (last === undefined || last.content === null) return null
  const before = messages.slice(0, -1)
  if (typeof last.content === "string") return [...before, { ...last, content: last.content + cutMark }]
  const at = last.content.findLastIndex((part) => part.type === "text")
  const part = last.content[at]
  if (part === undefined || part.type !== "text") return null
  return [...before, { ...last, content: last.content.with(at, { type: "text", text: part.text + cutMark }) }]
}
