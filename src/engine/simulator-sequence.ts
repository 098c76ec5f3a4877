import { type EngineReceiver, type EngineSequence, Finish } from "../ir/engine"
import type { GenerateRequest } from "../ir/generate-request"
import type { SimulatorScript } from "./simulator-script"

/** Where a sequence stands; it only moves forward. */
export const Phase = { waiting: 0, running: 1, ended: 2 } as const
/** One of the values of `Phase`. */
export type Phase = (typeof Phase)[keyof typeof Phase]

/** No token is left to give. */
const exhausted = -1

/**
 * One sequence inside the simulator: what it will say, how far it is, and when it stops. Knows no clock and calls no
 * receiver; the engine does both.
 */
export class SimulatedSequence implements EngineSequence {
  readonly request: GenerateRequest
  readonly receiver: EngineReceiver
  readonly script: SimulatorScript
  /** For everything made up: the request's seed, or the engine's. */
  readonly seed: number
  /** Between two steps. */
  readonly stepMs: number
  readonly queuedAtMs: number
  scheduledAtMs = -1
  /** When its next tokens come. */
  dueAtMs = 0
  phase: Phase = Phase.waiting
  /** Tokens given so far. */
  generated = 0
  /** How the last `take` ended the sequence, and which stop id did it (-1 = EOS, length or none). */
  finish: Finish = Finish.none
  stopTokenId = -1
  private readonly text: Uint32Array
  /** Where in `text` the next token stands. */
  private cursor = 0
  /** The text was given once in full; from then on it is repeated, if at all. */
  private repeating = false
  private eosGiven = false
  private step = 0
  private readonly eosTokenId: number
  private readonly stopTokenIds: ReadonlySet<number>
  private readonly loops: boolean
  private readonly onAbort: (sequence: SimulatedSequence) => void

  constructor(parts: {
    readonly request: GenerateRequest
    readonly receiver: EngineReceiver
    readonly script: SimulatorScript
    readonly text: Uint32Array
    readonly seed: number
    readonly stepMs: number
    readonly queuedAtMs: number
    readonly onAbort: (sequence: SimulatedSequence) => void
  }) {
    this.request = parts.request
    this.receiver = parts.receiver
    this.script = parts.script
    this.text = parts.text
    this.seed = parts.seed
    this.stepMs = parts.stepMs
    this.queuedAtMs = parts.queuedAtMs
    this.onAbort = parts.onAbort
    const { sampling, eosTokenIds } = parts.request
    this.eosTokenId = sampling.ignoreEos ? -1 : (eosTokenIds[0] ?? -1)
    // The real engine knows one EOS; further ones are stop ids to it and are reported by their id (ENGINE_PROTOCOL 5).
    this.stopTokenIds = new Set([...sampling.stopTokenIds, ...(sampling.ignoreEos ? [] : eosTokenIds.slice(1))])
    this.loops = sampling.ignoreEos && parts.script.finish === Finish.stop
  }

  abort(): void {
    this.onAbort(this)
  }

  /** True once the script's failure is due. */
  get failsNow(): boolean {
    return this.generated === this.script.failAfterTokens
  }

  /** Tokens that the next step may hold; moves on to that step. */
  nextStepTokens(): number {
    const { tokensPerStep } = this.script
    const tokens = tokensPerStep[Math.min(this.step, tokensPerStep.length - 1)]!
    this.step += 1
    return Math.min(tokens, this.request.sampling.maxTokens - this.generated)
  }

  /**
   * Writes up to `budget` tokens to `out` and says how many came. Fewer come when the sequence ends (`finish` is then
   * set, maybe with no token at all) or when its failure is due.
   */
  take(out: Uint32Array, budget: number): number {
    let count = 0
    while (count < budget && this.finish === Finish.none && !this.failsNow) {
      const tokenId = this.next()
      if (tokenId === exhausted) {
        this.finish = this.script.finish
        break
      }
      out[count++] = tokenId
      this.generated += 1
      this.finish = this.finishAfter(tokenId)
    }
    return count
  }

  private next(): number {
    if (!this.hasText()) {
      if (!this.addsEos()) return exhausted
      this.eosGiven = true
      return this.eosTokenId
    }
    if (this.cursor === this.text.length) {
      this.repeating = true
      this.cursor = 0
    }
    return this.text[this.cursor++]!
  }

  /**
   * Whether the next token comes from the text. Behind its end it is repeated for ever under `ignoreEos`, and up to
   * `minTokens` otherwise: EOS is masked until then.
   */
  private hasText(): boolean {
    if (this.text.length === 0) return false
    const first = !this.repeating && this.cursor < this.text.length
    if (first || this.script.finish !== Finish.stop) return first
    return this.loops || this.generated < this.request.sampling.minTokens
  }

  private addsEos(): boolean {
    return this.eosTokenId !== -1 && !this.eosGiven && this.script.finish === Finish.stop
  }

  /** In the engine's order: EOS, stop ids, length; then the script's own end, unless a failure comes before it. */
  private finishAfter(tokenId: number): Finish {
    const { minTokens, maxTokens } = this.request.sampling
    if (this.eosGiven) return Finish.stop
    if (this.generated >= minTokens) {
      if (tokenId === this.eosTokenId) return Finish.stop
      if (this.stopTokenIds.has(tokenId)) {
        this.stopTokenId = tokenId
        return Finish.stop
      }
    }
    if (this.generated >= maxTokens) return Finish.length
    return this.hasText() || this.addsEos() || this.failsNow ? Finish.none : this.script.finish
  }
}
