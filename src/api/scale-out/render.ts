/**
 * POST …/render: the prompt's token ids and the effective sampling of a generation request, as the GenerateRequest that
 * an engine elsewhere takes (RENDER 3 and 5). Nothing is generated, and no engine is touched.
 */
import { type Static, type TObject, Type } from "@sinclair/typebox"
import type { Conversation, Json, PromptInput } from "../../ir/conversation"
import { jsonText } from "../../ir/exact-json"
import { generateBody } from "../../ir/generate-body"
import type { HeldTexts } from "../../ir/held-texts"
import { chatEndpoint } from "../chat/endpoint"
import type { ChatAsk } from "../chat/lower"
import { type ChatBody, chatSchema } from "../chat/schema"
import { completionEndpoint } from "../completions/endpoint"
import { completionSchema } from "../completions/schema"
import type { Endpoint, Exchange, Lowered } from "../endpoint"
import { type ApiError, errorResponse } from "../errors"
import { makeExchange, samplingOf } from "../exchange"
import { renderedMedia } from "../media-places"
import { namedAdapter } from "../models"
import type { RequestEntry } from "../request-entry"
import { responseEndpoint } from "../responses/endpoint"
import { type ResponseBody, responseSchema } from "../responses/schema"
import { type PromptRoom, type RenderingRoom, renderContext } from "../room"
import type { Route } from "../route"
import { BodyCheck, optional } from "../schema"
import { readBody } from "../serve"

/** How one API is rendered. */
interface Rendering<Body, Ask> {
  readonly endpoint: Endpoint<Body, Ask>
  /** The endpoint's schema with what only render reads. */
  readonly check: BodyCheck<TObject & { readonly static: Body }>
  /** Refused before anything is rendered, or null. */
  fault(body: Body): ApiError | null
  /** The body as the endpoint would lower it. */
  asked(body: Body): Body
  /** Whether its messages may hold media. */
  readonly takesMedia: boolean
  /** Whether the answer is a list, one entry a prompt. */
  readonly isList: boolean
  /** Fields of the answer that depend on the API. */
  fields(body: Body, lowered: Lowered<Ask>, exchange: Exchange<Ask>, room: PromptRoom): RenderedFields
}

interface RenderedFields {
  readonly reasoningEnded: boolean | null
  readonly wantsOffsets: boolean
  readonly returnTokenIds: boolean | null
  readonly streamOptions: Json
  readonly priority: number
  readonly parseContext: Json
}

const renderOnly = {
  return_token_offsets: optional(Type.Boolean(), "Where each token came from, in characters of the rendered text"),
}
const chatRenderSchema = Type.Object({ ...chatSchema.properties, ...renderOnly })
const completionRenderSchema = Type.Object({ ...completionSchema.properties, ...renderOnly })

const renderChat: Rendering<Static<typeof chatRenderSchema>, ChatAsk> = {
  endpoint: chatEndpoint,
  check: new BodyCheck(chatRenderSchema),
  fault: () => null,
  asked: (body) => body,
  takesMedia: true,
  isList: false,
  fields: (body, lowered, exchange, room) => ({
    reasoningEnded: chatReasoningEnded(lowered, exchange, room),
    wantsOffsets: body.return_token_offsets ?? false,
    returnTokenIds: body.return_token_ids ?? null,
    streamOptions: body.stream === true ? (body.stream_options ?? null) : null,
    priority: body.priority ?? 0,
    parseContext: chatParseContext(body, lowered, room),
  }),
}

const renderCompletion: Rendering<Static<typeof completionRenderSchema>, unknown> = {
  endpoint: completionEndpoint as Endpoint<Static<typeof completionRenderSchema>, unknown>, // its Ask stays inside
  check: new BodyCheck(completionRenderSchema),
  fault: () => null,
  asked: (body) => body,
  takesMedia: false,
  isList: true,
  fields: (body) => ({
    reasoningEnded: null,
    wantsOffsets: body.return_token_offsets ?? false,
    returnTokenIds: body.return_token_ids ?? null,
    streamOptions: body.stream === true ? (body.stream_options ?? null) : null,
    priority: body.priority ?? 0,
    parseContext: null,
  }),
}

