/**
 * What the engine holds a chat reply to: the request's own constraint, and calls in the family's syntax (CHAT 1.3), both
 * behind whatever reasoning the family writes first. A forced call (`required`, or a named function) and `strict`
 * functions are so held to their schema while the reply is generated, not only checked.
 */
import type { Config } from "../config"
import type { Conversation, FunctionTool, Json } from "../ir/conversation"
import { type CallConstraint, inSequence, type OutputGrammar } from "../ir/output-grammar"
import type { StructuredOutputs } from "../ir/sampling"
import { isRecord } from "./schema"

/** A request as far as its calls are concerned. */
export interface CallRequest {
  readonly conversation: Conversation
  readonly parallelToolCalls: boolean
  /** What the reply's text must look like, by the request's own wish. */
  readonly structuredOutputs: StructuredOutputs | null
}

/** How a reply is held to its constraint. */
export interface ReplyConstraint {
  readonly structuredOutputs: StructuredOutputs | null
  /** Whether it applies from the first token; null = the engine must find the end of the reasoning by itself. */
  readonly reasoningEnded: boolean | null
}

/**
 * The constraint of a reply. `takesTags` = the engine's back end compiles structural tags: then reasoning is a part of
 * the grammar, and the engine needs no reasoning parser of its own.
 */
export function constrainReply(
  request: CallRequest,
  promptTokenIds: Uint32Array,
  level: Config["toolStrictLevel"],
  takesTags: boolean,
  grammar: OutputGrammar,
): ReplyConstraint {
  const own = request.structuredOutputs
  const { callTag, reasoningTag } = grammar
  const textTag = grammar.textTag ?? ((format: Json): Json => format)
  const structuredOutputs = callTag === null ? own : constrainCalls(request, level, callTag, textTag)
  if (structuredOutputs === null || reasoningTag === null) return { structuredOutputs, reasoningEnded: null }
  const { ended, formats } = reasoningTag(promptTokenIds)
  if (ended) return { structuredOutputs, reasoningEnded: true }
  const format = takesTags ? formatOf(structuredOutputs) : null
  if (format === null) return { structuredOutputs, reasoningEnded: null }
  const last = structuredOutputs === own ? textTag(format) : format
  const whole: Json = { type: "structural_tag", format: inSequence([...formats, last]) }
  return { structuredOutputs: { structural_tag: whole }, reasoningEnded: true }
}

/**
 * The constraint for a request with tools, or its own where calls add none. `tag` writes calls in the family's syntax.
 * Where the reply may also be text, the request's own constraint holds for that text; where a call is forced, it is
 * void. `textTag` puts that text into the family's frame. Source: vLLM 0.32.0.
 */
function constrainCalls(
  request: CallRequest,
  level: Config["toolStrictLevel"],
  tag: (constraint: CallConstraint) => Json,
  textTag: (format: Json) => Json,
): StructuredOutputs | null {
  const { conversation, parallelToolCalls, structuredOutputs } = request
  const { tools, toolChoice } = conversation
  if (tools.length === 0 || toolChoice.kind === "none") return structuredOutputs
  const isAuto = toolChoice.kind === "auto"
  const single = !parallelToolCalls || toolChoice.kind === "named"
  // With a constraint of its own, the request's text is what is held: one call at most adds no grammar there.
  const needsFrame = !parallelToolCalls && !(isAuto && structuredOutputs !== null)
  const isFree = level === "auto" && !needsFrame && !tools.some((tool) => tool.strict === true)
  if (isAuto && isFree) return structuredOutputs
  const text = isAuto && structuredOutputs !== null ? formatOf(structuredOutputs) : null
  if (isAuto && structuredOutputs !== null && text === null) return structuredOutputs
  const calls = tag({
    functions: allowed(tools, toolChoice.kind === "named" ? toolChoice.name : null).map((tool) => ({
      name: tool.name,
      parameters: level === "parameter" || tool.strict === true ? (tool.parameters ?? true) : true,
    })),
    allowsText: isAuto && text === null,
    single,
  })
  const format: Json = text === null ? calls : { type: "or", elements: [calls, textTag(text)] }
  return { structural_tag: { type: "structural_tag", format } }
}

function allowed(tools: readonly FunctionTool[], name: string | null): readonly FunctionTool[] {
  return name === null ? tools : tools.filter((tool) => tool.name === name)
}

/** A constraint as a part of a structural tag; null where it cannot be one. */
function formatOf(constraint: StructuredOutputs): Json | null {
  const { json, regex, choice, grammar, structural_tag: tag } = constraint
  const { disable_any_whitespace, disable_additional_properties, whitespace_pattern } = constraint
  // A tag has no room for these.
  if (disable_any_whitespace === true || disable_additional_properties === true || whitespace_pattern != null)
    return null
  if (constraint.json_object === true) return { type: "json_schema", json_schema: { type: "object" } }
  if (json !== undefined) {
    const schema = parsed(json)
    return schema === null ? null : { type: "json_schema", json_schema: schema }
  }
  if (regex !== undefined) return { type: "regex", pattern: regex }
  if (choice !== undefined) return { type: "or", elements: choice.map((value) => ({ type: "const_string", value })) }
  if (grammar !== undefined) return { type: "grammar", grammar }
  const given = tag === undefined ? null : parsed(tag)
  return isRecord(given) ? (given.format ?? null) : null
}

/** Schemas and tags may come as text. What is no JSON is the engine's to refuse. */
function parsed(value: Json): Json | null {
  if (typeof value !== "string") return value
  try {
    return JSON.parse(value) as Json // JSON.parse gives nothing else
  } catch {
    return null
  }
}
