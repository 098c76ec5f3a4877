import { describe, expect, test } from "bun:test"
import { settleTokenizerMode } from "../../src/model/tokenizer-mode"

const none = { architectures: [], tokenizerFiles: [] }

describe("--tokenizer-mode", () => {
  test("auto knows architectures that have a format of their own", () => {
    for (const [architecture, mode] of [
      ["DeepseekV32ForCausalLM", "deepseek_v32"],
      ["DeepseekV4ForCausalLM", "deepseek_v4"],
      ["DeepseekV4ForConditionalGeneration", "deepseek_v4"],
      ["DeepseekV41ForCausalLM", "deepseek_v41"],
      ["DeepseekV3ForCausalLM", "hf"],
      ["toString", "hf"],
    ] as const) {
      expect(settleTokenizerMode("auto", { ...none, architectures: [architecture] })).toBe(mode)
    }
    const tokenizerFiles = ["tekken.json", "consolidated.safetensors"]
    expect(settleTokenizerMode("auto", { architectures: ["DeepseekV32ForCausalLM"], tokenizerFiles })).toBe(
      "deepseek_v32",
    )
  })

  test("auto knows Mistral's own layout by its weights and vocabulary together", () => {
    for (const [tokenizerFiles, mode] of [
      [["tekken.json", "consolidated.safetensors", "tokenizer.json"], "mistral"],
      [["tokenizer.model.v3", "consolidated-00001-of-00002.safetensors"], "mistral"],
      [["tekken.json", "model.safetensors", "params.json"], "hf"],
      [["tokenizer.model", "consolidated.safetensors"], "hf"],
      [["consolidated.safetensors", "tokenizer.json"], "hf"],
      [["tekken.json", "params.json"], "mistral"],
      [["tekken.json", "tokenizer.json"], "hf"],
    ] as const) {
      expect([tokenizerFiles, settleTokenizerMode("auto", { ...none, tokenizerFiles })]).toEqual([tokenizerFiles, mode])
    }
  })

  test("a mode that was asked for is taken whatever the files say", () => {
    const files = { architectures: ["DeepseekV32ForCausalLM"], tokenizerFiles: ["tekken.json", "params.json"] }
    expect(settleTokenizerMode("hf", files)).toBe("hf")
    expect(settleTokenizerMode("mistral", none)).toBe("mistral")
    expect(settleTokenizerMode("deepseek_v41", none)).toBe("deepseek_v41")
  })
})
