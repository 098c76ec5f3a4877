/**
 * What `--tokenizer-mode` takes: how a model's prompts are made, besides its vocabulary. Names are vLLM's (0.33.0,
 * `TokenizerMode`); `auto` goes by the model's files.
 */
export const tokenizerModes = ["auto", "hf", "mistral", "deepseek_v32", "deepseek_v4", "deepseek_v41"] as const
/** One of them. */
export type TokenizerMode = (typeof tokenizerModes)[number]
/** A mode that was settled on. */
export type SettledTokenizerMode = Exclude<TokenizerMode, "auto">
