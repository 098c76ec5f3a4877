import type { Json } from "../../ir/conversation"
import { schemaText } from "../../ir/exact-json"
import type { StructuredOutputs } from "../../ir/sampling"
import type { AddRequest, EngineLimits } from "./add-request"
import type { MessagePackWriter } from "./message-pack-writer"
import { choiceGrammar } from "./structured-outputs"

/** Tokens the engine may generate: what was asked for, and what fits behind the prompt in the engine's own window. */
export function replyTokensMax(add: AddRequest, limits: EngineLimits): number {
  const { promptTokenIds, sampling } = add.request
  return Math.min(sampling.maxTokens, limits.contextTokensMax - promptTokenIds.length)
}

/**
 * Writes SamplingParams (ENGINE_PROTOCOL 6) as the engine takes it, without keys that have their default. What only a
 * front end looks at (stop strings, how text is made of tokens, kinds of output) is left out.
 */
export function writeSampling(writer: MessagePackWriter, add: AddRequest, limits: EngineLimits): void {
  const { sampling, eosTokenIds } = add.request
  const begun = writer.beginMap()
  let size = 0
  const key = (name: string): void => {
    writer.string(name)
    size += 1
  }
  const float = (name: string, value: number, theirs: number): void => {
    if (value === theirs) return
    key(name)
    writer.float(value)
  }
  const int = (name: string, value: number | null, theirs: number | null): void => {
    if (value === theirs || value === null) return
    key(name)
    writer.int(value)
  }
  const ids = (name: string, value: readonly number[] | null): void => {
    if (value === null || value.length === 0) return
    key(name)
    writer.ids(value)
  }

  float("temperature", sampling.temperature, 1)
  float("top_p", sampling.topP, 1)
  int("top_k", sampling.topK, 0)
  float("min_p", sampling.minP, 0)
  float("presence_penalty", sampling.presencePenalty, 0)
  float("frequency_penalty", sampling.frequencyPenalty, 0)
  float("repetition_penalty", sampling.repetitionPenalty, 1)
  if (sampling.seed !== null) {
    key("seed")
    writer.bigint(sampling.seed)
  }
  // The engine's own default is 16.
  int("max_tokens", replyTokensMax(add, limits), null)
  int("min_tokens", sampling.minTokens, 0)

  // Ids that the vocabulary lacks can never come, and clients send those of other models; to the engine they would be
  // columns beyond its logits.
  const exists = (id: number): boolean => id >= 0 && id < (limits.vocabSize ?? 0x7fff_ffff)
  // The first EOS id ends a sequence without a stop reason; the others are stop tokens like those of the request.
  const [eos, ...furtherEos] = eosTokenIds
  const stopTokenIds = new Set(sampling.stopTokenIds)
  if (sampling.ignoreEos) {
    key("ignore_eos")
    writer.boolean(true)
  } else {
    for (const id of furtherEos) stopTokenIds.add(id)
    int("_eos_token_id", eos ?? null, null)
  }
  ids("stop_token_ids", [...stopTokenIds].filter(exists))
  ids("_all_stop_token_ids", [...new Set([...sampling.stopTokenIds, ...eosTokenIds])].filter(exists))

  int("logprobs", sampling.logprobs, null)
  ids("logprob_token_ids", sampling.logprobTokenIds)
  if (sampling.promptLogprobs !== null) {
    int("prompt_logprobs", sampling.promptLogprobs, null)
    // Tokens found in the cache would have no logprobs.
    key("skip_reading_prefix_cache")
    writer.boolean(true)
  }
  if (sampling.logitBias !== null && sampling.logitBias.size > 0) {
    key("logit_bias")
    writer.map(sampling.logitBias.size)
    for (const [id, bias] of sampling.logitBias) {
      writer.int(id)
      writer.float(bias)
    }
  }
  ids("allowed_token_ids", sampling.allowedTokenIds)
  if (add.badWordTokenIds.length > 0) {
    key("_bad_words_token_ids")
    writer.array(add.badWordTokenIds.length)
    for (const word of add.badWordTokenIds) writer.ids(word)
  }
  int("thinking_token_budget", sampling.thinkingTokenBudget, null)
  if (sampling.watermarking !== null) {
    key("watermarking")
    writer.boolean(sampling.watermarking)
  }
  if (sampling.repetitionDetection !== null) {
    key("repetition_detection")
    writer.json({ ...sampling.repetitionDetection })
  }
  if (sampling.structuredOutputs !== null) {
    key("structured_outputs")
    writeStructured(writer, sampling.structuredOutputs, limits.structuredOutputsBackend)
  }
  if (sampling.extraArgs !== null) {
    key("extra_args")
    writer.json({ ...sampling.extraArgs })
  }
  writer.endMap(begun, size)
}

/** Exactly one constraint, and the back end's name, which 0.33 insists on. */
function writeStructured(writer: MessagePackWriter, outputs: StructuredOutputs, backend: string): void {
  const begun = writer.beginMap()
  let size = 0
  const text = (name: string, value: string | undefined | null): void => {
    if (value === undefined || value === null) return
    writer.string(name)
    writer.string(value)
    size += 1
  }
  const flag = (name: string, value: boolean | undefined): void => {
    if (value !== true) return
    writer.string(name)
    writer.boolean(true)
    size += 1
  }
  // As text also where it came as an object: its numbers then keep whatever size they have.
  const schema = (name: string, value: Json | undefined): void => {
    if (value !== undefined && value !== null) text(name, schemaText(value))
  }
  schema("json", outputs.json)
  text("regex", outputs.regex)
  const choice = outputs.choice ?? null
  text("grammar", choice === null ? outputs.grammar : choiceGrammar(choice))
  schema("structural_tag", outputs.structural_tag)
  flag("json_object", outputs.json_object)
  flag("disable_any_whitespace", outputs.disable_any_whitespace)
  flag("disable_additional_properties", outputs.disable_additional_properties)
  text("whitespace_pattern", outputs.whitespace_pattern)
  text("_backend", backend)
  flag("_backend_was_auto", true)
  writer.endMap(begun, size)
}
