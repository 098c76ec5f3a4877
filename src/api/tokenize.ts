/** POST /tokenize and /detokenize (SERVER 3). */
import { type Static, Type } from "@sinclair/typebox"
import type { PromptInput } from "../ir/conversation"
import { tokenList } from "../ir/token-list"
import type { Preparer } from "../prompt/prepare"
import { err, ok, type Result } from "../result"
import {
  conversationFields,
  lowerConversation,
  lowerMessages,
  mediaKwargsFault,
  untrustedTemplate,
} from "./conversation"
import type { LowerContext } from "./endpoint"
import { type ApiError, invalid } from "./errors"
import { BodyCheck, int64, isRecord, optional } from "./schema"

const promptSchema = Type.Object({
  model: optional(Type.String()),
  prompt: Type.String(),
  add_special_tokens: optional(Type.Boolean(), "Default true"),
  return_token_strs: optional(Type.Boolean()),
})

const chatSchema = Type.Object({
  ...conversationFields,
  model: optional(Type.String()),
  return_token_strs: optional(Type.Boolean()),
})

const detokenizeSchema = Type.Object({ model: optional(Type.String()), tokens: Type.Array(int64) })

const promptCheck = new BodyCheck(promptSchema)
const chatCheck = new BodyCheck(chatSchema)
const detokenizeCheck = new BodyCheck(detokenizeSchema)

/** For the OpenAPI page: a prompt, or messages. */
export const tokenizeSchema = Type.Union([promptSchema, chatSchema])
/** For the OpenAPI page. */
export const detokenizeBodySchema = detokenizeSchema

/** What the two routes need of the vocabulary. */
export interface VocabularyView {
  /** The vocabulary's own spelling (`Ġhello`), or null for ids that it lacks. */
  readonly idToToken: (id: number) => string | null
  readonly vocabSize: number
  readonly decode: (tokenIds: Uint32Array) => string
}

/** Ids of a prompt or of a rendered conversation. No length check, as in the reference. */
export function tokenize(
  body: unknown,
  context: LowerContext,
  preparer: Preparer,
  vocabulary: VocabularyView,
): Result<object, ApiError> {
  const lowered = isRecord(body) && "messages" in body ? lowerChat(body, context) : lowerPrompt(body)
  if (!lowered.ok) return lowered
  const prepared = preparer.encodeOnly(lowered.value.input)
  if (!prepared.ok) return prepared
  const tokens = tokenList(prepared.value.tokenIds)
  return ok({
    count: tokens.length,
    max_model_len: context.model.contextTokensMax,
    tokens,
    token_strs: lowered.value.strings ? tokens.map((id) => vocabulary.idToToken(id) ?? "") : null,
  })
}

interface LoweredTokenize {
  readonly input: PromptInput
  readonly strings: boolean
}

function lowerPrompt(body: unknown): Result<LoweredTokenize, ApiError> {
  const checked = promptCheck.check(body)
  if (!checked.ok) return checked
  const { prompt, add_special_tokens, return_token_strs } = checked.value
  const input: PromptInput = { kind: "text", text: prompt, addSpecialTokens: add_special_tokens ?? true }
  return ok({ input, strings: return_token_strs ?? false })
}

function lowerChat(body: unknown, context: LowerContext): Result<LoweredTokenize, ApiError> {
  const checked = chatCheck.check(body)
  if (!checked.ok) return checked
  const fault = chatFault(checked.value, context)
  if (fault !== null) return err(fault)
  const messages = lowerMessages(checked.value.messages, context)
  if (!messages.ok) return messages
  const conversation = lowerConversation(checked.value, messages.value.messages, { kind: "auto" }, context)
  if (!conversation.ok) return conversation
  return ok({ input: conversation.value, strings: checked.value.return_token_strs ?? false })
}

function chatFault(body: Static<typeof chatSchema>, context: LowerContext): ApiError | null {
  const { trustRequestChatTemplate, trustRequestMmKwargs } = context.config
  if (body.add_generation_prompt === true && body.continue_final_message === true) {
    return invalid(
      "continue_final_message",
      "`continue_final_message` and `add_generation_prompt` cannot both be true.",
    )
  }
  if (body.chat_template != null && !trustRequestChatTemplate) return untrustedTemplate
  return mediaKwargsFault(body, trustRequestMmKwargs)
}

/** Text of ids; special tokens stay, ids outside the vocabulary are refused. */
export function detokenize(body: unknown, vocabulary: VocabularyView): Result<object, ApiError> {
  const checked = detokenizeCheck.check(body)
  if (!checked.ok) return checked
  const outside = checked.value.tokens.find((id) => id < 0 || id >= vocabulary.vocabSize)
  if (outside !== undefined) return err(invalid("tokens", `Token id ${outside} is out of vocabulary`))
  return ok({ prompt: vocabulary.decode(Uint32Array.from(checked.value.tokens, Number)) })
}
