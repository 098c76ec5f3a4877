import { describe, expect, test } from "bun:test"
import { openTokenizerJson } from "../../src/tokenizer/open"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { tokenizerContract } from "./contract"
import { byteLevelTokenizer, sentencePieceTokenizer } from "./small-tokenizers"

function opened(json: object): Tokenizer {
  const tokenizer = openTokenizerJson(json)
  if (!tokenizer.ok) throw new Error(tokenizer.error.message)
  return tokenizer.value
}

const byteLevel = byteLevelTokenizer()
tokenizerContract({ name: "tokenizer.json, byte level", tokenizer: opened(byteLevel.json), ...byteLevel })

const sentencePiece = sentencePieceTokenizer()
const openedSentencePiece = opened(sentencePiece.json)
tokenizerContract({
  name: "tokenizer.json, SentencePiece",
  tokenizer: openedSentencePiece,
  ...sentencePiece,
  // Metaspace puts a blank before a text that has none, and the decoder takes one away.
  kept: (text) => text.replace(/^ /, ""),
  shown: (ids, skipSpecial) => shownBytes(openedSentencePiece, ids, skipSpecial),
})

/**
 * Bytes show as soon as they are a character. A run of byte tokens that turns bad later is U+FFFD from there on, while
 * `decode`, which knows the end, makes all of the run U+FFFD, as the reference does.
 */
function shownBytes(tokenizer: Tokenizer, ids: Uint32Array, skipSpecial: boolean): string {
  let text = ""
  let run: number[] = []
  const endRun = (): void => {
    let length = run.length
    while (Buffer.from(run.slice(0, length)).toString("utf8").includes("\ufffd")) length -= 1
    text += Buffer.from(run.slice(0, length)).toString("utf8") + "\ufffd".repeat(run.length - length)
    run = []
  }
  for (const id of ids) {
    const spelling = tokenizer.idToToken(id)
    if (spelling === null || (skipSpecial && tokenizer.isSpecial(id))) continue
    const byte = /^<0x(..)>$/.exec(spelling)
    if (byte !== null) run.push(Number.parseInt(byte[1]!, 16))
    else {
      endRun()
      text += spelling.replaceAll("▁", " ")
    }
  }
  endRun()
  return text.replace(/^ /, "")
}

describe("a tokenizer.json that cannot be used", () => {
  test("is a value that says why", () => {
    for (const json of [null, [], "x", {}, { model: {} }, { model: { type: "BPE", vocab: {}, merges: [] } }]) {
      const tokenizer = openTokenizerJson(json)
      expect(tokenizer.ok ? "opened" : tokenizer.error.kind, JSON.stringify(json)).toBe("tokenizer_unusable")
    }
  })
})
