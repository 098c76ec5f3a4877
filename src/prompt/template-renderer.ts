import type { Conversation } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { renderConversation, type TemplateSetting } from "./conversation-variables"
import { turnTokens } from "./deepseek/tokens"
import { encodeSegments } from "./encode-segments"
import { GuardedWriter, type GuardSetting } from "./guarded-writer"
import type { EncodeBounds, NoChatTemplate, PromptRenderer, RenderedPrompt, RenderFailure } from "./renderer"
import {
  type ChatTemplate,
  chooseTemplate,
  compileTemplate,
  type TemplateRefused,
  type TemplateUnusable,
} from "./template"

/** What stays the same for all prompts of a model with chat templates. */
export interface TemplateRendererSetting extends TemplateSetting, GuardSetting {
  readonly chatTemplates: { readonly [name: string]: string }
}

/** Templates that requests brought along, kept compiled. */
const requestTemplatesMax = 16

/** Compiles the model's templates; a failure names the one that cannot be read. Run at start-up. */
export function openTemplateRenderer(setting: TemplateRendererSetting): Result<PromptRenderer, TemplateUnusable> {
  const own = new Map<string, ChatTemplate>()
  for (const [name, text] of Object.entries(setting.chatTemplates)) {
    const compiled = compileTemplate(text)
    if (!compiled.ok) {
      return err({ kind: "template_unusable", message: `chat template '${name}': ${compiled.error.message}` })
    }
    own.set(text, compiled.value)
  }
  return ok(new TemplateRenderer(setting, own))
}

/** Conversation → text by a Jinja template → ids. Templates are compiled once. */
class TemplateRenderer implements PromptRenderer {
  private readonly setting: TemplateRendererSetting
  /** The model's own templates by text, and those that requests brought. */
  private readonly own: ReadonlyMap<string, ChatTemplate>
  private readonly brought = new Map<string, ChatTemplate>()
  private readonly writer: GuardedWriter

  constructor(setting: TemplateRendererSetting, own: ReadonlyMap<string, ChatTemplate>) {
    this.setting = setting
    this.own = own
    this.writer = new GuardedWriter(setting, turnTokens)
  }

  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure> {
    const segments = this.writer.segments(conversation, (each) => this.text(each))
    if (!segments.ok) return segments
    return encodeSegments(this.setting.tokenizer, segments.value, conversation.addSpecialTokens, bounds)
  }

  private text(conversation: Conversation): Result<string, TemplateRefused | NoChatTemplate> {
    const { chatTemplates } = this.setting
    const text = chooseTemplate(chatTemplates, conversation.chatTemplate, conversation.tools.length > 0)
    if (text === null) return err({ kind: "no_chat_template" })
    const template = this.template(text)
    return template.ok ? renderConversation(template.value, conversation, this.setting) : template
  }

  private template(text: string): Result<ChatTemplate, TemplateRefused> {
    const known = this.own.get(text) ?? this.brought.get(text)
    if (known !== undefined) return ok(known)
    const compiled = compileTemplate(text)
    if (!compiled.ok) return err({ kind: "template_refused", message: compiled.error.message })
    const oldest = this.brought.keys().next()
    if (this.brought.size >= requestTemplatesMax && !oldest.done) this.brought.delete(oldest.value)
    this.brought.set(text, compiled.value)
    return compiled
  }
}
