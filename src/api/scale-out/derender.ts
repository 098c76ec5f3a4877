/**
 * POST …/derender: what an engine elsewhere generated, as the answer that the API would have given (RENDER 9). The
 * request is lowered as for generation, its ids go up the same road (replay.ts), and the endpoint's own views present
 * them; so render → generate → derender says what the direct answer says.
 */
import { type TSchema, Type } from "@sinclair/typebox"
import type { Json } from "../../ir/conversation"
import { jsonText } from "../../ir/exact-json"
import { ok } from "../../result"
import { chatEndpoint } from "../chat/endpoint"
import type { ChatAsk } from "../chat/lower"
import type { ChatBody } from "../chat/schema"
import { completionEndpoint } from "../completions/endpoint"
import type { CompletionAsk } from "../completions/lower"
import type { CompletionBody } from "../completions/schema"
import type { Exchange } from "../endpoint"
import { errorResponse } from "../errors"
import { derenderedMedia } from "../media-places"
import { responseEndpoint } from "../responses/endpoint"
import type { ResponseAsk } from "../responses/lower"
import type { ResponseBody } from "../responses/schema"
import type { RenderRoom } from "../room"
import type { Route } from "../route"
import { BodyCheck, isRecord } from "../schema"
import { modelFault, readPassingOn } from "../serve"
import { chunkSchema, wholeListSchema, wholeSchema } from "./derender-schema"
import { derenderChunk, eventsOf } from "./derender-stream"
import { derenderWhole } from "./derender-whole"
import type { Derendering } from "./derendering"
import { KeptReplays } from "./kept-replays"
import { mergedChunk } from "./merged-chunk"

const chatWhole = new BodyCheck(wholeSchema("chat_request"))
const chatChunk = new BodyCheck(chunkSchema("chat_request"))
const completionWhole = new BodyCheck(wholeListSchema("completion_request"))
const completionChunk = new BodyCheck(chunkSchema("completion_request"))
const responsesWhole = new BodyCheck(wholeSchema("responses_request"))
const responsesChunk = new BodyCheck(chunkSchema("responses_request"))

const chatDerendering: Derendering<ChatBody, ChatAsk> = {
  endpoint: chatEndpoint,
  requestKey: "chat_request",
  idPrefix: "chatcmpl-",
  hasChoices: true,
  least: { messages: [{ role: "user", content: "" }] },
  asked: (request) => request,
  readWhole: (body) => readWhole(chatWhole, "chat_request", body),
  readChunk: (body) => readChunk(chatChunk, "chat_request", body),
  chunkReply: (frames, index, exchange) => {
    const choice = { index, delta: {}, logprobs: null, finish_reason: null }
    return { chunk: mergedChunk(eventsOf(frames), emptyChunk("chat.completion.chunk", exchange, choice), index) }
  },
}

const completionDerendering: Derendering<CompletionBody, CompletionAsk> = {
  endpoint: completionEndpoint,
  requestKey: "completion_request",
  idPrefix: "cmpl-",
  hasChoices: true,
  least: { prompt: [0] },
  asked: (request) => request,
  readWhole: (body) => {
    const checked = completionWhole.check(body)
    if (!checked.ok) return checked
    const { generate_responses, prompt_tokens, prompt_token_ids } = checked.value
    return ok({
      request: requestOf(checked.value, "completion_request"),
      responses: generate_responses,
      promptTokens: prompt_tokens ?? null,
      promptTokenIds: prompt_token_ids ?? null,
    })
  },
  readChunk: (body) => readChunk(completionChunk, "completion_request", body),
  chunkReply: (frames, index, exchange) => {
    const choice = { index, text: "", logprobs: null, finish_reason: null, stop_reason: null }
    return { chunk: mergedChunk(eventsOf(frames), emptyChunk("text_completion", exchange, choice), index) }
  },
}

