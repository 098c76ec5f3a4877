import { err, ok, type Result } from "../result"
import { openHfTokenizer, type TokenizerFailure } from "./hf-tokenizer"
import { type ExtraTokens, TiktokenTokenizer } from "./tiktoken-tokenizer"
import type { Tokenizer } from "./tokenizer"

/** Opens the o200k_base ranks of npm `tiktoken` with tokens of our own beside them. About 0.35 s. */
export async function openO200k(extra: ExtraTokens): Promise<Tokenizer> {
  const file = await import("tiktoken/encoders/o200k_base.json")
  return new TiktokenTokenizer(file.default, extra)
}

/** Opens a parsed tokenizer.json; the failure's message names what is wrong with it. */
export function openTokenizerJson(
  tokenizerJson: unknown,
  tokenizerConfig: unknown,
): Result<Tokenizer, TokenizerFailure> {
  const opened = openHfTokenizer(tokenizerJson, tokenizerConfig)
  if (!opened.ok) return err(opened.error)
  return opened.value.vocabSize > 0
    ? ok(opened.value)
    : err({ kind: "tokenizer_unusable", message: "tokenizer.json holds no vocabulary" })
}
