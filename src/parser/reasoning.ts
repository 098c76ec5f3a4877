import type { Json } from "../ir/conversation"
import { inSequence, type ReasoningTag } from "../ir/output-grammar"
import { noTokenId } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { type ContentMachine, markerStart } from "./content"
import type { Emission } from "./emission"
import type { ParserUnusable, Vocabulary } from "./parser"
import { frameTail, PartialText } from "./partial"

/** How a family writes reasoning. White space of the framing is taken away only when it is there exactly so. */
export interface ReasoningFraming {
  readonly start: string
  readonly end: string
  /** Text behind the start marker, before and behind the end marker. */
  readonly afterStart: string
  readonly beforeEnd: string
  readonly afterEnd: string
  /** The reply is taken for reasoning when the prompt shows neither marker: the family may leave out the start. */
  readonly startsInside: boolean
  /** A marker that ends reasoning as well, and begins what comes behind it. */
  readonly endedBy?: string
  /** Text before that marker which belongs to it: the marker counts only behind the text's last character. */
  readonly endedByFrame?: string
}

/** A framing with its markers' ids in one vocabulary. */
export interface ResolvedFraming {
  readonly framing: ReasoningFraming
  readonly startId: number
  readonly endId: number
  /** -1 = none. */
  readonly endedById: number
}

/** Looks the markers up. Reasoning without marker tokens cannot be told from text, so that is refused at start-up. */
export function resolveFraming(
  framing: ReasoningFraming,
  vocabulary: Vocabulary,
): Result<ResolvedFraming, ParserUnusable> {
  const startId = vocabulary.tokenToId(framing.start)
  const endId = vocabulary.tokenToId(framing.end)
  const endedById = framing.endedBy === undefined ? -1 : vocabulary.tokenToId(framing.endedBy)
  if (startId >= 0 && endId >= 0) return ok({ framing, startId, endId, endedById })
  const missing = startId < 0 ? framing.start : framing.end
  return err({ kind: "parser_unusable", message: `the vocabulary has no token ${missing}, which the parser needs` })
}

const State = { content: 0, afterStart: 1, body: 2, afterEnd: 3 } as const
type State = (typeof State)[keyof typeof State]

/**
 * Reasoning between two marker tokens, with framing white space around it:
 * `<think>\nIt may rain.\n</think>\n\nTake a coat.` gives reasoning `It may rain.` and text `Take a coat.`.
 *
 * A start marker anywhere in the text begins reasoning again, except inside a call; one more at the very start of
 * reasoning is dropped (the prompt had it already); any other marker in the wrong place is text like all else.
 * Source: PARSERS 1 and 2.
 */
export class ReasoningMachine {
  /** Tokens whose text came out as reasoning. */
  tokens = 0
  private state: State
  private spoken = false
  private readonly framing: ReasoningFraming
  private readonly startId: number
  private readonly endId: number
  private readonly endedById: number
  private readonly opening: PartialText
  private readonly closing: PartialText
  private readonly endedByFrame: string
  /** The end of reasoning that may be that frame. */
  private heldFrame = ""
  private readonly trailing: PartialText
  private readonly emission: Emission
  private readonly content: ContentMachine
  /** Tokens seen whose text is still to come: half a character, or framing held back. Only then they count. */
  private waitingTokens = 0

  constructor(
    resolved: ResolvedFraming,
    vocabulary: Vocabulary,
    promptTokenIds: Uint32Array,
    emission: Emission,
    content: ContentMachine,
  ) {
    this.framing = resolved.framing
    this.startId = resolved.startId
    this.endId = resolved.endId
    this.endedById = resolved.endedById
    this.opening = new PartialText(resolved.framing.afterStart)
    this.closing = new PartialText(resolved.framing.beforeEnd)
    this.endedByFrame = resolved.endedById < 0 ? "" : (resolved.framing.endedByFrame ?? "")
    this.trailing = new PartialText(resolved.framing.afterEnd)
    this.emission = emission
    this.content = content
    this.state = startState(resolved, vocabulary, promptTokenIds)
  }

