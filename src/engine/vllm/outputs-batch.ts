import { Finish } from "../../ir/engine"

/**
 * Positions of the fields of EngineCoreOutput (ENGINE_PROTOCOL 7). Those from 2 on, except the two for the end, are
 * rare: the batch only keeps a bit for each that is set, and `OutputFields` reads them.
 */
export const OutputField = {
  logprobs: 2,
  promptLogprobs: 3,
  pooling: 4,
  finishReason: 5,
  stopReason: 6,
  events: 7,
  kvTransfer: 8,
  ecTransfer: 9,
  traceHeaders: 10,
  prefillStats: 11,
  routedExperts: 12,
  nanCount: 13,
  multimodalMisses: 14,
  samplingMask: 15,
  specDecode: 16,
  promptTokenIdLogprobs: 17,
  error: 18,
} as const
/** One of the values of `OutputField`. */
export type OutputField = (typeof OutputField)[keyof typeof OutputField]

const outputsAtFirst = 256
const noFrames: readonly Uint8Array[] = []

/**
 * One message of the engine, laid flat: output i is row i of the arrays. Reused by the next `decode`, and so are its
 * arrays; only rows below `count` mean anything. New token ids of output i are `tokenIds[start[i], end[i])`.
 */
export class OutputsBatch {
  /** Frame 0 is the body, the others hold arrays that it refers to. Borrowed from whoever decoded them. */
  frames: readonly Uint8Array[] = noFrames
  engineIndex = 0
  count = 0
  /** -1 = not an id of this process: nobody here waits for the output. */
  slot = new Int32Array(outputsAtFirst)
  serial = new Uint32Array(outputsAtFirst)
  start = new Int32Array(outputsAtFirst)
  end = new Int32Array(outputsAtFirst)
  tokenIds = new Uint32Array(outputsAtFirst)
  /** The values of `Finish`; -1 = goes on. Reasons that are new to us count as `error`. */
  finish = new Int8Array(outputsAtFirst)
  /** The stop token's id; -1 = none, or a reason that is no token. */
  stopTokenId = new Int32Array(outputsAtFirst)
  /** Bit n = the rare field n is set (see `has`); 0 for nearly all outputs. */
  present = new Uint32Array(outputsAtFirst)
  /** Outputs whose ids another process of this server made: row, and where the id stands in the body; three numbers each. */
  readonly strangers: number[] = []
  /** Where field 2 of the output stands in the body. */
  fieldsAt = new Int32Array(outputsAtFirst)

  /** Offsets in the body of the message's own fields; -1 = nil or missing. */
  schedulerStatsAt = -1
  utilityAt = -1
  finishedRequestsAt = -1
  /** Seconds on the engine's monotonic clock; -1 = missing. */
  timestamp = -1
  /** Data-parallel waves; -1 = nil. */
  waveComplete = -1
  startWave = -1

  /** Whether output i has a rare field. */
  has(i: number, field: OutputField): boolean {
    return ((this.present[i]! >>> field) & 1) === 1
  }

  /** Forgets the last message; keeps the arrays. */
  clear(): void {
    this.frames = noFrames
    this.engineIndex = 0
    this.count = 0
    if (this.strangers.length > 0) this.strangers.length = 0
    this.schedulerStatsAt = -1
    this.utilityAt = -1
    this.finishedRequestsAt = -1
    this.timestamp = -1
    this.waveComplete = -1
    this.startWave = -1
  }

  /** Doubles the room for outputs and keeps those that are there. */
  growOutputs(): void {
    const size = 2 * this.slot.length
    this.slot = grown(this.slot, new Int32Array(size))
    this.serial = grown(this.serial, new Uint32Array(size))
    this.start = grown(this.start, new Int32Array(size))
    this.end = grown(this.end, new Int32Array(size))
    this.finish = grown(this.finish, new Int8Array(size))
    this.stopTokenId = grown(this.stopTokenId, new Int32Array(size))
    this.present = grown(this.present, new Uint32Array(size))
    this.fieldsAt = grown(this.fieldsAt, new Int32Array(size))
  }

  /** Makes room for token ids and keeps those that are there. */
  reserveTokens(count: number): void {
    if (count <= this.tokenIds.length) return
    this.tokenIds = grown(this.tokenIds, new Uint32Array(Math.max(count, 2 * this.tokenIds.length)))
  }

  /** The finish code as the waist knows it. */
  finishOf(i: number): Finish {
    // Only values of `Finish` are stored.
    return (this.finish[i] ?? Finish.none) as Finish
  }
}

function grown<Values extends Int8Array | Int32Array | Uint32Array>(from: Values, to: Values): Values {
  to.set(from)
  return to
}
