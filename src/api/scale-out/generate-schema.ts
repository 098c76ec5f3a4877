/** Body of POST /inference/v1/generate (RENDER 5). Unknown fields are let through unread. */
import { type Static, Type } from "@sinclair/typebox"
import { samplingFields } from "../sampling"
import { anyJson, int32, int64, jsonObject, optional } from "../schema"

const {
  // The body's own.
  priority: _priority,
  request_id,
  session_id: _session,
  cache_salt: _salt,
  kv_transfer_params: _kv,
  ec_transfer_params: _ec,
  vllm_xargs,
  ...samplingParams
} = samplingFields

/** SamplingParams as vLLM writes them: what is absent has vLLM's default, not the model's. */
const samplingSchema = Type.Object({
  ...samplingParams,
  n: optional(int32, "Choices, default 1"),
  max_tokens: optional(int64, "Absent = to the end of the window"),
  logprobs: optional(int32),
  prompt_logprobs: optional(int32),
  prompt_logprob_token_ids: optional(Type.Array(int32)),
  detokenize: optional(Type.Boolean()),
  extra_args: optional(jsonObject, "To the engine as they are"),
  vllm_xargs,
})

const parseContextSchema = Type.Object({
  tools: optional(anyJson),
  tool_choice: optional(anyJson),
  parallel_tool_calls: optional(Type.Boolean()),
  include_reasoning: optional(Type.Boolean()),
  chat_template_kwargs: optional(jsonObject),
  history_tool_call_cnt: optional(int32),
})

const placeholderSchema = Type.Object({ offset: int32, length: Type.Integer({ minimum: 1 }) })

const featuresSchema = Type.Object({
  mm_hashes: optional(Type.Record(Type.String(), Type.Array(Type.String()))),
  mm_placeholders: optional(Type.Record(Type.String(), Type.Array(placeholderSchema))),
  kwargs_data: optional(Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Null()])))),
  mm_metadata: optional(Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Null()])))),
})

const outputModes = ["tokens", "text", "derender"] as const

/** A GenerateRequest. */
export const generateSchema = Type.Object({
  request_id,
  token_ids: Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }), { minItems: 1 }),
  sampling_params: samplingSchema,
  model: optional(Type.String()),
  features: optional(featuresSchema),
  content_parts: optional(Type.Array(jsonObject)),
  reasoning_ended: optional(Type.Boolean()),
  reasoning_parser_kwargs: optional(jsonObject),
  return_token_ids: optional(Type.Boolean()),
  output_mode: optional(Type.Union(outputModes.map((mode) => Type.Literal(mode)))),
  parse_context: optional(parseContextSchema),
  stream: optional(Type.Boolean()),
  stream_options: optional(
    Type.Object({ include_usage: optional(Type.Boolean()), continuous_usage_stats: optional(Type.Boolean()) }),
  ),
  cache_salt: optional(Type.String()),
  priority: optional(int32, "Lower is earlier"),
  kv_transfer_params: optional(jsonObject),
  ec_transfer_params: optional(jsonObject),
})

/** A GenerateRequest that fits the schema. */
export type GenerateRequestBody = Static<typeof generateSchema>

/** What a reply to it holds. */
export type OutputMode = (typeof outputModes)[number]
