import { type Engine, type EngineError, type EngineSequence, emptyOutput, Finish } from "../ir/engine"
import type { GenerateRequest } from "../ir/generate-request"
import type { ChoiceTiming, ChoiceUsage, ItemSink } from "../ir/item-event"
import type { ParserFactory } from "../parser/parser"
import type { Tokenizer } from "../tokenizer/tokenizer"
import { type ItemIds, type ItemOptions, Items } from "./items"
import { Sequence } from "./sequence"
import { StopFilter } from "./stop"

/** What stays the same for all requests of a server. */
export interface GenerateRoom {
  readonly engine: Engine
  readonly tokenizer: Tokenizer
  readonly ids: ItemIds
  /** Seconds on a monotonic clock. */
  readonly now: () => number
  /** Told of new tokens as they come. */
  readonly countTokens: (promptTokens: number, outputTokens: number) => void
}

/** How the output of one request is read. The same for all its choices. */
export interface ReadingOptions extends ItemOptions {
  readonly parser: ParserFactory
  readonly parseCalls: boolean
  /** Whether the reply shows token ids or logprobs. */
  readonly wantsSteps: boolean
  /** Tokens that a delta stands for at least. */
  readonly intervalTokens: number
}

/** One sequence to generate and who receives it. */
export interface Choice {
  readonly request: GenerateRequest
  readonly sink: ItemSink
}

/**
 * The choices of one request while they run. Ends when all are done, when one fails (the others are then aborted,
 * since the reply is an error), or on `abort`.
 */
export class Generation {
  private readonly running = new Map<Sequence, EngineSequence>()
  private readonly sequences: Sequence[] = []
  /** Why the engine would not have one of the choices. */
  refused: EngineError | null = null
  private left = 0
  private over = false
  private readonly onEnded: () => void

  /** `onEnded` is called once, in the same tick as the last sink's `done`, `fail`, or the abort. */
  constructor(onEnded: () => void) {
    this.onEnded = onEnded
  }

  /** Whether it has ended. */
  get isOver(): boolean {
    return this.over
  }

  /** Counts and moments of a choice so far; null when it was never submitted. */
  progress(choice: number): { readonly usage: ChoiceUsage; readonly timing: ChoiceTiming } | null {
    const sequence = this.sequences[choice]
    return sequence === undefined ? null : { usage: sequence.usage(), timing: sequence.timing() }
  }

  /** Starts the choices, or says why the engine will not have one of them. No sink is called before this returns. */
  start(room: GenerateRoom, choices: readonly Choice[], reading: ReadingOptions): EngineError | null {
    this.left = choices.length
    for (const { request, sink } of choices) {
      const sequence = this.sequence(room, request, sink, reading)
      this.sequences.push(sequence)
      const submitted = room.engine.submit(request, sequence)
      if (!submitted.ok) {
        this.refused = submitted.error
        this.abort()
        return submitted.error
      }
      this.running.set(sequence, submitted.value)
    }
    return null
  }

  /** Ends all choices at once; no sink is called any more. */
  abort(): void {
    if (this.over) return
    this.over = true
    for (const [sequence, inEngine] of this.running) {
      sequence.silence()
      inEngine.abort()
    }
    this.running.clear()
    this.onEnded()
  }

  /** Ends all choices with finish reason `abort`: their sinks get what was held back, and `done`. */
  cancel(): void {
    const end = emptyOutput(new Uint32Array(0))
    end.finish = Finish.abort
    for (const [sequence, inEngine] of [...this.running]) {
      inEngine.abort()
      sequence.output(end)
    }
  }

  private sequence(room: GenerateRoom, request: GenerateRequest, sink: ItemSink, reading: ReadingOptions): Sequence {
    const { sampling, promptTokenIds } = request
    const { stop, includeStopStrInOutput, minTokens } = sampling
    const sequence: Sequence = new Sequence({
      detokenizer: room.tokenizer.detokenizer(promptTokenIds, sampling.skipSpecialTokens),
      stop: stop.length === 0 ? null : new StopFilter(stop, includeStopStrInOutput, minTokens),
      parser: reading.parser.create({ promptTokenIds, parseCalls: reading.parseCalls }),
      items: new Items(sink, reading, room.ids),
      sink,
      promptTokens: promptTokenIds.length,
      wantsSteps: reading.wantsSteps,
      showsStopToken: includeStopStrInOutput,
      intervalTokens: reading.intervalTokens,
      now: room.now,
      countTokens: room.countTokens,
      onEnd: (failed) => this.choiceEnded(sequence, failed),
      abortEngine: () => this.running.get(sequence)?.abort(),
    })
    return sequence
  }

  private choiceEnded(sequence: Sequence, failed: boolean): void {
    this.running.delete(sequence)
    this.left -= 1
    if (failed) this.abort()
    else if (this.left === 0) {
      this.over = true
      this.onEnded()
    }
  }
}
