import { err, ok, type Result } from "../result"
import { callTag } from "./call-tag"
import { CombinedParser, type MakeContent } from "./combined"
import { harmonyFactory, harmonyReasoningName, harmonyToolName } from "./families/harmony"
import { hermesCalls } from "./families/hermes"
import { plainFactory } from "./families/plain"
import { deepseekR1Reasoning, qwen3Reasoning } from "./families/qwen3"
import { type JsonCallGrammar, JsonCallMachine, resolveCallGrammar } from "./json-tools"
import type { ParserFactory, ParserUnusable, Vocabulary } from "./parser"
import { type ReasoningFraming, type ResolvedFraming, reasoningTag, resolveFraming } from "./reasoning"

/** What is known of a model, as far as it tells its output grammar. */
export interface ParserProfile {
  readonly name: string
  readonly modelType: string
  readonly architectures: readonly string[]
  readonly chatTemplates: { readonly [name: string]: string }
}

/** A way to write reasoning, under its name. */
interface ReasoningFamily {
  readonly name: string
  readonly framing: ReasoningFraming
}

/** A way to write calls, under its name. */
interface ToolFamily {
  readonly name: string
  readonly calls: JsonCallGrammar
}

const reasoningFamilies: readonly ReasoningFamily[] = [
  { name: "deepseek_r1", framing: deepseekR1Reasoning },
  { name: "qwen3", framing: qwen3Reasoning },
]

const toolFamilies: readonly ToolFamily[] = [
  { name: "hermes", calls: hermesCalls },
  { name: "qwen3_json", calls: hermesCalls },
]

/**
 * What `auto` goes by before it looks at the template: parts of the model's name, type or architectures, specific ones
 * first. Only families that their template does not tell apart stand here.
 */
const modelPatterns: readonly { readonly pattern: string; readonly reasoning: string }[] = [
  { pattern: "deepseek-r1", reasoning: "deepseek_r1" },
  { pattern: "qwq", reasoning: "deepseek_r1" },
]

/** Names that `--reasoning-parser` takes. */
export const reasoningParserNames: readonly string[] = [
  "auto",
  "none",
  ...reasoningFamilies.map((each) => each.name),
  harmonyReasoningName,
]

/** Names that `--tool-call-parser` takes. */
export const toolParserNames: readonly string[] = [
  "auto",
  "none",
  ...toolFamilies.map((each) => each.name),
  harmonyToolName,
]

/**
 * The output grammar of a model: by name, or found out (`auto`: the model's name and type first, its template next), or
 * none. A named reasoning parser whose markers the vocabulary lacks is refused; `auto` then goes without. Source:
 * PARSERS 2.
 */
export function chooseParser(
  profile: ParserProfile,
  reasoning: string,
  tools: string,
  vocabulary: Vocabulary,
): Result<ParserFactory, ParserUnusable> {
  if (!reasoningParserNames.includes(reasoning)) return err(unknownName("reasoning", reasoning, reasoningParserNames))
  if (!toolParserNames.includes(tools)) return err(unknownName("tool call", tools, toolParserNames))

  if (takesHarmony(profile, reasoning, tools)) {
    const isWhole = ["auto", harmonyReasoningName].includes(reasoning) && ["auto", harmonyToolName].includes(tools)
    return isWhole ? harmonyFactory(vocabulary) : err(halfHarmony(reasoning, tools))
  }

  const wanted = reasoning === "auto" ? autoReasoning(profile) : reasoning
  const reasoningFamily = reasoningFamilies.find((each) => each.name === wanted)
  let framing: ResolvedFraming | null = null
  if (reasoningFamily !== undefined) {
    const resolved = resolveFraming(reasoningFamily.framing, vocabulary)
    if (resolved.ok) framing = resolved.value
    else if (reasoning !== "auto") return err(resolved.error)
  }
  const toolName = tools === "auto" ? autoTools(profile) : tools
  const toolFamily = toolFamilies.find((each) => each.name === toolName)
  if (framing === null && toolFamily === undefined) return ok(plainFactory(vocabulary))

  let makeContent: MakeContent | null = null
  let special = framing !== null && isSpecialPair(framing, vocabulary)
  if (toolFamily !== undefined) {
    const resolved = resolveCallGrammar(toolFamily.calls, vocabulary)
    makeContent = (emission) => new JsonCallMachine(resolved, emission)
    special ||= isSpecialPair(resolved, vocabulary)
  }
  return ok({
    reasoning: framing === null ? "none" : (reasoningFamily?.name ?? "none"),
    tools: toolFamily?.name ?? "none",
    needsSpecialTokens: special,
    callTag:
      toolFamily === undefined
        ? null
        : (constraint) => callTag(toolFamily.calls.start, toolFamily.calls.forms, constraint),
    reasoningTag: framing === null ? null : (promptTokenIds) => reasoningTag(framing, vocabulary, promptTokenIds),
    create: (start) => new CombinedParser(framing, makeContent, vocabulary, start),
  })
}

/**
 * Whether a model's prompts are in the Harmony format: those of gpt-oss always, whether or not its replies are parsed,
 * and those of a model that is told to be parsed so.
 */
export function writesHarmony(profile: ParserProfile, parser: Pick<ParserFactory, "reasoning">): boolean {
  return isHarmonyModel(profile) || parser.reasoning === harmonyReasoningName
}

function isHarmonyModel({ modelType, architectures }: ParserProfile): boolean {
  return modelType === "gpt_oss" || architectures.includes("GptOssForCausalLM")
}

/** By name, or by the model, unless both parsers are told to be none. */
function takesHarmony(profile: ParserProfile, reasoning: string, tools: string): boolean {
  if (reasoning === harmonyReasoningName || tools === harmonyToolName) return true
  return isHarmonyModel(profile) && !(reasoning === "none" && tools === "none")
}

function halfHarmony(reasoning: string, tools: string): ParserUnusable {
  const message =
    `reasoning parser ${reasoning} and tool call parser ${tools} do not go together: ` +
    `${harmonyReasoningName} and ${harmonyToolName} are one parser, the only one for gpt-oss`
  return { kind: "parser_unusable", message }
}

function isSpecialPair(ids: { readonly startId: number; readonly endId: number }, vocabulary: Vocabulary): boolean {
  return ids.startId >= 0 && (vocabulary.isSpecial(ids.startId) || vocabulary.isSpecial(ids.endId))
}

function unknownName(kind: string, name: string, names: readonly string[]): ParserUnusable {
  return { kind: "parser_unknown", message: `unknown ${kind} parser ${name}: choose one of ${names.join(", ")}` }
}

function templateText(profile: ParserProfile): string {
  return Object.values(profile.chatTemplates).join("\n")
}

/** Templates of models that reason write or take apart the marker. */
function autoReasoning(profile: ParserProfile): string {
  const words = [profile.name, profile.modelType, ...profile.architectures].join("\n").toLowerCase()
  const known = modelPatterns.find((each) => words.includes(each.pattern))
  if (known !== undefined) return known.reasoning
  return templateText(profile).includes("<think>") ? "qwen3" : "none"
}

/** `<tool_call>` alone is not enough: other families put tagged parameters between the same markers. */
function autoTools(profile: ParserProfile): string {
  const text = templateText(profile)
  // Templates write the key in quotes, plain or escaped.
  const isJson = text.includes("<tool_call>") && text.includes('"arguments')
  return isJson && !text.includes("<function=") && !text.includes("<arg_key>") ? "hermes" : "none"
}
