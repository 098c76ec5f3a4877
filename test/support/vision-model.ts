/** A model that sees, without weights: Qwen3's vocabulary, which has the tokens, under the name of a vision model. */
import type { ModelProfile } from "../../src/model/profile"
import { qwen3Profile } from "./qwen3-model"

/** As vision models of Qwen print parts: a placeholder for each image or video, between the marks around it. */
export const visionTemplate =
  "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}" +
  "{%- if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}" +
  "{%- if part.type == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}" +
  "{%- elif part.type == 'video' %}{{ '<|vision_start|><|video_pad|><|vision_end|>' }}" +
  "{%- elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}" +
  "{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** The same messages as texts alone: parts have no place in it. */
const textTemplate =
  "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** Ids of the placeholders in this vocabulary. */
export const imagePad = 151_655
export const videoPad = 151_656

/** `takes`: whether its template is written for parts, or for texts. */
export async function visionProfile(takes: "parts" | "texts" = "parts"): Promise<ModelProfile> {
  const profile = await qwen3Profile()
  return {
    ...profile,
    modelType: "qwen2_5_vl",
    architectures: ["Qwen2_5_VLForConditionalGeneration"],
    chatTemplates: { default: takes === "parts" ? visionTemplate : textTemplate },
  }
}
