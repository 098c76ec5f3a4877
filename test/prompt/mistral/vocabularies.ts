/**
 * tekken.json files of all versions of Mistral's format. The versions behind v3 differ from it in their special tokens
 * alone, so all have the same ranks: the first of those that the reference ships (test/golden/mistral/vocabulary.json).
 */
import { openMistralRenderer } from "../../../src/prompt/mistral/renderer"
import { readMistralSetting } from "../../../src/prompt/mistral/setting"
import type { PromptRenderer } from "../../../src/prompt/renderer"
import type { Result } from "../../../src/result"
import { openVocabularyFile } from "../../../src/tokenizer/open"
import type { Tokenizer } from "../../../src/tokenizer/tokenizer"
import golden from "../../golden/mistral/vocabulary.json"

/** Versions that prompts are compared in. */
export const versions = ["v3", "v7", "v11", "v13", "v15"] as const

/** The format's versions. */
export type Version = (typeof versions)[number]

/** A split pattern and tokens in base64, by rank. */
export interface Ranks {
  readonly pattern: string
  readonly tokens: readonly string[]
}

/** The ranks that are kept beside the tests. */
export const keptRanks: Ranks = { pattern: golden.pattern, tokens: golden.tokens.split(" ") }

/** Special tokens by id, as the files of v11 and later name them; before v11 files name none. */
const specials = [
  ...["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"],
  ...["[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"],
  ...["[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"],
  ...Array.from({ length: 12 }, (_, i) => `<SPECIAL_${20 + i}>`),
  ...["[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"],
]

const specialsMax = 1000

/** A tekken.json of that version, as a value. */
export function tekkenFile(version: Version, { pattern, tokens }: Ranks = keptRanks): { [key: string]: unknown } {
  const named = specials.map((token_str, rank) => ({ rank, token_str, is_control: true }))
  return {
    config: {
      pattern,
      num_vocab_tokens: tokens.length,
      default_vocab_size: tokens.length + specialsMax,
      default_num_special_tokens: specialsMax,
      version,
    },
    vocab: tokens.map((token_bytes, rank) => ({ rank, token_bytes, token_str: null })),
    ...(version !== "v3" && version !== "v7" && { special_tokens: named }),
    ...(version === "v15" && {
      model_settings_builder: {
        reasoning_effort: { type: "enum", accepts_none: true, default: "none", values: ["none", "high"] },
        json_schema: null,
      },
    }),
  }
}

/** A vocabulary and the renderer that goes with it. */
export interface OpenedTekken {
  readonly tokenizer: Tokenizer
  readonly renderer: PromptRenderer
}

/** Opens a tekken.json, by default that of the version with the ranks kept here. */
export function openTekken(version: Version, file: unknown = tekkenFile(version)): OpenedTekken {
  const tokenizer = opened(openVocabularyFile("tekken.json", new TextEncoder().encode(JSON.stringify(file)), {}))
  return { tokenizer, renderer: opened(openMistralRenderer(tokenizer, opened(readMistralSetting(file)))) }
}

function opened<T>(result: Result<T, { readonly message: string }>): T {
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}
