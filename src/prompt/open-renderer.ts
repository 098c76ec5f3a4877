import type { Result } from "../result"
import { openHarmonyRenderer } from "./harmony/renderer"
import type { HarmonySetting } from "./harmony/setting"
import type { PromptRenderer, RendererUnusable } from "./renderer"
import type { TemplateUnusable } from "./template"
import { openTemplateRenderer, type TemplateRendererSetting } from "./template-renderer"

/** What the renderers of a model need to know; `harmony` null = its prompts come from chat templates. */
export interface RendererSetting extends TemplateRendererSetting {
  readonly harmony: HarmonySetting | null
}

/** The renderer of a model. A format of the model's own comes before chat templates, which then have no effect. */
export function openRenderer(setting: RendererSetting): Result<PromptRenderer, RendererUnusable | TemplateUnusable> {
  return setting.harmony === null
    ? openTemplateRenderer(setting)
    : openHarmonyRenderer(setting.tokenizer, setting.harmony)
}
