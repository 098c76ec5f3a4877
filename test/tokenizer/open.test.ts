import { expect, test } from "bun:test"
import { openVocabularyFile } from "../../src/tokenizer/open"
import { byteLevelTokenizer } from "./small-tokenizers"

const utf8 = new TextEncoder()

/** Ids of "low", or why there are none. */
function ids(name: string, content: string | object, config: object = {}): readonly number[] | string {
  const bytes = utf8.encode(typeof content === "string" ? content : JSON.stringify(content))
  const opened = openVocabularyFile(name, bytes, config)
  if (!opened.ok) return opened.error.message
  const encoded = opened.value.encode("low", { addSpecialTokens: false })
  return encoded.ok ? Array.from(encoded.value) : encoded.error.message
}

/** Lines of `base64 rank` for the letters, and then for their words. */
const ranks = ["l", "o", "w", "lo", "low"].map((token, rank) => `${btoa(token)} ${rank}`).join("\n")

test("a tokenizer.json with BPE is read from its bytes", () => {
  // Bytes are the first 256 ids, and "low" has no merge.
  expect(ids("tokenizer.json", byteLevelTokenizer().json)).toEqual([108, 111, 119])
})

test("other model kinds of tokenizer.json are refused by name", () => {
  for (const type of ["WordPiece", "Unigram", "WordLevel"]) {
    const refusal = `the tokenizer is not supported: the model kind ${type}`
    expect(ids("tokenizer.json", { added_tokens: [], model: { type, vocab: { lo: 1 } } })).toBe(refusal)
  }
})

test("rank files are told by their names", () => {
  expect(ids("a.tiktoken", ranks)).toEqual([4])
  const config = { added_tokens_decoder: { "5": { content: "low", special: true } } }
  expect(ids("tiktoken.model", ranks, config)).toEqual([5])
  expect(ids("a.tiktoken", ranks, config)).toEqual([4])
})

test("a file that is nothing of the kind is a value that says so", () => {
  expect(ids("tokenizer.json", "")).toBe("the tokenizer is not supported: a file without ranks")
  expect(ids("tokenizer.json", "{")).toStartWith("the tokenizer is not supported: a file that is no JSON: ")
})

test("a file that nests without end, or spells without end, is refused in a few words", () => {
  const nested = (depth: number): string => {
    const inner = `${'{"type":"Sequence","normalizers":['.repeat(depth)}{"type":"NFC"}${"]}".repeat(depth)}`
    return JSON.stringify(byteLevelTokenizer().json).replace('"normalizer":null', `"normalizer":${inner}`)
  }
  expect(ids("tokenizer.json", nested(10))).toEqual([108, 111, 119])
  for (const depth of [100, 200_000]) {
    expect(ids("tokenizer.json", nested(depth))).toMatch(/^the tokenizer is not supported: a (normalizer|file)/)
  }
  const { model } = byteLevelTokenizer().json as { model: object }
  const long = { ...byteLevelTokenizer().json, model: { ...model, merges: ["x".repeat(100_000)] } }
  const refusal = ids("tokenizer.json", long)
  expect(refusal).toStartWith('the tokenizer is not supported: the merge "xxx')
  expect(refusal.length).toBeLessThan(500)
})
