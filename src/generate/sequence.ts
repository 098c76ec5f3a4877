import { type EngineError, type EngineOutput, type EngineReceiver, Finish, finishReason } from "../ir/engine"
import type { ChoiceTiming, ChoiceUsage, ItemSink } from "../ir/item-event"
import { Piece } from "../ir/piece"
import type { OutputParser } from "../parser/parser"
import type { Detokenizer } from "../tokenizer/detokenizer"
import type { Items } from "./items"
import type { StopFilter } from "./stop"

/** The stages of one sequence and what it needs to know. */
export interface SequenceParts {
  readonly detokenizer: Detokenizer
  /** null when the request names no stop strings. */
  readonly stop: StopFilter | null
  readonly parser: OutputParser
  readonly items: Items
  readonly sink: ItemSink
  readonly promptTokens: number
  /** Whether the reply shows token ids or logprobs, so that `step` is called. */
  readonly wantsSteps: boolean
  /** `include_stop_str_in_output`: the stop token's own text is part of the reply. */
  readonly showsStopToken: boolean
  /** Tokens that a delta stands for at least, except the first and the last. */
  readonly intervalTokens: number
  /** Seconds on a monotonic clock. */
  readonly now: () => number
  /** Each step's new tokens, prompt tokens once with the first: for counters that move while replies run. */
  readonly countTokens: (promptTokens: number, outputTokens: number) => void
  /** Called once, after `done` or `fail`. */
  readonly onEnd: (failed: boolean) => void
  /** A stop string matched: the engine must not go on. */
  readonly abortEngine: () => void
}

/**
 * One choice on its way up: engine output → detokenizer → stop strings → parser → items, as plain calls. Holds no
 * accumulated text; the fold does.
 */
export class Sequence implements EngineReceiver {
  private readonly parts: SequenceParts
  private readonly fresh = new Piece()
  private readonly released = new Piece()
  private ended = false
  private outputTokens = 0
  private pendingTokens = 0
  private promptTokens: number
  private cachedTokens = -1
  private cacheWriteTokens = -1
  private queuedAt = -1
  private scheduledAt = -1
  private firstTokenAt = -1
  private lastTokenAt = -1
  private firstTokenCameAt = -1

  constructor(parts: SequenceParts) {
    this.parts = parts
    this.promptTokens = parts.promptTokens
  }

  /** Hot (bench/fold.ts): one engine step of this sequence. */
  output(output: EngineOutput): void {
    if (this.ended) return
    const { parts } = this
    this.note(output)
    if (output.promptLogprobs !== null && parts.wantsSteps) parts.sink.promptLogprobs(output.promptLogprobs)

    const { tokenIds, start } = output
    const isFirst = this.outputTokens === 0
    let end = output.end
    // Without stop strings nothing stands between detokenizer and parser.
    const fresh = parts.stop === null ? this.released : this.fresh
    if (parts.stop !== null) fresh.clear()
    // The text of a token that ended the sequence is not part of the reply (CHAT 6.6); its id is.
    const hidesLast = output.finish === Finish.stop && !parts.showsStopToken
    const shownEnd = hidesLast ? end - 1 : end
    for (let i = start; i < shownEnd; i++) parts.detokenizer.push(tokenIds[i]!, fresh)
    if (hidesLast && end > start) fresh.add(tokenIds[end - 1]!, "")
    const isLast = output.finish !== Finish.none
    if (isLast) parts.detokenizer.finish(fresh)

    if (parts.stop !== null) {
      const kept = parts.stop.push(fresh, this.released)
      if (parts.stop.matched !== null) end = Math.min(end, start + kept)
      else if (isLast) parts.stop.finish(this.released)
    }
    if (end > start) parts.countTokens(isFirst ? parts.promptTokens : 0, end - start)
    this.outputTokens += end - start
    this.pendingTokens += end - start
    const matched = parts.stop !== null && parts.stop.matched !== null

    const emits = isFirst || isLast || matched || this.pendingTokens >= parts.intervalTokens
    if (emits) this.emit()
    if (parts.wantsSteps && end > start) parts.sink.step(tokenIds, start, end, output.logprobs)
    if (matched) {
      if (!isLast) parts.abortEngine()
      this.finish(Finish.stop, parts.stop.matched, output)
    } else if (isLast) {
      this.finish(output.finish, output.stopTokenId === -1 ? null : output.stopTokenId, output)
    } else if (emits) {
      parts.sink.flush()
    }
  }

  fail(error: EngineError, finished = false): void {
    if (this.ended) return
    this.ended = true
    this.drain()
    this.parts.items.end(false)
    this.parts.sink.fail(error, finished ? this.usage() : null)
    this.parts.onEnd(true)
  }

  /** The client is gone: nothing is called any more. */
  silence(): void {
    this.ended = true
  }

  /** Moments so far. */
  timing(): ChoiceTiming {
    const { queuedAt, scheduledAt, firstTokenAt, lastTokenAt, firstTokenCameAt } = this
    return { queuedAt, scheduledAt, firstTokenAt, lastTokenAt, firstTokenCameAt }
  }

  private emit(): void {
    this.pendingTokens = 0
    if (this.released.count === 0) return
    this.parts.parser.push(this.released, this.parts.items)
    this.released.clear()
  }

  /** Held text of every stage goes on to the items. */
  private drain(): void {
    const { detokenizer, stop, parser, items } = this.parts
    if (stop === null) {
      detokenizer.finish(this.released)
    } else {
      this.fresh.clear()
      detokenizer.finish(this.fresh)
      stop.push(this.fresh, this.released)
      stop.finish(this.released)
    }
    this.emit()
    parser.finish(items)
  }

  private finish(finish: Finish, stopReason: string | number | null, output: EngineOutput): void {
    this.ended = true
    const { parts } = this
    parts.parser.finish(parts.items)
    parts.items.end(finish === Finish.length)
    const usage = this.usage()
    if (finish === Finish.error) {
      parts.sink.fail({ kind: "engine_failed", message: "the engine ended the sequence with an error" }, usage)
    } else {
      parts.sink.done({
        finish: finishReason(finish),
        stopReason,
        usage,
        timing: this.timing(),
        kvTransferParams: output.kvTransferParams,
        ecTransferParams: output.ecTransferParams,
      })
    }
    parts.onEnd(finish === Finish.error)
  }

  /** Counts so far; true at the end and at an abort alike. */
  usage(): ChoiceUsage {
    return {
      promptTokens: this.promptTokens,
      outputTokens: this.outputTokens,
      reasoningTokens: this.parts.parser.reasoningTokens,
      cachedTokens: Math.max(0, this.cachedTokens),
      cacheWriteTokens: Math.max(0, this.cacheWriteTokens),
    }
  }

  /** Remembers what the output says beside its tokens. */
  private note(output: EngineOutput): void {
    if (output.promptTokens >= 0) this.promptTokens = output.promptTokens
    if (output.cachedTokens >= 0) this.cachedTokens = output.cachedTokens
    if (output.cacheWriteTokens >= 0) this.cacheWriteTokens = output.cacheWriteTokens
    // The first time counts: after a preemption a sequence is scheduled again.
    if (this.queuedAt < 0) this.queuedAt = output.queuedAt
    if (this.scheduledAt < 0) this.scheduledAt = output.scheduledAt
    if (output.end === output.start) return
    this.lastTokenAt = output.at >= 0 ? output.at : this.parts.now()
    if (this.firstTokenAt >= 0) return
    this.firstTokenAt = this.lastTokenAt
    this.firstTokenCameAt = this.parts.now()
  }
}
