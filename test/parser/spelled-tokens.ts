import { Piece } from "../../src/ir/piece"
import type { OutputParser, ParserFactory, ParserStart, Vocabulary } from "../../src/parser/parser"
import { ParsedFold, type ParsedPart } from "../support/recording-sink"

/** One token of a test: its id and its text. */
export interface SpelledToken {
  readonly id: number
  readonly text: string
}

/** Markers with ids of their own from 1 on; `<|im_end|>` and `<|im_start|>` are special. */
export const markers = [
  ...["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"],
  ...["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"],
  "｜DSML｜",
]

const specials = 2
/** Ordinary tokens have ids from here on. */
const ordinaryIds = 1000

/** A vocabulary with the given markers as tokens. */
export function vocabularyWith(known: readonly string[]): Vocabulary {
  return {
    tokenToId: (token) => (known.includes(token) ? markers.indexOf(token) + 1 : -1),
    isSpecial: (id) => id >= 1 && id <= specials,
  }
}

/** A text as tokens: each marker is its own token, all else one token a character. */
export function tokensOf(text: string): SpelledToken[] {
  const tokens: SpelledToken[] = []
  for (let at = 0; at < text.length; ) {
    const marker = markers.find((each) => text.startsWith(each, at))
    if (marker !== undefined) tokens.push({ id: markers.indexOf(marker) + 1, text: marker })
    else tokens.push(...ordinary(String.fromCodePoint(text.codePointAt(at)!)))
    at += tokens.at(-1)!.text.length
  }
  return tokens
}

/** A text as ordinary tokens of `size` characters, markers included: quoted, as it were. */
export function ordinary(text: string, size = 1): SpelledToken[] {
  const chars = Array.from(text)
  const tokens: SpelledToken[] = []
  for (let i = 0; i < chars.length; i += size) {
    const part = chars.slice(i, i + size).join("")
    tokens.push({ id: ordinaryIds + part.codePointAt(0)!, text: part })
  }
  return tokens
}

/** Ids of a prompt. */
export function promptOf(text: string): Uint32Array {
  return Uint32Array.from(tokensOf(text), (token) => token.id)
}

/** A parser at its start. */
export function parserFor(factory: ParserFactory, start: Partial<ParserStart> = {}): OutputParser {
  return factory.create({ promptTokenIds: new Uint32Array(0), parseCalls: true, ...start })
}

/** What a parser made of a sequence. */
export interface Parsed {
  readonly parts: readonly ParsedPart[]
  readonly reasoningTokens: number
}

/** Runs a parser over tokens in pieces that end at `ends`, with `finish` behind them unless told otherwise. */
export function parse(
  parser: OutputParser,
  tokens: readonly SpelledToken[],
  ends: readonly number[],
  finish = true,
): Parsed {
  const fold = new ParsedFold()
  const piece = new Piece()
  let start = 0
  for (const end of ends) {
    piece.clear()
    for (const token of tokens.slice(start, end)) piece.add(token.id, token.text)
    parser.push(piece, fold)
    start = end
  }
  if (finish) parser.finish(fold)
  return { parts: fold.parts, reasoningTokens: parser.reasoningTokens }
}
