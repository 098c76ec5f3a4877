/** From vocabulary files to tokenizers: the WASM plug where it is exact, a fallback plug for other model kinds. */
import { err, type Result } from "../result"
import type { ExtraTokens } from "./extra-tokens"
import { openHfTokenizer } from "./hf-tokenizer"
import { objectOf, typeOf } from "./json-shape"
import { kimiOptions, type LoadOptions, loadBytes } from "./load"
import { openParts } from "./open-parts"
import { readRankFile } from "./tiktoken-ranks"
import type { Tokenizer, TokenizerFailure } from "./tokenizer"
import { readTokenizerJson } from "./tokenizer-json"

/** Model kinds that npm `@huggingface/tokenizers` does for us: they are no BPE, and few chat models have them. */
const fallbackModels = new Set(["WordPiece", "Unigram"])

/** Opens the o200k_base ranks of npm `tiktoken` with tokens of our own beside them. */
export async function openO200k(extra: ExtraTokens): Promise<Tokenizer> {
  const file = await import("tiktoken/encoders/o200k_base.json")
  const opened = openParts(readRankFile(file.default, extra))
  // The ranks are a dependency of ours, and the tokens beside them are the caller's constants.
  if (!opened.ok) throw new Error(opened.error.message)
  return opened.value
}

/**
 * Opens a vocabulary's file: tokenizer.json, tekken.json, tiktoken.model or *.tiktoken, by its name. `tokenizerConfig` is
 * tokenizer_config.json, parsed; `cache`: see `LoadOptions`. The failure's message names what is wrong or not supported
 * exactly.
 */
export function openVocabularyFile(
  name: string,
  bytes: Uint8Array,
  tokenizerConfig: unknown,
  cache: string | null = null,
): Result<Tokenizer, TokenizerFailure> {
  const options: LoadOptions = cache === null ? {} : { cache }
  if (name === "tiktoken.model") return loadBytes(bytes, kimiOptions(bytes, objectOf(tokenizerConfig) ?? {}, options))
  const loaded = loadBytes(bytes, options)
  if (loaded.ok || name !== "tokenizer.json") return loaded
  // Only the few other model kinds are parsed as a whole.
  const json = parsed(bytes)
  return fallbackModels.has(typeOf(objectOf(json)?.model)) ? openTokenizerJson(json, tokenizerConfig) : loaded
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return null
  }
}

/** Opens a parsed tokenizer.json; the failure's message names what in it is not supported exactly. */
export function openTokenizerJson(
  tokenizerJson: unknown,
  tokenizerConfig: unknown,
): Result<Tokenizer, TokenizerFailure> {
  if (!fallbackModels.has(typeOf(objectOf(tokenizerJson)?.model))) return openParts(readTokenizerJson(tokenizerJson))
  const opened = openHfTokenizer(tokenizerJson, tokenizerConfig)
  if (!opened.ok || opened.value.vocabSize > 0) return opened
  return err({ kind: "tokenizer_unusable", message: "tokenizer.json holds no vocabulary" })
}
