/**
 * Chat messages → `Conversation` (CHAT 2). Shared by chat completions and /tokenize; the Responses API brings its
 * items into the same shape.
 */
import { type Static, Type } from "@sinclair/typebox"
import { parseJsonText } from "../http/json-text"
import type {
  ContentPart,
  Conversation,
  FunctionTool,
  HistoryCall,
  Json,
  Message,
  ToolChoice,
} from "../ir/conversation"
import { copyFloats } from "../ir/json-spelling"
import type { PromptMedia } from "../ir/prompt-media"
import { err, ok, type Result } from "../result"
import { lowerPart, type MediaUse, mediaFault } from "./content-part"
import type { LowerContext } from "./endpoint"
import { type InvalidRequest, invalid } from "./errors"
import { forwardedMedia } from "./media-forwarding"
import { isRecord, jsonObject, optional } from "./schema"

const part = Type.Union([Type.String(), Type.Object({ type: Type.String() })])

const historyCall = Type.Object({
  id: optional(Type.String()),
  function: Type.Object({ name: Type.String(), arguments: optional(Type.Union([Type.String(), jsonObject])) }),
})

const functionTool = Type.Object({
  type: Type.Literal("function"),
  function: Type.Object({
    name: Type.String(),
    description: optional(Type.String()),
    parameters: optional(jsonObject),
    strict: optional(Type.Boolean()),
  }),
})

/** One message; what its role allows is checked when it is lowered. */
export const chatMessage = Type.Object({
  role: Type.String(),
  content: optional(Type.Union([Type.String(), Type.Array(part)])),
  name: optional(Type.String()),
  tool_calls: optional(Type.Array(historyCall)),
  tool_call_id: optional(Type.String()),
  reasoning: optional(Type.String()),
  reasoning_content: optional(Type.String()),
  thinking: optional(Type.String()),
  refusal: optional(Type.String()),
  task: optional(Type.String(), "A quick instruction, for DeepSeek V4 and V4.1"),
  tools: optional(Type.Array(jsonObject), "Functions that a developer's message brings, for DeepSeek's formats"),
  response_format: optional(jsonObject, "A schema for replies that a system's message tells, for DeepSeek V4.1"),
})

/** Function tools in chat's nested shape. */
export const chatTools = Type.Array(functionTool)

/** How hard the model shall think; templates read it. */
export const reasoningEffort = Type.Union(
  ["none", "minimal", "low", "medium", "high", "xhigh", "max"].map((level) => Type.Literal(level)),
)

/** Fields that shape the prompt; /tokenize takes them too. */
export const conversationFields = {
  messages: Type.Array(chatMessage),
  tools: optional(chatTools),
  add_generation_prompt: optional(Type.Boolean(), "Default true"),
  continue_final_message: optional(Type.Boolean(), "Default false: the model goes on with the last message"),
  add_special_tokens: optional(Type.Boolean(), "Default false: templates write BOS themselves"),
  chat_template: optional(Type.String(), "Only with --trust-request-chat-template"),
  chat_template_kwargs: optional(jsonObject),
  media_io_kwargs: optional(jsonObject),
  mm_processor_kwargs: optional(jsonObject),
}

type ChatMessage = Static<typeof chatMessage>

/** Messages in order, with the media that they hold. */
export interface LoweredMessages {
  readonly messages: readonly Message[]
  readonly media: PromptMedia | null
}

