import type { SettledTokenizerMode } from "../ir/tokenizer-mode"
import { err, ok, type Result } from "../result"
import { callTag } from "./call-tag"
import { CombinedParser, type MakeContent } from "./combined"
import { type DsmlTagNames, dsmlMarker } from "./dsml-calls"
import { deepseekV3Reasoning, deepseekV4Tags, deepseekV32Tags, deepseekV41Tags, dsmlCalls } from "./families/deepseek"
import { harmonyFactory, harmonyReasoningName, harmonyToolName } from "./families/harmony"
import { hermesCalls } from "./families/hermes"
import { mistralCalls, mistralReasoning } from "./families/mistral"
import { plainFactory } from "./families/plain"
import { deepseekR1Reasoning, qwen3Reasoning } from "./families/qwen3"
import { type JsonCallGrammar, JsonCallMachine, resolveCallGrammar } from "./json-tools"
import { mistralCallMarkers } from "./mistral-calls"
import type { ParserFactory, ParserUnusable, Vocabulary } from "./parser"
import { type ReasoningFraming, type ResolvedFraming, reasoningTag, resolveFraming } from "./reasoning"

/** What is known of a model, as far as it tells its output grammar. */
export interface ParserProfile {
  readonly name: string
  readonly modelType: string
  readonly architectures: readonly string[]
  readonly chatTemplates: { readonly [name: string]: string }
  /** What prompts are written in, where it is known and no template tells it. */
  readonly tokenizerMode?: SettledTokenizerMode
}

/** A way to write reasoning, under its name. */
interface ReasoningFamily {
  readonly name: string
  readonly framing: ReasoningFraming
}

/** A way to write calls, under its name. */
interface ToolFamily {
  readonly name: string
  /** Looks the markers up; null where the family cannot do without one that is missing. */
  readonly resolve: (vocabulary: Vocabulary) => ResolvedCalls | null
}

/** A way to write calls in one vocabulary. */
interface ResolvedCalls {
  readonly makeContent: MakeContent
  readonly isSpecial: boolean
  readonly callTag: ParserFactory["callTag"]
}

function jsonCalls(grammar: JsonCallGrammar): ToolFamily["resolve"] {
  return (vocabulary) => {
    const resolved = resolveCallGrammar(grammar, vocabulary)
    return {
      makeContent: (emission) => new JsonCallMachine(resolved, emission),
      isSpecial: isSpecialPair(resolved, vocabulary),
      callTag: (constraint) => callTag(grammar.start, grammar.forms, constraint),
    }
  }
}

/** As in the reference, which calls must be made is not enforced: the model is asked for them, and no more. */
function markedCalls(marker: string, make: (vocabulary: Vocabulary) => MakeContent | null): ToolFamily["resolve"] {
  return (vocabulary) => {
    const makeContent = make(vocabulary)
    if (makeContent === null) return null
    return { makeContent, isSpecial: vocabulary.isSpecial(vocabulary.tokenToId(marker)), callTag: null }
  }
}

function taggedCalls(tags: DsmlTagNames): ToolFamily["resolve"] {
  return markedCalls(dsmlMarker, (vocabulary) => dsmlCalls(tags, vocabulary))
}

const reasoningFamilies: readonly ReasoningFamily[] = [
  { name: "deepseek_r1", framing: deepseekR1Reasoning },
  { name: "deepseek_v3", framing: deepseekV3Reasoning },
  { name: "deepseek_v4", framing: deepseekV3Reasoning },
  { name: "deepseek_v41", framing: deepseekV3Reasoning },
  { name: "qwen3", framing: qwen3Reasoning },
  { name: "mistral", framing: mistralReasoning },
]

const toolFamilies: readonly ToolFamily[] = [
  { name: "hermes", resolve: jsonCalls(hermesCalls) },
  { name: "qwen3_json", resolve: jsonCalls(hermesCalls) },
  { name: "mistral", resolve: markedCalls(mistralCallMarkers.calls, mistralCalls) },
  { name: "deepseek_v32", resolve: taggedCalls(deepseekV32Tags) },
  { name: "deepseek_v4", resolve: taggedCalls(deepseekV4Tags) },
  { name: "deepseek_v41", resolve: taggedCalls(deepseekV41Tags) },
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
  const calls = toolFamily?.resolve(vocabulary) ?? null
  if (toolFamily !== undefined && calls === null && tools !== "auto") {
    const message = `the vocabulary has not the markers that the ${tools} tool call parser needs`
    return err({ kind: "parser_unusable", message })
  }
  if (framing === null && calls === null) return ok(plainFactory(vocabulary))
  return ok({
    reasoning: framing === null ? "none" : (reasoningFamily?.name ?? "none"),
    tools: calls === null ? "none" : (toolFamily?.name ?? "none"),
    needsSpecialTokens: calls?.isSpecial === true || (framing !== null && isSpecialPair(framing, vocabulary)),
    callTag: calls?.callTag ?? null,
    reasoningTag: framing === null ? null : (promptTokenIds) => reasoningTag(framing, vocabulary, promptTokenIds),
    create: (start) => new CombinedParser(framing, calls?.makeContent ?? null, vocabulary, start),
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

function writesMistral({ tokenizerMode }: ParserProfile): boolean {
  return tokenizerMode === "mistral"
}

/** What models write whose prompts are in a format of DeepSeek's: names of the two parsers. */
const deepseekParsers: ReadonlyMap<
  SettledTokenizerMode | undefined,
  { readonly reasoning: string; readonly tools: string }
> = new Map([
  ["deepseek_v32", { reasoning: "deepseek_v3", tools: "deepseek_v32" }],
  ["deepseek_v4", { reasoning: "deepseek_v4", tools: "deepseek_v4" }],
  ["deepseek_v41", { reasoning: "deepseek_v41", tools: "deepseek_v41" }],
])

function templateText(profile: ParserProfile): string {
  return Object.values(profile.chatTemplates).join("\n")
}

/** Templates of models that reason write or take apart the marker. */
function autoReasoning(profile: ParserProfile): string {
  const deepseek = deepseekParsers.get(profile.tokenizerMode)
  if (deepseek !== undefined) return deepseek.reasoning
  const words = [profile.name, profile.modelType, ...profile.architectures].join("\n").toLowerCase()
  const known = modelPatterns.find((each) => words.includes(each.pattern))
  if (known !== undefined) return known.reasoning
  const text = templateText(profile)
  if (writesMistral(profile) || text.includes("[THINK]")) return "mistral"
  return text.includes("<think>") ? "qwen3" : "none"
}

/** `<tool_call>` alone is not enough: other families put tagged parameters between the same markers. */
function autoTools(profile: ParserProfile): string {
  const deepseek = deepseekParsers.get(profile.tokenizerMode)
  if (deepseek !== undefined) return deepseek.tools
  const text = templateText(profile)
  if (writesMistral(profile) || text.includes("[TOOL_CALLS]")) return "mistral"
  // Templates write the key in quotes, plain or escaped.
  const isJson = text.includes("<tool_call>") && text.includes('"arguments')
  return isJson && !text.includes("<function=") && !text.includes("<arg_key>") ? "hermes" : "none"
}