const responseDerendering: Derendering<ResponseBody, ResponseAsk> = {
  endpoint: responseEndpoint,
  requestKey: "responses_request",
  idPrefix: "resp_",
  hasChoices: false,
  least: { input: "" },
  asked: (request) => ({ ...request, background: null }),
  readWhole: (body) => readWhole(responsesWhole, "responses_request", body),
  readChunk: (body) => readChunk(responsesChunk, "responses_request", body),
  chunkReply: (frames) => ({ events: eventsOf(frames) }),
}

/** The derender routes. */
export function derenderRoutes(room: RenderRoom): Route[] {
  const kept = new KeptReplays(room.config.limits.keptDerenderTokensMax)
  return [
    derenderRoute(chatDerendering, Type.Union([chatWhole.schema, chatChunk.schema]), room, kept),
    derenderRoute(completionDerendering, Type.Union([completionWhole.schema, completionChunk.schema]), room, kept),
    derenderRoute(responseDerendering, Type.Union([responsesWhole.schema, responsesChunk.schema]), room, kept),
  ]
}

function derenderRoute<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  schema: TSchema,
  room: RenderRoom,
  kept: KeptReplays,
): Route {
  const { endpoint } = derendering
  const passesOn = derenderedMedia(room)
  return {
    method: "POST",
    path: `${endpoint.path}/derender`,
    summary: `${endpoint.summary} from token ids that an engine elsewhere generated`,
    body: schema,
    statuses: { 403: "Scale-out is off" },
    handle: async (request, headers, entry) => {
      const read = await readPassingOn(request, room, passesOn, entry)
      if (!read.ok) return errorResponse(read.error, headers)
      const { value: body } = read.value
      const fault = modelFault(body, room)
      if (fault !== null) return errorResponse(fault, headers)
      const model = isRecord(body) && typeof body.model === "string" ? body.model : null
      const reply = derender(derendering, model, body, request.headers, room, kept)
      if (!reply.ok) return errorResponse(reply.error, headers)
      if ("id" in reply.value && typeof reply.value.id === "string") entry.id = reply.value.id
      const type = "application/json;charset=utf-8"
      return new Response(jsonText(reply.value), { headers: { ...headers, "content-type": type } })
    },
  }
}

function derender<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  model: string | null,
  body: Json,
  headers: Headers,
  room: RenderRoom,
  kept: KeptReplays,
) {
  if (isRecord(body) && body.stream === true) {
    const parts = derendering.readChunk(body)
    return parts.ok ? derenderChunk(derendering, model, parts.value, headers, room, kept) : parts
  }
  const parts = derendering.readWhole(body)
  return parts.ok ? derenderWhole(derendering, model, parts.value, headers, room) : parts
}

function readWhole(check: typeof chatWhole, requestKey: string, body: unknown) {
  const checked = check.check(body)
  if (!checked.ok) return checked
  const { generate_response, prompt_tokens, prompt_token_ids } = checked.value
  return ok({
    request: requestOf(checked.value, requestKey),
    responses: [generate_response],
    promptTokens: prompt_tokens == null ? null : [prompt_tokens],
    promptTokenIds: prompt_token_ids == null ? null : [prompt_token_ids],
  })
}

function readChunk(check: typeof chatChunk, requestKey: string, body: unknown) {
  const checked = check.check(body)
  if (!checked.ok) return checked
  const { generate_chunk, stream_state, prompt_token_ids } = checked.value
  return ok({
    request: requestOf(checked.value, requestKey),
    chunk: generate_chunk,
    state: stream_state ?? null,
    promptTokenIds: prompt_token_ids ?? null,
  })
}

function requestOf(body: object, requestKey: string): unknown {
  return Reflect.get(body, requestKey) ?? null
}

function emptyChunk(object: string, exchange: Exchange<unknown>, choice: { readonly [name: string]: Json }) {
  const { id, createdAt, model } = exchange
  return { id, object, created: createdAt, model, choices: [{ ...choice }] }
}
