import type { Conversation, PromptInput } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import type { EncodeFailure, TextSegment, Tokenizer } from "../tokenizer/tokenizer"
import { renderConversation, type TemplateSetting } from "./conversation-variables"
import { TextGuard } from "./guarded-text"
import {
  type ChatTemplate,
  chooseTemplate,
  compileTemplate,
  type TemplateRefused,
  type TemplateUnusable,
} from "./template"

/** A prompt, ready for the engine. */
export interface Prepared {
  readonly tokenIds: Uint32Array
  /** The text it came from; null when the client sent ids. */
  readonly text: string | null
}

/** Why a prompt cannot be made. Lengths are tokens unless the name says bytes. */
export type PrepareFailure =
  | TemplateRefused
  | EncodeFailure
  | { readonly kind: "no_chat_template" }
  | { readonly kind: "text_too_long"; readonly textBytes: number; readonly textBytesMax: number }
  /** `promptTokens` may be where counting stopped. */
  | { readonly kind: "prompt_too_long"; readonly promptTokens: number; readonly contextTokensMax: number }
  | { readonly kind: "prompt_empty"; readonly param: string }
  | { readonly kind: "token_out_of_vocabulary"; readonly tokenId: number; readonly param: string }

/** Keep only so many tokens of a prompt. `tokensMax` -1 = as many as leave one token for the reply. */
export interface Truncation {
  readonly tokensMax: number
  readonly side: "left" | "right"
}

/** What stays the same for all prompts of a server. */
export interface PromptSetting extends TemplateSetting {
  readonly tokenizer: Tokenizer
  readonly chatTemplates: { readonly [name: string]: string }
  readonly contextTokensMax: number
  /**
   * `guard`: special tokens that users and tools spell out are text. `parity`: they are tokens, as in the reference.
   */
  readonly promptSpecialTokens: "guard" | "parity"
  /** Told when foreign text spells special tokens and could not be guarded. */
  readonly onUnguarded: () => void
}

/**
 * Bytes of text for each token of the window that are encoded when all ids are wanted (truncation, /tokenize): four
 * times what most texts have. And a length that is always taken.
 */
const wholeTextBytesPerToken = 16
const wholeTextBytesMin = 1024 * 1024

/** Templates that requests brought along, kept compiled. */
const requestTemplatesMax = 16

/**
 * The way down: conversation, text or ids → prompt ids that leave room for a reply. Templates are compiled once. The
 * length rules are RESPONSES, Decided.
 */
export class Preparer {
  private readonly setting: PromptSetting
  /** The model's own templates by text, and those that requests brought. */
  private readonly own: ReadonlyMap<string, ChatTemplate>
  private readonly brought = new Map<string, ChatTemplate>()
  private readonly guard: TextGuard | null

  /** `own`: the model's templates, compiled (`openPreparer`). */
  constructor(setting: PromptSetting, own: ReadonlyMap<string, ChatTemplate>) {
    this.setting = setting
    this.own = own
    this.guard = setting.promptSpecialTokens === "guard" ? new TextGuard(setting.tokenizer) : null
  }

  /** The prompt, or why there is none. */
  prepare(input: PromptInput, truncation: Truncation | null): Result<Prepared, PrepareFailure> {
    const encoded = this.encode(input, truncation)
    if (!encoded.ok) return encoded
    const { tokenIds, text } = encoded.value
    if (tokenIds.length === 0)
      return err({ kind: "prompt_empty", param: input.kind === "conversation" ? "messages" : "prompt" })
    const { contextTokensMax } = this.setting
    const kept = truncation === null ? tokenIds : truncate(tokenIds, truncation, contextTokensMax)
    if (kept.length < contextTokensMax) return ok({ tokenIds: kept, text })
    return err({ kind: "prompt_too_long", promptTokens: kept.length, contextTokensMax })
  }

  /** The text of a conversation, as its template renders it. */
  render(conversation: Conversation): Result<string, PrepareFailure> {
    const { chatTemplates } = this.setting
    const text = chooseTemplate(chatTemplates, conversation.chatTemplate, conversation.tools.length > 0)
    if (text === null) return err({ kind: "no_chat_template" })
    const template = this.template(text)
    return template.ok ? renderConversation(template.value, conversation, this.setting) : template
  }

