import type { Json } from "../../ir/conversation"
import { finishCode } from "../../ir/engine"
import { blankLogprobRows, promptLogprobRows, tokenLogprobRows } from "../../ir/logprob-json"
import { err, ok, type Result } from "../../result"
import type { Exchange } from "../endpoint"
import { type ApiError, invalid } from "../errors"
import { readingOf } from "../exchange"
import { Fold } from "../fold"
import type { RenderRoom } from "../room"
import { ChunkReplay } from "./chunk-replay"
import type { StreamState } from "./derender-schema"
import { answerRequest, type ChunkParts, type Derendering, replayedRequest } from "./derendering"
import { digestRequest, type KeptReplays } from "./kept-replays"
import { Replay } from "./replay"

/**
 * What one chunk of a generate stream adds to the answer, and the state for the next. The state is the client's to carry,
 * and enough: everything before is replayed with its chunks as they were, so that ids and numbers go on, and only the new
 * frames are given out. Where the replay that gave the state was kept, it goes on instead.
 */
export function derenderChunk<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  model: string | null,
  parts: ChunkParts,
  headers: Headers,
  room: RenderRoom,
  kept: KeptReplays,
): Result<object, ApiError> {
  const { chunk, state } = parts
  const fault = chunkFault(parts, room)
  if (fault !== null) return err(fault)
  const { path } = derendering.endpoint
  const asked = digestRequest(path, model ?? chunk.model ?? null, parts.request, parts.promptTokenIds)
  const given = state === null ? null : kept.take(asked.digest, state)
  // A chunk of counts comes behind the end, and what it says of the prompt belongs into what was counted there.
  const known = chunk.choices.length === 0 ? null : given
  const opened = known === null ? openReplay(derendering, model, parts, headers, room) : ok(known)
  if (!opened.ok) return opened
  const replay = opened.value
  const choice = chunk.choices[0] ?? null
  if (choice === null) {
    replay.end()
  } else {
    if (known !== null) replay.prompt(chunk, null)
    const rows = tokenLogprobRows((choice.logprobs?.content ?? null) as Json, choice.token_ids.length)
    replay.step(Uint32Array.from(choice.token_ids), rows, choice, chunk.kv_transfer_params)
    replay.advance(choice)
    if (choice.finish_reason == null) kept.put(asked.digest, replay, asked.units)
  }
  // Its own endpoint's, which made it.
  const exchange = replay.exchange as Exchange<Ask>
  return ok({
    ...derendering.chunkReply(replay.takeFrames(), replay.state.index, exchange),
    stream_state: replay.state,
  })
}

/** A replay that stands where the state says, after all that came before this chunk. */
function openReplay<Body, Ask>(
  derendering: Derendering<Body, Ask>,
  model: string | null,
  parts: ChunkParts,
  headers: Headers,
  room: RenderRoom,
): Result<ChunkReplay, ApiError> {
  const { chunk, promptTokenIds } = parts
  const choice = chunk.choices[0] ?? null
  const state = parts.state ?? newState(chunk.request_id, choice?.index ?? 0, room)
  const answered = answerRequest(
    derendering,
    parts.request,
    {
      requestId: state.request_id,
      createdAt: state.created,
      model: model ?? chunk.model ?? null,
      promptTokenIds: promptTokenIds === null ? null : [promptTokenIds],
      promptTokens: [0],
    },
    headers,
    room,
  )
  if (!answered.ok) return answered
  const { lowered } = answered.value
  if (lowered.sampling.stop.length > 0) {
    return err(invalid("stop", "with stop strings, only the whole response can be derendered."))
  }
  const exchange = { ...answered.value.exchange, choicesPerPrompt: 1 }
  if (exchange.prompts.length !== 1) return err(invalid("prompt", "one prompt can be derendered chunk by chunk."))

  const frames: string[] = []
  const view = derendering.endpoint.stream(exchange, (frame) => void frames.push(frame))
  view.begin()
  const fold = new Fold()
  const told = replayedRequest(answered.value, exchange.prompts[0]!.tokenIds, "", room)
  const seed = `${state.request_id}/${state.index}`
  const sequence = new Replay(room, told, view.choice(0, fold), readingOf(lowered, room), seed)
  const replay = new ChunkReplay(state, { exchange, view, fold, replay: sequence, frames })
  const rowsOfPrompt =
    parts.state === null ? promptLogprobRows(chunk.prompt_logprobs ?? null, told.request.promptTokenIds) : null
  replay.prompt(chunk, rowsOfPrompt)
  replayBefore(replay, choice?.logprobs?.content != null)
  return ok(replay)
}

