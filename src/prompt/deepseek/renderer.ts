import type { Conversation } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import type { Tokenizer } from "../../tokenizer/tokenizer"
import { encodeSegments } from "../encode-segments"
import { GuardedWriter, type GuardSetting } from "../guarded-writer"
import {
  type ConversationRefused,
  type EncodeBounds,
  type PromptRenderer,
  type RenderedPrompt,
  type RendererUnusable,
  type RenderFailure,
  refused,
  unusable,
} from "../renderer"
import { JsonTooLarge } from "./dsml"
import { controlTokens, requiredTokens, tokens } from "./tokens"
import type { DeepseekVersion } from "./turn"
import { v4Text } from "./v4"
import { v32Text } from "./v32"

/**
 * The renderer of DeepSeek V3.2, V4 and V4.1: conversation → text → ids. It needs no chat template, and a template that a
 * request brings along has no effect. A vocabulary without the tokens that frame turns is refused. Run at start-up.
 */
export function openDeepseekRenderer(
  setting: GuardSetting,
  version: DeepseekVersion,
): Result<PromptRenderer, RendererUnusable> {
  const missing = requiredTokens.find((token) => setting.tokenizer.tokenToId(token) < 0)
  return missing === undefined
    ? ok(new DeepseekRenderer(setting, version))
    : unusable(`the vocabulary has no token ${missing}, which prompts in DeepSeek's formats need`)
}

class DeepseekRenderer implements PromptRenderer {
  private readonly tokenizer: Tokenizer
  private readonly writer: GuardedWriter
  private readonly version: DeepseekVersion

  constructor(setting: GuardSetting, version: DeepseekVersion) {
    this.tokenizer = setting.tokenizer
    this.writer = new GuardedWriter(setting, controlTokens)
    this.version = version
  }

  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure> {
    if (this.version === "v41" && spellsImage(conversation)) {
      return refused(`messages must not spell ${tokens.image} for this model: images are parts of their own.`)
    }
    const segments = this.writer.segments(conversation, (each) => this.text(each))
    if (!segments.ok) return segments
    return encodeSegments(this.tokenizer, segments.value, conversation.addSpecialTokens, bounds)
  }

  private text(conversation: Conversation): Result<string, ConversationRefused> {
    try {
      return this.version === "v32" ? v32Text(conversation) : v4Text(conversation, this.version)
    } catch (cause) {
      if (cause instanceof JsonTooLarge) return refused(`tools and arguments hold too much: ${cause.message}`)
      throw cause
    }
  }
}

/** V4.1's reference refuses texts that would put images where there are none. */
function spellsImage({ messages }: Conversation): boolean {
  return messages.some(({ content, reasoning }) => {
    if (reasoning?.includes(tokens.image)) return true
    if (content === null || typeof content === "string") return content?.includes(tokens.image) === true
    return content.some((part) => part.type === "text" && part.text.includes(tokens.image))
  })
}
