/**
 * Texts with very long pieces; npm `tiktoken` is the oracle for what it gives (it takes
 * quadratic time, so the runs here stay short enough for it).
 */
import { expect, test } from "bun:test"
import rankFile from "tiktoken/encoders/o200k_base.json"
import { Tiktoken } from "tiktoken/lite"
import { openO200k } from "../../src/tokenizer/open"
import { seededRandom } from "../support/random"

const special = { "<|endoftext|>": 199_999, "<|im_start|>": 200_019 }
const added = { "<think>": 200_021 }
const ours = await openO200k({ special, added })
const oracle = new Tiktoken(rankFile.bpe_ranks, { ...special, ...added }, rankFile.pat_str)

const units = [
  ...["a", "B", "1", " ", "  ", "\n", "\r\n", "\t", "/", ".", "'s", "!", "é", "的", "ا", "\u3000", "\u00a0"],
  ...["\u0085", "\ufeff", "😀", "👩‍👩‍👧", "\u0301", "<|im_start|>", "<think>", "<|endoftext|>", "<|im_", "İ", "ß"],
]

test("600 random texts with long runs encode as the package encodes them", () => {
  const random = seededRandom(7)
  for (let round = 0; round < 600; round++) {
    let text = ""
    const parts = 1 + Math.floor(random() * 12)
    for (let i = 0; i < parts; i++) {
      const unit = units[Math.floor(random() * units.length)]!
      text += unit.repeat(random() < 0.2 ? 250 + Math.floor(random() * 40) : 1 + Math.floor(random() * 4))
    }
    const encoded = ours.encode(text, { addSpecialTokens: false })
    expect(encoded.ok && Array.from(encoded.value), JSON.stringify({ round, text })).toEqual(
      Array.from(oracle.encode(text, "all", [])),
    )
  }
}, 30_000)

test("a megabyte of one letter, of blanks, or of nothing but line breaks is encoded in bounded time", () => {
  for (const unit of ["a", " ", "\n", "!"]) {
    const text = unit.repeat(1_000_000)
    const encoded = ours.encode(text, { addSpecialTokens: false })
    expect(encoded.ok && ours.decode(encoded.value, false) === text).toBe(true)
  }
}, 30_000)
