import type { FunctionTool } from "../../ir/conversation"
import { type ToolNamespace, toolsText } from "./tool-text"

/** Who can write a Harmony message. */
export type HarmonyRole = "system" | "developer" | "user" | "assistant" | "tool"

/** One message of the Harmony format: its header, and its content. */
export interface HarmonyMessage {
  readonly role: HarmonyRole
  /** A tool's whole name (`functions.f`); for others it is written behind the role. */
  readonly name: string | null
  /** Whom the message is for; null = all. */
  readonly recipient: string | null
  readonly channel: string | null
  /** `json`, or `<|constrain|>json`, whose first part is a special token. */
  readonly contentType: string | null
  /** Each is encoded by itself, with nothing between them. */
  readonly texts: readonly string[]
}

/** A message with all that is not given left out. */
export function harmonyMessage(
  role: HarmonyRole,
  texts: readonly string[],
  header: Partial<Pick<HarmonyMessage, "name" | "recipient" | "channel" | "contentType">> = {},
): HarmonyMessage {
  return { role, texts, name: null, recipient: null, channel: null, contentType: null, ...header }
}

/** How hard the model shall think, as it was trained on. */
export const reasoningEfforts = ["low", "medium", "high"] as const

/** What the system message says. */
export interface SystemFacts {
  readonly modelIdentity: string
  readonly knowledgeCutoff: string
  /** `YYYY-MM-DD`. */
  readonly conversationStartDate: string
  readonly reasoningEffort: (typeof reasoningEfforts)[number]
  /** In alphabetical order of their names. */
  readonly builtInTools: readonly ToolNamespace[]
  /** Whether a developer message tells of functions. */
  readonly hasFunctions: boolean
}

/** The system message: who the model is, what it knows, and which channels it writes to. Source: openai-harmony 0.0.8. */
export function systemMessage(facts: SystemFacts): HarmonyMessage {
  const sections = [
    `${facts.modelIdentity}\nKnowledge cutoff: ${facts.knowledgeCutoff}\nCurrent date: ${facts.conversationStartDate}`,
    `Reasoning: ${facts.reasoningEffort}`,
  ]
  if (facts.builtInTools.length > 0) sections.push(toolsText(facts.builtInTools))
  const functions = facts.hasFunctions ? "\nCalls to these tools must go to the commentary channel: 'functions'." : ""
  sections.push(
    `# Valid channels: analysis, commentary, final. Channel must be included for every message.${functions}`,
  )
  return harmonyMessage("system", [sections.join("\n\n")])
}

/** The developer message: instructions (null = none), then the functions. Source: openai-harmony 0.0.8. */
export function developerMessage(instructions: string | null, functions: readonly FunctionTool[]): HarmonyMessage {
  const sections = instructions === null ? [] : ["# Instructions", instructions]
  if (functions.length > 0) sections.push(toolsText([{ name: "functions", description: null, tools: functions }]))
  return harmonyMessage("developer", [sections.join("\n\n")])
}
