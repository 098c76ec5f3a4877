/**
 * Derendered streams that may go on soon. The state of a stream is its client's to carry, and says all that a replay
 * needs; replaying everything before each chunk costs n² in all, though. So the replay that gave a state is kept for a
 * while, and a chunk that comes with exactly this state goes on with it. Where it is not here (another process, too long
 * ago, a chunk sent twice) everything is replayed as ever: what is kept changes the cost and nothing else.
 */
import { createHash } from "node:crypto"
import { jsonText } from "../../ir/exact-json"
import type { ChunkReplay } from "./chunk-replay"
import type { StreamState } from "./derender-schema"

/** Streams at most, however short. */
const streamsMax = 4_096
/** Of a request's JSON, about as many characters as a token weighs. */
const unitsPerToken = 4

interface Kept {
  readonly replay: ChunkReplay
  /** In tokens. */
  readonly weight: number
}

/** Replays by what their streams are continued with; those used last stay. */
export class KeptReplays {
  private readonly tokensMax: number
  /** In the order in which they were kept. */
  private readonly kept = new Map<string, Kept>()
  private tokens = 0

  /** `tokensMax`: weight of all that is kept, prompts and requests included; 0 = nothing is. */
  constructor(tokensMax: number) {
    this.tokensMax = tokensMax
  }

  /** The replay that gave this state for the same request, which is then the caller's; null = there is none. */
  take(requestDigest: string, state: StreamState): ChunkReplay | null {
    const key = keyOf(requestDigest, state)
    const found = this.kept.get(key)
    if (found === undefined) return null
    // Whatever else lies under the key is of no use to this stream.
    this.drop(key, found)
    return found.replay.hasGiven(state) ? found.replay : null
  }

  /** Keeps a replay for the chunk that comes with the state it gave last. */
  put(requestDigest: string, replay: ChunkReplay, requestUnits: number): void {
    const weight = replay.weight + Math.ceil(requestUnits / unitsPerToken)
    if (weight > this.tokensMax) return
    const key = keyOf(requestDigest, replay.state)
    const same = this.kept.get(key)
    if (same !== undefined) this.drop(key, same)
    this.kept.set(key, { replay, weight })
    this.tokens += weight
    for (const [oldest, each] of this.kept) {
      if (this.tokens <= this.tokensMax && this.kept.size <= streamsMax) break
      this.drop(oldest, each)
    }
  }

  private drop(key: string, kept: Kept): void {
    this.kept.delete(key)
    this.tokens -= kept.weight
  }
}

/** Names what a stream answers: equal for requests to the same API that say the same, and for no others. */
export function digestRequest(
  path: string,
  model: string | null,
  request: unknown,
  promptTokenIds: readonly number[] | null,
): { readonly digest: string; readonly units: number } {
  const text = jsonText([path, model, request, promptTokenIds])
  return { digest: createHash("sha256").update(text).digest("base64"), units: text.length }
}

function keyOf(requestDigest: string, state: StreamState): string {
  const { request_id: id, index, output_token_ids: ids, output_chunk_lens: lengths } = state
  return `${requestDigest}/${id}/${index}/${ids.length}/${lengths.length}`
}
