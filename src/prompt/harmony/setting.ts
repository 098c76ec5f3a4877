import type { Json } from "../../ir/conversation"
import { ok, type Result } from "../../result"
import { type ConversationRefused, refused } from "../renderer"
import { reasoningEfforts, type SystemFacts } from "./message"
import { builtInTools, type ToolNamespace } from "./tool-text"

/** What the server says about all conversations in the Harmony format. */
export interface HarmonySetting {
  /** `YYYY-MM-DD` that the model is told as today; null = what the clock says. */
  readonly startDate: string | null
  /** Where instructions stand; `system` = behind the model's identity. */
  readonly instructionsIn: "developer" | "system"
  /** The local day counts. */
  readonly now: () => Date
}

const modelIdentity = "You are ChatGPT, a large language model trained by OpenAI."
const knowledgeCutoff = "2024-06"

/** The model knows no other word for how hard it shall think. */
type Effort = SystemFacts["reasoningEffort"]

/**
 * What the system message says, from a request's template variables over the server's. Names are those that gpt-oss's
 * own chat template and openai-harmony give them: `reasoning_effort`, `model_identity`, `builtin_tools`,
 * `conversation_start_date`, `knowledge_cutoff`. Others are passed over, as a template does.
 */
export function readSystemFacts(
  kwargs: { readonly [name: string]: Json },
  hasFunctions: boolean,
  setting: HarmonySetting,
): Result<SystemFacts, ConversationRefused> {
  const effort = kwargs.reasoning_effort ?? "medium"
  if (!isEffort(effort)) {
    const given = typeof effort === "string" ? `'${effort}'` : "this value"
    return refused(
      `reasoning_effort must be one of ${reasoningEfforts.join(", ")} for this model; it does not know ${given}.`,
      "reasoning_effort",
    )
  }
  const tools = readBuiltInTools(kwargs.builtin_tools ?? null)
  if (tools === null) {
    return refused(`builtin_tools must be a list of ${[...builtInTools.keys()].join(", ")}.`, "chat_template_kwargs")
  }
  const texts = {
    modelIdentity: kwargs.model_identity ?? modelIdentity,
    knowledgeCutoff: kwargs.knowledge_cutoff ?? knowledgeCutoff,
    conversationStartDate: kwargs.conversation_start_date ?? setting.startDate ?? dayOf(setting.now()),
  }
  const { modelIdentity: identity, knowledgeCutoff: cutoff, conversationStartDate: date } = texts
  if (typeof identity !== "string" || typeof cutoff !== "string" || typeof date !== "string") {
    return refused(
      "model_identity, knowledge_cutoff and conversation_start_date must be texts.",
      "chat_template_kwargs",
    )
  }
  return ok({
    modelIdentity: identity,
    knowledgeCutoff: cutoff,
    conversationStartDate: date,
    reasoningEffort: effort,
    builtInTools: tools,
    hasFunctions,
  })
}

function isEffort(value: Json): value is Effort {
  return reasoningEfforts.some((effort) => effort === value)
}

/** The tools by their names, in the order in which the model is told of them; null for what is no list of them. */
function readBuiltInTools(names: Json): ToolNamespace[] | null {
  if (names === null) return []
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string" && builtInTools.has(name))) return null
  return [...builtInTools.values()].filter(({ name }) => names.includes(name))
}

function dayOf(date: Date): string {
  const part = (value: number): string => String(value).padStart(2, "0")
  return `${date.getFullYear()}-${part(date.getMonth() + 1)}-${part(date.getDate())}`
}
