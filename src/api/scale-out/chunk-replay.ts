import type { LogprobRows } from "../../ir/engine"
import type { Exchange, StreamView } from "../endpoint"
import type { Fold } from "../fold"
import type { GenerateChunkBody, GeneratedChoice, StreamState } from "./derender-schema"
import { cachedTokens, type Replay } from "./replay"

/** What a chunk's replay is made of; its view writes to `frames`. */
export interface ChunkReplayParts {
  readonly exchange: Exchange<unknown>
  readonly view: StreamView
  readonly fold: Fold
  readonly replay: Replay
  readonly frames: string[]
}

/**
 * One choice's stream on its way through the endpoint's view: what each chunk adds in frames, and the state that says
 * where it stands. Every chunk since the first has to go through it, in order.
 */
export class ChunkReplay {
  /** Where the stream stands; a new object after each chunk. */
  state: StreamState
  readonly exchange: Exchange<unknown>
  private readonly parts: ChunkReplayParts

  /** `state` is the one before any chunk: without tokens. */
  constructor(state: StreamState, parts: ChunkReplayParts) {
    this.state = state
    this.exchange = parts.exchange
    this.parts = parts
  }

  /** Memory, in tokens of prompt and output. Logprobs make a token about four times as heavy (1.4 KB, not 370 bytes). */
  get weight(): number {
    const output = this.state.output_token_ids.length
    const hasLogprobs = this.parts.fold.logprobs.length > 0
    return this.exchange.prompts[0]!.tokenIds.length + (hasLogprobs ? 4 : 1) * output
  }

  /** Whether this state, which a client sent, is the one that was given last. */
  hasGiven(state: StreamState): boolean {
    const { finish_reason = null, stop_reason = null, ...own } = this.state
    return (
      state.request_id === own.request_id &&
      state.created === own.created &&
      state.index === own.index &&
      (state.finish_reason ?? null) === finish_reason &&
      (state.stop_reason ?? null) === stop_reason &&
      areSame(state.output_token_ids, own.output_token_ids) &&
      areSame(state.output_chunk_lens, own.output_chunk_lens)
    )
  }

  /** What a chunk says of the prompt; before its tokens. `rows`: only with the first. */
  prompt(chunk: GenerateChunkBody, rows: LogprobRows | null): void {
    this.parts.replay.prompt(cachedTokens(chunk), rows)
  }

  /** The tokens of one chunk, and how it ended the stream if it did. */
  step(
    tokenIds: Uint32Array,
    rows: LogprobRows | null,
    ending: Pick<GeneratedChoice, "finish_reason" | "stop_reason"> | null,
    transfer: GenerateChunkBody["kv_transfer_params"],
  ): void {
    this.parts.replay.step(tokenIds, rows, ending, transfer ?? null)
  }

  /** Moves the state behind one chunk. */
  advance(choice: Pick<GeneratedChoice, "token_ids" | "finish_reason" | "stop_reason">): void {
    const { state } = this
    this.state = {
      ...state,
      output_token_ids: [...state.output_token_ids, ...choice.token_ids],
      output_chunk_lens: [...state.output_chunk_lens, choice.token_ids.length],
      finish_reason: choice.finish_reason ?? null,
      stop_reason: choice.stop_reason ?? null,
    }
  }

  /** Nothing follows but what counts the whole reply. */
  end(): void {
    this.parts.view.end([this.parts.fold])
  }

  /** The frames since the last call. */
  takeFrames(): readonly string[] {
    return this.parts.frames.splice(0)
  }
}

function areSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