/** Everything before, chunk by chunk. Its logprobs were given out with it; what follows must only find them counted. */
function replayBefore(replay: ChunkReplay, hasLogprobs: boolean): void {
  const { state } = replay
  const before = Uint32Array.from(state.output_token_ids)
  const last = state.finish_reason == null ? -1 : state.output_chunk_lens.length - 1
  let at = 0
  for (const [i, length] of state.output_chunk_lens.entries()) {
    const ids = before.subarray(at, at + length)
    at += length
    replay.step(ids, hasLogprobs ? blankLogprobRows(ids) : null, i === last ? state : null, null)
  }
  if (state.output_chunk_lens.length > 0) replay.takeFrames()
}

function newState(requestId: string, index: number, room: RenderRoom): StreamState {
  return { request_id: requestId, created: room.unixTime(), index, output_token_ids: [], output_chunk_lens: [] }
}

function chunkFault({ chunk, state, promptTokenIds }: ChunkParts, room: RenderRoom): ApiError | null {
  const { parsesReasoning, parsesCalls, contextTokensMax, vocabSize } = room.facts
  if (chunk.output_mode != null && chunk.output_mode !== "tokens") {
    return invalid("output_mode", "only chunks in output_mode tokens can be derendered.")
  }
  if (chunk.choices.length > 1) return invalid("generate_chunk", "a chunk may have one choice.")
  const [choice] = chunk.choices
  if ((parsesReasoning || parsesCalls) && promptTokenIds === null) {
    return invalid("prompt_token_ids", "prompt_token_ids are needed: where the output begins is read from them.")
  }
  if (choice?.finish_reason != null && finishCode(choice.finish_reason) === null) {
    return invalid("generate_chunk", "finish_reason must be stop, length, abort, error or repetition.")
  }
  if (typeof choice?.stop_reason === "string") {
    return invalid("generate_chunk", "a reply that a stop string ended can only be derendered whole.")
  }
  if (choice?.token_ids.some((id) => id >= vocabSize) === true) {
    return invalid("generate_chunk", "generate_chunk has token ids that are out of vocabulary.")
  }
  const tokens = choice?.token_ids.length ?? 0
  if (tokens + (state?.output_token_ids.length ?? 0) > contextTokensMax) {
    return invalid("generate_chunk", "generate_chunk has more tokens than the window has left.")
  }
  if (state === null) return null
  if (chunk.request_id !== state.request_id) {
    return invalid("stream_state", "stream_state is another request's.")
  }
  if (state.finish_reason != null && finishCode(state.finish_reason) === null) {
    return invalid("stream_state", "stream_state has a finish_reason that none ends with.")
  }
  if (choice !== undefined && choice.index !== state.index) {
    return invalid("stream_state", "stream_state is another choice's: each choice has a state of its own.")
  }
  if (choice !== undefined && state.finish_reason != null) {
    return invalid("stream_state", "stream_state says that this choice has ended.")
  }
  const { output_token_ids: ids, output_chunk_lens: lengths } = state
  const total = lengths.reduce((sum, length) => sum + length, 0)
  if (total !== ids.length) {
    return invalid("stream_state", "stream_state: output_chunk_lens do not add up to output_token_ids.")
  }
  if (ids.length > contextTokensMax || lengths.length > 2 * contextTokensMax || ids.some((id) => id >= vocabSize)) {
    return invalid("stream_state", "stream_state holds more tokens than the window, or such that do not exist.")
  }
  return null
}

/** The JSON of each event of some frames, without `[DONE]`. */
export function eventsOf(frames: readonly string[]): { readonly [name: string]: Json }[] {
  const events: { readonly [name: string]: Json }[] = []
  for (const block of frames.join("").split("\n\n")) {
    const at = block.indexOf("data: ")
    if (at === -1) continue
    const data = block.slice(at + "data: ".length)
    if (data !== "[DONE]") events.push(JSON.parse(data))
  }
  return events
}
