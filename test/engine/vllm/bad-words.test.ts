import { describe, expect, test } from "bun:test"
import { badWordSequencesMax, badWordTokenIds } from "../../../src/engine/vllm/bad-words"

/** Tokens of a tiny vocabulary: a space belongs to the word behind it. */
const tokens: { readonly [text: string]: readonly number[] } = {
  cat: [1],
  " cat": [2],
  "black cat": [3, 2],
  " black cat": [4, 2],
  xy: [5, 6],
  " xy": [7, 5, 6],
  日本: [8],
  " 日本": [8],
}
const encode = (text: string): readonly number[] => tokens[text] ?? []

describe("bad words", () => {
  test("are forbidden at the start of a text and behind a space", () => {
    expect(badWordTokenIds(["cat"], encode)).toEqual({ ok: true, value: [[1], [2]] })
    expect(badWordTokenIds(["black cat"], encode)).toEqual({
      ok: true,
      value: [
        [3, 2],
        [4, 2],
      ],
    })
  })

  test("leave out the form behind a space when it is longer or begins alike", () => {
    expect(badWordTokenIds(["xy", "日本"], encode)).toEqual({ ok: true, value: [[5, 6], [8]] })
  })

  test("count once, with spaces before them ignored", () => {
    expect(badWordTokenIds(["cat", "cat"], encode)).toEqual({ ok: true, value: [[1], [2]] })
    expect(badWordTokenIds(["  cat"], encode)).toEqual({ ok: true, value: [[1], [2]] })
    expect(badWordTokenIds([], encode)).toEqual({ ok: true, value: [] })
  })

  test("must have tokens, and not be more than the engine has room for", () => {
    expect(badWordTokenIds([" "], encode)).toMatchObject({ ok: false, error: { param: "bad_words" } })
    const words = Array.from({ length: badWordSequencesMax }, (_, i) => String(i))
    const single = (text: string): readonly number[] => [text.startsWith(" ") ? 9 : Number(text), 1]
    expect(badWordTokenIds(words.slice(0, badWordSequencesMax / 2), single).ok).toBe(true)
    expect(badWordTokenIds(words, single)).toEqual({
      ok: false,
      error: {
        kind: "engine_validation",
        message: "bad_words are more than 128 sequences of tokens",
        param: "bad_words",
      },
    })
  })
})
