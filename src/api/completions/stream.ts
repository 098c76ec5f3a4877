import type { EngineError, LogprobRows } from "../../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../../ir/item-event"
import type { Exchange, StreamView } from "../endpoint"
import { errorBody } from "../errors"
import type { Fold } from "../fold"
import { dataFrame, doneFrame, errorFrame, jsonLine, jsonString } from "../frames"
import { CompletionLogprobs } from "../logprobs"
import { runningUsage, timingBody, usageChunk } from "../usage"
import { systemFingerprint } from "../version"
import type { CompletionAsk } from "./lower"
import { addPromptLogprobs, addTokenLogprobs, completionUsage, promptText } from "./present"

/** Completions' stream: text chunks, usage, `[DONE]`; choices interleave by `index` (CHAT 7). */
export class CompletionStream implements StreamView {
  private readonly exchange: Exchange<CompletionAsk>
  private readonly write: (frame: string) => void
  private readonly head: string

  constructor(exchange: Exchange<CompletionAsk>, write: (frame: string) => void) {
    this.exchange = exchange
    this.write = write
    const { id, createdAt, model } = exchange
    const head = jsonLine({ id, object: "text_completion", created: createdAt, model })
    this.head = `data: ${head.slice(0, -1)},"choices":[`
  }

  begin(): void {}

  choice(index: number, fold: Fold): ItemSink {
    return new CompletionChoice(this.exchange, index, fold, this.head, this.write)
  }

  end(folds: readonly Fold[]): void {
    const { ask, id, createdAt, model, config } = this.exchange
    const failed = folds.some((fold) => fold.failure !== null)
    if (ask.includeUsage && !failed) {
      const usage = usageChunk(completionUsage(this.exchange, folds))
      const outcome = folds.length === 1 ? folds[0]!.outcome : null
      const metrics = config.enablePerRequestMetrics && outcome !== null ? { metrics: timingBody(outcome) } : {}
      const head = { id, object: "text_completion", created: createdAt, model, choices: [] }
      this.write(dataFrame(jsonLine({ ...head, usage, system_fingerprint: systemFingerprint, ...metrics })))
    }
    this.write(doneFrame)
  }
}

/** One choice. Text leaves at once unless logprobs, ids or running usage ride beside it; then once a step. */
class CompletionChoice implements ItemSink {
  private readonly exchange: Exchange<CompletionAsk>
  private readonly index: number
  private readonly fold: Fold
  private readonly write: (frame: string) => void
  private readonly textHead: string
  private readonly gathers: boolean
  private gathered = ""
  private isFirst = true
  private shownTokens = 0
  private offset = 0

  constructor(
    exchange: Exchange<CompletionAsk>,
    index: number,
    fold: Fold,
    head: string,
    write: (frame: string) => void,
  ) {
    this.exchange = exchange
    this.index = index
    this.fold = fold
    this.write = write
    this.textHead = `${head}{"index":${index},"text":`
    const { logprobs, returnTokenIds, continuousUsage } = exchange.ask
    this.gathers = logprobs !== null || returnTokenIds || continuousUsage
  }

  promptLogprobs(rows: LogprobRows): void {
    this.fold.promptLogprobs(rows)
  }

  open(item: ItemOpening): void {
    this.fold.open(item)
  }

  /** Hot (bench/fold.ts). */
  delta(text: string): void {
    this.fold.delta(text)
    if (this.exchange.ask.promptOnly) return
    if (this.gathers || this.isFirst) this.gathered += text
    else this.write(`${this.textHead}${jsonString(text)}${plainTail}`)
  }

  close(cut: boolean): void {
    this.fold.close(cut)
  }

  step(tokenIds: Uint32Array, start: number, end: number, logprobs: LogprobRows | null): void {
    this.fold.step(tokenIds, start, end, logprobs)
  }

  flush(): void {
    if (this.gathered === "" && this.fold.tokenIds.length === this.shownTokens) return
    this.emit("null", "null")
  }

  done(outcome: Outcome): void {
    this.fold.done(outcome)
    this.emit(jsonLine(outcome.finish), jsonLine(outcome.stopReason))
  }

  fail(error: EngineError, usage: ChoiceUsage | null): void {
    this.fold.fail(error, usage)
    this.flush()
    this.write(errorFrame(errorBody(error)))
  }

  private emit(finish: string, stopReason: string): void {
    const { exchange, fold } = this
    const { ask } = exchange
    const prompt = exchange.prompts[Math.floor(this.index / exchange.choicesPerPrompt)]!
    const echo = this.isFirst && ask.echo ? promptText(exchange, this.index) : ""
    const text = jsonLine(echo + this.gathered)
    const promptIds = this.isFirst && ask.returnTokenIds ? jsonLine(Array.from(prompt.tokenIds)) : "null"
    const newTokens = ask.promptOnly ? [] : fold.tokenIds.slice(this.shownTokens)
    const ids = ask.returnTokenIds ? jsonLine(newTokens) : "null"
    const usage = ask.continuousUsage
      ? `,"usage":${jsonLine(runningUsage(prompt.tokenIds.length, ask.promptOnly ? 0 : fold.tokenIds.length))}`
      : ""
    const fingerprint =
      finish !== "null" && !ask.includeUsage ? `,"system_fingerprint":${jsonLine(systemFingerprint)}` : ""
    this.write(
      `${this.textHead}${text},"logprobs":${this.takeLogprobs(prompt.tokenIds, finish !== "null")},"finish_reason":${finish},` +
        `"stop_reason":${stopReason},"prompt_token_ids":${promptIds},"token_ids":${ids}}]${usage}${fingerprint}}\n\n`,
    )
    this.isFirst = false
    this.gathered = ""
    this.shownTokens = fold.tokenIds.length
  }

  /** Lists of the tokens since the last chunk; a reply without tokens has its empty lists in the last one. */
  private takeLogprobs(promptIds: Uint32Array, isLast: boolean): string {
    const { ask } = this.exchange
    if (ask.logprobs === null) return "null"
    const lists = new CompletionLogprobs()
    if (this.isFirst && ask.echo) this.offset = addPromptLogprobs(lists, this.exchange, promptIds, this.fold)
    if (!ask.promptOnly) {
      this.offset = addTokenLogprobs(lists, this.exchange, this.fold, this.shownTokens, this.offset)
    }
    const isShown = lists.tokens.length > 0 || (isLast && this.isFirst)
    return isShown ? jsonLine(lists) : "null"
  }
}

/** Behind the text of a chunk that carries nothing else. */
const plainTail =
  ',"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}\n\n'
