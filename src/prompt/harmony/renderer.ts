import type { Conversation } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import type { Tokenizer } from "../../tokenizer/tokenizer"
import type { EncodeBounds, PromptRenderer, RenderedPrompt, RendererUnusable, RenderFailure } from "../renderer"
import { harmonyConversation } from "./conversation"
import type { HarmonySetting } from "./setting"
import { type HarmonyVocabulary, HarmonyWriter, harmonyVocabulary } from "./tokens"

/**
 * The renderer of gpt-oss models: conversation → Harmony messages → ids. It needs no chat template, and a template that
 * a request brings along has no effect. A vocabulary without Harmony's special tokens is refused. Run at start-up.
 */
export function openHarmonyRenderer(
  tokenizer: Tokenizer,
  setting: HarmonySetting,
): Result<PromptRenderer, RendererUnusable> {
  const vocabulary = harmonyVocabulary(tokenizer)
  return vocabulary.ok ? ok(new HarmonyRenderer(vocabulary.value, setting)) : vocabulary
}

class HarmonyRenderer implements PromptRenderer {
  private readonly vocabulary: HarmonyVocabulary
  private readonly setting: HarmonySetting

  constructor(vocabulary: HarmonyVocabulary, setting: HarmonySetting) {
    this.vocabulary = vocabulary
    this.setting = setting
  }

  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure> {
    const made = harmonyConversation(conversation, this.setting)
    if (!made.ok) return made
    const { messages, isOpen } = made.value
    const writer = new HarmonyWriter(this.vocabulary, bounds)
    for (const [index, message] of messages.entries()) {
      if (isOpen && index === messages.length - 1) writer.openMessage(message)
      else writer.message(message)
    }
    if (conversation.addGenerationPrompt && !isOpen) writer.reply()
    return writer.finish()
  }
}
