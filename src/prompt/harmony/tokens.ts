import { ok, type Result } from "../../result"
import type { EncodeFailure, Tokenizer } from "../../tokenizer/tokenizer"
import { type EncodeSegments, PromptWriter, segmentEncoder } from "../prompt-writer"
import { type EncodeBounds, type RenderedPrompt, type RendererUnusable, type TextTooLong, unusable } from "../renderer"
import type { HarmonyMessage } from "./message"

/** The special tokens that frame messages, by name. */
const spellings = {
  start: "<|start|>",
  channel: "<|channel|>",
  constrain: "<|constrain|>",
  message: "<|message|>",
  end: "<|end|>",
  call: "<|call|>",
} as const
type Special = keyof typeof spellings

/** Ids of the special tokens in one vocabulary, which also keeps them out of texts. */
export interface HarmonyVocabulary {
  readonly encodeSegments: EncodeSegments
  readonly ids: { readonly [name in Special]: number }
}

/** Looks the special tokens up. A vocabulary without one of them cannot write the format. */
export function harmonyVocabulary(tokenizer: Tokenizer): Result<HarmonyVocabulary, RendererUnusable> {
  const idOf = (name: Special): number => tokenizer.tokenToId(spellings[name])
  const ids = {
    start: idOf("start"),
    channel: idOf("channel"),
    constrain: idOf("constrain"),
    message: idOf("message"),
    end: idOf("end"),
    call: idOf("call"),
  }
  const missing = Object.entries(ids).find(([, id]) => id < 0)?.[0]
  if (missing !== undefined) {
    return unusable(`the vocabulary has no token <|${missing}|>, which prompts in the Harmony format need`)
  }
  const encodeSegments = segmentEncoder(tokenizer)
  return encodeSegments.ok ? ok({ ids, encodeSegments: encodeSegments.value }) : encodeSegments
}

/**
 * Writes messages as ids. Only the frame is made of special tokens: whatever a text spells out is text. The parts of a
 * header are encoded one by one, as the model saw them in training. Source: openai-harmony 0.0.8.
 */
export class HarmonyWriter {
  private readonly ids: HarmonyVocabulary["ids"]
  private readonly writer: PromptWriter

  constructor({ ids, encodeSegments }: HarmonyVocabulary, bounds: EncodeBounds) {
    this.ids = ids
    this.writer = new PromptWriter(encodeSegments, bounds)
  }

  /** A whole message. */
  message(message: HarmonyMessage): void {
    this.openMessage(message)
    this.special(message.role === "assistant" && message.recipient !== null ? "call" : "end")
  }

  /** A message that the model goes on with: without its end. */
  openMessage({ role, name, recipient, channel, contentType, texts }: HarmonyMessage): void {
    this.special("start")
    if (role === "tool") {
      this.writer.plain(name ?? "")
    } else {
      this.writer.plain(role)
      if (name !== null) this.writer.plain(`:${name}`)
    }
    if (recipient !== null && recipient !== "all") this.writer.plain(` to=${recipient}`)
    if (channel !== null) {
      this.special("channel")
      this.writer.plain(channel)
    }
    if (contentType !== null) this.contentType(contentType)
    this.special("message")
    for (const text of texts) this.writer.plain(text)
  }

  /** The beginning of the model's own turn. */
  reply(): void {
    this.special("start")
    this.writer.plain("assistant")
  }

  /** The prompt, or what made it impossible. */
  finish(): Result<RenderedPrompt, EncodeFailure | TextTooLong> {
    return this.writer.finish()
  }

  private contentType(contentType: string): void {
    if (!contentType.startsWith(spellings.constrain)) {
      this.writer.plain(` ${contentType}`)
      return
    }
    this.writer.plain(" ")
    this.special("constrain")
    this.writer.plain(contentType.slice(spellings.constrain.length))
  }

  private special(name: Special): void {
    this.writer.special(this.ids[name], spellings[name])
  }
}
