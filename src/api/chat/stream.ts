import { DeltaFrame, FramePart, type WriteDelta } from "../../http/delta-frame"
import { jsonString } from "../../http/json-string"
import type { EngineError } from "../../ir/engine"
import type { ChoiceUsage, ItemOpening, ItemSink, Outcome } from "../../ir/item-event"
import { tokenList } from "../../ir/token-list"
import { ChunkStream } from "../chunk-stream"
import type { Exchange } from "../endpoint"
import { errorBody } from "../errors"
import type { Fold } from "../fold"
import { FoldView } from "../fold-view"
import { errorFrame, jsonLine } from "../frames"
import { chatLogprob, tokenName } from "../logprobs"
import { runningUsage, type UsageBody, usageBody } from "../usage"
import { systemFingerprint } from "../version"
import type { ChatAsk } from "./lower"
import { chatFinishReason } from "./present"

/** Chat's stream: role chunk, deltas, a last chunk with the finish reason, usage, `[DONE]` (CHAT 4). */
export class ChatStream extends ChunkStream<ChatAsk> {
  constructor(exchange: Exchange<ChatAsk>, write: (frame: string) => void, writeDelta?: WriteDelta) {
    super("chat.completion.chunk", exchange, write, writeDelta)
  }

  begin(): void {
    const { ask, choicesPerPrompt, prompts } = this.exchange
    const prompt = prompts[0]!
    const ids = ask.returnTokenIds ? jsonLine(tokenList(prompt.tokenIds)) : "null"
    const text = ask.returnPromptText ? jsonLine(prompt.text) : "null"
    const usage = ask.continuousUsage ? `,"usage":${jsonLine(runningUsage(prompt.tokenIds.length, 0))}` : ""
    const role = jsonLine(ask.role)
    const from = `],"prompt_token_ids":${ids},"prompt_text":${text}${usage}}\n\n`
    for (let index = 0; index < choicesPerPrompt; index++) {
      const delta = `{"role":${role},"content":""}`
      this.write(`${this.head}{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":null}${from}`)
    }
    if (ask.echo === "") return
    for (let index = 0; index < choicesPerPrompt; index++) {
      const delta = `{"content":${jsonString(ask.echo)}}`
      this.write(`${this.head}{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":null}]}\n\n`)
    }
  }

  choice(index: number, fold: Fold): ItemSink {
    return new ChatChoice(this.exchange, index, fold, this.head, this.write, this.writeDelta)
  }

  protected usage(folds: readonly Fold[]): UsageBody {
    return usageBody(this.exchange, folds, true)
  }
}

/** What a chunk gathers when tokens ride beside the text. `rank` tells which kinds may still join it. */
interface Gathered {
  reasoning: string
  content: string
  toolCalls: string[]
  rank: 0 | 1 | 2 | 3
}

/**
 * One choice of a chat stream. Deltas leave at once; only when logprobs, ids or running usage ride beside them are
 * they gathered until the step ends, so that both share a chunk.
 */
class ChatChoice extends FoldView {
  private readonly exchange: Exchange<ChatAsk>
  private readonly write: (frame: string) => void
  private readonly writeDelta: WriteDelta
  /** Of the open item. */
  private deltaFrame: DeltaFrame | null = null
  /** Up to the delta's value, and behind it. */
  private readonly deltaHead: string
  private readonly gathers: boolean
  private readonly gathered: Gathered = { reasoning: "", content: "", toolCalls: [], rank: 0 }
  private kind: ItemOpening["kind"] = "text"
  private callIndex = -1
  private shownTokens = 0

  constructor(
    exchange: Exchange<ChatAsk>,
    index: number,
    fold: Fold,
    head: string,
    write: (frame: string) => void,
    writeDelta: WriteDelta,
  ) {
    super(fold)
    this.exchange = exchange
    this.write = write
    this.writeDelta = writeDelta
    this.deltaHead = `${head}{"index":${index},"delta":`
    const { topLogprobs, returnTokenIds, continuousUsage } = exchange.ask
    this.gathers = topLogprobs !== null || returnTokenIds || continuousUsage
  }

  override open(item: ItemOpening): void {
    super.open(item)
    this.kind = item.kind
    if (item.kind === "call") this.openCall(item)
    const tail = item.kind === "call" ? callTail : textTail
    if (!this.gathers) this.deltaFrame = new DeltaFrame(`${this.deltaHead}${this.deltaKey()}`, tail)
    if (item.joiner !== undefined) this.show(item.joiner)
  }

