import type { SettledTokenizerMode, TokenizerMode } from "../ir/tokenizer-mode"

/** What `auto` goes by. */
export interface ModelFiles {
  /** Of config.json. */
  readonly architectures: readonly string[]
  /** Names of the files in the tokenizer's folder. */
  readonly tokenizerFiles: readonly string[]
}

/** Architectures whose prompts have a format of their own. */
const formatOf: ReadonlyMap<string, SettledTokenizerMode> = new Map([
  ["DeepseekV32ForCausalLM", "deepseek_v32"],
  ["DeepseekV4ForCausalLM", "deepseek_v4"],
  ["DeepseekV4ForConditionalGeneration", "deepseek_v4"],
  ["DeepseekV41ForCausalLM", "deepseek_v41"],
])

const mistralVocabulary = /^(?:tekken\.json|tokenizer\.model\.v.*)$/
const mistralWeights = /^consolidated.*\.safetensors$/
const anyWeights = /\.(?:safetensors|bin|pt|pth|gguf)$/

/**
 * The mode of a model: the one that was asked for, else by architecture, else `mistral` for folders in Mistral's own
 * layout (its weights beside its vocabulary), else `hf`. A folder that holds no weights at all shows that layout by its
 * params.json. Source: vLLM 0.33.0, `ModelConfig` and `resolve_tokenizer_args`.
 */
export function settleTokenizerMode(
  asked: TokenizerMode,
  { architectures, tokenizerFiles }: ModelFiles,
): SettledTokenizerMode {
  if (asked !== "auto") return asked
  for (const architecture of architectures) {
    const mode = formatOf.get(architecture)
    if (mode !== undefined) return mode
  }
  const has = (pattern: RegExp): boolean => tokenizerFiles.some((name) => pattern.test(name))
  if (!has(mistralVocabulary)) return "hf"
  const isMistral = has(anyWeights) ? has(mistralWeights) : tokenizerFiles.includes("params.json")
  return isMistral ? "mistral" : "hf"
}
