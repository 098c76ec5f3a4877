/**
 * The way up as a server connects it (detokenizer → stop strings → parser → items → fold → view → bytes), without engine
 * and sockets: whoever holds a reply plays the engine.
 */
import { chatEndpoint } from "../../src/api/chat/endpoint"
import type { Endpoint, Exchange, LowerContext, Lowered, ModelFacts } from "../../src/api/endpoint"
import { Fold } from "../../src/api/fold"
import { responseEndpoint } from "../../src/api/responses/endpoint"
import { defaultConfig } from "../../src/config"
import { type GenerateRoom, Generation } from "../../src/generate/generate"
import { FrameBuffer } from "../../src/http/frame-buffer"
import type { Engine, EngineReceiver } from "../../src/ir/engine"
import { builtInProfile } from "../../src/model/built-in"
import type { ParserFactory } from "../../src/parser/parser"
import { chooseParser } from "../../src/parser/registry"
import { ok } from "../../src/result"
import { openO200k } from "../../src/tokenizer/open"
import { TokenTexts } from "../../src/tokenizer/token-texts"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"

/** Which API answers, and how. */
export interface ReplyForm {
  readonly api: "chat" | "responses"
  readonly stream: boolean
}

/** A reply under way. */
export interface Reply extends EngineReceiver {
  readonly fold: Fold
  /**
   * Leaves as one write: all frames since the last time, or the whole reply once it is complete. Gives its bytes, and
   * their text to those who want to see it.
   */
  flush(text?: string[]): number
  readonly ended: boolean
}

/** Everything that stays the same from reply to reply. Ids and clocks stand still, so equal replies are equal bytes. */
export class ReplyRoad {
  readonly endTokenId: number
  private readonly tokenizer: Tokenizer
  private readonly parser: ParserFactory
  private readonly context: LowerContext
  private readonly promptTokenIds: Uint32Array
  private receiver: EngineReceiver | null = null
  private readonly room: GenerateRoom

  private constructor(tokenizer: Tokenizer, parser: ParserFactory, facts: ModelFacts, endTokenId: number) {
    this.tokenizer = tokenizer
    this.parser = parser
    this.endTokenId = endTokenId
    this.context = {
      config: defaultConfig,
      model: facts,
      headers: new Headers(),
      mediaRefusal: null,
      newId: () => "0".repeat(32),
    }
    this.promptTokenIds = this.encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    const engine: Pick<Engine, "submit"> = {
      submit: (_request, receiver) => {
        this.receiver = receiver
        return ok({ abort: () => {} })
      },
    }
    this.room = {
      engine: engine as Engine, // nothing else of it is used to start a sequence
      tokenizer,
      ids: { item: () => "0".repeat(32), call: () => "call_0" },
      now: () => 0,
      countTokens: () => {},
    }
  }

  /** With the built-in model. */
  static async open(): Promise<ReplyRoad> {
    const profile = builtInProfile()
    if (profile.tokenizer.kind !== "o200k") throw new Error("the built-in profile has another vocabulary")
    const { specialTokens, addedTokens } = profile.tokenizer
    const tokenizer = await openO200k({ special: specialTokens, added: addedTokens })
    const parser = chooseParser(profile, "auto", "auto", tokenizer)
    if (!parser.ok) throw new Error(parser.error.message)
    const texts = new TokenTexts(tokenizer)
    const facts: ModelFacts = {
      names: ["bench"],
      adapters: [],
      root: profile.root,
      contextTokensMax: profile.contextTokensMax,
      samplingDefaults: profile.samplingDefaults,
      vocabSize: tokenizer.vocabSize,
      hasChatTemplate: true,
      writesHarmony: false,
      parsesReasoning: true,
      parsesCalls: true,
      mediaKinds: [],
      tokenText: (id) => texts.text(id),
      decode: (tokenIds) => tokenizer.decode(tokenIds, false),
    }
    return new ReplyRoad(tokenizer, parser.value, facts, profile.eosTokenIds[0]!)
  }

  encode(text: string): Uint32Array {
    const ids = this.tokenizer.encode(text, { addSpecialTokens: false })
    if (!ids.ok) throw new Error(ids.error.message)
    return ids.value
  }

  /** A function that starts replies to one request: its body is read once. */
  request({ api, stream }: ReplyForm, stop: readonly string[]): () => Reply {
    const common = { stream, stop }
    const parameters = { type: "object", properties: { note: { type: "string" } } }
    const tool = { name: "write", parameters }
    return api === "chat"
      ? this.prepare(chatEndpoint, {
          ...common,
          messages: [{ role: "user", content: "Hi" }],
          stream_options: stream ? { include_usage: true } : null,
          tools: [{ type: "function", function: tool }],
        })
      : this.prepare(responseEndpoint, { ...common, input: "Hi", tools: [{ type: "function", ...tool }] })
  }

  private prepare<Body, Ask>(endpoint: Endpoint<Body, Ask>, body: unknown): () => Reply {
    const checked = endpoint.check.check(body)
    if (!checked.ok) throw new Error(JSON.stringify(checked.error))
    const lowered = endpoint.lower(checked.value, this.context)
    if (!lowered.ok) throw new Error(JSON.stringify(lowered.error))
    const exchange: Exchange<Ask> = {
      id: lowered.value.id,
      createdAt: 0,
      model: this.context.model.names[0]!,
      ask: lowered.value.ask,
      prompts: [{ tokenIds: this.promptTokenIds, text: null }],
      media: null,
      isOpenEnded: false,
      choicesPerPrompt: 1,
      sampling: lowered.value.sampling,
      reasoningEnded: null,
      facts: this.context.model,
      config: this.context.config,
    }
    return () => this.start(endpoint, lowered.value, exchange)
  }

  private start<Body, Ask>(endpoint: Endpoint<Body, Ask>, lowered: Lowered<Ask>, exchange: Exchange<Ask>): Reply {
    const fold = new Fold()
    const pending = new FrameBuffer()
    let ended = false
    const view = lowered.stream
      ? endpoint.stream(
          exchange,
          (frame) => pending.text(frame),
          (frame, text, number) => pending.delta(frame, text, number),
        )
      : null
    view?.begin()
    const generation = new Generation(() => {
      ended = true
      if (view === null) pending.text(JSON.stringify(endpoint.present(exchange, [fold])))
      else view.end([fold])
    })
    const request = {
      ...{ requestId: "0", promptTokenIds: this.promptTokenIds, sampling: exchange.sampling, eosTokenIds: [] },
      ...{ priority: 0, cacheSalt: null, sessionId: null, dataParallelRank: null, traceHeaders: null },
    }
    const reading = { ...lowered, parser: this.parser, parseCalls: lowered.parsing.calls }
    generation.start(this.room, [{ request, sink: view?.choice(0, fold) ?? fold }], reading)
    const receiver = this.receiver!
    return {
      fold,
      output: (output) => receiver.output(output),
      fail: (error) => receiver.fail(error),
      flush: (text) => {
        const bytes = pending.length
        if (text !== undefined) text.push(new TextDecoder().decode(pending.view()))
        pending.clear()
        return bytes
      },
      get ended() {
        return ended
      },
    }
  }
}
