/** DeepSeek's models as folders: a vocabulary with the formats' tokens, and the configuration of an architecture. */
import { join } from "node:path"
import type { TokenizerMode } from "../../src/ir/tokenizer-mode"
import { loadModelFolder } from "../../src/model/files"
import type { ModelProfile } from "../../src/model/profile"
import { taskTokens, tokens } from "../../src/prompt/deepseek/tokens"

/** Of a tokenizer.json, what control tokens are added to. */
export interface TokenizerJson {
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[]
  readonly model: { readonly vocab: object }
}

/** A vocabulary with the formats' tokens behind its own, those of sentences special. */
export function withControl(json: TokenizerJson): object {
  const known = new Set(json.added_tokens.map(({ content }) => content))
  const missing = [...Object.values(tokens), ...taskTokens.values()].filter((token) => !known.has(token))
  const ids = [...json.added_tokens.map(({ id }) => id), Object.keys(json.model.vocab).length - 1]
  const added = missing.map((content, i) => {
    const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false }
    return { id: Math.max(...ids) + 1 + i, content, special: content.includes("sentence"), ...flags }
  })
  return { ...json, added_tokens: [...json.added_tokens, ...added] }
}

/** The profile of such a model, whose files are written to `folder` and read from there when it is opened. */
export async function deepseekProfile(
  folder: string,
  architecture: string,
  tokenizerJson: object,
  tokenizerMode: TokenizerMode = "auto",
): Promise<ModelProfile> {
  const config = { architectures: [architecture], model_type: "deepseek", max_position_embeddings: 65_536 }
  const template = "{% for m in messages %}{{ m.content }}{% endfor %}"
  await Bun.write(join(folder, "config.json"), JSON.stringify(config))
  await Bun.write(join(folder, "tokenizer.json"), JSON.stringify(tokenizerJson))
  await Bun.write(
    join(folder, "tokenizer_config.json"),
    JSON.stringify({ chat_template: template, eos_token: tokens.eos }),
  )
  const options = { contextTokensMax: null, generationConfig: "auto", overrideGenerationConfig: {} }
  const loaded = await loadModelFolder(folder, "m", { ...options, tokenizerFolder: null, tokenizerMode })
  if (!loaded.ok) throw new Error(loaded.error.message)
  return loaded.value
}
