import type { Conversation } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import type { TextSegment, Tokenizer } from "../tokenizer/tokenizer"
import { renderConversation, type TemplateSetting } from "./conversation-variables"
import { encodeSegments, wholeText } from "./encode-segments"
import { TextGuard } from "./guarded-text"
import type { EncodeBounds, NoChatTemplate, PromptRenderer, RenderedPrompt, RenderFailure } from "./renderer"
import {
  type ChatTemplate,
  chooseTemplate,
  compileTemplate,
  type TemplateRefused,
  type TemplateUnusable,
} from "./template"

/** What stays the same for all prompts of a model with chat templates. */
export interface TemplateRendererSetting extends TemplateSetting {
  readonly tokenizer: Tokenizer
  readonly chatTemplates: { readonly [name: string]: string }
  /**
   * `guard`: special tokens that users and tools spell out are text. `parity`: they are tokens, as in the reference.
   */
  readonly promptSpecialTokens: "guard" | "parity"
  /** Told when foreign text spells special tokens and could not be guarded. */
  readonly onUnguarded: () => void
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
  private readonly guard: TextGuard | null

  constructor(setting: TemplateRendererSetting, own: ReadonlyMap<string, ChatTemplate>) {
    this.setting = setting
    this.own = own
    this.guard = setting.promptSpecialTokens === "guard" ? new TextGuard(setting.tokenizer) : null
  }

  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure> {
    const segments = this.segments(conversation)
    if (!segments.ok) return segments
    return encodeSegments(this.setting.tokenizer, segments.value, conversation.addSpecialTokens, bounds)
  }

  /** The rendered conversation; in more than one segment when foreign text spells special tokens. */
  private segments(conversation: Conversation): Result<readonly TextSegment[], TemplateRefused | NoChatTemplate> {
    const marked = this.guard?.mark(conversation) ?? null
    if (this.guard !== null && marked !== null && this.canGuard(this.guard, conversation)) {
      const rendered = this.text(marked)
      const segments = rendered.ok ? this.guard.segments(rendered.value) : null
      if (segments !== null) return ok(segments)
    }
    if (marked !== null) this.setting.onUnguarded()
    const rendered = this.text(conversation)
    return rendered.ok ? ok(wholeText(rendered.value)) : rendered
  }

  private canGuard(guard: TextGuard, conversation: Conversation): boolean {
    return this.setting.tokenizer.encodeSegments !== undefined && !guard.collides(conversation)
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
