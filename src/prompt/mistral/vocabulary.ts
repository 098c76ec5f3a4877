import { ok, type Result } from "../../result"
import type { Tokenizer } from "../../tokenizer/tokenizer"
import { type EncodeSegments, segmentEncoder } from "../prompt-writer"
import { type RendererUnusable, unusable } from "../renderer"
import type { MistralVersion } from "./setting"

/** The control tokens that frame a prompt, by the first version that writes them. */
const controls = [
  { from: 3, spellings: ["<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"] },
  { from: 3, spellings: ["[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"] },
  { from: 7, spellings: ["[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"] },
  { from: 11, spellings: ["[CALL_ID]", "[ARGS]"] },
  { from: 15, spellings: ["[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"] },
] as const satisfies readonly { readonly from: MistralVersion; readonly spellings: readonly string[] }[]

/** A control token's spelling: one of those, or of the ones that not every model of a version has. */
export type Control = (typeof controls)[number]["spellings"][number] | "[THINK]" | "[/THINK]" | "[IMG]"

/** Ids of the control tokens in one vocabulary, which also keeps them out of texts. */
export interface MistralVocabulary {
  readonly encodeSegments: EncodeSegments
  readonly ids: ReadonlyMap<Control, number>
  /** Models of v13 and later may think, and do so where the vocabulary has the tokens for it. */
  readonly thinks: boolean
  /** The vocabulary has a token for an image's place. */
  readonly sees: boolean
}

/** Looks the control tokens of a version up. A vocabulary without one of them cannot write the format. */
export function mistralVocabulary(
  tokenizer: Tokenizer,
  version: MistralVersion,
): Result<MistralVocabulary, RendererUnusable> {
  const ids = new Map<Control, number>()
  for (const { from, spellings } of controls) {
    if (version < from) continue
    for (const spelling of spellings) {
      const id = tokenizer.tokenToId(spelling)
      if (id < 0) return unusable(`the vocabulary has no token ${spelling}, which prompts of version v${version} need`)
      ids.set(spelling, id)
    }
  }
  const [begin, end] = [tokenizer.tokenToId("[THINK]"), tokenizer.tokenToId("[/THINK]")]
  const thinks = version >= 13 && begin >= 0 && end >= 0
  if (thinks) ids.set("[THINK]", begin).set("[/THINK]", end)
  const image = tokenizer.tokenToId("[IMG]")
  if (image >= 0) ids.set("[IMG]", image)
  const encodeSegments = segmentEncoder(tokenizer)
  if (!encodeSegments.ok) return encodeSegments
  return ok({ encodeSegments: withLeadingBlank(encodeSegments.value), ids, thinks, sees: image >= 0 })
}

/**
 * SentencePiece puts a blank before every text; some tokenizer.json files that stand for such a vocabulary leave it out
 * where the text begins with one. What is missing is put in; a vocabulary without that habit stays as it is.
 */
function withLeadingBlank(encodeSegments: EncodeSegments): EncodeSegments {
  const idsOf = (text: string): string => {
    const encoded = encodeSegments([{ text, special: "text" }], { addSpecialTokens: false })
    return encoded.ok ? encoded.value.join(" ") : text
  }
  // The same with a blank before it and without: the one that is put in is left out where there is one.
  if (idsOf("x") !== idsOf(" x")) return encodeSegments
  return (segments, options) =>
    encodeSegments(
      segments.map((each) => (/^[ \u2581]/.test(each.text) ? { ...each, text: ` ${each.text}` } : each)),
      options,
    )
}
