import type { FunctionTool, HistoryCall } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import type { EncodeFailure } from "../../tokenizer/tokenizer"
import { templateValue } from "../jinja/json-value"
import { Dictionary, type Value } from "../jinja/value"
import { PromptWriter } from "../prompt-writer"
import { pythonJsonText, readPythonJson } from "../python-json"
import {
  type ConversationRefused,
  type EncodeBounds,
  type RenderedPrompt,
  refused,
  type TextTooLong,
} from "../renderer"
import { isFilled, type MistralCall, type MistralChunk, type MistralContent, type MistralMessage } from "./message"
import type { NormalConversation } from "./normal-form"
import type { MistralVersion } from "./setting"
import type { Control, MistralVocabulary } from "./vocabulary"

/** What a prompt says beside its messages. */
export interface PromptExtras {
  readonly tools: readonly FunctionTool[]
  /** From v15 on; null = nothing. */
  readonly effort: string | null
}

type Refusal = Result<never, ConversationRefused> | null

/**
 * Writes a conversation as ids. Only the frame is made of control tokens, and each text between them is encoded by
 * itself, as the model saw it in training: the pieces' ids are not those of the joined text. Source: mistral-common
 * 1.13.1, `instruct.py`.
 */
export class MistralWriter {
  private readonly vocabulary: MistralVocabulary
  private readonly version: MistralVersion
  private readonly writer: PromptWriter

  constructor(vocabulary: MistralVocabulary, version: MistralVersion, bounds: EncodeBounds) {
    this.vocabulary = vocabulary
    this.version = version
    this.writer = new PromptWriter(vocabulary.encodeSegments, bounds)
  }

  /** The whole prompt, or why there is none. */
  conversation(
    { messages, systemPrompt }: NormalConversation,
    extras: PromptExtras,
  ): Result<RenderedPrompt, EncodeFailure | TextTooLong | ConversationRefused> {
    this.control("<s>")
    const isUser = ({ role }: MistralMessage): boolean => role === "user"
    const firstUser = messages.findIndex(isUser)
    const lastUser = messages.findLastIndex(isUser)
    // Tools stand before the turn that they are offered for; later models keep them where they were first.
    const extrasAt = this.version < 13 ? lastUser : firstUser
    for (const [index, message] of messages.entries()) {
      const fault =
        (index === extrasAt ? this.extras(extras) : null) ??
        this.message(message, index === lastUser ? systemPrompt : null)
      if (fault !== null) return fault
    }
    return this.writer.finish()
  }

  private extras({ tools, effort }: PromptExtras): Refusal {
    if (tools.length > 0) {
      this.control("[AVAILABLE_TOOLS]")
      const fault = this.json(tools.map(toolValue))
      if (fault !== null) return fault
      this.control("[/AVAILABLE_TOOLS]")
    }
    if (effort === null) return null
    this.control("[MODEL_SETTINGS]")
    const fault = this.json(dictionary({ reasoning_effort: effort }))
    this.control("[/MODEL_SETTINGS]")
    return fault
  }

  private user(content: MistralContent, systemPrompt: string | null): Refusal {
    this.control("[INST]")
    // Where the system has no messages of its own, it speaks at the beginning of the last turn.
    const before = systemPrompt === null || systemPrompt === "" ? "" : `${systemPrompt}\n\n`
    if (typeof content !== "string") this.writer.plain(before)
    const fault = this.content(typeof content === "string" ? before + content : imageFirst(content))
    this.control("[/INST]")
    return fault
  }

  private message(message: MistralMessage, systemPrompt: string | null): Refusal {
    switch (message.role) {
      case "user":
        return this.user(message.content, systemPrompt)
      case "system": {
        this.control("[SYSTEM_PROMPT]")
        const fault = this.content(message.content)
        this.control("[/SYSTEM_PROMPT]")
        return fault
      }
      case "tool":
        return this.toolResult(message.content, message.callId)
      case "assistant":
        return this.assistant(message.content, message.calls, message.isOpen)
    }
  }

  private assistant(content: MistralContent | null, calls: readonly MistralCall[], isOpen: boolean): Refusal {
    const isSaid = isFilled(content)
    if (!isSaid && calls.length === 0) return refused("an assistant message has neither content nor tool calls")
    if (isSaid && calls.length > 0 && this.version < 7) {
      return refused(
        "assistant messages in a row have both content and tool calls, which models of version v3 do not take",
      )
    }
    if (content !== null) {
      const fault = this.content(typeof content === "string" ? content.replace(/ +$/, "") : content)
      if (fault !== null) return fault
    }
    const fault = this.calls(calls)
    if (!isOpen) this.control("</s>")
    return fault
  }

