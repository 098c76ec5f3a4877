import type { Json } from "../../ir/conversation"
import type { EngineError } from "../../ir/engine"
import type { ChoiceUsage, ItemSink, Outcome } from "../../ir/item-event"
import { tokenList } from "../../ir/token-list"
import { chatMessage } from "../chat/present"
import type { Exchange, StreamView } from "../endpoint"
import { errorBody } from "../errors"
import type { Fold, PositionLogprobs } from "../fold"
import { FoldView } from "../fold-view"
import { dataFrame, doneFrame, errorFrame, jsonLine } from "../frames"
import { chatLogprob, promptLogprobs } from "../logprobs"
import { timingBody, usageBody, usageChunk } from "../usage"
import type { GenerateAsk } from "./generate-lower"

/** The whole GenerateResponse; every key is there, null where it has no value (RENDER 6). */
export function presentGenerate(exchange: Exchange<GenerateAsk>, folds: readonly Fold[]): object {
  const { ask, facts, config, prompts } = exchange
  const outcome = folds[0]!.outcome
  const promptRows = folds[0]!.prompt
  const hasMetrics = config.enablePerRequestMetrics && folds.length === 1 && outcome !== null
  return {
    request_id: exchange.id,
    model: exchange.model,
    created: exchange.createdAt,
    usage: usageBody(exchange, folds, ask.outputMode === "derender"),
    prompt_logprobs: promptRows === null ? null : promptLogprobs(promptRows, facts.tokenText),
    prompt_token_id_logprobs: null,
    prompt_token_ids: ask.returnTokenIds ? tokenList(prompts[0]!.tokenIds) : null,
    mm_placeholders: ask.returnTokenIds ? placeholders(exchange) : null,
    metrics: hasMetrics ? timingBody(outcome) : null,
    kv_transfer_params: outcome?.kvTransferParams ?? null,
    ec_transfer_params: outcome?.ecTransferParams ?? null,
    output_mode: ask.outputMode,
    choices: folds.map((fold, index) => ({
      index,
      finish_reason: fold.outcome!.finish,
      stop_reason: fold.outcome!.stopReason,
      token_ids: fold.tokenIds,
      routed_experts: null,
      sampling_mask: null,
      weight_versions: null,
      logprobs: presentLogprobs(exchange, fold.logprobs),
      ...(ask.outputMode === "text" && { text: fold.text("text") }),
      ...(ask.outputMode === "derender" && { message: chatMessage(fold, ask.toolChoice, config.responseRole, "") }),
    })),
  }
}

/** Where media stand in a prompt that came with them expanded; null where nobody here knows. */
function placeholders({ media }: Exchange<GenerateAsk>): Json {
  return media?.features?.mm_placeholders ?? null
}

function presentLogprobs({ ask, facts }: Exchange<GenerateAsk>, positions: readonly PositionLogprobs[]): object | null {
  const { logprobs, outputMode } = ask
  if (logprobs === null) return null
  if (outputMode === "tokens") return { content: positions.map(idLogprob) }
  return { content: positions.map((position) => chatLogprob(position, logprobs, facts.tokenText)) }
}

/** JSON has neither −∞ nor NaN. */
const logprobMin = -9999

/** A position by ids: the sampled token first, then the others by rank, none cut off. */
function idLogprob({ tokenIds, logprobs, rank }: PositionLogprobs): object {
  const top: object[] = []
  let next = 0
  for (let i = 0; i < tokenIds.length; i++) {
    if (i > 0 && tokenIds[i] === tokenIds[0]) continue
    if (i > 0) next += next + 1 === rank ? 2 : 1
    top.push({ token_id: tokenIds[i]!, logprob: finite(logprobs[i]!), rank: i === 0 ? rank : next })
  }
  return { token_id: tokenIds[0]!, logprob: finite(logprobs[0]!), rank, top_logprobs: top }
}

function finite(logprob: number): number {
  return Number.isNaN(logprob) ? logprobMin : Math.max(logprobMin, logprob)
}

/** The stream: one chunk an engine step of a choice, usage if asked for, `[DONE]`. */
export class GenerateStream implements StreamView {
  private readonly exchange: Exchange<GenerateAsk>
  private readonly write: (frame: string) => void

