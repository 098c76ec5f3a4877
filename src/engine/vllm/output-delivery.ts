import { type EngineError, type EngineOutput, emptyOutput, Finish } from "../../ir/engine"
import { ok, type Result } from "../../result"
import type { EngineLink } from "./engine-link"
import type { MalformedFrame } from "./message-pack-reader"
import { OutputFields } from "./output-fields"
import type { OutputsBatch } from "./outputs-batch"
import { OutputsDecoder } from "./outputs-decoder"
import type { RequestIds } from "./request-id"
import type { RunningSequence, RunningSequences } from "./running-sequences"

const idText = new TextDecoder()
const delivered: Result<null, MalformedFrame> = ok(null)

/**
 * Messages of engines → calls of the receivers. One output object and one set of arrays for all of them; a token that
 * carries nothing else makes no object.
 */
export class OutputDelivery {
  private readonly sequences: RunningSequences
  private readonly log: (line: string) => void
  private readonly decoder: OutputsDecoder
  private readonly fields: OutputFields
  private readonly output: EngineOutput = emptyOutput(new Uint32Array(0))

  constructor(sequences: RunningSequences, ids: RequestIds, log: (line: string) => void) {
    this.sequences = sequences
    this.log = log
    this.decoder = new OutputsDecoder(ids)
    this.fields = new OutputFields(this.decoder.batch, ids)
  }

  /** Hot (bench/frames.ts): one message. On a failure none of it was delivered. */
  message(link: EngineLink, frames: readonly Uint8Array[]): Result<null, MalformedFrame> {
    const decoded = this.decoder.decode(frames)
    if (!decoded.ok) return decoded
    const batch = decoded.value
    this.output.at = batch.timestamp
    if (batch.schedulerStatsAt >= 0) this.takeStats(link)
    if (batch.utilityAt >= 0) this.takeAnswer(link)
    for (let i = 0; i < batch.count; i++) {
      const sequence = this.sequences.find(batch.slot[i]!, batch.serial[i]!)
      // Another engine's sequence is none of this one's business, whatever it says.
      if (sequence !== null && sequence.link === link) this.deliver(link, sequence, batch, i)
    }
    if (batch.strangers.length > 0) this.dropStrangers(link, batch)
    return delivered
  }

  /** The last call: an output that ends it. */
  finish(sequence: RunningSequence, output: EngineOutput): void {
    if (sequence.ended) return
    this.sequences.remove(sequence)
    this.give(sequence, output)
  }

  /** The last call: a failure; `finished` = as an output said it. */
  fail(sequence: RunningSequence, error: EngineError, finished = false): void {
    if (sequence.ended) return
    this.sequences.remove(sequence)
    try {
      sequence.receiver.fail(error, finished)
    } catch (cause) {
      this.receiverThrew(sequence, cause)
    }
  }

  private give(sequence: RunningSequence, output: EngineOutput): void {
    try {
      sequence.receiver.output(output)
    } catch (cause) {
      this.receiverThrew(sequence, cause)
    }
  }

  /** A fault of ours; it must not take the other sequences of the message with it. */
  private receiverThrew(sequence: RunningSequence, cause: unknown): void {
    const shown = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
    this.log(`internal error at an output of ${sequence.id}: ${shown}`)
    if (sequence.ended) return
    sequence.abort()
    try {
      sequence.receiver.fail({ kind: "engine_failed", message: "an output could not be processed" })
    } catch {
      // It has been told as far as it can be.
    }
  }

  private deliver(link: EngineLink, sequence: RunningSequence, batch: OutputsBatch, i: number): void {
    const { output } = this
    output.tokenIds = batch.tokenIds
    output.start = batch.start[i]!
    output.end = batch.end[i]!
    output.finish = batch.finishOf(i)
    output.stopTokenId = batch.stopTokenId[i]!
    output.logprobs = null
    output.promptLogprobs = null
    output.cachedTokens = -1
    output.cacheWriteTokens = -1
    output.queuedAt = -1
    output.scheduledAt = -1
    output.kvTransferParams = null
    output.ecTransferParams = null
    if (batch.present[i]! !== 0 && !this.takeFields(link, sequence, i)) return
    if (output.finish !== Finish.error) {
      sequence.constraintPending = false
      if (output.finish === Finish.none) this.give(sequence, output)
      else this.finish(sequence, output)
      return
    }
    const error = this.errorOf(sequence, i)
    output.finish = Finish.none
    if (output.end > output.start) this.give(sequence, output)
    this.fail(sequence, error, true)
  }

