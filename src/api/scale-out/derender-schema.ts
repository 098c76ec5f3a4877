/** Bodies of the derender routes: what an engine elsewhere generated, and what it was asked for (RENDER 9). */
import { type Static, type TProperties, Type } from "@sinclair/typebox"
import { anyJson, int32, int64, jsonObject, optional } from "../schema"

const tokenId = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })
const tokenIds = Type.Array(tokenId)

const logprobEntry = {
  token_id: tokenId,
  logprob: Type.Number(),
  rank: optional(int32),
}
const positionLogprobs = Type.Object({
  ...logprobEntry,
  top_logprobs: optional(Type.Array(Type.Object(logprobEntry))),
})

const generatedChoice = Type.Object({
  index: Type.Integer({ minimum: 0, maximum: 65_535 }),
  token_ids: tokenIds,
  finish_reason: optional(Type.String()),
  stop_reason: optional(Type.Union([Type.String(), int64])),
  logprobs: optional(Type.Object({ content: optional(Type.Array(positionLogprobs)) })),
})

const generatedFields = {
  request_id: Type.String({ maxLength: 1_024 }),
  model: optional(Type.String()),
  output_mode: optional(Type.String()),
  usage: optional(jsonObject),
  prompt_token_ids: optional(tokenIds),
  prompt_logprobs: optional(Type.Array(anyJson)),
  kv_transfer_params: optional(jsonObject),
}
const generateResponse = Type.Object({ ...generatedFields, choices: Type.Array(generatedChoice, { minItems: 1 }) })
const generateChunk = Type.Object({ ...generatedFields, choices: Type.Array(generatedChoice) })

/** Carried by the client from chunk to chunk; null before the first. */
const streamState = Type.Object({
  request_id: Type.String({ maxLength: 1_024 }),
  created: int32,
  index: Type.Integer({ minimum: 0, maximum: 65_535 }),
  output_token_ids: tokenIds,
  output_chunk_lens: Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
  finish_reason: optional(Type.String()),
  stop_reason: optional(Type.Union([Type.String(), int64])),
})

/** One generated choice, of a whole response or of a chunk. */
export type GeneratedChoice = Static<typeof generatedChoice>
/** A whole GenerateResponse in tokens mode. */
export type GenerateResponseBody = Static<typeof generateResponse>
/** One chunk of a generate stream. */
export type GenerateChunkBody = Static<typeof generateChunk>
/** What the client hands back with the next chunk. */
export type StreamState = Static<typeof streamState>

/** The body of a whole reply: one generated response, its prompt, and under `requestKey` what was asked. */
export function wholeSchema<Key extends string>(requestKey: Key) {
  return Type.Object({
    ...common(requestKey),
    stream: optional(Type.Literal(false)),
    generate_response: generateResponse,
    prompt_tokens: optional(int32, "Tokens of the prompt, where its ids are not given"),
    prompt_token_ids: optional(tokenIds),
  })
}

/** The body of a whole completion: one generated response a prompt. */
export function wholeListSchema<Key extends string>(requestKey: Key) {
  return Type.Object({
    ...common(requestKey),
    stream: optional(Type.Literal(false)),
    generate_responses: Type.Array(generateResponse, { minItems: 1 }),
    prompt_tokens: optional(Type.Array(int32)),
    prompt_token_ids: optional(Type.Array(tokenIds)),
  })
}

/** The body of one chunk. */
export function chunkSchema<Key extends string>(requestKey: Key) {
  return Type.Object({
    ...common(requestKey),
    stream: Type.Literal(true),
    generate_chunk: generateChunk,
    stream_state: optional(streamState),
    prompt_token_ids: optional(tokenIds),
  })
}

function common(requestKey: string): TProperties {
  return { model: optional(Type.String()), [requestKey]: optional(jsonObject, "The request as it was made") }
}
