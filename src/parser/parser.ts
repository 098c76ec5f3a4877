/**
 * The OutputParser plug point: splits what a model wrote into reasoning, text and function calls. Contract suite:
 * test/parser/contract.ts. A parser knows its family's markers and nothing about HTTP.
 *
 * What holds for every parser (PARSERS 1):
 * - A marker counts only when its own token produced it; the same characters from ordinary tokens are text.
 * - Any chunking of the same tokens gives the same fold.
 * - After a parse failure, and at the end of an incomplete call, what was already committed stays and the rest comes out
 *   as plain text: no token is lost, nothing throws.
 */
import type { OutputGrammar } from "../ir/output-grammar"
import type { Piece } from "../ir/piece"

/** Receives the parts in order. Strings are never empty. */
export interface ParserSink {
  reasoning(text: string): void
  text(text: string): void
  /** A call begins; its name is complete. `id` is the model's own call id, or "" when it has none. */
  callStart(name: string, id: string): void
  /** More of the open call's arguments: JSON text as the model wrote it. */
  callArguments(text: string): void
  /** The open call is complete. */
  callEnd(): void
  /**
   * Another message of the model begins, in formats that have such: text or reasoning that follows does not go on with
   * what came before.
   */
  messageBreak?(): void
}

/** The state machine of one sequence. */
export interface OutputParser {
  /** Hot (bench/fold.ts): text of one step with its tokens. */
  push(piece: Piece, sink: ParserSink): void
  /** The sequence ended: gives out whatever was held back. */
  finish(sink: ParserSink): void
  /** Tokens whose text came out as reasoning; markers are not counted. */
  readonly reasoningTokens: number
}

/** What a parser must know to begin. */
export interface ParserStart {
  /** The start state is read from its end: an open reasoning marker means that the reply begins inside reasoning. */
  readonly promptTokenIds: Uint32Array
  /** False when no call may come out (tool choice `none`, or no tools): then calls stay text. */
  readonly parseCalls: boolean
}

/** What a family looks up in the vocabulary once, when the model loads. */
export interface Vocabulary {
  /** The token's id, or -1. */
  tokenToId(token: string): number
  isSpecial(id: number): boolean
}

/** One model family's output grammar, resolved against a vocabulary. */
export interface ParserFactory extends OutputGrammar {
  /** Names as in `--reasoning-parser` and `--tool-call-parser`; "none" where there is none. */
  readonly reasoning: string
  readonly tools: string
  /** True when the markers are special tokens, so that the detokenizer must not drop them. */
  readonly needsSpecialTokens: boolean
  create(start: ParserStart): OutputParser
}

/** A family that cannot work with a vocabulary, or a parser name that nobody knows: a start-up error. */
export interface ParserUnusable {
  readonly kind: "parser_unusable" | "parser_unknown"
  readonly message: string
}
