import { expect, test } from "bun:test"
import { eosIds } from "../../src/tokenizer/eos-ids"

const tokenizer = { tokenToId: (token: string) => ["a", "</s>", "<|im_end|>"].indexOf(token) }

test("EOS ids begin with the tokenizer's own, and hold none twice", () => {
  expect(eosIds("<|im_end|>", tokenizer, [1, 2])).toEqual([2, 1])
  expect(eosIds("</s>", tokenizer, [])).toEqual([1])
  expect(eosIds("constructor", tokenizer, [1, 2])).toEqual([1, 2])
  expect(eosIds(null, tokenizer, [1, 2])).toEqual([1, 2])
})
