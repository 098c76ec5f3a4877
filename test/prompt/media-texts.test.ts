/** Placeholders of media where a template takes texts. */
import { expect, test } from "bun:test"
import type { ContentPart } from "../../src/ir/conversation"
import { mediaPlaceholders } from "../../src/model/media-placeholders"
import { renderConversation } from "../../src/prompt/conversation-variables"
import { compileTemplate } from "../../src/prompt/template"
import { conversationOf } from "../support/conversation"

const template = "{% for message in messages %}[{{ message.content }}]{% endfor %}"
const text = (words: string): ContentPart => ({ type: "text", text: words })
const item = (type: "image" | "audio" | "video"): ContentPart => ({ type, source: { url: "https://example.test/a" } })

function render(modelType: string, ...contents: (readonly ContentPart[])[]): string {
  const compiled = compileTemplate(template)
  if (!compiled.ok) throw new Error(compiled.error.message)
  const conversation = conversationOf(
    contents.map((content) => ({ content })),
    { addGenerationPrompt: false },
  )
  const setting = {
    specialTokens: {},
    contentFormat: "string" as const,
    mediaPlaceholders: mediaPlaceholders(modelType),
  }
  const rendered = renderConversation(compiled.value, conversation, setting)
  if (!rendered.ok) throw new Error(rendered.error.message)
  return rendered.value
}

test("they come before the text, kind by kind, numbered through the conversation where the model numbers them", () => {
  const audio = (i: number) => `Audio ${i}: <|audio_bos|><|AUDIO|><|audio_eos|>`
  const image = "<|vision_start|><|IMAGE|><|vision_end|>"
  expect(
    render("qwen2_5_omni", [text("a"), item("audio"), item("image"), text("b"), item("audio")], [item("audio")]),
  ).toBe(`[${audio(1)}\n${audio(2)}\n${image}\na\nb][${audio(3)}]`)
})

test("a text that spells them has its own places for them, as many as it spells", () => {
  const mark = "<image>"
  expect(render("llava", [text(`see ${mark} here`), item("image"), item("image")])).toBe(`[${mark}\nsee ${mark} here]`)
  expect(render("llava", [text(`${mark}${mark}${mark}`), item("image")])).toBe(`[${mark}${mark}${mark}]`)
  expect(render("llava", [text(""), item("image")])).toBe(`[${mark}]`)
})

test("a model without a text for them gets none, and a model of text alone takes no media", () => {
  expect(render("pixtral", [text("a"), item("image")])).toBe("[a]")
  expect(render("qwen3", [text("a"), item("image")])).toBe("[a]")
  expect(mediaPlaceholders("qwen3").size).toBe(0)
  expect(mediaPlaceholders("toString").size).toBe(0)
})

test("every text holds its token exactly once", () => {
  for (const type of [
    "qwen2_vl",
    "qwen3_5_moe",
    "qwen2_5_omni",
    "qwen3_omni_moe",
    "gemma3",
    "gemma3n",
    "llava_onevision",
  ]) {
    const known = mediaPlaceholders(type)
    expect(known.size).toBeGreaterThan(0)
    for (const { text: words, token } of known.values()) expect([type, words!.split(token).length]).toEqual([type, 2])
  }
  for (const type of ["llama4", "glm4v", "kimi_vl", "ultravox"]) {
    for (const { text: words, token } of mediaPlaceholders(type).values()) expect(words!.split(token).length).toBe(2)
  }
})
