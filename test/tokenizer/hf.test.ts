import { describe, expect, test } from "bun:test"
import { openTokenizerJson } from "../../src/tokenizer/open"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { tokenizerContract } from "./contract"
import { byteLevelTokenizer, sentencePieceTokenizer } from "./small-tokenizers"

function opened(json: object): Tokenizer {
  const tokenizer = openTokenizerJson(json, {})
  if (!tokenizer.ok) throw new Error(tokenizer.error.message)
  return tokenizer.value
}

const byteLevel = byteLevelTokenizer()
tokenizerContract({ name: "tokenizer.json, byte level", tokenizer: opened(byteLevel.json), ...byteLevel })

const sentencePiece = sentencePieceTokenizer()
tokenizerContract({
  name: "tokenizer.json, SentencePiece",
  tokenizer: opened(sentencePiece.json),
  ...sentencePiece,
  // Metaspace puts a blank before a text that has none, and the decoder takes one away.
  kept: (text) => text.replace(/^ /, ""),
})

describe("a tokenizer.json that cannot be used", () => {
  test("is a value that says why", () => {
    for (const json of [null, [], "x", {}, { model: {} }, { model: { type: "BPE", vocab: {}, merges: [] } }]) {
      const tokenizer = openTokenizerJson(json, {})
      expect(tokenizer.ok ? "opened" : tokenizer.error.kind, JSON.stringify(json)).toBe("tokenizer_unusable")
    }
  })
})
