import type { Conversation } from "../ir/conversation"
import type { Result } from "../result"
import { openDeepseekRenderer } from "./deepseek/renderer"
import type { DeepseekVersion } from "./deepseek/turn"
import { openHarmonyRenderer } from "./harmony/renderer"
import type { HarmonySetting } from "./harmony/setting"
import { openMistralRenderer } from "./mistral/renderer"
import type { MistralSetting } from "./mistral/setting"
import type { PromptRenderer, RendererUnusable } from "./renderer"
import type { TemplateUnusable } from "./template"
import { openTemplateRenderer, type TemplateRendererSetting } from "./template-renderer"

/** What a model's prompts are written in. Chosen once, from its files and the flags. */
export type PromptFormat =
  /** Jinja chat templates: the model's, the flag's or a request's. */
  | { readonly kind: "template" }
  /** gpt-oss's own. */
  | { readonly kind: "harmony"; readonly harmony: HarmonySetting }
  /** DeepSeek's own, from V3.2 on. */
  | { readonly kind: "deepseek"; readonly version: DeepseekVersion }
  /** Mistral's own, for models with its vocabularies. */
  | { readonly kind: "mistral"; readonly mistral: MistralSetting }

/** What the renderers of a model need to know. */
export interface RendererSetting extends TemplateRendererSetting {
  readonly format: PromptFormat
  /** Template variables that every request brings unless it says otherwise: the server's own defaults. */
  readonly defaultTemplateKwargs: Conversation["templateKwargs"]
}

/** The renderer of a model. Formats of a family's own have no use for chat templates, which then have no effect. */
export function openRenderer(setting: RendererSetting): Result<PromptRenderer, RendererUnusable | TemplateUnusable> {
  const { format } = setting
  switch (format.kind) {
    case "template":
      return openTemplateRenderer(setting)
    case "harmony":
      return openHarmonyRenderer(setting.tokenizer, format.harmony)
    case "mistral":
      return openMistralRenderer(setting.tokenizer, format.mistral, setting.defaultTemplateKwargs)
    case "deepseek":
      return openDeepseekRenderer(setting, format.version)
  }
}
