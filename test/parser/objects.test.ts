import { expect, test } from "bun:test"
import { Piece } from "../../src/ir/piece"
import { harmonyFactory } from "../../src/parser/families/harmony"
import type { OutputParser, ParserSink } from "../../src/parser/parser"
import { chooseParser } from "../../src/parser/registry"
import { objectsMade } from "../support/objects-made"
import { harmonyTokensOf, harmonyVocabulary } from "./harmony-tokens"
import { markers, parserFor, tokensOf, vocabularyWith } from "./spelled-tokens"

const profile = { name: "m", modelType: "", architectures: [], chatTemplates: {} }
const chosen = chooseParser(profile, "qwen3", "hermes", vocabularyWith(markers))
if (!chosen.ok) throw new Error(chosen.error.message)
const factory = chosen.value

const deaf: ParserSink = { reasoning() {}, text() {}, callStart() {}, callArguments() {}, callEnd() {} }

function pushes(parser: OutputParser, pieces: readonly Piece[]): void {
  for (const piece of pieces) parser.push(piece, deaf)
}

test("a token makes no object on its way through the parser, besides its text", () => {
  for (const beginning of ["", "<think>\n", '<tool_call>{"name": "f", "arguments": {"a": "']) {
    const parser = parserFor(factory)
    const first = new Piece()
    for (const token of tokensOf(beginning)) first.add(token.id, token.text)
    parser.push(first, deaf)
    const pieces = Array.from({ length: 5_000 }, () => {
      const piece = new Piece()
      piece.add(2_000, "word")
      return piece
    })
    expect(
      objectsMade(() => pushes(parser, pieces)),
      beginning,
    ).toBeLessThan(500)
  }
})

test("nor on its way through messages", () => {
  const opened = harmonyFactory(harmonyVocabulary)
  if (!opened.ok) throw new Error(opened.error.message)
  for (const header of ["<|channel|>analysis", "<|channel|>final", "<|channel|>commentary to=functions.f"]) {
    const parser = parserFor(opened.value)
    const first = new Piece()
    for (const token of harmonyTokensOf(`${header}<|message|>{"a": "`)) first.add(token.id, token.text)
    parser.push(first, deaf)
    const pieces = Array.from({ length: 5_000 }, () => {
      const piece = new Piece()
      piece.add(2_000, "word")
      return piece
    })
    expect(
      objectsMade(() => pushes(parser, pieces)),
      header,
    ).toBeLessThan(500)
  }
})