  constructor(exchange: Exchange<GenerateAsk>, write: (frame: string) => void) {
    this.exchange = exchange
    this.write = write
  }

  begin(): void {}

  choice(index: number, fold: Fold): ItemSink {
    return new GenerateChoice(this.exchange, index, fold, this.write)
  }

  end(folds: readonly Fold[]): void {
    const { ask, id } = this.exchange
    const failed = folds.some((fold) => fold.failure !== null)
    if (ask.includeUsage && !failed) {
      const usage = usageChunk(usageBody(this.exchange, folds, false))
      this.write(dataFrame(jsonLine({ request_id: id, output_mode: ask.outputMode, choices: [], usage })))
    }
    this.write(doneFrame)
  }
}

/** One choice: what a step gave leaves when the step is over. */
class GenerateChoice extends FoldView {
  private readonly exchange: Exchange<GenerateAsk>
  private readonly write: (frame: string) => void
  private readonly head: string
  private isFirst = true
  private text = ""
  private shownTokens = 0

  constructor(exchange: Exchange<GenerateAsk>, index: number, fold: Fold, write: (frame: string) => void) {
    super(fold)
    this.exchange = exchange
    this.write = write
    const mode = exchange.ask.outputMode
    this.head = `data: {"request_id":${jsonLine(exchange.id)},"output_mode":"${mode}","choices":[{"index":${index}`
  }

  override delta(text: string): void {
    super.delta(text)
    if (this.exchange.ask.outputMode === "text") this.text += text
  }

  override flush(): void {
    if (this.text === "" && this.fold.tokenIds.length === this.shownTokens) return
    this.emit("null", "null", null)
  }

  override done(outcome: Outcome): void {
    super.done(outcome)
    this.emit(jsonLine(outcome.finish), jsonLine(outcome.stopReason), outcome)
  }

  override fail(error: EngineError, usage: ChoiceUsage | null): void {
    super.fail(error, usage)
    this.flush()
    this.write(errorFrame(errorBody(error)))
  }

  /** A chunk with the tokens and the text since the last one. */
  private emit(finish: string, stopReason: string, outcome: Outcome | null): void {
    const { exchange, fold } = this
    const { ask, prompts } = exchange
    const ids = fold.tokenIds.slice(this.shownTokens)
    const positions = ask.logprobs === null ? null : fold.logprobs.slice(this.shownTokens)
    this.shownTokens = fold.tokenIds.length
    const logprobs = positions === null ? "null" : jsonLine(presentLogprobs(exchange, positions))
    const text = ask.outputMode === "text" ? `,"text":${jsonLine(this.text)}` : ""
    this.text = ""
    const promptTokens = prompts[0]!.tokenIds.length
    const usage = ask.continuousUsage
      ? `{"prompt_tokens":${promptTokens},"total_tokens":${promptTokens + fold.tokenIds.length},"completion_tokens":${fold.tokenIds.length}}`
      : "null"
    const promptRows = this.isFirst ? fold.prompt : null
    const promptLogs =
      promptRows === null ? "" : `,"prompt_logprobs":${jsonLine(promptLogprobs(promptRows, exchange.facts.tokenText))}`
    const promptIds =
      this.isFirst && ask.returnTokenIds ? `,"prompt_token_ids":${jsonLine(tokenList(prompts[0]!.tokenIds))}` : ""
    const places = this.isFirst && ask.returnTokenIds ? placeholders(exchange) : null
    const spans = places === null ? "" : `,"mm_placeholders":${jsonLine(places)}`
    this.isFirst = false
    const kv = outcome?.kvTransferParams ?? null
    const ec = outcome?.ecTransferParams ?? null
    const transfer =
      (kv === null ? "" : `,"kv_transfer_params":${jsonLine(kv)}`) +
      (ec === null ? "" : `,"ec_transfer_params":${jsonLine(ec)}`)
    this.write(
      `${this.head},"token_ids":[${ids.join(",")}],"finish_reason":${finish},"stop_reason":${stopReason},` +
        `"logprobs":${logprobs}${text}}],"usage":${usage}${promptIds}${spans}${promptLogs}${transfer}}\n\n`,
    )
  }
}
