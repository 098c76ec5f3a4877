import { expect, test } from "bun:test"
import { configOfParams, findMistralVocabulary } from "../../src/model/mistral-files"

test("the vocabulary is tekken.json, or the tokenizer.json beside the last of the SentencePiece models", () => {
  const found = (...names: readonly string[]) => {
    const vocabulary = findMistralVocabulary("/m", names)
    return vocabulary.ok ? vocabulary.value : vocabulary.error.message
  }
  expect(found("tokenizer.json", "tekken.json", "tokenizer.model.v3")).toEqual({
    path: "/m/tekken.json",
    versionPath: "/m/tekken.json",
  })
  expect(found("tokenizer.json", "tokenizer.model.v7", "tokenizer.model.v3", "tokenizer.model")).toEqual({
    path: "/m/tokenizer.json",
    versionPath: "/m/tokenizer.model.v7",
  })
  expect(found("tokenizer.model.v7m1")).toBe(
    "/m has only tokenizer.model.v7m1: SentencePiece models are not read; " +
      "tokenizer mode mistral needs a tekken.json, or a tokenizer.json beside it",
  )
  expect(found("tokenizer.json", "tokenizer.model")).toBe("/m has no tekken.json, which tokenizer mode mistral needs")
})

test("params.json tells the window, the experts and how far positions are stretched", () => {
  expect(configOfParams({ dim: 5, max_seq_len: 4096 })).toEqual({
    model_type: "transformer",
    architectures: ["MistralForCausalLM"],
    max_position_embeddings: undefined,
    max_seq_len: 4096,
  })
  expect(configOfParams({ moe: { num_experts: 8 }, vision_encoder: {}, yarn: { factor: 2 } })).toEqual({
    model_type: "pixtral",
    architectures: ["MixtralForCausalLM"],
    max_position_embeddings: 128_000,
    num_local_experts: 8,
    rope_scaling: { rope_type: "yarn", factor: 2 },
  })
})
