/**
 * Streaming over real vocabularies: no half characters, every character owned by the token that completes it, and the
 * same text as decoding at once.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { noTokenId, Piece } from "../../src/ir/piece"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { drawAt, textAt } from "./golden-texts"
import { vocabularies } from "./vocabularies"

const tested = [
  "claude",
  "deepseek_v3",
  "gemma3",
  "gptoss",
  "internlm2",
  "llama2",
  "llama3_1",
  "qwen3",
  "yi",
  "o200k_base",
]
/** Those with tokens for single bytes beside their characters. */
const byteTokens = ["gemma3", "internlm2", "llama2", "yi"]
const textsEach = 1500
const seed = 3

for (const vocabulary of vocabularies().filter(({ name }) => tested.includes(name))) {
  const skips = vocabulary.missing !== null
  describe(vocabulary.name, () => {
    let tokenizer: Tokenizer
    beforeAll(() => {
      if (skips) return
      const opened = vocabulary.open()
      if (!opened.ok) throw new Error(opened.error.message)
      tokenizer = opened.value
    }, 60_000)
    afterAll(() => {
      tokenizer = undefined as unknown as Tokenizer // Dropped before the next one is opened; nothing reads it again.
      Bun.gc(true)
    })

    test.skipIf(skips)("real ids give their text with no half character on the way", () => {
      for (let i = 0; i < textsEach; i++) {
        const text = textAt(seed, i).toWellFormed().replaceAll("\ufffd", "?")
        const ids = encoded(text)
        const whole = tokenizer.decode(ids, false)
        const steps = streamed(ids, false)
        expect(steps.join(""), JSON.stringify(text)).toBe(whole)
        if (whole.includes("\ufffd")) continue
        expect(
          steps.some((step) => step.includes("\ufffd")),
          JSON.stringify(text),
        ).toBe(false)
        expect(
          steps.every((step) => step.isWellFormed()),
          JSON.stringify(text),
        ).toBe(true)
      }
    })

    test.skipIf(skips)("any ids, also such as no vocabulary has, give what decoding at once gives", () => {
      for (let i = 0; i < textsEach; i++) {
        const d = drawAt(seed, i, 77)
        const anyId = (): number => {
          if (d.below(20) === 0)
            return [tokenizer.vocabSize, tokenizer.vocabSize + 9, 0x7fff_ffff, noTokenId - 1][d.below(4)]!
          return d.below(4) === 0 ? d.below(300) : d.below(tokenizer.vocabSize)
        }
        const ids = Uint32Array.from({ length: 1 + d.below(16) }, anyId)
        for (const skip of [false, true]) {
          const whole = tokenizer.decode(ids, skip)
          expect(asShown(streamed(ids, skip).join(""), whole), `[${ids}] ${skip}`).toBe(whole)
        }
      }
    })

    test.skipIf(skips)("a reply behind a prompt has the text that the whole has there", () => {
      for (let i = 0; i < textsEach / 3; i++) {
        const ids = encoded(textAt(seed, i).toWellFormed().replaceAll("\ufffd", "?"))
        if (ids.length < 2) continue
        const cut = 1 + drawAt(seed, i, 5).below(ids.length - 1)
        const head = tokenizer.decode(ids.subarray(0, cut), false)
        // A prompt that ends inside a character has another text there than the whole.
        if (head.endsWith("\ufffd")) continue
        const reply = streamed(ids.subarray(cut), false, ids.subarray(0, cut)).join("")
        expect(head + reply, `[${ids}] cut at ${cut}`).toBe(tokenizer.decode(ids, false))
      }
    })

    test.skipIf(skips)("each step's text belongs to the ids that made it", () => {
      const ids = encoded("Zürich – 漢字 👩‍👩‍👧 and 1 234 more.\n\n  end")
      const piece = new Piece()
      const detokenizer = tokenizer.detokenizer(new Uint32Array(0), false)
      let text = ""
      for (const id of ids) {
        piece.clear()
        detokenizer.push(id, piece)
        expect(Array.from(piece.ids.subarray(0, piece.count))).toEqual([id])
        expect(piece.ends[0]).toBe(piece.text.length)
        text += piece.text
      }
      piece.clear()
      detokenizer.finish(piece)
      expect([piece.count, piece.text]).toEqual([0, ""])
      expect(text).toBe(tokenizer.decode(ids, false))
    })

    /**
     * The reference gives up a whole run of byte tokens when one is wrong, also the good ones before it, one U+FFFD a
     * byte; by then a stream has shown those. Where the reference has U+FFFD, they are counted as that.
     */
    function asShown(text: string, whole: string): string {
      if (!byteTokens.includes(vocabulary.name)) return text
      let shown = ""
      for (const char of text) {
        const givenUp = "\ufffd".repeat(char === "\ufffd" ? 1 : Buffer.byteLength(char))
        shown += whole.startsWith(givenUp, shown.length) ? givenUp : char
      }
      return shown
    }

    function encoded(text: string): Uint32Array {
      const result = tokenizer.encode(text, { addSpecialTokens: false })
      if (!result.ok) throw new Error(result.error.message)
      return result.value
    }

    /** What each push gave, and last what `finish` gave. */
    function streamed(ids: Uint32Array, skip: boolean, prompt: Uint32Array = new Uint32Array(0)): string[] {
      const detokenizer = tokenizer.detokenizer(prompt, skip)
      const piece = new Piece()
      const steps: string[] = []
      for (const id of ids) {
        piece.clear()
        detokenizer.push(id, piece)
        steps.push(piece.text)
      }
      piece.clear()
      detokenizer.finish(piece)
      steps.push(piece.text)
      return steps
    }
  })
}