const renderResponse: Rendering<ResponseBody, unknown> = {
  endpoint: responseEndpoint as Endpoint<ResponseBody, unknown>, // its Ask stays inside
  check: new BodyCheck(responseSchema),
  fault: (body) => (body.previous_response_id == null ? null : { kind: "previous_response_given" }),
  // Where a reply is kept does not change its prompt (RENDER 3).
  asked: (body) => ({ ...body, background: null }),
  takesMedia: true,
  isList: false,
  fields: (body, _lowered, exchange) => ({
    reasoningEnded: exchange.reasoningEnded,
    wantsOffsets: false,
    returnTokenIds: null,
    streamOptions: null,
    priority: body.priority ?? 0,
    parseContext: null,
  }),
}

/** The render routes of the APIs that there are. */
export function renderRoutes(room: RenderingRoom): Route[] {
  return [renderRoute(renderChat, room), renderRoute(renderCompletion, room), renderRoute(renderResponse, room)]
}

function renderRoute<Body, Ask>(rendering: Rendering<Body, Ask>, room: RenderingRoom): Route {
  const { endpoint, check } = rendering
  const passesOn = rendering.takesMedia ? renderedMedia(room) : null
  return {
    method: "POST",
    path: `${endpoint.path}/render`,
    summary: `${endpoint.summary}: the prompt's token ids, for an engine elsewhere`,
    body: check.schema,
    statuses: { 403: "Scale-out is off", 501: "The model cannot be rendered" },
    handle: async (request, headers, entry) => {
      const body = await readBody(request, check, room, passesOn, entry)
      if (!body.ok) return errorResponse(body.error, headers)
      const rendered = render(rendering, body.value.body, request.headers, room)
      if ("error" in rendered) return errorResponse(rendered.error, headers)
      entry.id = rendered.id
      const { held } = body.value
      const content = held === null ? rendered.json : heldReply(held, rendered.json, request.signal, entry)
      return new Response(content, { headers: { ...headers, "content-type": "application/json;charset=utf-8" } })
    },
  }
}

/** A reply with the request's own bytes in it: those are held until it has left, or its client. */
function heldReply(
  held: HeldTexts,
  json: string,
  signal: AbortSignal,
  entry: RequestEntry,
): ReadableStream<Uint8Array> {
  let isOver = false
  const end = (): void => {
    if (!isOver) entry.end(200)
    isOver = true
  }
  entry.deferred = true
  // A client that left before the stream was ever looked at cancels nothing.
  if (signal.aborted) end()
  signal.addEventListener("abort", end, { once: true })
  return held.body(json, end)
}

type Rendered = { readonly id: string; readonly json: string } | { readonly error: ApiError }

