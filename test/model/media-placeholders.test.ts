import { describe, expect, test } from "bun:test"
import { mediaModelTypes, mediaPlaceholders } from "../../src/model/media-placeholders"
import golden from "../golden/media/placeholders.json"

/** The class by which vLLM serves a model of this `model_type`. */
const classes: { readonly [modelType: string]: keyof typeof golden.classes } = {
  qwen2_vl: "Qwen2VLForConditionalGeneration",
  qwen2_5_vl: "Qwen2_5_VLForConditionalGeneration",
  qwen3_vl: "Qwen3VLForConditionalGeneration",
  qwen3_vl_moe: "Qwen3VLMoeForConditionalGeneration",
  qwen3_5: "Qwen3_5ForConditionalGeneration",
  qwen3_5_moe: "Qwen3_5MoeForConditionalGeneration",
  qwen2_5_omni: "Qwen2_5OmniThinkerForConditionalGeneration",
  qwen3_omni_moe: "Qwen3OmniMoeThinkerForConditionalGeneration",
  qwen2_audio: "Qwen2AudioForConditionalGeneration",
  qwen3_asr: "Qwen3ASRForConditionalGeneration",
  gemma3: "Gemma3ForConditionalGeneration",
  gemma3n: "Gemma3nForConditionalGeneration",
  llava: "LlavaForConditionalGeneration",
  llava_next: "LlavaNextForConditionalGeneration",
  llava_onevision: "LlavaOnevisionForConditionalGeneration",
  idefics3: "Idefics3ForConditionalGeneration",
  smolvlm: "SmolVLMForConditionalGeneration",
  llama4: "Llama4ForConditionalGeneration",
  mistral3: "Mistral3ForConditionalGeneration",
  pixtral: "PixtralForConditionalGeneration",
  glm4v: "Glm4vForConditionalGeneration",
  glm4v_moe: "Glm4vMoeForConditionalGeneration",
  kimi_vl: "KimiVLForConditionalGeneration",
  ultravox: "UltravoxModel",
  granite_speech: "GraniteSpeechForConditionalGeneration",
}

describe(`placeholders (${golden.madeBy})`, () => {
  test("are known for exactly the models that are compared", () => {
    expect([...mediaModelTypes].sort()).toEqual(Object.keys(classes).sort())
  })

  for (const [modelType, name] of Object.entries(classes)) {
    test(`of ${modelType} are those of vLLM's ${name}`, () => {
      const texts = [...mediaPlaceholders(modelType)].map(([kind, { text }]) => [kind, text])
      expect(Object.fromEntries(texts)).toEqual({ ...golden.classes[name] })
    })
  }
})
