import type { Piece } from "../ir/piece"
import { markerStart } from "./content"
import { Emission } from "./emission"
import { type HarmonyHeader, isNoHeader, parseHeader } from "./harmony-header"
import { JsonScanner } from "./json-scanner"
import type { OutputParser, ParserSink, ParserStart } from "./parser"

/** Ids of the tokens that frame Harmony messages, in one vocabulary. */
export interface HarmonyIds {
  readonly start: number
  readonly channel: number
  readonly constrain: number
  readonly message: number
  /** Each of these three ends a message. */
  readonly end: number
  readonly call: number
  readonly return: number
  /** The ordinary token `analysis`, or -1. */
  readonly analysis: number
}

/** UTF-16 units of a header; a longer one is none. */
const headerUnitsMax = 1024

const functionPrefix = "functions."
/** Tools that run where the model does, in its own thoughts. Source: vLLM 0.33.0. */
const builtInTools: ReadonlySet<string> = new Set(["python", "browser", "container"])

const State = { between: 0, header: 1, reasoning: 2, text: 3, call: 4, hidden: 5 } as const
type State = (typeof State)[keyof typeof State]

/**
 * Messages of gpt-oss, told apart by token ids, as a reply to a prompt that ends in `<|start|>assistant`:
 * `<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary to=functions.f
 * <|constrain|>json<|message|>{"x": 1}<|call|>` gives the reasoning `Look it up.` and the call f with `{"x": 1}`.
 *
 * Channel analysis is reasoning, and so is whatever goes to a built-in tool; a recipient is a function; all else is
 * text, also where the channel is unknown or missing. What the model writes in the name of others (users, tools) is not its reply and is swallowed. Any special token inside a
 * message, other than the three that end one, is a part of its text, as in the reference. Where that would refuse (text
 * between messages, headers that are none, a second end) the text is shown and markers are dropped. Source: PARSERS
 * 4.12, vLLM 0.33.0, openai-harmony 0.0.8.
 */
export class HarmonyParser implements OutputParser {
  /** Tokens whose text came out as reasoning. */
  reasoningTokens = 0
  private state: State
  private readonly ids: HarmonyIds
  private readonly lowestId: number
  private readonly highestId: number
  private readonly parseCalls: boolean
  private readonly emission = new Emission()
  private readonly scanner = new JsonScanner()
  /** The header so far, markers spelled out; whose it is, null = it says so itself; whether it has a marker. */
  private header = ""
  private role: string | null = "assistant"
  private isMarked = false
  /** Tokens of reasoning whose text is still to come: half a character. */
  private waitingTokens = 0

  constructor(ids: HarmonyIds, start: ParserStart) {
    this.ids = ids
    this.parseCalls = start.parseCalls
    const markers = [ids.start, ids.channel, ids.constrain, ids.message, ids.end, ids.call, ids.return]
    this.lowestId = Math.min(...markers)
    this.highestId = Math.max(...markers)
    this.state = State.header
    this.begin(start.promptTokenIds)
  }

  /** Hot (bench/fold.ts). */
  push(piece: Piece, sink: ParserSink): void {
    this.emission.begin(sink)
    const { text, ids, ends } = piece
    let start = 0
    for (let i = 0; i < piece.count; i++) {
      const end = ends[i]!
      const id = ids[i]!
      if (id < this.lowestId || id > this.highestId) this.ordinary(text, start, end)
      else this.marker(id, text, start, end)
      start = end
    }
    this.emission.flush()
  }

  /** A message that lacks its end stays as far as it came; of a header that is cut, only what is none comes out. */
  finish(sink: ParserSink): void {
    this.emission.begin(sink)
    if (this.state === State.header && !this.isMarked) this.speak(wordsBesideHeader(this.header, this.role))
    // The arguments were whole: only the end token is missing.
    if (this.state === State.call && this.scanner.done) this.emission.callEnd()
    this.state = State.hidden
    this.emission.flush()
  }

  /** Reads from the prompt's end where the reply begins. */
  private begin(prompt: Uint32Array): void {
    const { ids } = this
    for (let i = prompt.length - 1; i >= 0; i--) {
      const id = prompt[i]!
      if (this.ends(id)) {
        this.leave()
        return
      }
      if (id === ids.start) {
        // Prompts go on with the role; one that does not leaves it to the model.
        this.openHeader(i === prompt.length - 1 ? null : "assistant")
        return
      }
      if (id === ids.message) {
        // A message to go on with: its kind is that of the channel before it.
        const channelAt = prompt.lastIndexOf(ids.channel, i)
        const isReasoning = channelAt >= 0 && prompt[channelAt + 1] === ids.analysis
        this.state = isReasoning ? State.reasoning : State.text
        return
      }
    }
  }

  private ends(id: number): boolean {
    return id === this.ids.end || id === this.ids.call || id === this.ids.return
  }

  /** Hot (bench/fold.ts): a token that made `text[start, end)`. */
  private ordinary(text: string, start: number, end: number): void {
    switch (this.state) {
      case State.reasoning:
        this.reason(text.slice(start, end))
        return
      case State.text:
      case State.between:
        this.speak(text.slice(start, end))
        return
      case State.call:
        if (start === end) return
        if (!this.scanner.done) this.scanner.scan(text, start, end)
        this.emission.callArguments(text.slice(start, end))
        return
      case State.header:
        this.addToHeader(text.slice(start, end))
    }
  }

