/** From vocabulary files to tokenizers: the WASM plug where it is exact, a fallback plug for other model kinds. */
import { err, ok, type Result } from "../result"
import { BpeCore } from "./bpe-core"
import { openHfTokenizer, type TokenizerFailure } from "./hf-tokenizer"
import { objectOf, typeOf, type Unsupported } from "./json-shape"
import { type ExtraTokens, readRankFile } from "./tiktoken-ranks"
import type { Tokenizer } from "./tokenizer"
import { readTokenizerJson } from "./tokenizer-json"
import type { TokenizerParts } from "./tokenizer-parts"
import { WasmTokenizer } from "./wasm-tokenizer"

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

/** Makes the tokenizer of parts that were read, or says why they were refused. */
export function openParts(parts: Result<TokenizerParts, Unsupported>): Result<WasmTokenizer, TokenizerFailure> {
  if (!parts.ok) {
    return err({ kind: "tokenizer_unusable", message: `the tokenizer is not supported: ${parts.error.message}` })
  }
  const core = BpeCore.create(parts.value.tables)
  return core.ok ? ok(new WasmTokenizer(parts.value, core.value)) : core
}