function render<Body, Ask>(
  rendering: Rendering<Body, Ask>,
  given: Body,
  headers: Headers,
  room: RenderingRoom,
): Rendered {
  const context = renderContext(room, headers)
  const fault = rendering.fault(given)
  if (fault !== null) return { error: fault }
  const body = rendering.asked(given)
  const lowered = rendering.endpoint.lower(body, context)
  if (!lowered.ok) return { error: lowered.error }
  const exchange = makeExchange(lowered.value, room, context, namedAdapter(body, room.facts))
  if (!exchange.ok) return { error: exchange.error }

  const fields = rendering.fields(body, lowered.value, exchange.value, room)
  const { cacheSalt, stream, truncation, prompts, choicesPerPrompt } = lowered.value
  const model: unknown = Reflect.get(Object(given), "model")
  const several = exchange.value.prompts.length > 1
  const requests = exchange.value.prompts.map((prepared, index) => {
    const input = prompts[index]!
    const core = generateBody({
      promptTokenIds: prepared.tokenIds,
      sampling: samplingOf(lowered.value, exchange.value, index, context),
      priority: fields.priority,
      cacheSalt,
      reasoningEnded: fields.reasoningEnded,
      media: exchange.value.media,
      isOpenEnded: exchange.value.isOpenEnded,
    })
    return {
      request_id: several ? `${lowered.value.id}-${index}` : lowered.value.id,
      token_ids: core.token_ids,
      token_offsets:
        fields.wantsOffsets && exchange.value.media === null
          ? room.tokenOffsets(prepared, addsSpecialTokens(input), truncation?.side ?? "left")
          : null,
      features: null,
      content_parts: core.content_parts ?? null,
      sampling_params: {
        ...(choicesPerPrompt > 1 && { n: choicesPerPrompt }),
        ...core.sampling_params,
        // vLLM's words for: each step's tokens (1), or everything at the end (2).
        output_kind: stream ? 1 : 2,
      },
      model: typeof model === "string" ? model : null,
      reasoning_ended: core.reasoning_ended,
      reasoning_parser_kwargs:
        input.kind === "conversation" && room.facts.parsesReasoning
          ? { chat_template_kwargs: effectiveKwargs(input) }
          : null,
      return_token_ids: fields.returnTokenIds,
      output_mode: "tokens",
      parse_context: fields.parseContext,
      stream,
      stream_options: fields.streamOptions,
      cache_salt: core.cache_salt,
      priority: core.priority,
      kv_transfer_params: core.kv_transfer_params,
      ec_transfer_params: core.ec_transfer_params,
    }
  })
  return { id: lowered.value.id, json: jsonText(rendering.isList ? requests : requests[0]) }
}

/** Whether the prompt has the reasoning behind it: what the constraint says, else what the parser sees in it. */
function chatReasoningEnded(
  lowered: Lowered<unknown>,
  exchange: Exchange<unknown>,
  { chatParser }: PromptRoom,
): boolean | null {
  if (exchange.reasoningEnded !== null) return exchange.reasoningEnded
  if (chatParser.reasoningTag === null) return null
  // Reasoning that nobody reads need not be told apart, unless a grammar waits for its end.
  if (!lowered.includeReasoning && exchange.sampling.structuredOutputs === null) return true
  return chatParser.reasoningTag(exchange.prompts[0]!.tokenIds).ended
}

/** What the template was given: defaults, the request's own, and what was derived. */
function effectiveKwargs(conversation: Conversation): Json {
  return {
    ...conversation.templateKwargs,
    add_generation_prompt: conversation.addGenerationPrompt,
    continue_final_message: conversation.continueFinalMessage,
    ...(conversation.documents !== null && { documents: [...conversation.documents] }),
  }
}

/**
 * What whoever generates needs to read the reply as this request would (`output_mode: derender`). Harmony's reader goes
 * by the messages alone, so no template's variables are told for it (RENDER 5).
 */
function chatParseContext(body: ChatBody, lowered: Lowered<ChatAsk>, { facts }: PromptRoom): Json {
  const [conversation] = lowered.prompts
  const calls = body.messages.reduce((count, message) => count + (message.tool_calls?.length ?? 0), 0)
  return {
    tools: (body.tools ?? null) as Json, // a part of a parsed body
    tool_choice: body.tool_choice ?? null,
    parallel_tool_calls: lowered.parallelToolCalls,
    include_reasoning: lowered.includeReasoning,
    chat_template_kwargs:
      conversation?.kind === "conversation" && !facts.writesHarmony ? effectiveKwargs(conversation) : {},
    history_tool_call_cnt: calls,
  }
}

function addsSpecialTokens(input: PromptInput): boolean {
  return input.kind !== "token_ids" && input.addSpecialTokens
}
