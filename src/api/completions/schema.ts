/** Body of POST /v1/completions (CHAT 7). Unknown fields are let through unread. */
import { type Static, Type } from "@sinclair/typebox"
import { replyFields } from "../reply-fields"
import { samplingFields } from "../sampling"
import { anyJson, int32, int64, optional } from "../schema"

/** What a completions body may hold; fields that are not named here are let through unread. */
export const completionSchema = Type.Object({
  ...samplingFields,
  ...replyFields,
  prompt: optional(
    Type.Union([Type.String(), Type.Array(Type.String()), Type.Array(int32), Type.Array(Type.Array(int32))]),
    "Text, token ids, or a list of either",
  ),
  prompt_embeds: optional(anyJson),
  max_tokens: optional(int64, "Tokens of the reply, default 16; 0 only with echo"),
  echo: optional(Type.Boolean(), "Repeat the prompt in front of the reply"),
  logprobs: optional(int32, "Alternatives for each token"),
  suffix: optional(Type.String()),
  add_special_tokens: optional(Type.Boolean(), "Default true"),
})

/** A completions body that fits the schema. */
export type CompletionBody = Static<typeof completionSchema>