/** Messages in order, or what is wrong with one of them; media that the model or the road does not take are. */
export function lowerMessages(
  messages: readonly ChatMessage[],
  context: Pick<LowerContext, "model" | "mediaRefusal">,
): Result<LoweredMessages, InvalidRequest> {
  const lowered: Message[] = []
  const media: MediaUse[] = []
  for (const [index, message] of messages.entries()) {
    const content = lowerContent(message, index, media)
    if (!content.ok) return content
    const reasoning = message.reasoning ?? message.reasoning_content ?? message.thinking ?? null
    const isAssistant = message.role === "assistant"
    lowered.push({
      role: message.role,
      content: content.value,
      reasoning: isAssistant ? reasoning : null,
      toolCalls: isAssistant ? (message.tool_calls ?? []).map(lowerCall) : [],
      toolCallId: message.tool_call_id ?? null,
      name: message.name ?? null,
      ...lowerExtras(message),
    })
  }
  const fault = mediaFault(media, "messages", context)
  if (fault !== null) return err(fault)
  const forwarded = forwardedMedia(media, "messages")
  return forwarded.ok ? ok({ messages: lowered, media: forwarded.value }) : forwarded
}

/** What only a few formats look at. */
function lowerExtras(message: ChatMessage): Pick<Message, "task" | "tools" | "responseFormat"> {
  const { task = null, tools = null, response_format: responseFormat = null } = message
  return {
    ...(task !== null && { task }),
    ...(tools !== null && { tools }),
    ...(responseFormat !== null && { responseFormat }),
  }
}

/** The content of a message; media parts are noted in `media`. */
function lowerContent(
  message: ChatMessage,
  index: number,
  media: MediaUse[],
): Result<Message["content"], InvalidRequest> {
  const content = message.content ?? message.refusal ?? null
  if (content === null || typeof content === "string") return ok(content)
  const place = `messages.${index}`
  const parts: ContentPart[] = []
  for (const part of content) {
    if (typeof part === "string") {
      parts.push({ type: "text", text: part })
      continue
    }
    const lowered = lowerPart(part)
    if (!lowered.ok) {
      const { error } = lowered
      if (error.kind === "malformed") return err(invalid("messages", `${place}: ${error.message}`))
      return err(invalid("type", `${place}: unknown content part type '${error.type}'.`))
    }
    const { type: kind } = lowered.value
    if (kind !== "text") media.push({ kind, type: part.type, place, role: message.role, part: lowered.value })
    parts.push(lowered.value)
  }
  return ok(parts)
}

function lowerCall(call: NonNullable<ChatMessage["tool_calls"]>[number]): HistoryCall {
  const given = call.function.arguments ?? null
  return { id: call.id ?? null, name: call.function.name, arguments: lowerArguments(given), ...argumentsText(given) }
}

/** Nesting of arguments inside a string, where the body's own limit does not look. */
const argumentsDepthMax = 256

/**
 * A call's arguments as the object that templates expect. What a model once wrote must never brick its conversation,
 * so text that is no JSON object becomes `{}` (CHAT 2).
 */
export function lowerArguments(given: Json): Json {
  if (typeof given !== "string") return given ?? {}
  const parsed = parseJsonText(given, argumentsDepthMax)
  return parsed.ok && isRecord(parsed.value) ? parsed.value : {}
}

/** Arguments that came as text, as they came: some formats show the model its own words. No arguments are no words. */
export function argumentsText(given: Json): Pick<HistoryCall, "argumentsText"> {
  if (given === null) return { argumentsText: "" }
  return typeof given === "string" ? { argumentsText: given } : {}
}

/** Function tools in chat's nested shape. */
export function lowerTools(tools: Static<typeof chatTools>): FunctionTool[] {
  return tools.map(({ function: { name, description, parameters, strict } }) => ({
    name,
    description: description ?? null,
    parameters: parameters ?? null,
    strict: strict ?? null,
  }))
}

/**
 * Template variables of a request: server defaults, then the request's, then what follows from the effort. `null` and
 * `"auto"` never override. Every model's templates are told Cohere's format, as vLLM tells them: those that do not read
 * it never see it. Source: RESPONSES 3, RENDER 4.
 */
