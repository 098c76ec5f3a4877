/**
 * Token ids that were generated elsewhere, on the road up: detokenizer, stop strings, parser, items, as if an engine of
 * this process had given them (RENDER 9).
 */
import { createHash } from "node:crypto"
import { Generation, type ReadingOptions } from "../../generate/generate"
import {
  type Engine,
  type EngineOutput,
  type EngineReceiver,
  emptyOutput,
  Finish,
  finishCode,
  type LogprobRows,
} from "../../ir/engine"
import type { GenerateRequest } from "../../ir/generate-request"
import type { ItemSink } from "../../ir/item-event"
import { ok } from "../../result"
import type { RenderRoom } from "../room"
import { isRecord } from "../schema"
import type { GeneratedChoice, GenerateResponseBody } from "./derender-schema"

/** How a choice ended, as the wire has it. */
type Ending = Pick<GeneratedChoice, "finish_reason" | "stop_reason">

/** What is known of a choice beside its tokens. */
export interface ReplayedRequest {
  /** Its `sampling.stop` names the string that ended the choice, if one did. */
  readonly request: GenerateRequest
  /** Ids whose text is not part of a reply that they end. */
  readonly stopTokenIds: readonly number[]
}

/** One choice being replayed. */
export class Replay {
  private readonly told: ReplayedRequest
  private readonly receiver: EngineReceiver
  private readonly out: EngineOutput

  /** `seed`: what the ids of items and calls are made of, so that every replay gives the same. */
  constructor(room: RenderRoom, told: ReplayedRequest, sink: ItemSink, reading: ReadingOptions, seed: string) {
    this.told = told
    this.out = emptyOutput(new Uint32Array(0))
    const engine = new ReplayEngine()
    const ids = derivedIds(seed)
    const replayRoom = { engine, tokenizer: room.tokenizer, ids, now: room.now, countTokens: () => {} }
    new Generation(() => {}).start(replayRoom, [{ request: told.request, sink }], reading)
    this.receiver = engine.receiver!
  }

  /** What the engine said of the prompt; before the first tokens. */
  prompt(cachedTokens: number, rows: LogprobRows | null): void {
    this.out.cachedTokens = cachedTokens
    this.out.promptLogprobs = rows
  }

  /** The tokens of one step, and how it ended if it did. */
  step(
    tokenIds: Uint32Array,
    rows: LogprobRows | null,
    ending: Ending | null,
    transfer: EngineOutput["kvTransferParams"],
  ) {
    const finish = ending?.finish_reason == null ? Finish.none : (finishCode(ending.finish_reason) ?? Finish.error)
    const stopReason = ending?.stop_reason ?? null
    const { out } = this
    out.kvTransferParams = transfer
    out.stopTokenId = typeof stopReason === "string" || stopReason === null ? -1 : Number(stopReason)
    // The token that stopped the reply is no part of its text; a stop string, or a grammar's end, is not a token.
    const last = tokenIds.at(-1)
    const stopped = out.stopTokenId !== -1 || (last !== undefined && this.told.stopTokenIds.includes(last))
    const together = finish !== Finish.stop || (stopped && typeof stopReason !== "string")
    this.push(tokenIds, rows, together ? finish : Finish.none)
    if (!together) this.push(new Uint32Array(0), null, finish)
  }

  private push(tokenIds: Uint32Array, rows: LogprobRows | null, finish: Finish): void {
    const { out } = this
    out.tokenIds = tokenIds
    out.end = tokenIds.length
    out.logprobs = rows
    out.finish = finish
    this.receiver.output(out)
    out.promptLogprobs = null
  }
}

/** Computes nothing: keeps who waits for tokens. */
class ReplayEngine implements Engine {
  readonly name = "replay"
  receiver: EngineReceiver | null = null

  submit(_request: GenerateRequest, receiver: EngineReceiver) {
    this.receiver = receiver
    return ok({ abort: () => {} })
  }

  status() {
    return { alive: true, ready: true, running: 0, waiting: 0, kvCacheUsage: 0, engines: [] }
  }

  async close(): Promise<void> {}
}

/** Ids that follow from a text and a count. */
function derivedIds(seed: string): { item(): string; call(): string } {
  let items = 0
  let calls = 0
  const derived = (kind: string, count: number): string =>
    createHash("sha256").update(`${seed}/${kind}/${count}`).digest("hex")
  return {
    item: () => derived("item", items++).slice(0, 32),
    call: () => `call_${derived("call", calls++).slice(0, 24)}`,
  }
}

/** Tokens found in the prefix cache; -1 where the engine does not say. */
export function cachedTokens({ usage }: Pick<GenerateResponseBody, "usage">): number {
  const details = usage?.prompt_tokens_details
  const cached = isRecord(details) ? details.cached_tokens : null
  return typeof cached === "number" ? cached : -1
}
