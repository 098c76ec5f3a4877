import { builtInProfile } from "../../src/model/built-in"
import { openHarmonyRenderer } from "../../src/prompt/harmony/renderer"
import { openTemplateRenderer } from "../../src/prompt/template-renderer"
import type { Result } from "../../src/result"
import { harmonyTokens } from "../../src/tokenizer/extra-tokens"
import { openO200k } from "../../src/tokenizer/open"
import { rendererContract } from "./contract"
import { versions } from "./deepseek/bodies"
import { openDeepseekVocabulary, openedRenderer } from "./deepseek/vocabulary"
import { openTekken } from "./mistral/vocabularies"

function opened<T>(result: Result<T, { readonly message: string }>): T {
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}

rendererContract({
  name: "chat templates",
  open: async () => {
    const { tokenizer: source, chatTemplates, specialTokens } = await builtInProfile()
    if (source.kind !== "o200k") throw new Error("the built-in profile has another vocabulary")
    const tokenizer = await openO200k({ special: source.specialTokens, added: source.addedTokens })
    const renderer = openTemplateRenderer({
      tokenizer,
      chatTemplates,
      specialTokens,
      contentFormat: "auto",
      promptSpecialTokens: "guard",
      onUnguarded: () => {
        throw new Error("a prompt could not be guarded")
      },
    })
    return { renderer: opened(renderer), tokenizer, special: "<|im_end|>" }
  },
})

rendererContract({
  name: "harmony",
  open: async () => {
    const tokenizer = await openO200k(harmonyTokens())
    const setting = { startDate: "2026-03-05", instructionsIn: "developer", now: () => new Date(0) } as const
    return { renderer: opened(openHarmonyRenderer(tokenizer, setting)), tokenizer, special: "<|end|>" }
  },
})

rendererContract({
  name: "mistral",
  open: async () => ({ ...openTekken("v13"), special: "[INST]" }),
  // A reply follows a user's turn or a tool's.
  marksReply: false,
})

for (const version of versions) {
  rendererContract({
    name: `deepseek ${version}`,
    open: async () => {
      const tokenizer = await openDeepseekVocabulary()
      return { renderer: openedRenderer(tokenizer, version), tokenizer, special: "<｜end▁of▁sentence｜>" }
    },
  })
}
