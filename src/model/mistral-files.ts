import { join } from "node:path"
import { err, ok, type Result } from "../result"
import { isObject, type JsonObject } from "./json-object"

/** A folder in Mistral's layout: its vocabulary, and the file whose name or content tells the format's version. */
export interface MistralVocabularyFiles {
  readonly path: string
  /** tekken.json, which is the vocabulary too, or a SentencePiece model, of which the name is all that is read. */
  readonly versionPath: string
}

const sentencePiece = /^tokenizer\.model\.v\d+(?:m\d+)?$/

/**
 * The vocabulary for `mistral` mode: tekken.json, or the tokenizer.json beside a SentencePiece model, which is the same
 * vocabulary in a form that is read here; of several models the last. The failure's words are one line.
 */
export function findMistralVocabulary(
  folder: string,
  names: readonly string[],
): Result<MistralVocabularyFiles, { readonly kind: "model_missing"; readonly message: string }> {
  if (names.includes("tekken.json")) {
    const path = join(folder, "tekken.json")
    return ok({ path, versionPath: path })
  }
  const model = names
    .filter((name) => sentencePiece.test(name))
    .sort()
    .at(-1)
  if (model !== undefined && names.includes("tokenizer.json")) {
    return ok({ path: join(folder, "tokenizer.json"), versionPath: join(folder, model) })
  }
  const message =
    model === undefined
      ? `${folder} has no tekken.json, which tokenizer mode mistral needs`
      : `${folder} has only ${model}: SentencePiece models are not read; tokenizer mode mistral needs a tekken.json, or a tokenizer.json beside it`
  return err({ kind: "model_missing", message })
}

/** Tokens of the window where params.json says nothing. */
const unknownWindowTokens = 128_000

/**
 * What a params.json says, in the words of config.json, for folders that have none. Source: vLLM 0.33.0,
 * `transformers_utils/configs/mistral.py`.
 */
export function configOfParams(params: JsonObject): JsonObject {
  const { max_position_embeddings, max_seq_len, model_type, moe, yarn, vision_encoder } = params
  const lengths = { max_position_embeddings, max_seq_len }
  const isLong = (max_position_embeddings ?? max_seq_len ?? null) !== null
  const experts = isObject(moe) ? moe.num_experts : undefined
  return {
    model_type: isObject(vision_encoder) ? "pixtral" : (model_type ?? "transformer"),
    architectures: [experts === undefined ? "MistralForCausalLM" : "MixtralForCausalLM"],
    ...(isLong ? lengths : { max_position_embeddings: unknownWindowTokens }),
    ...(experts !== undefined && { num_local_experts: experts }),
    ...(isObject(yarn) && { rope_scaling: { rope_type: "yarn", ...yarn } }),
  }
}
