import type { Conversation } from "../ir/conversation"
import { err, type Result } from "../result"
import type { EncodeFailure } from "../tokenizer/tokenizer"
import type { TemplateRefused } from "./template"

/**
 * How conversations become prompts: one plug per way that models were trained on (a Jinja template, Harmony …). Chosen
 * once per model (`open-renderer.ts`); a conversation is all that it sees of a request.
 */
export interface PromptRenderer {
  /** The prompt's ids, without any rule about the window, or why there is none. */
  render(conversation: Conversation, bounds: EncodeBounds): Result<RenderedPrompt, RenderFailure>
}

/** A conversation as a prompt. */
export interface RenderedPrompt {
  readonly tokenIds: Uint32Array
  /** The text it came from, special tokens spelled out. */
  readonly text: string
}

/** How much is encoded before it is clear that a prompt will not be taken. */
export interface EncodeBounds {
  /** UTF-8 bytes of the prompt's text. */
  readonly textBytesMax: number
  /** Encoding may stop behind so many ids; null = all are wanted. */
  readonly tokensMax: number | null
}

/** Why a conversation has no prompt. */
export type RenderFailure = TemplateRefused | ConversationRefused | EncodeFailure | TextTooLong | NoChatTemplate

/** A conversation that the model's format has no place for; `param` is the request's field, where there is one. */
export interface ConversationRefused {
  readonly kind: "conversation_refused"
  readonly message: string
  readonly param: string | null
}

/** Refuses a conversation; `param` null = no field of the request alone. */
export function refused(message: string, param: string | null = "messages"): Result<never, ConversationRefused> {
  return err({ kind: "conversation_refused", message, param })
}

/** A text that is longer than the window could ever hold. */
export interface TextTooLong {
  readonly kind: "text_too_long"
  readonly textBytes: number
  readonly textBytesMax: number
}

/** The model has no chat template and no format of its own. */
export interface NoChatTemplate {
  readonly kind: "no_chat_template"
}

/** A format that cannot be written with the model's vocabulary: a start-up error. */
export interface RendererUnusable {
  readonly kind: "renderer_unusable"
  readonly message: string
}

/** Refuses a vocabulary, or a setting in its files. */
export function unusable(message: string): Result<never, RendererUnusable> {
  return err({ kind: "renderer_unusable", message })
}
