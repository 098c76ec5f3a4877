import type { Conversation } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import type { Tokenizer } from "../../tokenizer/tokenizer"
import {
  type ConversationRefused,
  type EncodeBounds,
  type PromptRenderer,
  type RenderedPrompt,
  type RendererUnusable,
  type RenderFailure,
  refused,
} from "../renderer"
import { mistralMessages } from "./message"
import { normalForm } from "./normal-form"
import type { MistralSetting } from "./setting"
import { MistralWriter } from "./tokens"
import { conversationFault, toolFault } from "./validity"
import { type MistralVocabulary, mistralVocabulary } from "./vocabulary"

/**
 * The renderer of Mistral's models, from the generation that their vocabulary names: what vLLM makes of a chat with
 * mistral-common, id for id. It has no templates, and refuses requests that bring one or variables for one; whatever
 * that package refuses is refused. The server's own `defaults` for templates mean nothing here, as in vLLM, but for an
 * effort. A vocabulary without the format's control tokens is refused. Run at start-up.
 */
export function openMistralRenderer(
  tokenizer: Tokenizer,
  setting: MistralSetting,
  defaults: Conversation["templateKwargs"] = {},
): Result<PromptRenderer, RendererUnusable> {
  const vocabulary = mistralVocabulary(tokenizer, setting.version)
  return vocabulary.ok ? ok(new MistralRenderer(vocabulary.value, setting, defaults)) : vocabulary
}

class MistralRenderer implements PromptRenderer {
  private readonly vocabulary: MistralVocabulary
  private readonly setting: MistralSetting
  private readonly defaults: Conversation["templateKwargs"]

  constructor(vocabulary: MistralVocabulary, setting: MistralSetting, defaults: Conversation["templateKwargs"]) {
    this.vocabulary = vocabulary
    this.setting = setting
    this.defaults = defaults
  }

  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure> {
    const { version } = this.setting
    const effort = this.effort(conversation)
    if (!effort.ok) return effort
    const messages = mistralMessages(conversation)
    if (!messages.ok) return messages
    if (conversation.continueFinalMessage && messages.value.at(-1)?.role !== "assistant") {
      return refused("continue_final_message needs a last message of the assistant")
    }
    const fault = conversationFault(messages.value, version)
    if (fault !== null) return refused(fault)
    for (const tool of conversation.tools) {
      const toolsFault = toolFault(tool)
      if (toolsFault !== null) return refused(toolsFault, "tools")
    }
    const writer = new MistralWriter(this.vocabulary, version, bounds)
    const extras = { tools: conversation.tools, effort: effort.value }
    return writer.conversation(normalForm(messages.value, version), extras)
  }

  /** How hard the model is told to think; null = nothing is said. Models that are not told any ignore the request's. */
  private effort({ chatTemplate, templateKwargs }: Conversation): Result<string | null, ConversationRefused> {
    if (chatTemplate !== null) return refused("models with Mistral's format have no chat template", "chat_template")
    const { reasoning_effort: asked, enable_thinking: follows, ...others } = templateKwargs
    // An effort in the request brings `enable_thinking` along (api/conversation.ts).
    const named = asked === undefined && follows !== undefined ? { ...others, enable_thinking: follows } : others
    const unknown = Object.entries(named).flatMap(([name, value]) => (this.defaults[name] === value ? [] : [name]))
    if (unknown.length > 0) {
      const message = `models with Mistral's format take no chat_template_kwargs, such as ${unknown[0]?.slice(0, 64)}`
      return refused(message, "chat_template_kwargs")
    }
    const { efforts } = this.setting
    if (efforts === null) return ok(null)
    if (asked === undefined) return ok(efforts.standard)
    if (typeof asked === "string" && efforts.values.includes(asked)) return ok(asked)
    return refused(`reasoning_effort must be one of ${efforts.values.join(", ")} for this model`, "reasoning_effort")
  }
}
