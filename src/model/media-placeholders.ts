import type { MediaKind } from "../ir/conversation"

/** How one kind of media stands in a prompt before the engine's processors expand it. */
export interface MediaPlaceholder {
  /**
   * What the renderer writes where a template takes texts only; `{i}` is the item's number among its kind, from 1. null =
   * such templates have no place for it.
   */
  readonly text: string | null
  /** The one token of it that an item has exactly once. */
  readonly token: string
}

/** The kinds that a model takes, each with its placeholder; empty = text alone. */
export type MediaPlaceholders = ReadonlyMap<MediaKind, MediaPlaceholder>

const none: MediaPlaceholders = new Map()

/** Around the token, as most vision models of Qwen have it. */
function qwenVision(image: string, video: string): readonly (readonly [MediaKind, MediaPlaceholder])[] {
  const between = (token: string): MediaPlaceholder => ({ text: `<|vision_start|>${token}<|vision_end|>`, token })
  return [
    ["image", between(image)],
    ["video", between(video)],
  ]
}

function bare(token: string): MediaPlaceholder {
  return { text: token, token }
}

const qwenAudio: MediaPlaceholder = { text: "Audio {i}: <|audio_bos|><|AUDIO|><|audio_eos|>", token: "<|AUDIO|>" }
const qwen3Audio: MediaPlaceholder = { text: "<|audio_start|><|audio_pad|><|audio_end|>", token: "<|audio_pad|>" }
const qwenPads = new Map(qwenVision("<|image_pad|>", "<|video_pad|>"))
const imageTag: MediaPlaceholders = new Map([["image", bare("<image>")]])
const imageBar: MediaPlaceholders = new Map([["image", bare("<|image|>")]])
const audioBar: MediaPlaceholders = new Map([["audio", bare("<|audio|>")]])
/** Mistral's own templates print the token; vLLM has no text for it. */
const imageBracket: MediaPlaceholders = new Map([["image", { text: null, token: "[IMG]" }]])
const glmVision: MediaPlaceholders = new Map([
  ["image", { text: "<|begin_of_image|><|image|><|end_of_image|>", token: "<|image|>" }],
  ["video", { text: "<|begin_of_video|><|video|><|end_of_video|>", token: "<|video|>" }],
])

/** By `model_type`. Source: what vLLM's model classes give as `get_placeholder_str` (test/golden/media, for each of them). */
const placeholders: { readonly [modelType: string]: MediaPlaceholders } = {
  qwen2_vl: qwenPads,
  qwen2_5_vl: qwenPads,
  qwen3_vl: qwenPads,
  qwen3_vl_moe: qwenPads,
  qwen3_5: qwenPads,
  qwen3_5_moe: qwenPads,
  qwen2_5_omni: new Map([...qwenVision("<|IMAGE|>", "<|VIDEO|>"), ["audio", qwenAudio]]),
  qwen3_omni_moe: new Map([...qwenPads, ["audio", qwen3Audio]]),
  qwen2_audio: new Map([["audio", qwenAudio]]),
  qwen3_asr: new Map([["audio", qwen3Audio]]),
  gemma3: new Map([["image", bare("<start_of_image>")]]),
  gemma3n: new Map([
    ["image", bare("<image_soft_token>")],
    ["audio", bare("<audio_soft_token>")],
  ]),
  llava: imageTag,
  llava_next: imageTag,
  llava_onevision: new Map([...imageTag, ["video", bare("<video>")]]),
  idefics3: imageTag,
  smolvlm: imageTag,
  llama4: imageBar,
  mistral3: imageBracket,
  pixtral: imageBracket,
  glm4v: glmVision,
  glm4v_moe: glmVision,
  kimi_vl: new Map([
    ["image", { text: "<|media_start|>image<|media_content|><|media_pad|><|media_end|>", token: "<|media_pad|>" }],
  ]),
  ultravox: audioBar,
  granite_speech: audioBar,
}

/** Every `model_type` that takes media here. */
export const mediaModelTypes: readonly string[] = Object.keys(placeholders)

/** What a model of this `model_type` takes beside text, as far as it is known here. */
export function mediaPlaceholders(modelType: string): MediaPlaceholders {
  return Object.hasOwn(placeholders, modelType) ? placeholders[modelType]! : none
}
