import type { Conversation, MediaKind, PromptInput } from "../ir/conversation"
import type { ServedWindow } from "../ir/served-window"
import type { MediaPlaceholders } from "../model/media-placeholders"
import { err, ok, type Result } from "../result"
import type { Tokenizer } from "../tokenizer/tokenizer"
import { encodeSegments, wholeText } from "./encode-segments"
import type { EncodeBounds, PromptRenderer, RenderFailure } from "./renderer"

/** A prompt, ready for the engine. */
export interface Prepared {
  readonly tokenIds: Uint32Array
  /** The text it came from; null when the client sent ids. */
  readonly text: string | null
}

/** Why a prompt cannot be made. Lengths are tokens unless the name says bytes. */
export type PrepareFailure =
  | RenderFailure
  /** `promptTokens` may be where counting stopped. */
  | { readonly kind: "prompt_too_long"; readonly promptTokens: number; readonly contextTokensMax: number }
  | { readonly kind: "prompt_empty"; readonly param: string }
  /** The prompt must have one placeholder for each item, and has another number of them. */
  | {
      readonly kind: "media_misplaced"
      readonly media: MediaKind
      readonly items: number
      readonly placeholders: number
    }
  | { readonly kind: "token_out_of_vocabulary"; readonly tokenId: number; readonly param: string }

/** Keep only so many tokens of a prompt. `tokensMax` -1 = as many as leave one token for the reply. */
export interface Truncation {
  readonly tokensMax: number
  readonly side: "left" | "right"
}

/** What stays the same for all prompts of a server. */
export interface PromptSetting {
  readonly tokenizer: Tokenizer
  readonly renderer: PromptRenderer
  readonly window: ServedWindow
  readonly mediaPlaceholders: MediaPlaceholders
}

/**
 * Bytes of text for each token of the window that are encoded when all ids are wanted (truncation, /tokenize): four
 * times what most texts have. And a length that is always taken.
 */
const wholeTextBytesPerToken = 16
const wholeTextBytesMin = 1024 * 1024

/**
 * The way down: conversation, text or ids → prompt ids that leave room for a reply. The length rules are RESPONSES,
 * Decided.
 */
export class Preparer {
  private readonly setting: PromptSetting

  constructor(setting: PromptSetting) {
    this.setting = setting
  }

  /** The prompt, or why there is none. */
  prepare(input: PromptInput, truncation: Truncation | null): Result<Prepared, PrepareFailure> {
    const encoded = this.encode(input, truncation)
    if (!encoded.ok) return encoded
    const { tokenIds, text } = encoded.value
    if (tokenIds.length === 0)
      return err({ kind: "prompt_empty", param: input.kind === "conversation" ? "messages" : "prompt" })
    const contextTokensMax = this.setting.window.tokensMax
    const kept = truncation === null ? tokenIds : truncate(tokenIds, truncation, contextTokensMax)
    if (kept.length >= contextTokensMax) {
      return err({ kind: "prompt_too_long", promptTokens: kept.length, contextTokensMax })
    }
    const fault = input.kind === "conversation" ? this.mediaFault(input, kept) : null
    return fault === null ? ok({ tokenIds: kept, text }) : err(fault)
  }

  /** Ids without any length rule, for /tokenize. */
  encodeOnly(input: PromptInput): Result<Prepared, PrepareFailure> {
    return this.encode(input, { tokensMax: -1, side: "left" })
  }

  private encode(input: PromptInput, truncation: Truncation | null): Result<Prepared, PrepareFailure> {
    if (input.kind === "token_ids") return this.checkIds(input.tokenIds)
    const { tokenizer, renderer } = this.setting
    const bounds = this.bounds(truncation)
    if (input.kind === "conversation") return renderer.render(input, bounds)
    return encodeSegments(tokenizer, wholeText(input.text), input.addSpecialTokens, bounds)
  }

  /** Without truncation: no tokenizer makes fewer tokens of a text than `tokenBytesMax` allows. */
  private bounds(truncation: Truncation | null): EncodeBounds {
    const { tokenizer, window } = this.setting
    const contextTokensMax = window.tokensMax
    return truncation === null
      ? { textBytesMax: contextTokensMax * tokenizer.tokenBytesMax, tokensMax: contextTokensMax }
      : { textBytesMax: Math.max(contextTokensMax * wholeTextBytesPerToken, wholeTextBytesMin), tokensMax: null }
  }

  /**
   * Whoever generates looks for as many placeholders as it is given items. There may be another number where a template
   * leaves some out, a client spells one as text that counts, or truncation took one away.
   */
  private mediaFault({ messages }: Conversation, tokenIds: Uint32Array): PrepareFailure | null {
    const { tokenizer, mediaPlaceholders } = this.setting
    const items = new Map<MediaKind, number>()
    for (const { content } of messages) {
      if (content === null || typeof content === "string") continue
      for (const { type } of content) if (type !== "text") items.set(type, (items.get(type) ?? 0) + 1)
    }
    if (items.size === 0) return null
    for (const [media, { token }] of mediaPlaceholders) {
      const wanted = items.get(media) ?? 0
      const id = tokenizer.tokenToId(token)
      const placeholders = tokenIds.reduce((count, each) => (each === id ? count + 1 : count), 0)
      if (placeholders !== wanted) return { kind: "media_misplaced", media, items: wanted, placeholders }
    }
    return null
  }

  private checkIds(ids: readonly number[]): Result<Prepared, PrepareFailure> {
    const { vocabSize } = this.setting.tokenizer
    const outside = ids.find((id) => id < 0 || id >= vocabSize)
    if (outside !== undefined) return err({ kind: "token_out_of_vocabulary", tokenId: outside, param: "prompt" })
    return ok({ tokenIds: Uint32Array.from(ids), text: null })
  }
}

/** Cuts ids at one side so that at most `tokensMax`, and never the whole window, is left. */
function truncate(tokenIds: Uint32Array, { tokensMax, side }: Truncation, contextTokensMax: number): Uint32Array {
  const keep = tokensMax === -1 ? contextTokensMax - 1 : tokensMax
  if (tokenIds.length <= keep) return tokenIds
  return side === "left" ? tokenIds.slice(tokenIds.length - keep) : tokenIds.slice(0, keep)
}