  private openCall(item: ItemOpening): void {
    this.callIndex += 1
    const opening = { name: item.name, arguments: "" }
    this.call(jsonLine({ index: this.callIndex, id: item.callId, type: "function", function: opening }))
  }

  /** Hot (bench/fold.ts). */
  override delta(text: string): void {
    super.delta(text)
    this.show(text)
  }

  /** Hot (bench/fold.ts): more of the open item's text, as far as the client is concerned. */
  private show(text: string): void {
    if (this.deltaFrame !== null) this.writeDelta(this.deltaFrame, text, -1)
    else if (this.kind !== "call") this.gather(this.kind, text)
    else this.call(`{"index":${this.callIndex},"function":{"arguments":${jsonString(text)}}}`)
  }

  /** What stands before the text of the open item, within the delta. */
  private deltaKey(): string {
    if (this.kind === "call") return `{"tool_calls":[{"index":${this.callIndex},"function":{"arguments":`
    return this.kind === "reasoning" ? '{"reasoning":' : '{"content":'
  }

  override flush(): void {
    if (!this.gathers) return
    if (this.gathered.rank > 0 || this.fold.tokenIds.length > this.shownTokens) this.emit("null", "")
  }

  override done(outcome: Outcome): void {
    super.done(outcome)
    const finish = chatFinishReason(outcome.finish, this.exchange.ask.toolChoice, this.fold)
    const stopReason = `,"stop_reason":${jsonLine(outcome.stopReason)}`
    this.emit(jsonLine(finish), stopReason)
  }

  override fail(error: EngineError, usage: ChoiceUsage | null): void {
    super.fail(error, usage)
    this.flush()
    this.write(errorFrame(errorBody(error)))
  }

  private call(json: string): void {
    if (!this.gathers) {
      this.write(`${this.deltaHead}{"tool_calls":[${json}]}${plainTail}`)
      return
    }
    this.gathered.toolCalls.push(json)
    this.gathered.rank = 3
  }

  /** Text that follows a later kind in the same step begins a chunk of its own, so that order is kept. */
  private gather(kind: "reasoning" | "text", text: string): void {
    const rank = kind === "reasoning" ? 1 : 2
    const { gathered } = this
    if (gathered.rank > rank) {
      this.write(`${this.deltaHead}${this.takeDelta()}${plainTail}`)
    }
    if (kind === "reasoning") gathered.reasoning += text
    else gathered.content += text
    gathered.rank = rank
  }

  private takeDelta(): string {
    const { gathered } = this
    const fields: string[] = []
    if (gathered.reasoning !== "") fields.push(`"reasoning":${jsonString(gathered.reasoning)}`)
    if (gathered.content !== "") fields.push(`"content":${jsonString(gathered.content)}`)
    if (gathered.toolCalls.length > 0) fields.push(`"tool_calls":[${gathered.toolCalls.join(",")}]`)
    gathered.reasoning = ""
    gathered.content = ""
    gathered.toolCalls = []
    gathered.rank = 0
    return `{${fields.join(",")}}`
  }

  /** A chunk with what was gathered and the tokens since the last one. */
  private emit(finish: string, stopReason: string): void {
    const { exchange, fold } = this
    const { ask } = exchange
    let logprobs = "null"
    if (ask.topLogprobs !== null && fold.logprobs.length > this.shownTokens) {
      const name = tokenName(exchange.facts.tokenText, ask.tokensAsIds)
      const count = ask.topLogprobs
      const fresh = fold.logprobs.slice(this.shownTokens)
      logprobs = jsonLine({ content: fresh.map((position) => chatLogprob(position, count, name)) })
    }
    const ids = ask.returnTokenIds ? jsonLine(fold.tokenIds.slice(this.shownTokens)) : "null"
    this.shownTokens = fold.tokenIds.length
    const usage = ask.continuousUsage
      ? `,"usage":${jsonLine(runningUsage(exchange.prompts[0]!.tokenIds.length, fold.tokenIds.length))}`
      : ""
    const fingerprint =
      finish !== "null" && !ask.includeUsage ? `,"system_fingerprint":${jsonLine(systemFingerprint)}` : ""
    this.write(
      `${this.deltaHead}${this.takeDelta()},"logprobs":${logprobs},"finish_reason":${finish}${stopReason},` +
        `"token_ids":${ids}}]${usage}${fingerprint}}\n\n`,
    )
  }
}

/** Behind the delta of a chunk that carries nothing else. */
const plainTail = ',"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
const textTail = new FramePart(`}${plainTail}`)
const callTail = new FramePart(`}}]}${plainTail}`)
