/**
 * No text is worse than linear × log. The bounds are far above what a good run takes, since machines vary, and far below
 * what a quadratic step takes: 100 KB of one letter costs such tokenizers seconds.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { longTexts } from "./golden-texts"
import { vocabularies } from "./vocabularies"

/** One vocabulary of each kind of pre-tokenizer and normalizer. */
const tested = ["claude", "command_r_plus", "deepseek_v3", "gemma", "gemma3", "gpt4o", "llama2", "llama3_1", "qwen3"]
/** Decoding gives these back only as their normalizers left them. */
const normalizing = ["claude", "command_r_plus", "qwen3"]
const textMsMax = 2_000
const bigTextMsMax = 60_000
const bigTextBytes = 10_000_000
const residentBytesMax = 700_000_000

const prose = "The kettle hums while rain draws thin lines down the glass, and someone counts the 12 cups.\n"

for (const vocabulary of vocabularies().filter(({ name }) => tested.includes(name))) {
  const skips = vocabulary.missing !== null
  describe(vocabulary.name, () => {
    let tokenizer: Tokenizer
    beforeAll(() => {
      if (skips) return
      const opened = vocabulary.open()
      if (!opened.ok) throw new Error(opened.error.message)
      tokenizer = opened.value
      for (const text of longTexts(1000).values()) encoded(text)
    }, 60_000)
    afterAll(() => {
      tokenizer = undefined as unknown as Tokenizer // Dropped before the next one is opened; nothing reads it again.
      Bun.gc(true)
    })

    test.skipIf(skips)(
      "100 000 characters of anything take no longer than other texts, and come back whole",
      () => {
        const slow: string[] = []
        for (const [name, text] of longTexts(100_000)) {
          let best = Infinity
          for (let round = 0; round < 3; round++) {
            const startedAt = performance.now()
            encoded(text)
            best = Math.min(best, performance.now() - startedAt)
            if (best <= textMsMax) break
          }
          if (best > textMsMax) slow.push(`${name}: ${best.toFixed(0)} ms`)
          if (!normalizing.includes(vocabulary.name)) {
            expect(tokenizer.decode(encoded(text), false) === text, name).toBe(true)
          }
        }
        expect(slow).toEqual([])
      },
      120_000,
    )

    test.skipIf(skips)(
      "10 MB are encoded in bounded time, given up early when the caller wants fewer ids, and leave no memory behind",
      () => {
        const text = prose.repeat(Math.ceil(bigTextBytes / prose.length))
        const startedAt = performance.now()
        const ids = encoded(text)
        const wholeMs = performance.now() - startedAt
        expect(wholeMs).toBeLessThan(bigTextMsMax)
        expect(ids.length).toBeGreaterThan(text.length / 10)

        const limited = tokenizer.encode(text, { addSpecialTokens: false, tokensMax: 1000 })
        expect(limited.ok && limited.value.length).toBeGreaterThan(1000)
        // It stopped soon: not a tenth of the text was encoded.
        expect(limited.ok && limited.value.length).toBeLessThan(ids.length / 10)

        const before = process.memoryUsage.rss()
        for (let round = 0; round < 3; round++) encoded(text)
        Bun.gc(true)
        expect(process.memoryUsage.rss() - before).toBeLessThan(residentBytesMax)
      },
      120_000,
    )

    test.skipIf(skips)(
      "texts after hostile ones are as fast as before",
      () => {
        const text = prose.repeat(200)
        const before = fastest(text)
        for (const hostile of longTexts(50_000).values()) encoded(hostile)
        // Words seen before may have left the cache: the first round fills it again.
        expect(fastest(text)).toBeLessThan(before * 5 + 5)
      },
      60_000,
    )

    function encoded(text: string): Uint32Array {
      const result = tokenizer.encode(text, { addSpecialTokens: false })
      if (!result.ok) throw new Error(result.error.message)
      return result.value
    }

    /** Milliseconds of the best of some rounds. */
    function fastest(text: string): number {
      let best = Infinity
      for (let round = 0; round < 10; round++) {
        const startedAt = performance.now()
        encoded(text)
        best = Math.min(best, performance.now() - startedAt)
      }
      return best
    }
  })
}
