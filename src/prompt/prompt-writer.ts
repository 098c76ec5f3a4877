import { err, ok, type Result } from "../result"
import type { EncodeFailure, Tokenizer } from "../tokenizer/tokenizer"
import { type EncodeBounds, type RenderedPrompt, type RendererUnusable, type TextTooLong, unusable } from "./renderer"

/** Encodes a text none of whose special tokens count. */
export type EncodeSegments = NonNullable<Tokenizer["encodeSegments"]>

/** The tokenizer's own, for `PromptWriter`; one that cannot keep special tokens out is refused. */
export function segmentEncoder(tokenizer: Tokenizer): Result<EncodeSegments, RendererUnusable> {
  const { encodeSegments } = tokenizer
  return encodeSegments === undefined
    ? unusable("the tokenizer cannot keep special tokens out of a prompt's text")
    : ok(encodeSegments.bind(tokenizer))
}

/**
 * Writes a prompt piece by piece, for formats that go straight to ids: control tokens are put in by their ids, and texts
 * are encoded one by one, so that whatever a text spells out is text. Stops early where a prompt is too long in any case.
 */
export class PromptWriter {
  private readonly encodeSegments: EncodeSegments
  private readonly bounds: EncodeBounds
  private readonly parts: Uint32Array[] = []
  private tokens = 0
  private text = ""
  private textBytes = 0
  private failure: EncodeFailure | TextTooLong | null = null

  constructor(encodeSegments: EncodeSegments, bounds: EncodeBounds) {
    this.encodeSegments = encodeSegments
    this.bounds = bounds
  }

  /** A control token, and how it is spelled. */
  special(id: number, spelling: string): void {
    this.add(Uint32Array.of(id), spelling)
  }

  /** A text, encoded by itself. */
  plain(text: string): void {
    const { textBytesMax, tokensMax } = this.bounds
    if (text === "" || this.failure !== null || (tokensMax !== null && this.tokens > tokensMax)) return
    const textBytes = this.textBytes + Buffer.byteLength(text)
    if (textBytes > textBytesMax) {
      this.failure = { kind: "text_too_long", textBytes, textBytesMax }
      return
    }
    const encoded = this.encodeSegments([{ text, special: "text" }], {
      addSpecialTokens: false,
      ...(tokensMax !== null && { tokensMax: Math.max(1, tokensMax - this.tokens) }),
    })
    if (encoded.ok) this.add(encoded.value, text)
    else this.failure = encoded.error
  }

  /** The prompt, or what made it impossible. */
  finish(): Result<RenderedPrompt, EncodeFailure | TextTooLong> {
    if (this.failure !== null) return err(this.failure)
    const tokenIds = new Uint32Array(this.tokens)
    let at = 0
    for (const part of this.parts) {
      tokenIds.set(part, at)
      at += part.length
    }
    return ok({ tokenIds, text: this.text })
  }

  private add(ids: Uint32Array, text: string): void {
    this.parts.push(ids)
    this.tokens += ids.length
    this.text += text
    this.textBytes += Buffer.byteLength(text)
  }
}