  /** Ids without any length rule, for /tokenize. */
  encodeOnly(input: PromptInput): Result<Prepared, PrepareFailure> {
    return this.encode(input, { tokensMax: -1, side: "left" })
  }

  private encode(input: PromptInput, truncation: Truncation | null): Result<Prepared, PrepareFailure> {
    if (input.kind === "token_ids") return this.checkIds(input.tokenIds)
    const segments = input.kind === "text" ? ok(plain(input.text)) : this.segments(input)
    if (!segments.ok) return segments
    const text =
      segments.value.length === 1 ? segments.value[0]!.text : segments.value.map((each) => each.text).join("")
    const { tokenizer, contextTokensMax } = this.setting
    // No tokenizer makes fewer tokens than this, so what cannot fit is refused before it costs time.
    const textBytesMax =
      truncation === null
        ? contextTokensMax * tokenizer.tokenBytesMax
        : Math.max(contextTokensMax * wholeTextBytesPerToken, wholeTextBytesMin)
    const textBytes = Buffer.byteLength(text)
    if (textBytes > textBytesMax) return err({ kind: "text_too_long", textBytes, textBytesMax })
    const options = {
      addSpecialTokens: input.addSpecialTokens,
      ...(truncation === null && { tokensMax: contextTokensMax }),
    }
    const tokenIds =
      tokenizer.encodeSegments === undefined || segments.value.every(({ special }) => special === "token")
        ? tokenizer.encode(text, options)
        : tokenizer.encodeSegments(segments.value, options)
    return tokenIds.ok ? ok({ tokenIds: tokenIds.value, text }) : tokenIds
  }

  /** The rendered conversation; in more than one segment when foreign text spells special tokens. */
  private segments(conversation: Conversation): Result<readonly TextSegment[], PrepareFailure> {
    const marked = this.guard?.mark(conversation) ?? null
    if (this.guard !== null && marked !== null && this.canGuard(this.guard, conversation)) {
      const rendered = this.render(marked)
      const segments = rendered.ok ? this.guard.segments(rendered.value) : null
      if (segments !== null) return ok(segments)
    }
    if (marked !== null) this.setting.onUnguarded()
    const rendered = this.render(conversation)
    return rendered.ok ? ok(plain(rendered.value)) : rendered
  }

  private canGuard(guard: TextGuard, conversation: Conversation): boolean {
    return this.setting.tokenizer.encodeSegments !== undefined && !guard.collides(conversation)
  }

  private checkIds(ids: readonly number[]): Result<Prepared, PrepareFailure> {
    const { vocabSize } = this.setting.tokenizer
    const outside = ids.find((id) => id < 0 || id >= vocabSize)
    if (outside !== undefined) return err({ kind: "token_out_of_vocabulary", tokenId: outside, param: "prompt" })
    return ok({ tokenIds: Uint32Array.from(ids), text: null })
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

/** Compiles the model's templates; a failure names the one that cannot be read. Run at start-up. */
export function openPreparer(setting: PromptSetting): Result<Preparer, TemplateUnusable> {
  const own = new Map<string, ChatTemplate>()
  for (const [name, text] of Object.entries(setting.chatTemplates)) {
    const compiled = compileTemplate(text)
    if (!compiled.ok) {
      return err({ kind: "template_unusable", message: `chat template '${name}': ${compiled.error.message}` })
    }
    own.set(text, compiled.value)
  }
  return ok(new Preparer(setting, own))
}

function plain(text: string): readonly TextSegment[] {
  return [{ text, special: "token" }]
}

/** Cuts ids at one side so that at most `tokensMax`, and never the whole window, is left. */
function truncate(tokenIds: Uint32Array, { tokensMax, side }: Truncation, contextTokensMax: number): Uint32Array {
  const keep = tokensMax === -1 ? contextTokensMax - 1 : tokensMax
  if (tokenIds.length <= keep) return tokenIds
  return side === "left" ? tokenIds.slice(tokenIds.length - keep) : tokenIds.slice(0, keep)
}
