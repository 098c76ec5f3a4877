/** A vocabulary with the control tokens of DeepSeek's formats, of which only the sentence's ends are special, as in theirs. */

import { openDeepseekRenderer } from "../../../src/prompt/deepseek/renderer"
import { taskTokens, tokens } from "../../../src/prompt/deepseek/tokens"
import type { DeepseekVersion } from "../../../src/prompt/deepseek/turn"
import type { PromptRenderer } from "../../../src/prompt/renderer"
import { openO200k } from "../../../src/tokenizer/open"
import type { Tokenizer } from "../../../src/tokenizer/tokenizer"

const { bos, eos, ...others } = tokens

/** The ranks of o200k_base with these tokens behind them. */
export function openDeepseekVocabulary(): Promise<Tokenizer> {
  const added = [...Object.values(others), ...taskTokens.values()]
  return openO200k({
    special: { [bos]: 200_000, [eos]: 200_001 },
    added: Object.fromEntries(added.map((token, i) => [token, 200_002 + i])),
  })
}

/** A renderer over a vocabulary; told prompts that could not be guarded. */
export function openedRenderer(
  tokenizer: Tokenizer,
  version: DeepseekVersion,
  promptSpecialTokens: "guard" | "parity" = "guard",
  onUnguarded: () => void = () => {
    throw new Error("a prompt could not be guarded")
  },
): PromptRenderer {
  const opened = openDeepseekRenderer({ tokenizer, promptSpecialTokens, onUnguarded }, version)
  if (!opened.ok) throw new Error(opened.error.message)
  return opened.value
}
