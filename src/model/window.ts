/** The window M of a model in tokens, read from its config.json as vLLM does, and checked against `--max-model-len`. */
import { err, ok, type Result } from "../result"
import { isObject, type JsonObject } from "./json-object"

/** A window that makes no sense, or one that the model does not have. */
export interface WindowFailure {
  readonly kind: "model_broken" | "model_option"
  readonly message: string
}

/** Names that model families use for the longest sequence; of those present, the smallest counts. */
const windowKeys = [
  "max_position_embeddings",
  "n_positions",
  "max_seq_len",
  "seq_length",
  "model_max_length",
  "max_sequence_length",
  "max_seq_length",
  "seq_len",
  "max_target_positions",
]

/** Taken when config.json says nothing at all (vLLM's value). */
const unknownWindowTokens = 2048

/** Tokenizers without a limit of their own state a huge number; above this nothing is meant. */
const saneWindowTokens = 100_000_000

/** Position schemes whose stated length already is the extended one. */
const alreadyExtended = ["su", "longrope", "llama3"]

/**
 * The model's window, or `askedTokens` (`--max-model-len`) if that is not larger. `path` is config.json's, for messages.
 * Scaled position embeddings multiply the window by their factor; YaRN's factor counts from the original length.
 * Without any length in config.json the tokenizer's is taken if it is sane.
 */
export function deriveWindow(
  path: string,
  config: JsonObject,
  tokenizerConfig: JsonObject,
  askedTokens: number | null,
): Result<number, WindowFailure> {
  const text = isObject(config.text_config) ? config.text_config : {}
  // Models with several parts keep the language model's numbers one level down.
  const find = (key: string): unknown => text[key] ?? config[key]
  let derived = Number.POSITIVE_INFINITY
  let source = ""
  for (const key of windowKeys) {
    const value = find(key)
    if (value === undefined || value === null) continue
    if (!isLength(value)) return broken(path, `${key} ${JSON.stringify(value)}: expected a whole number from 1`)
    if (value < derived) [derived, source] = [value, `${key} in config.json`]
  }

  const modelType = find("model_type")
  // Gemma 3 states the length after scaling.
  if (Number.isFinite(derived) && !(typeof modelType === "string" && modelType.startsWith("gemma3"))) {
    for (const scaling of scalings(find("rope_scaling") ?? find("rope_parameters"))) {
      const factor = scaling.factor
      if (typeof factor !== "number" || !(factor > 0)) {
        return broken(path, `rope_scaling factor ${JSON.stringify(factor)}: expected a number above 0`)
      }
      const original = scaling.original_max_position_embeddings
      if (schemeOf(scaling) === "yarn" && isLength(original)) derived = original
      derived = Math.floor(derived * factor)
    }
  }

  if (!Number.isFinite(derived)) {
    // vLLM looks at the tokenizer's limit for no model that generates; here it is better than a guess.
    const limit = tokenizerConfig.model_max_length
    return ok(askedTokens ?? (isLength(limit) && limit <= saneWindowTokens ? limit : unknownWindowTokens))
  }
  if (askedTokens === null) return ok(derived)
  // A model may state a longer length that it can be used at.
  const stated = find("model_max_length")
  const longest = isLength(stated) && stated > derived ? stated : derived
  if (askedTokens <= longest) return ok(askedTokens)
  return err({
    kind: "model_option",
    message: `--max-model-len ${askedTokens} is larger than the model's window of ${longest} tokens (${source})`,
  })
}

/** The position schemes that change the window; newer files state one for each kind of layer, and one is enough. */
function scalings(value: unknown): JsonObject[] {
  if (!isObject(value)) return []
  const stated = schemeOf(value) === "" ? Object.values(value).filter(isObject) : [value]
  const extending = stated.filter((entry) => schemeOf(entry) !== "" && !alreadyExtended.includes(schemeOf(entry)))
  return extending.filter((entry) => entry.factor !== undefined && entry.factor !== null).slice(0, 1)
}

function schemeOf(scaling: JsonObject): string {
  const scheme = scaling.rope_type ?? scaling.type
  return typeof scheme === "string" ? scheme : ""
}

function isLength(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1
}

function broken(path: string, what: string): Result<never, WindowFailure> {
  return err({ kind: "model_broken", message: `${path}: ${what}` })
}
