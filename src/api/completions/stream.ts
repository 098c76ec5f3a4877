import { DeltaFrame, FramePart, type WriteDelta } from "../../http/delta-frame"
import type { EngineError } from "../../ir/engine"
import type { ChoiceUsage, ItemSink, Outcome } from "../../ir/item-event"
import { tokenList } from "../../ir/token-list"
import { ChunkStream } from "../chunk-stream"
import type { Exchange } from "../endpoint"
import { errorBody } from "../errors"
import type { Fold } from "../fold"
import { FoldView } from "../fold-view"
import { errorFrame, jsonLine } from "../frames"
import { CompletionLogprobs } from "../logprobs"
import { runningUsage, type UsageBody } from "../usage"
import { systemFingerprint } from "../version"
import type { CompletionAsk } from "./lower"
import { addPromptLogprobs, addTokenLogprobs, completionUsage, promptText } from "./present"

/** Completions' stream: text chunks, usage, `[DONE]`; choices interleave by `index` (CHAT 7). */
export class CompletionStream extends ChunkStream<CompletionAsk> {
  constructor(exchange: Exchange<CompletionAsk>, write: (frame: string) => void, writeDelta?: WriteDelta) {
    super("text_completion", exchange, write, writeDelta)
  }

  begin(): void {}

  choice(index: number, fold: Fold): ItemSink {
    return new CompletionChoice(this.exchange, index, fold, this.head, this.write, this.writeDelta)
  }

  protected usage(folds: readonly Fold[]): UsageBody {
    return completionUsage(this.exchange, folds)
  }
}

/** One choice. Text leaves at once unless logprobs, ids or running usage ride beside it; then once a step. */
class CompletionChoice extends FoldView {
  private readonly exchange: Exchange<CompletionAsk>
  private readonly index: number
  private readonly write: (frame: string) => void
  private readonly writeDelta: WriteDelta
  private readonly textHead: string
  private readonly textFrame: DeltaFrame
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
    writeDelta: WriteDelta,
  ) {
    super(fold)
    this.exchange = exchange
    this.index = index
    this.write = write
    this.writeDelta = writeDelta
    this.textHead = `${head}{"index":${index},"text":`
    this.textFrame = new DeltaFrame(this.textHead, plainTail)
    const { logprobs, returnTokenIds, continuousUsage } = exchange.ask
    this.gathers = logprobs !== null || returnTokenIds || continuousUsage
  }

  /** Hot (bench/fold.ts). */
  override delta(text: string): void {
    super.delta(text)
    if (this.exchange.ask.promptOnly) return
    if (this.gathers || this.isFirst) this.gathered += text
    else this.writeDelta(this.textFrame, text, -1)
  }

  override flush(): void {
    if (this.gathered === "" && this.fold.tokenIds.length === this.shownTokens) return
    this.emit("null", "null")
  }

  override done(outcome: Outcome): void {
    super.done(outcome)
    this.emit(jsonLine(outcome.finish), jsonLine(outcome.stopReason))
  }

  override fail(error: EngineError, usage: ChoiceUsage | null): void {
    super.fail(error, usage)
    this.flush()
    this.write(errorFrame(errorBody(error)))
  }

  private emit(finish: string, stopReason: string): void {
    const { exchange, fold } = this
    const { ask } = exchange
    const prompt = exchange.prompts[Math.floor(this.index / exchange.choicesPerPrompt)]!
    const echo = this.isFirst && ask.echo ? promptText(exchange, this.index) : ""
    const text = jsonLine(echo + this.gathered)
    const promptIds = this.isFirst && ask.returnTokenIds ? jsonLine(tokenList(prompt.tokenIds)) : "null"
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
const plainTail = new FramePart(
  ',"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}\n\n',
)
