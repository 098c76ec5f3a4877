import { openO200k } from "../../src/tokenizer/open"
import { tokenizerContract } from "./contract"

tokenizerContract({
  name: "tiktoken",
  tokenizer: await openO200k({
    special: { "<|endoftext|>": 199_999, "<|im_end|>": 200_020 },
    added: { "<think>": 200_021, "</think>": 200_022 },
  }),
  special: ["<|im_end|>", 200_020],
  added: ["<think>", 200_021],
})