  /** What only some outputs carry. False when it cannot be read: the sequence has then failed. */
  private takeFields(link: EngineLink, sequence: RunningSequence, i: number): boolean {
    const { fields, output } = this
    const logprobs = fields.logprobs(i)
    const promptLogprobs = fields.promptLogprobs(i)
    const prefill = fields.prefillStats(i)
    const events = fields.events(i)
    const kvTransfer = fields.kvTransferParams(i)
    const ecTransfer = fields.ecTransferParams(i)
    for (const field of [logprobs, promptLogprobs, prefill, events, kvTransfer, ecTransfer]) {
      if (field.ok) continue
      this.log(`an output of ${sequence.id} cannot be read: ${field.error.message}`)
      const { id, ended } = sequence
      this.fail(sequence, { kind: "engine_failed", message: "the engine sent an output that cannot be read" })
      if (!ended) link.abort(id)
      return false
    }
    if (logprobs.ok) output.logprobs = logprobs.value
    if (promptLogprobs.ok) output.promptLogprobs = promptLogprobs.value
    if (prefill.ok && prefill.value !== null) {
      output.cachedTokens = prefill.value.cachedTokens
      output.cacheWriteTokens = prefill.value.cacheCreationTokens
    }
    if (events.ok && events.value !== null) {
      // Without the step's own moment there is nothing to measure them by.
      if (output.at >= 0) {
        output.queuedAt = events.value.queuedAt
        output.scheduledAt = events.value.scheduledAt
      }
      link.counters.preemptions += events.value.preemptions
    }
    if (kvTransfer.ok) output.kvTransferParams = kvTransfer.value
    if (ecTransfer.ok) output.ecTransferParams = ecTransfer.value
    return true
  }

  private errorOf(sequence: RunningSequence, i: number): EngineError {
    const said = this.fields.error(i)
    if (!said.ok || said.value === null) {
      // 0.32 gives no reason when its back end cannot compile a grammar: that is what a client can do to a first token.
      if (sequence.constraintPending) {
        const message = "the engine's grammar back end does not take this constraint"
        return { kind: "engine_validation", message, param: "structured_outputs" }
      }
      return { kind: "engine_failed", message: "the engine ended the sequence with an error" }
    }
    const { code, message, retryable } = said.value
    if (retryable) return { kind: "engine_retryable", message: `${code}: ${message}` }
    return code === "validation_error"
      ? { kind: "engine_validation", message, param: null }
      : { kind: "engine_failed", message: `${code}: ${message}` }
  }

  /** What an earlier process of this server left in the engine: nobody reads it any more, so it is aborted. */
  private dropStrangers(link: EngineLink, { strangers, frames, finish }: OutputsBatch): void {
    for (let at = 0; at < strangers.length; at += 3) {
      const id = idText.decode(frames[0]!.subarray(strangers[at + 1]!, strangers[at + 2]!))
      if (!link.dropStranger(id, finish[strangers[at]!] !== Finish.none)) continue
      this.log(`${link.label} sends what an earlier process of this server asked for: that is aborted`)
    }
  }

  private takeStats(link: EngineLink): void {
    const stats = this.fields.schedulerStats()
    if (!stats.ok) this.log(`${link.label}: statistics cannot be read: ${stats.error.message}`)
    else if (stats.value !== null) link.note(stats.value)
  }

  private takeAnswer(link: EngineLink): void {
    const answer = this.fields.utility()
    if (!answer.ok) {
      this.log(`${link.label}: an answer cannot be read: ${answer.error.message}`)
      link.unreadableAnswer(this.fields.utilityCallId(), answer.error.message)
    } else if (answer.value !== null) link.answered(answer.value.callId, answer.value.failure, answer.value.result)
  }
}