  /** A token that frames messages, or another special one between them. */
  private marker(id: number, text: string, start: number, end: number): void {
    const { ids } = this
    if (this.ends(id)) {
      // Bytes of an unfinished character come out with the marker, in front of it.
      const at = markerStart(text, start, end, this.spelling(id))
      if (at > start) this.ordinary(text, start, at)
      this.endMessage()
    } else if (this.state === State.header) {
      this.headerMarker(id, text, start, end)
    } else if (this.state !== State.between) {
      this.ordinary(text, start, end)
    } else if (id === ids.start) {
      this.openHeader(null)
    } else if (id === ids.channel) {
      this.openHeader("assistant")
      this.headerMarker(id, text, start, end)
    } else if (id === ids.message) {
      this.openHeader("assistant")
      this.openMessage()
    } else if (id !== ids.constrain) {
      this.ordinary(text, start, end)
    }
  }

  private headerMarker(id: number, text: string, start: number, end: number): void {
    const { ids } = this
    if (id === ids.message) {
      this.openMessage()
      return
    }
    if (id === ids.start) {
      // The header before it was cut.
      this.openHeader(null)
      return
    }
    if (id !== ids.channel && id !== ids.constrain) {
      this.addToHeader(text.slice(start, end))
      return
    }
    this.isMarked = true
    // Written out, whether or not the text shows special tokens.
    this.addToHeader(this.spelling(id))
  }

  private spelling(id: number): string {
    const { ids } = this
    if (id === ids.channel) return "<|channel|>"
    if (id === ids.constrain) return "<|constrain|>"
    if (id === ids.end) return "<|end|>"
    return id === ids.call ? "<|call|>" : "<|return|>"
  }

  private openHeader(role: string | null): void {
    this.state = State.header
    this.header = ""
    this.role = role
    this.isMarked = false
  }

  private addToHeader(text: string): void {
    this.header += text
    const isNone = this.header.length > headerUnitsMax || (!this.isMarked && isNoHeader(this.header, this.role))
    if (!isNone) return
    const { header } = this
    this.leave()
    this.speak(header)
  }

  private openMessage(): void {
    this.open(parseHeader(this.header, this.role))
  }

  private open(header: HarmonyHeader): void {
    this.header = ""
    this.waitingTokens = 0
    if (header.role !== null && header.role !== "assistant") {
      this.state = State.hidden
      return
    }
    const name = functionName(header)
    if (name !== "" && this.parseCalls) {
      this.state = State.call
      this.scanner.reset()
      this.emission.callStart(name, "")
      return
    }
    const isReasoning = name === "" && (header.channel === "analysis" || isBuiltIn(header.recipient ?? ""))
    this.state = isReasoning ? State.reasoning : State.text
    this.emission.messageBreak()
  }

  /** One of the three end tokens. */
  private endMessage(): void {
    if (this.state === State.header) this.endHeader()
    if (this.state === State.call) this.emission.callEnd()
    this.leave()
  }

  /** A message that ends before its content begins: a call without arguments, or words that are its text. */
  private endHeader(): void {
    if (!this.isMarked) {
      this.speak(wordsBesideHeader(this.header, this.role))
      return
    }
    const header = parseHeader(this.header, this.role)
    if (header.rest === "" && header.recipient?.startsWith(functionPrefix) === true) {
      this.open(header)
      return
    }
    const words = [header.rest, header.recipient ?? "", header.contentType ?? ""]
    const text = words.filter((word) => word !== "" && !word.startsWith("<|")).join(" ")
    this.open({ ...header, recipient: null })
    this.ordinary(text, 0, text.length)
  }

  private leave(): void {
    this.state = State.between
    this.emission.messageBreak()
  }

  /** Hot (bench/fold.ts). */
  private reason(text: string): void {
    this.waitingTokens += 1
    if (text === "") return
    this.reasoningTokens += this.waitingTokens
    this.waitingTokens = 0
    this.emission.reasoning(text)
  }

  /** Hot (bench/fold.ts). */
  private speak(text: string): void {
    if (text !== "") this.emission.text(text)
  }
}

/** The function that a message calls, or "". Models leave out the prefix at times; a final answer calls none so. */
function functionName(header: HarmonyHeader): string {
  const recipient = header.recipient ?? ""
  if (recipient.startsWith(functionPrefix)) return recipient.slice(functionPrefix.length)
  const isOther = recipient === "" || recipient === "assistant" || recipient === "all" || recipient.startsWith("<|")
  return isOther || isBuiltIn(recipient) || header.channel === "final" ? "" : recipient
}

function isBuiltIn(recipient: string): boolean {
  return builtInTools.has(recipient.split(".", 1)[0]!)
}

/** Of a header without a marker that never came to its end: the words that are neither its role nor its recipient. */
function wordsBesideHeader(text: string, role: string | null): string {
  return role === null || /^\s*(?:assistant\s+)?to=/.test(text) ? "" : text
}