export function lowerTemplateKwargs(
  asked: { readonly [name: string]: Json } | null,
  effort: string | null,
  context: LowerContext,
): Result<{ readonly [name: string]: Json }, InvalidRequest> {
  const { config } = context
  if (asked !== null && "chat_template" in asked && !config.trustRequestChatTemplate) return err(untrustedTemplate)
  const template = asked?.chat_template ?? null
  if (template !== null && typeof template !== "string") {
    return err(invalid("chat_template_kwargs", "chat_template must be a text."))
  }
  const kwargs = serverTemplateKwargs(config)
  addKwargs(asked ?? {}, kwargs)
  if (effort !== null) {
    kwargs.reasoning_effort = config.reasoningEffortMap[effort] ?? effort
    if (!(asked !== null && "enable_thinking" in asked)) kwargs.enable_thinking = effort !== "none"
  }
  return ok(kwargs)
}

/** The variables that every request brings unless it says otherwise. */
export function serverTemplateKwargs(
  config: Pick<LowerContext["config"], "cohereFormat" | "defaultChatTemplateKwargs">,
): { [name: string]: Json } {
  const kwargs: { [name: string]: Json } = { cohere_format: config.cohereFormat }
  addKwargs(config.defaultChatTemplateKwargs, kwargs)
  return kwargs
}

function addKwargs(source: { readonly [name: string]: Json }, kwargs: { [name: string]: Json }): void {
  for (const [name, value] of Object.entries(source)) {
    if (value === null || value === "auto") continue
    kwargs[name] = value
  }
  copyFloats(source, kwargs)
}

/**
 * The template that a request brings, once it is trusted: its own field wins; one among its template variables counts
 * where the server was started without a template. Source: vLLM, `ChatParams.get_apply_chat_template_kwargs`.
 */
export function requestTemplate(
  own: string | null,
  kwargs: { readonly [name: string]: Json } | null,
  { config }: Pick<LowerContext, "config">,
): string | null {
  const named = kwargs?.chat_template
  return own ?? (config.chatTemplate === null && typeof named === "string" ? named : null)
}

/** A template in the request is code that runs here: only under the operator's flag. */
export const untrustedTemplate = invalid(
  null,
  "The request carries a chat template, which this server does not trust; start it with --trust-request-chat-template.",
)

/** Keyword arguments for media processors: only under the operator's flag. */
export function mediaKwargsFault(
  body: { readonly media_io_kwargs?: object | null; readonly mm_processor_kwargs?: object | null },
  trusted: boolean,
): InvalidRequest | null {
  for (const name of ["media_io_kwargs", "mm_processor_kwargs"] as const) {
    const kwargs = body[name] ?? null
    if (kwargs !== null && Object.keys(kwargs).length > 0 && !trusted) {
      return invalid(name, `${name} needs --trust-request-mm-kwargs.`)
    }
  }
  return null
}

const conversationBody = Type.Object({
  ...conversationFields,
  documents: optional(Type.Array(jsonObject)),
  reasoning_effort: optional(reasoningEffort),
})

/** The fields that shape a prompt, as a checked body has them. */
export type ConversationBody = Omit<Static<typeof conversationBody>, "messages">

/** Messages and the fields that shape the prompt, together. */
export function lowerConversation(
  body: ConversationBody,
  messages: readonly Message[],
  toolChoice: ToolChoice,
  context: LowerContext,
): Result<Conversation, InvalidRequest> {
  const kwargs = lowerTemplateKwargs(body.chat_template_kwargs ?? null, body.reasoning_effort ?? null, context)
  if (!kwargs.ok) return kwargs
  const hidesTools = toolChoice.kind === "none" && context.config.excludeToolsWhenToolChoiceNone
  const continues = body.continue_final_message ?? false
  return ok({
    kind: "conversation",
    messages,
    tools: hidesTools ? [] : lowerTools(body.tools ?? []),
    toolChoice,
    addGenerationPrompt: body.add_generation_prompt ?? !continues,
    continueFinalMessage: continues,
    addSpecialTokens: body.add_special_tokens ?? false,
    documents: body.documents ?? null,
    chatTemplate: requestTemplate(body.chat_template ?? null, body.chat_template_kwargs ?? null, context),
    templateKwargs: kwargs.value,
  })
}
