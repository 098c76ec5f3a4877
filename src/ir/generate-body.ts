/**
 * A request to an engine as JSON, in the words of `/inference/v1/generate` (RENDER 5): what render answers with, and what
 * an engine behind HTTP is sent. One writer for both, so that they are the same.
 */
import type { Json } from "./conversation"
import { isSpelledOtherwise, schemaText, spelledJsonText } from "./exact-json"
import type { GenerateRequest } from "./generate-request"
import type { SamplingParams, StructuredOutputs } from "./sampling"
import { tokenList } from "./token-list"

/** What the body says of a sequence, by whichever road it came. */
export type GenerateBodySource = Pick<
  GenerateRequest,
  "promptTokenIds" | "sampling" | "priority" | "cacheSalt" | "reasoningEnded" | "media" | "isOpenEnded"
>

/** The part of the body that does not depend on who asks. */
export interface GenerateBody {
  readonly token_ids: number[]
  /** Absent where there are none, as nearly always. */
  readonly features?: Json
  readonly content_parts?: Json
  readonly sampling_params: { readonly [name: string]: Json }
  readonly cache_salt: string | null
  readonly priority: number
  readonly reasoning_ended: boolean | null
  readonly kv_transfer_params: Json
  readonly ec_transfer_params: Json
}

/**
 * Makes the body. `max_tokens` is written unless the reply is open-ended, because its absence means "to the end of the
 * window"; everything else only where it differs from vLLM's default. Transfer parameters stand beside the sampling
 * parameters, not in them. The result shares no array with the request.
 */
export function generateBody(source: GenerateBodySource): GenerateBody {
  const { kv_transfer_params = null, ec_transfer_params = null, ...extra } = source.sampling.extraArgs ?? {}
  return {
    token_ids: tokenList(source.promptTokenIds),
    ...(source.media?.features != null && { features: { ...source.media.features } }),
    ...(source.media?.contentParts != null && { content_parts: [...source.media.contentParts] }),
    sampling_params: samplingBody(
      source.sampling,
      source.isOpenEnded ?? false,
      Object.keys(extra).length === 0 ? null : extra,
    ),
    cache_salt: source.cacheSalt,
    priority: source.priority,
    reasoning_ended: source.reasoningEnded ?? null,
    kv_transfer_params,
    ec_transfer_params,
  }
}

/** Sampling parameters under their names on the wire. */
function samplingBody(
  sampling: SamplingParams,
  isOpenEnded: boolean,
  extraArgs: { readonly [name: string]: Json } | null,
): { readonly [name: string]: Json } {
  const body: { [name: string]: Json } = {}
  const put = (name: string, value: Json, theirs: Json): void => {
    if (value !== theirs) body[name] = value
  }
  const list = (name: string, value: readonly (string | number)[] | null): void => {
    if (value !== null && value.length > 0) body[name] = [...value]
  }
  put("temperature", sampling.temperature, 1)
  put("top_p", sampling.topP, 1)
  put("top_k", sampling.topK, 0)
  put("min_p", sampling.minP, 0)
  put("presence_penalty", sampling.presencePenalty, 0)
  put("frequency_penalty", sampling.frequencyPenalty, 0)
  put("repetition_penalty", sampling.repetitionPenalty, 1)
  put("seed", sampling.seed, null)
  if (!isOpenEnded) body.max_tokens = sampling.maxTokens
  put("min_tokens", sampling.minTokens, 0)
  list("stop", sampling.stop)
  put("include_stop_str_in_output", sampling.includeStopStrInOutput, false)
  list("stop_token_ids", sampling.stopTokenIds)
  put("ignore_eos", sampling.ignoreEos, false)
  put("skip_special_tokens", sampling.skipSpecialTokens, true)
  put("spaces_between_special_tokens", sampling.spacesBetweenSpecialTokens, true)
  put("logprobs", sampling.logprobs, null)
  put("prompt_logprobs", sampling.promptLogprobs, null)
  list("logprob_token_ids", sampling.logprobTokenIds)
  if (sampling.logitBias !== null && sampling.logitBias.size > 0) {
    body.logit_bias = Object.fromEntries([...sampling.logitBias].map(([id, bias]) => [String(id), bias]))
  }
  list("allowed_token_ids", sampling.allowedTokenIds)
  list("bad_words", sampling.badWords)
  if (sampling.structuredOutputs !== null) body.structured_outputs = structuredBody(sampling.structuredOutputs)
  put("thinking_token_budget", sampling.thinkingTokenBudget, null)
  put("watermarking", sampling.watermarking, null)
  if (sampling.repetitionDetection !== null) body.repetition_detection = { ...sampling.repetitionDetection }
  if (extraArgs !== null) body.extra_args = { ...extraArgs }
  return body
}

/** vLLM takes a structural tag as text only, and a schema in either form: as text it keeps its spelling. */
function structuredBody(outputs: StructuredOutputs): Json {
  const { structural_tag: tag, choice, json, ...rest } = outputs
  const body: { [slot: string]: Json } = {}
  for (const [slot, value] of Object.entries(rest)) if (value !== undefined && value !== null) body[slot] = value
  if (json !== undefined && json !== null) body.json = isSpelledOtherwise(json) ? spelledJsonText(json) : json
  if (choice !== undefined) body.choice = [...choice]
  if (tag !== undefined) body.structural_tag = schemaText(tag)
  return body
}
