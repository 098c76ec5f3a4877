/** One request inside the test engine: which tokens it gives and how it ends. Its script rides in `extra_args`. */
import { logprobsOf, outputOf } from "./engine-outputs"
import { float, type Packable } from "./message-pack"
import type { Decoded, DecodedRequest } from "./strict-decoder"

type Fields = { readonly [name: string]: Decoded }

/** How a request may ask to fail (`test_fail`), after `test_fail_after` tokens. */
export type ScriptedFailure = "retryable" | "validation" | "failed" | "dead" | "vanish" | "deaf"

/** Finish codes of the protocol. */
const stop = 0
const length = 1
const failed = 3

/** Tokens of one request, one a step. */
export class ScriptedSequence {
  readonly id: string
  readonly failure: ScriptedFailure | null
  private readonly failsAfter: number
  private readonly script: readonly number[] | null
  private readonly sampling: Fields
  private readonly promptTokens: number
  private given = 0

  constructor(request: DecodedRequest) {
    this.id = String(request.request_id)
    this.sampling = request.sampling_params as Fields // the test engine takes no other requests
    const args = (this.sampling.extra_args ?? {}) as Fields // `anyMap` of the strict decoder
    this.script = (args.mock_tokens ?? null) as readonly number[] | null
    this.failure = (args.test_fail ?? null) as ScriptedFailure | null
    this.failsAfter = Number(args.test_fail_after ?? 0)
    this.promptTokens = (request.prompt_token_ids as readonly number[]).length
  }

  /** Whether the next step is the one that shall fail. */
  get failsNow(): boolean {
    return this.failure !== null && this.given >= this.failsAfter
  }

  /** The next output, and whether it is the last one. */
  step(size: 18 | 19): { readonly output: readonly Packable[]; readonly isLast: boolean } {
    if (this.failsNow) return { output: this.failedOutput(size), isLast: true }
    const { sampling } = this
    const eos = sampling._eos_token_id
    const isOut = this.script !== null && this.given >= this.script.length
    const tokenId = isOut ? Number(eos ?? 0) : (this.script?.[this.given] ?? (this.promptTokens + this.given) % 200)
    const fields: { [position: number]: Packable } = {}
    if (this.given === 0) {
      fields[7] = [
        { type: 1, timestamp: float(performance.now() / 1000) },
        { type: 2, timestamp: float(performance.now() / 1000) },
      ]
      fields[11] = { num_prompt_tokens: this.promptTokens, num_cached_tokens: 1, num_cache_creation_tokens: 2 }
    }
    this.given += 1
    if (sampling.logprobs !== null) fields[2] = logprobsOf(tokenId, Number(sampling.logprobs))
    let isLast = false
    if (this.given >= Number(sampling.min_tokens)) {
      isLast = isOut || (sampling.ignore_eos !== true && tokenId === eos)
      if (isLast) fields[5] = stop
      else if ((sampling.stop_token_ids as readonly number[]).includes(tokenId)) {
        isLast = true
        fields[5] = stop
        fields[6] = tokenId
      }
    }
    if (!isLast && this.given >= Number(sampling.max_tokens)) {
      isLast = true
      fields[5] = length
    }
    return { output: outputOf({ requestId: this.id, tokenIds: [tokenId], fields }, size), isLast }
  }

  /** An output without tokens that ends the request. */
  ended(finish: number, size: 18 | 19): readonly Packable[] {
    return outputOf({ requestId: this.id, tokenIds: [], fields: { 5: finish } }, size)
  }

  private failedOutput(size: 18 | 19): readonly Packable[] {
    const errors: { readonly [failure: string]: Packable } = {
      retryable: { code: "engine_paused", message: "paused; try again", retryable: true },
      validation: { code: "validation_error", message: "this grammar is broken", retryable: false },
    }
    const error = errors[this.failure ?? ""]
    const fields: { [position: number]: Packable } = { 5: failed }
    if (size === 19 && error !== undefined) fields[18] = error
    return outputOf({ requestId: this.id, tokenIds: [], fields }, size)
  }
}
