import type { Json, ToolChoice } from "../../ir/conversation"
import type { PromptMedia } from "../../ir/prompt-media"
import { err, ok, type Result } from "../../result"
import type { LowerContext, Lowered } from "../endpoint"
import { type InvalidRequest, invalid } from "../errors"
import { asNumber, replyTokensFault, requestId, sessionId } from "../reply-fields"
import { lowerSampling, type SamplingFields } from "../sampling"
import { isRecord } from "../schema"
import type { GenerateRequestBody, OutputMode } from "./generate-schema"

const contentPartTypes = ["image_url", "audio_url", "video_url"]

/** What both views of a generated reply must know. */
export interface GenerateAsk {
  readonly outputMode: OutputMode
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  readonly returnTokenIds: boolean
  /** Alternatives for each token; null = no logprobs. */
  readonly logprobs: number | null
  /** For `derender`: what decides how calls are shown. */
  readonly toolChoice: ToolChoice
}

/** GenerateRequest → the intermediate representation (RENDER 6). */
export function lowerGenerate(
  body: GenerateRequestBody,
  context: LowerContext,
): Result<Lowered<GenerateAsk>, InvalidRequest> {
  const fault =
    samplingFault(body, context) ?? modeFault(body, context) ?? mediaFault(body, context) ?? idsFault(body, context)
  if (fault !== null) return err(fault)
  const params = body.sampling_params
  const logprobs = params.logprobs ?? null
  const extras = { logprobs, promptLogprobs: params.prompt_logprobs ?? null, format: null }
  // What a renderer left out has vLLM's default: the model's own were applied when it was rendered.
  const bare = { ...context, model: { ...context.model, samplingDefaults: {} } }
  const { structured_outputs, vllm_xargs, ...plain } = params
  const fields: SamplingFields = { ...plain, structured_outputs: structuredSlots(structured_outputs ?? null) }
  const sampling = lowerSampling(fields, extras, bare)
  if (!sampling.ok) return err(inSamplingParams(sampling.error))
  sampling.value.extraArgs = extraArgs(body)

  const outputMode = body.output_mode ?? "tokens"
  const parse = body.parse_context ?? null
  const toolChoice = choiceOf(parse?.tool_choice ?? null, Array.isArray(parse?.tools) && parse.tools.length > 0)
  const options = body.stream_options ?? null
  const includeUsage = body.stream === true && options !== null && options.include_usage !== false
  const derenders = outputMode === "derender"
  return ok({
    id: `generate-tokens-${requestId(body.request_id ?? null, context)}`,
    prompts: [{ kind: "token_ids", tokenIds: body.token_ids }],
    media: mediaOf(body),
    choicesPerPrompt: params.n ?? 1,
    sampling: sampling.value,
    replyTokensMax: asNumber(params.max_tokens),
    truncation: null,
    parsing: { isChat: derenders, calls: derenders && toolChoice.kind !== "none" },
    includeReasoning: parse?.include_reasoning ?? true,
    parallelToolCalls: parse?.parallel_tool_calls ?? true,
    wantsSteps: true,
    intervalTokens: Math.max(context.config.streamIntervalTokens, params.stream_interval ?? 1),
    stream: body.stream ?? false,
    priority: body.priority ?? 0,
    cacheSalt: body.cache_salt ?? null,
    sessionId: sessionId(null, context),
    reasoningEnded: body.reasoning_ended ?? null,
    ask: {
      outputMode,
      includeUsage,
      continuousUsage: includeUsage && options?.continuous_usage_stats === true,
      returnTokenIds: body.return_token_ids ?? false,
      logprobs: logprobs !== null && sampling.value.logprobTokenIds !== null ? -1 : logprobs,
      toolChoice,
    },
  })
}

function samplingFault({ sampling_params: params, stream }: GenerateRequestBody, context: LowerContext) {
  const { choicesMax } = context.config.limits
  const n = params.n ?? 1
  if (n < 1 || n > choicesMax) {
    return invalid("sampling_params", `sampling_params.n must be from 1 to ${choicesMax}, got ${n}.`)
  }
  const ids = params.prompt_logprob_token_ids ?? null
  if (ids !== null) {
    const why = stream === true ? "cannot be streamed" : "are not supported by this server"
    return invalid("sampling_params", `sampling_params.prompt_logprob_token_ids ${why}.`)
  }
  const stop = params.stop ?? []
  if (context.config.tokensOnly && stop.length > 0) {
    return invalid("sampling_params", "sampling_params.stop needs text, and this server has tokens only.")
  }
  return replyTokensFault(params.max_tokens ?? null, "max_tokens", context)
}

function modeFault(body: GenerateRequestBody, context: LowerContext): InvalidRequest | null {
  const mode = body.output_mode ?? "tokens"
  if (body.stream_options != null && body.stream !== true) {
    return invalid("stream_options", "Stream options can only be defined when `stream=True`.")
  }
  if (mode === "tokens") return null
  if (context.config.tokensOnly) {
    return invalid("output_mode", `output_mode ${mode} needs a tokenizer, and this server has tokens only.`)
  }
  if (body.sampling_params.detokenize === false) {
    return invalid("output_mode", `output_mode ${mode} cannot go with sampling_params.detokenize false.`)
  }
  if (mode === "text") return null
  if (body.stream === true) return invalid("output_mode", "output_mode derender cannot be streamed.")
  const { parsesReasoning, parsesCalls } = context.model
  const parse = body.parse_context ?? null
  if (parse === null) {
    if (!parsesReasoning && !parsesCalls) return null
    return invalid("parse_context", "output_mode derender needs parse_context, as the model's output is parsed.")
  }
  const unknown = Object.keys(parse).find((key) => !parseContextKeys.includes(key))
  return unknown === undefined
    ? null
    : invalid("parse_context", `parse_context has no field '${unknown.slice(0, 64)}'.`)
}