  /** Hot (bench/fold.ts): one token that made `text[start, end)`. */
  token(id: number, text: string, start: number, end: number): void {
    if (id === this.endId && this.inside) {
      this.body(text, start, markerStart(text, start, end, this.framing.end))
      this.close()
      return
    }
    if (id === this.endedById && this.inside) {
      const at = markerStart(text, start, end, this.framing.endedBy ?? "")
      this.body(text, start, at)
      if (this.endedByFrame === "" || this.heldFrame.endsWith(this.endedByFrame.slice(-1))) {
        const frame = this.heldFrame
        this.heldFrame = ""
        this.close()
        this.state = State.content
        if (frame !== "") this.content.token(noTokenId, frame, 0, frame.length)
        this.content.token(id, text, at, end)
        return
      }
      this.waitingTokens += 1
      this.body(text, at, end)
      return
    }
    if (id === this.startId && this.opens(text, start, end)) return
    switch (this.state) {
      case State.content:
        this.content.token(id, text, start, end)
        return
      case State.afterEnd:
        this.behindEnd(id, text, start, end)
        return
      default:
        this.waitingTokens += 1
        this.body(text, start, end)
    }
  }

  /** The sequence ended: held white space comes out where it stood. */
  finish(): void {
    if (this.state === State.afterEnd) this.content.token(noTokenId, this.trailing.held, 0, this.trailing.matched)
    if (this.state === State.afterStart) this.emit(this.opening.held, 0)
    if (this.state === State.body) this.emit(this.closing.held, 0)
    this.giveFrame()
    this.trailing.reset()
    this.opening.reset()
    this.closing.reset()
    this.content.finish()
  }

  private get inside(): boolean {
    return this.state === State.body || this.state === State.afterStart
  }

  /** Takes a start marker; false when it is only text here. */
  private opens(text: string, start: number, end: number): boolean {
    const at = markerStart(text, start, end, this.framing.start)
    if (this.inside) {
      // The prompt opened reasoning already, and the model opens it once more.
      if (this.spoken || at > start || this.closing.matched > 0 || this.opening.matched > 0 || this.heldFrame !== "")
        return false
    } else {
      if (this.content.busy) return false
      if (this.state === State.afterEnd) this.content.token(noTokenId, this.trailing.held, 0, this.trailing.matched)
      this.trailing.reset()
      if (at > start) this.content.token(noTokenId, text, start, at)
      this.content.settle()
    }
    this.state = State.afterStart
    this.spoken = false
    this.waitingTokens = 0
    return true
  }

  /** The end marker came: complete framing before it is dropped, a part of one is text. */
  private close(): void {
    if (this.state === State.afterStart) this.emit(this.opening.held, 0)
    else if (!this.closing.complete) this.emit(this.closing.held, 0)
    this.giveFrame()
    this.opening.reset()
    this.closing.reset()
    this.trailing.reset()
    this.waitingTokens = 0
    this.state = this.trailing.complete ? State.content : State.afterEnd
  }

  private body(text: string, start: number, end: number): void {
    let at = start
    if (this.state === State.afterStart) {
      at = this.takeOpening(text, start, end)
      if (this.state === State.afterStart) return
    }
    if (at === end) return
    if (this.closing.whole === "" || (this.closing.matched === 0 && !mayHold(text, at, end, this.closing.whole))) {
      this.emit(text.slice(at, end), 0)
      return
    }
    const heldBefore = this.closing.held
    let released = 0
    for (let i = at; i < end; i++) released += this.closing.step(text.charCodeAt(i))
    // A token that is held whole does not count yet: the end marker may follow.
    const waiting = this.closing.matched >= end - at ? 1 : 0
    // What is released is the beginning of (held before + new text).
    if (released <= heldBefore.length) this.emit(heldBefore.slice(0, released), waiting)
    else this.emit(heldBefore + text.slice(at, at + released - heldBefore.length), waiting)
  }

  /** White space behind the start marker. Gives where the body begins. */
  private takeOpening(text: string, start: number, end: number): number {
    const { whole } = this.opening
    let at = start
    while (at < end && this.opening.matched < whole.length) {
      if (text.charCodeAt(at) !== whole.charCodeAt(this.opening.matched)) {
        this.state = State.body
        const held = this.opening.held
        this.opening.reset()
        this.replayBody(held)
        return at
      }
      this.opening.matched += 1
      at += 1
    }
    if (this.opening.matched < whole.length) return at
    this.state = State.body
    this.opening.reset()
    // Tokens that were framing only do not count; one that goes on behind it does.
    if (whole !== "") this.waitingTokens = at < end ? 1 : 0
    return at
  }

