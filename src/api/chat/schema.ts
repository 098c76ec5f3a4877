/** Body of POST /v1/chat/completions (CHAT 1). Unknown fields are let through unread, as clients are newer than servers. */
import { type Static, Type } from "@sinclair/typebox"
import { conversationFields, reasoningEffort } from "../conversation"
import { replyFields } from "../reply-fields"
import { samplingFields } from "../sampling"
import { int32, int64, jsonObject, optional } from "../schema"

/** What a chat completions body may hold; fields that are not named here are let through unread. */
export const chatSchema = Type.Object({
  ...samplingFields,
  ...replyFields,
  ...conversationFields,
  max_tokens: optional(int64, "Superseded by max_completion_tokens"),
  max_completion_tokens: optional(int64, "Tokens of the reply; default: whatever fits"),
  logprobs: optional(Type.Boolean()),
  top_logprobs: optional(int32),
  tool_choice: optional(Type.Union([Type.String(), jsonObject]), "none, auto, required, or one function by name"),
  parallel_tool_calls: optional(Type.Boolean()),
  reasoning_effort: optional(reasoningEffort),
  include_reasoning: optional(Type.Boolean(), "Default true"),
  documents: optional(Type.Array(jsonObject)),
  echo: optional(Type.Boolean()),
  return_prompt_text: optional(Type.Boolean()),
})

/** A chat completions body that fits the schema. */
export type ChatBody = Static<typeof chatSchema>