const parseContextKeys = [
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "include_reasoning",
  "chat_template_kwargs",
  "history_tool_call_cnt",
]

/** Media go to the engine as they came; null = none. */
function mediaOf({ features, content_parts }: GenerateRequestBody): PromptMedia | null {
  const contentParts = content_parts == null || content_parts.length === 0 ? null : content_parts
  const hasFeatures = features != null && Object.values(features.mm_placeholders ?? {}).some((list) => list.length > 0)
  if (contentParts === null && !hasFeatures) return null
  // A part of a parsed body, with what the schema does not name.
  return { contentParts, features: hasFeatures ? (features as { readonly [name: string]: Json }) : null }
}

/** Media are checked as far as a prompt can tell; whether features can be computed is the engine's to say. */
function mediaFault(body: GenerateRequestBody, context: LowerContext): InvalidRequest | null {
  const features = body.features ?? null
  const parts = body.content_parts ?? []
  if (features !== null && parts.length > 0) {
    return invalid("content_parts", "features and content_parts cannot both be given.")
  }
  if (parts.length > 0 && context.mediaRefusal !== null) {
    return invalid("content_parts", `content_parts cannot be taken here: ${context.mediaRefusal}.`)
  }
  for (const { type, url } of parts) {
    if (typeof type !== "string" || !contentPartTypes.includes(type) || typeof url !== "string" || url === "") {
      return invalid("content_parts", `a content part has a type (${contentPartTypes.join(", ")}) and a url.`)
    }
  }
  if (features === null) return null
  const places = features.mm_placeholders ?? {}
  const hashes = features.mm_hashes ?? {}
  const shape = (map: { readonly [modality: string]: readonly unknown[] } | null | undefined): string =>
    JSON.stringify(
      Object.entries(map ?? {})
        .map(([name, list]) => [name, list.length])
        .sort(),
    )
  const { kwargs_data, mm_metadata } = features
  for (const other of [hashes, kwargs_data, mm_metadata]) {
    if (other != null && shape(other) !== shape(places)) {
      return invalid("features", "features: modalities and their numbers of items must be the same in every map.")
    }
  }
  const spans = Object.values(places).flat()
  const sorted = spans.toSorted((a, b) => a.offset - b.offset)
  let end = 0
  for (const { offset, length } of sorted) {
    if (offset < 0 || offset + length > body.token_ids.length) {
      return invalid("features", "features: a placeholder lies outside of token_ids.")
    }
    if (offset < end) return invalid("features", "features: placeholders overlap.")
    end = offset + length
  }
  for (const [modality, items] of Object.entries(mm_metadata ?? {})) {
    const isBare = items.some((item, index) => item !== null && kwargs_data?.[modality]?.[index] == null)
    if (isBare && body.ec_transfer_params == null) {
      return invalid("features", "features: items with mm_metadata alone need ec_transfer_params.")
    }
  }
  return null
}

function idsFault(body: GenerateRequestBody, context: LowerContext): InvalidRequest | null {
  const { vocabSize } = context.model
  const outside = body.token_ids.find((id) => id >= vocabSize)
  return outside === undefined ? null : invalid("token_ids", `Token id ${outside} is out of vocabulary`)
}

/** Renderers write every slot, also those that are null, and back-end choices of their own. */
function structuredSlots(
  given: GenerateRequestBody["sampling_params"]["structured_outputs"] | null,
): SamplingFields["structured_outputs"] {
  if (given === null || given === undefined) return null
  const { json, regex, choice, grammar, json_object, structural_tag } = given
  const { disable_any_whitespace, disable_additional_properties, whitespace_pattern } = given
  return {
    json,
    regex,
    choice,
    grammar,
    json_object,
    structural_tag,
    disable_any_whitespace,
    disable_additional_properties,
    whitespace_pattern,
  }
}

function inSamplingParams(error: InvalidRequest): InvalidRequest {
  return invalid(error.param, `sampling_params: ${error.message}`)
}

/** What a renderer took apart comes together again. */
function extraArgs(body: GenerateRequestBody): { readonly [name: string]: Json } | null {
  const { extra_args, vllm_xargs } = body.sampling_params
  const args: { [name: string]: Json } = { ...(extra_args ?? vllm_xargs ?? {}) }
  for (const name of ["kv_transfer_params", "ec_transfer_params"] as const) {
    const params = body[name] ?? null
    if (params !== null) args[name] = params
  }
  return Object.keys(args).length === 0 ? null : args
}

function choiceOf(choice: Json, hasTools: boolean): ToolChoice {
  if (isRecord(choice)) {
    const named = isRecord(choice.function) ? choice.function.name : choice.name
    if (typeof named === "string") return { kind: "named", name: named }
  }
  if (choice === "none" || choice === "required" || choice === "auto") return { kind: choice }
  return { kind: hasTools ? "auto" : "none" }
}
