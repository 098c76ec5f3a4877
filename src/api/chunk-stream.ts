import type { WriteDelta } from "../http/delta-frame"
import type { ItemSink } from "../ir/item-event"
import type { Exchange, StreamView } from "./endpoint"
import type { Fold } from "./fold"
import { dataFrame, doneFrame, jsonLine } from "./frames"
import { timingBody, type UsageBody, usageChunk } from "./usage"
import { systemFingerprint } from "./version"

/** What streams of chunks ask of their request. */
interface ChunkAsk {
  readonly includeUsage: boolean
}

/** A stream of chunks, as chat and completions have it: one head for all, at the end usage and `[DONE]` (CHAT 4, 7). */
export abstract class ChunkStream<Ask extends ChunkAsk> implements StreamView {
  protected readonly exchange: Exchange<Ask>
  protected readonly write: (frame: string) => void
  protected readonly writeDelta: WriteDelta
  /** Everything of a chunk up to its choices. */
  protected readonly head: string
  private readonly named: object

  /** `object`: what chunks call themselves. */
  constructor(object: string, exchange: Exchange<Ask>, write: (frame: string) => void, writeDelta?: WriteDelta) {
    this.exchange = exchange
    this.write = write
    this.writeDelta = writeDelta ?? ((frame, text, number) => write(frame.with(text, number)))
    const { id, createdAt, model } = exchange
    this.named = { id, object, created: createdAt, model }
    this.head = `data: ${jsonLine(this.named).slice(0, -1)},"choices":[`
  }

  abstract begin(): void

  abstract choice(index: number, fold: Fold): ItemSink

  end(folds: readonly Fold[]): void {
    const failed = folds.some((fold) => fold.failure !== null)
    if (this.exchange.ask.includeUsage && !failed) {
      const usage = usageChunk(this.usage(folds))
      const outcome = folds.length === 1 ? folds[0]!.outcome : null
      const withMetrics = this.exchange.config.enablePerRequestMetrics && outcome !== null
      const metrics = withMetrics ? { metrics: timingBody(outcome) } : {}
      const chunk = { ...this.named, choices: [], usage, system_fingerprint: systemFingerprint, ...metrics }
      this.write(dataFrame(jsonLine(chunk)))
    }
    this.write(doneFrame)
  }

  /** Counts of the whole reply. */
  protected abstract usage(folds: readonly Fold[]): UsageBody
}
