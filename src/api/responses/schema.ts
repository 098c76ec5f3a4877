/** Body of POST /v1/responses (RESPONSES 1). Unknown fields are let through unread. */
import { type Static, Type } from "@sinclair/typebox"
import { reasoningEffort } from "../conversation"
import { samplingFields } from "../sampling"
import { anyJson, int32, int64, jsonObject, optional } from "../schema"

const toolFields = {
  type: Type.String(),
  name: optional(Type.String()),
  description: optional(Type.String()),
  parameters: optional(jsonObject),
  strict: optional(Type.Boolean()),
  format: optional(jsonObject, "Of custom tools: {type: text}"),
}

const tool = Type.Object({
  ...toolFields,
  tools: optional(Type.Array(Type.Object(toolFields)), "Of a namespace: its functions"),
})

/** What a Responses body may hold; fields that are not named here are let through unread. */
export const responseSchema = Type.Object({
  ...samplingFields,
  model: optional(Type.String()),
  input: Type.Union([Type.String(), Type.Array(anyJson)], {
    description: "A user message, or items: messages, reasoning, function calls and their outputs",
  }),
  instructions: optional(Type.String(), "Becomes the first system message"),
  max_output_tokens: optional(int64),
  max_tool_calls: optional(int32),
  metadata: optional(jsonObject, "At most 16 strings"),
  parallel_tool_calls: optional(Type.Boolean()),
  previous_response_id: optional(Type.String()),
  previous_input_messages: optional(anyJson),
  prompt: optional(anyJson),
  conversation: optional(anyJson),
  background: optional(Type.Boolean()),
  store: optional(Type.Boolean(), "Nothing is stored either way"),
  stream: optional(Type.Boolean()),
  include: optional(Type.Array(Type.String())),
  top_logprobs: optional(int32),
  reasoning: optional(
    Type.Object({
      effort: optional(reasoningEffort),
      summary: optional(Type.String()),
      generate_summary: optional(Type.String()),
    }),
  ),
  include_reasoning: optional(Type.Boolean(), "Default true"),
  service_tier: optional(Type.String()),
  text: optional(Type.Object({ format: optional(jsonObject), verbosity: optional(Type.String()) })),
  tools: optional(Type.Array(tool)),
  tool_choice: optional(Type.Union([Type.String(), jsonObject])),
  truncation: optional(Type.String(), "disabled (default) or auto: keep the newest tokens that fit"),
  user: optional(Type.String()),
  safety_identifier: optional(Type.String()),
  prompt_cache_key: optional(Type.String()),
  prompt_cache_options: optional(jsonObject),
  prompt_cache_retention: optional(Type.String()),
  chat_template_kwargs: optional(jsonObject),
  media_io_kwargs: optional(jsonObject),
  mm_processor_kwargs: optional(jsonObject),
  enable_response_messages: optional(Type.Boolean()),
})

/** A Responses body that fits the schema. */
export type ResponseBody = Static<typeof responseSchema>