  /** Text that was held as framing and is none: it goes through the body's own hold-back. */
  private replayBody(held: string): void {
    if (held !== "") this.body(held, 0, held.length)
  }

  /** White space behind the end marker. */
  private behindEnd(id: number, text: string, start: number, end: number): void {
    const { whole } = this.trailing
    let at = start
    while (at < end && this.trailing.matched < whole.length) {
      if (text.charCodeAt(at) !== whole.charCodeAt(this.trailing.matched)) break
      this.trailing.matched += 1
      at += 1
    }
    if (at === end && !this.trailing.complete) {
      // A marker shown as nothing may still mean a call.
      if (start < end) return
    }
    const held = this.trailing.complete ? "" : this.trailing.held
    this.trailing.reset()
    this.state = State.content
    if (held !== "") {
      const seen = at - start
      this.content.token(noTokenId, held, 0, Math.max(0, held.length - seen))
      this.content.token(id, text, start, end)
    } else this.content.token(id, text, at, end)
  }

  /** What was held as the frame of a marker is none. */
  private giveFrame(): void {
    const held = this.heldFrame
    this.heldFrame = ""
    this.give(held, 0)
  }

  /** `waiting` of the tokens seen are not in this text. */
  private emit(text: string, waiting: number): void {
    if (this.endedByFrame === "") {
      this.give(text, waiting)
      return
    }
    const seen = this.heldFrame + text
    const held = frameTail(seen, this.endedByFrame)
    this.heldFrame = seen.slice(seen.length - held)
    // A token that is held whole does not count yet.
    this.give(seen.slice(0, seen.length - held), text !== "" && held >= text.length ? waiting + 1 : waiting)
  }

  private give(text: string, waiting: number): void {
    if (text === "") return
    this.spoken = true
    this.tokens += this.waitingTokens - waiting
    this.waitingTokens = waiting
    this.emission.reasoning(text)
  }
}

/** Whether the text's end could begin the framing; a rough test that spares most tokens the slow road. */
function mayHold(text: string, start: number, end: number, framing: string): boolean {
  const first = framing.charCodeAt(0)
  for (let i = Math.max(start, end - framing.length); i < end; i++) if (text.charCodeAt(i) === first) return true
  return false
}

/** Reads the state from the prompt's end: PARSERS 1, rule 1. */
function startState(resolved: ResolvedFraming, vocabulary: Vocabulary, promptTokenIds: Uint32Array): State {
  const at = lastMarkerAt(resolved, vocabulary, promptTokenIds)
  if (at < 0) return resolved.framing.startsInside ? State.afterStart : State.content
  // White space of the framing was in the prompt unless the marker is its last token.
  const isLast = at === promptTokenIds.length - 1
  if (promptTokenIds[at] === resolved.startId) return isLast ? State.afterStart : State.body
  return isLast ? State.afterEnd : State.content
}

/**
 * What a grammar must let pass before the reply itself: the rest of reasoning that the prompt opened, or reasoning that
 * the model may open. Then the grammar applies from the first token, and needs no help from the engine. Source: vLLM
 * 0.33.0's Rust front end, which always lets reasoning be opened.
 */
export function reasoningTag(
  resolved: ResolvedFraming,
  vocabulary: Vocabulary,
  promptTokenIds: Uint32Array,
): ReasoningTag {
  const { start, end, afterEnd, startsInside } = resolved.framing
  const marker = promptTokenIds[lastMarkerAt(resolved, vocabulary, promptTokenIds)]
  if (marker === resolved.endId) return { ended: true, formats: [] }
  const isOpen = marker === resolved.startId || startsInside
  const formats: Json[] = [{ type: "tag", begin: isOpen ? "" : start, content: { type: "any_text" }, end }]
  if (afterEnd !== "") formats.push({ type: "const_string", value: afterEnd })
  return { ended: false, formats: isOpen ? formats : [{ type: "optional", content: inSequence(formats) }] }
}

/** Where the last marker stands behind the last special token, which begins the reply's turn; -1 = nowhere. */
function lastMarkerAt(resolved: ResolvedFraming, vocabulary: Vocabulary, promptTokenIds: Uint32Array): number {
  for (let i = promptTokenIds.length - 1; i >= 0; i--) {
    const id = promptTokenIds[i]!
    if (id === resolved.startId || id === resolved.endId) return i
    if (vocabulary.isSpecial(id)) return -1
  }
  return -1
}
