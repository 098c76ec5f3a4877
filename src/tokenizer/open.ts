/** From vocabulary files to tokenizers. What cannot be done exactly is refused with the reason. */
import type { Result } from "../result"
import type { ExtraTokens } from "./extra-tokens"
import { objectOf } from "./json-shape"
import { kimiOptions, type LoadOptions, loadBytes } from "./load"
import { openParts } from "./open-parts"
import { readRankFile } from "./tiktoken-ranks"
import type { Tokenizer, TokenizerFailure } from "./tokenizer"
import { readTokenizerJson } from "./tokenizer-json"

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
  return loadBytes(bytes, options)
}

/** Opens a parsed tokenizer.json; the failure's message names what in it is not supported exactly. */
export function openTokenizerJson(tokenizerJson: unknown): Result<Tokenizer, TokenizerFailure> {
  return openParts(readTokenizerJson(tokenizerJson))
}