  private calls(calls: readonly MistralCall[]): Refusal {
    if (calls.length === 0) return null
    if (this.version < 11) {
      this.control("[TOOL_CALLS]")
      const prepared: Value[] = []
      for (const { id, call } of calls) {
        const given = readArguments(call)
        if (!given.ok) return given
        const named = dictionary({ name: call.name, arguments: given.value })
        // Source: `_prepare_function_call`, which takes the word for no id at all.
        prepared.push(id === "" || id === "null" ? named : named.set("id", id))
      }
      return this.json(prepared)
    }
    for (const { id, call } of calls) {
      this.control("[TOOL_CALLS]")
      this.writer.plain(call.name)
      if (this.version < 13) {
        this.control("[CALL_ID]")
        this.writer.plain(id)
      }
      this.control("[ARGS]")
      const given = readArguments(call)
      if (!given.ok) return given
      const fault = this.json(given.value)
      if (fault !== null) return fault
    }
    return null
  }

  private toolResult(content: MistralContent, callId: string): Refusal {
    this.control("[TOOL_RESULTS]")
    if (this.version < 7) {
      const said = readText(typeof content === "string" ? content : "", "the content of a tool message")
      if (!said.ok) return said
      const fault = this.json(dictionary({ content: said.value, call_id: callId }))
      if (fault !== null) return fault
    } else {
      if (this.version < 13) {
        this.writer.plain(callId)
        this.control("[TOOL_CONTENT]")
      }
      const fault = this.content(content)
      if (fault !== null) return fault
    }
    this.control("[/TOOL_RESULTS]")
    return null
  }

  private content(content: MistralContent): Refusal {
    if (typeof content === "string") {
      this.writer.plain(content)
      return null
    }
    for (const chunk of content) {
      if (chunk.type === "text") {
        this.writer.plain(chunk.text)
        continue
      }
      if (chunk.type === "image") {
        if (!this.vocabulary.sees) return refused("the model's vocabulary has no [IMG] for an image's place")
        this.control("[IMG]")
        continue
      }
      if (!this.vocabulary.thinks) return refused("the model's vocabulary has no [THINK] and [/THINK] for its thinking")
      this.control("[THINK]")
      this.writer.plain(chunk.thinking)
      if (chunk.isClosed) this.control("[/THINK]")
    }
    return null
  }

  private json(value: Value): Refusal {
    const text = pythonJsonText(value)
    if (!text.ok) return refused(`a JSON value of the conversation: ${text.error.message}`)
    this.writer.plain(text.value)
    return null
  }

  private control(spelling: Control): void {
    const id = this.vocabulary.ids.get(spelling)
    if (id === undefined) throw new Error(`version v${this.version} writes no ${spelling}`)
    this.writer.special(id, spelling)
  }
}

/** One image behind text comes before it. Source: `_maybe_put_image_first`. */
function imageFirst(content: readonly MistralChunk[]): readonly MistralChunk[] {
  const last = content.at(-1)
  const isBehind = last?.type === "image" && content.slice(0, -1).every(({ type }) => type === "text")
  return isBehind ? [last, ...content.slice(0, -1)] : content
}

/** A tool as the model knows it: `strict` is not shown. */
function toolValue({ name, description, parameters }: FunctionTool): Value {
  const described = { name, description: description ?? "", parameters: templateValue(parameters ?? {}) }
  return dictionary({ type: "function", function: dictionary(described) })
}

/** The client's own text, if it sent one. */
function readArguments({ name, arguments: given, argumentsText }: HistoryCall): Result<Value, ConversationRefused> {
  if (argumentsText === undefined) return ok(templateValue(given))
  return readText(argumentsText, `the arguments of a call of ${name}`)
}

/** JSON as a value, and anything else as a text; no text is an empty object. `what` it is, for a refusal. */
function readText(text: string, what: string): Result<Value, ConversationRefused> {
  if (text === "") return ok(new Dictionary())
  const read = readPythonJson(text)
  if (read.ok) return read
  return read.error.kind === "not_json" ? ok(text) : refused(`${what}: ${read.error.message}`)
}

function dictionary(members: { readonly [key: string]: Value }): Dictionary {
  const made = new Dictionary()
  for (const [key, value] of Object.entries(members)) made.set(key, value)
  return made
}
