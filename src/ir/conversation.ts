/**
 * What the client said, whichever API it came through: a conversation, a plain text, or token ids. Endpoints lower
 * their bodies to this; `prompt/prepare` turns it into token ids and knows no API.
 */

/** A JSON value as it came from a body. Integers beyond 2^53 are `bigint` (see http/body.ts). */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json }

/** One piece of a message's content. Media parts carry their source unread. */
export type ContentPart =
  /** `thinking`: an assistant's, and whether it came to its end; few formats tell it from other text. */
  | { readonly type: "text"; readonly text: string; readonly thinking?: "closed" | "open" }
  | {
      readonly type: "image" | "audio" | "video" | "file"
      readonly source: Json
      /** What the client calls the item, so that whoever processes it may know it again. */
      readonly uuid?: string
    }

/** What a content part can be beside text. */
export type MediaKind = Exclude<ContentPart["type"], "text">

/** A function call in the history. `arguments` is an object, as templates expect (malformed JSON became `{}`). */
export interface HistoryCall {
  readonly id: string | null
  readonly name: string
  readonly arguments: Json
  /** The arguments as the client wrote them; absent when it sent no text. */
  readonly argumentsText?: string
}

/** One turn. `content: null` differs from `""`: templates can tell them apart. */
export interface Message {
  /** system, developer, user, assistant, tool, or any other string (it reaches the template unchanged). */
  readonly role: string
  readonly content: string | readonly ContentPart[] | null
  /** The assistant's earlier reasoning; null for other roles or when there was none. */
  readonly reasoning: string | null
  readonly toolCalls: readonly HistoryCall[]
  readonly toolCallId: string | null
  readonly name: string | null
  /** What the turn asks of the model besides a reply, in formats that have such. */
  readonly task?: string
  /** Functions that the message itself tells, `{type, function}` each as the client wrote it, in formats that have such. */
  readonly tools?: readonly Json[]
  /** A schema for replies that the message itself tells, in formats that have such. */
  readonly responseFormat?: Json
}

/** A function that the model may call. `parameters` is the JSON schema as the client sent it. */
export interface FunctionTool {
  readonly name: string
  readonly description: string | null
  readonly parameters: Json
  readonly strict: boolean | null
}

/** Which calls are allowed. `named` forces one function. */
export type ToolChoice =
  | { readonly kind: "none" | "auto" | "required" }
  | { readonly kind: "named"; readonly name: string }

/** A conversation with all that its chat template may look at. */
export interface Conversation {
  readonly kind: "conversation"
  readonly messages: readonly Message[]
  readonly tools: readonly FunctionTool[]
  readonly toolChoice: ToolChoice
  readonly addGenerationPrompt: boolean
  readonly continueFinalMessage: boolean
  /** Chat templates write BOS themselves, so this is false by default. */
  readonly addSpecialTokens: boolean
  readonly documents: readonly Json[] | null
  /** Template text of the request; endpoints let it through only under the trust flag. */
  readonly chatTemplate: string | null
  /** Request kwargs over server defaults, with what was derived from `reasoning_effort` on top. */
  readonly templateKwargs: { readonly [name: string]: Json }
}

/** What becomes the prompt. */
export type PromptInput =
  | Conversation
  | { readonly kind: "text"; readonly text: string; readonly addSpecialTokens: boolean }
  /** As the client sent them: whether they are in the vocabulary is checked by `prompt/prepare`. */
  | { readonly kind: "token_ids"; readonly tokenIds: readonly number[] }
