import type { Piece } from "../ir/piece"
import { type ContentMachine, PlainContent } from "./content"
import { Emission } from "./emission"
import type { OutputParser, ParserSink, ParserStart, Vocabulary } from "./parser"
import { ReasoningMachine, type ResolvedFraming } from "./reasoning"

/** Makes a family's machine for calls. */
export type MakeContent = (emission: Emission) => ContentMachine

/**
 * The parser of one sequence: reasoning first, and calls only in what is left (PARSERS 1). Either part may be
 * missing; with neither, everything is text.
 */
export class CombinedParser implements OutputParser {
  private readonly emission = new Emission()
  private readonly content: ContentMachine
  private readonly reasoning: ReasoningMachine | null

  /** `makeContent` is null when the family has no calls; calls also stay text when the request wants none. */
  constructor(
    framing: ResolvedFraming | null,
    makeContent: MakeContent | null,
    vocabulary: Vocabulary,
    start: ParserStart,
  ) {
    this.content =
      makeContent === null || !start.parseCalls ? new PlainContent(this.emission) : makeContent(this.emission)
    this.reasoning =
      framing === null
        ? null
        : new ReasoningMachine(framing, vocabulary, start.promptTokenIds, this.emission, this.content)
  }

  get reasoningTokens(): number {
    return this.reasoning === null ? 0 : this.reasoning.tokens
  }

  /** Hot (bench/fold.ts). */
  push(piece: Piece, sink: ParserSink): void {
    this.emission.begin(sink)
    const { text, ids, ends } = piece
    let start = 0
    for (let i = 0; i < piece.count; i++) {
      const end = ends[i]!
      if (this.reasoning === null) this.content.token(ids[i]!, text, start, end)
      else this.reasoning.token(ids[i]!, text, start, end)
      start = end
    }
    this.emission.flush()
  }

  finish(sink: ParserSink): void {
    this.emission.begin(sink)
    if (this.reasoning === null) this.content.finish()
    else this.reasoning.finish()
    this.emission.flush()
  }
}
