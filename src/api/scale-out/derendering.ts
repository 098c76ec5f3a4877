import type { PromptInput } from "../../ir/conversation"
import type { GenerateRequest } from "../../ir/generate-request"
import type { SamplingParams } from "../../ir/sampling"
import type { Prepared } from "../../prompt/prepare"
import { err, ok, type Result } from "../../result"
import type { Endpoint, Exchange, Lowered } from "../endpoint"
import { type ApiError, invalid } from "../errors"
import { makeExchange } from "../exchange"
import { namedAdapter } from "../models"
import { type RenderRoom, renderContext } from "../room"
import type { GenerateChunkBody, GenerateResponseBody, StreamState } from "./derender-schema"
import type { ReplayedRequest } from "./replay"

/** How one API is derendered. */
export interface Derendering<Body, Ask> {
  readonly endpoint: Endpoint<Body, Ask>
  /** Where bodies have the request: `chat_request`. */
  readonly requestKey: string
  /** What the ids of this API begin with. */
  readonly idPrefix: string
  /** Whether replies of this API may have several choices. */
  readonly hasChoices: boolean
  /** The least request there is, for output that nothing parses. */
  readonly least: Body
  /** A request as it is lowered here, whatever it was sent for. */
  asked(request: Body): Body
  /** The body of a whole reply, checked. */
  readWhole(body: unknown): Result<WholeParts, ApiError>
  /** The body of one chunk, checked. */
  readChunk(body: unknown): Result<ChunkParts, ApiError>
  /** What one chunk's frames say, as the reply's own part. `index`: the choice that the client knows. */
  chunkReply(frames: readonly string[], index: number, exchange: Exchange<Ask>): object
}

/** What a whole body holds: one entry for each prompt. */
export interface WholeParts {
  readonly request: unknown
  readonly responses: readonly GenerateResponseBody[]
  readonly promptTokenIds: readonly (readonly number[])[] | null
  readonly promptTokens: readonly number[] | null
}

/** What a chunk's body holds. */
export interface ChunkParts {
  readonly request: unknown
  readonly chunk: GenerateChunkBody
  readonly state: StreamState | null
  readonly promptTokenIds: readonly number[] | null
}

/** A request that was lowered for its answer. */
export interface AnsweredRequest<Ask> {
  readonly lowered: Lowered<Ask>
  readonly exchange: Exchange<Ask>
}

/** What an answer is made of beside its tokens. */
export interface AnswerFacts {
  /** Of the generated response, `generate-tokens-…`. */
  readonly requestId: string
  readonly createdAt: number
  /** Named by the body, or the response. */
  readonly model: string | null
  readonly promptTokenIds: readonly (readonly number[])[] | null
  readonly promptTokens: readonly number[] | null
}

/**
 * Lowers the request and gives it its prompts: the ids that the body has, or those that the request renders to, or, where
 * nothing reads them, as many as were counted.
 */
export function answerRequest<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  request: unknown,
  facts: AnswerFacts,
  headers: Headers,
  room: RenderRoom,
): Result<AnsweredRequest<Ask>, ApiError> {
  const { endpoint, requestKey, idPrefix, least, asked } = derendering
  const { parsesReasoning, parsesCalls } = room.facts
  if (request === null && (parsesReasoning || parsesCalls) && idPrefix !== "cmpl-") {
    const message = `${requestKey} is needed: the model's output is parsed, and plain text would show its markup.`
    return err(invalid(requestKey, message))
  }
  const checked = request === null ? ok(least) : endpoint.check.check(request)
  if (!checked.ok) return checked
  const body = asked(checked.value)
  const context = renderContext(room, headers)
  const lowered = endpoint.lower(body, context)
  if (!lowered.ok) return lowered
  const given = facts.promptTokenIds
  if (given !== null && request !== null && given.length !== lowered.value.prompts.length) {
    return err(invalid("prompt_token_ids", `prompt_token_ids and ${requestKey} have different numbers of prompts.`))
  }
  if (given === null && lowered.value.media != null) {
    const message = "prompt_token_ids are needed: how long the request's media are is told by no rendering."
    return err(invalid("prompt_token_ids", message))
  }
  const isCounted = given === null && request === null
  const prompts = isCounted ? [{ kind: "token_ids" as const, tokenIds: [0] }] : lowered.value.prompts
  const known =
    given === null ? prompts : given.map((tokenIds) => ({ kind: "token_ids" as const, tokenIds: [...tokenIds] }))
  const named = facts.model === null ? body : { ...body, model: facts.model }
  const made = makeExchange({ ...lowered.value, prompts: known }, room, context, namedAdapter(named, room.facts))
  if (!made.ok) return made
  const counted = (facts.promptTokens ?? []).map(
    (tokens): Prepared => ({ tokenIds: new Uint32Array(tokens), text: null }),
  )
  return ok({
    lowered: lowered.value,
    exchange: {
      ...made.value,
      id: answerId(facts.requestId, idPrefix, made.value.prompts.length > 1),
      createdAt: facts.createdAt,
      prompts: isCounted ? counted : made.value.prompts.map((each, i) => withText(each, lowered.value.prompts[i])),
    },
  })
}

/** What is echoed is what the client wrote: its ids may have more, such as a token at the beginning. */
function withText(prepared: Prepared, input: PromptInput | undefined): Prepared {
  return input?.kind === "text" ? { ...prepared, text: input.text } : prepared
}

/** A rendered request keeps its id all the way: generation only put its own prefix before it, and numbers several. */
function answerId(requestId: string, idPrefix: string, isNumbered: boolean): string {
  const own = requestId.replace(/^generate-tokens-/, "")
  if (!own.startsWith(idPrefix)) return requestId
  return isNumbered ? own.replace(/-\d+$/, "") : own
}

/** The sequence as its replay needs it. `stopString`: the one that ended it, as the engine says; "" = none did. */
export function replayedRequest(
  { lowered, exchange }: AnsweredRequest<unknown>,
  promptTokenIds: Uint32Array,
  stopString: string,
  room: RenderRoom,
): ReplayedRequest {
  const sampling: SamplingParams = { ...exchange.sampling, stop: stopString === "" ? [] : [stopString] }
  const request: GenerateRequest = {
    requestId: exchange.id,
    promptTokenIds,
    sampling,
    eosTokenIds: [],
    priority: 0,
    cacheSalt: null,
    sessionId: null,
    dataParallelRank: null,
    traceHeaders: null,
  }
  const eos = sampling.ignoreEos ? [] : room.eosTokenIds
  return { request, stopTokenIds: [...lowered.sampling.stopTokenIds, ...eos] }
}
