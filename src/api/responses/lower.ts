import type { ResponsesExtension } from "../../config"
import type { Json } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { lowerTemplateKwargs, requestTemplate } from "../conversation"
import type { LowerContext, Lowered } from "../endpoint"
import { type ApiError, type InvalidRequest, invalid } from "../errors"
import { asNumber, lowerDelivery, requestId, sessionId } from "../reply-fields"
import { lowerFormat, lowerSampling } from "../sampling"
import { lowerInput } from "./input"
import type { ResponseBody } from "./schema"
import { lowerChoice, lowerResponseTools, type ToolName, unless } from "./tools"

/** What both views of a response must know: the echo of the request, with resolved values. */
export interface ResponseAsk {
  readonly body: ResponseBody
  readonly toolChoice: Json
  readonly tools: readonly Json[]
  /** What calls are called towards the client, by the name that the model knows. */
  readonly names: ReadonlyMap<string, ToolName>
  readonly truncation: string
  /** As asked; null = no logprobs. */
  readonly topLogprobs: number | null
  /** Alternatives that items show for each token, -1 = all that the engine gives; null = items show no logprobs. */
  readonly shownLogprobs: number | null
}

/** Responses body → the intermediate representation (RESPONSES 1 to 7). */
export function lowerResponse(body: ResponseBody, context: LowerContext): Result<Lowered<ResponseAsk>, ApiError> {
  const previous = body.previous_response_id ?? null
  if (previous !== null) return err({ kind: "response_not_found", id: previous.slice(0, 128) })
  const { config } = context
  const extensions = config.responsesExtensions
  const fault =
    unsupportedFault(body, extensions) ??
    valueFault(body) ??
    logprobsFault(body, context) ??
    metadataFault(body.metadata ?? null)
  if (fault !== null) return err(fault)

  const tools = lowerResponseTools(body, extensions)
  if (!tools.ok) return tools
  const chosen = lowerChoice(body, tools.value, extensions)
  if (!chosen.ok) return chosen
  const { choice, functions, echo } = chosen.value
  const input = lowerInput(body.input, body.instructions ?? null, context)
  if (!input.ok) return input
  const kwargs = lowerTemplateKwargs(body.chat_template_kwargs ?? null, body.reasoning?.effort ?? null, context)
  if (!kwargs.ok) return kwargs
  const format = lowerFormat(body.text?.format ?? null, "text")
  if (!format.ok) return format
  const topLogprobs = body.include?.includes(logprobsInclude) === true ? (body.top_logprobs ?? 0) : null
  // They would tell the reasoning that the request does not want to see.
  const withheld = body.include_reasoning === false && context.model.parsesReasoning
  const logprobs = withheld ? null : topLogprobs
  const sampling = lowerSampling(body, { logprobs, promptLogprobs: null, format: format.value }, context)
  if (!sampling.ok) return sampling
  const shownLogprobs = logprobs !== null && sampling.value.logprobTokenIds !== null ? -1 : logprobs

  const hidesTools = choice.kind === "none" && config.excludeToolsWhenToolChoiceNone
  const truncation = body.truncation ?? "disabled"
  const sessionArg = body.vllm_xargs?.session_id
  return ok({
    id: `resp_${requestId(body.request_id ?? null, context)}`,
    prompts: [
      {
        kind: "conversation",
        messages: input.value.messages,
        tools: hidesTools ? [] : functions,
        toolChoice: choice,
        addGenerationPrompt: !input.value.continueFinalMessage,
        continueFinalMessage: input.value.continueFinalMessage,
        addSpecialTokens: false,
        documents: null,
        chatTemplate: requestTemplate(null, body.chat_template_kwargs ?? null, context),
        templateKwargs: kwargs.value,
      },
    ],
    media: input.value.media,
    choicesPerPrompt: 1,
    sampling: sampling.value,
    replyTokensMax: asNumber(body.max_output_tokens),
    truncation: truncation === "auto" ? { tokensMax: -1, side: "left" } : null,
    parsing: { isChat: true, calls: choice.kind !== "none" },
    includeReasoning: body.include_reasoning ?? true,
    parallelToolCalls: body.parallel_tool_calls ?? true,
    wantsSteps: shownLogprobs !== null,
    ...lowerDelivery(body, context),
    priority: headerPriority(context) ?? body.priority ?? 0,
    sessionId:
      sessionId(body.session_id ?? null, context) ??
      (typeof sessionArg === "string" && sessionArg !== "" ? sessionArg : null),
    ask: {
      body,
      toolChoice: echo,
      tools: tools.value.echo,
      names: tools.value.names,
      truncation,
      topLogprobs,
      shownLogprobs,
    },
  })
}

function headerPriority(context: LowerContext): number | null {
  const header = context.headers.get("x-vllm-priority")
  return header !== null && /^-?\d{1,9}$/.test(header) ? Number(header) : null
}

/** Fields of a server that keeps state, or of one that shows its insides. */
function unsupportedFault(body: ResponseBody, extensions: readonly ResponsesExtension[]): InvalidRequest | null {
  for (const name of ["prompt", "conversation", "previous_input_messages"] as const) {
    if ((body[name] ?? null) !== null) return invalid(name, `${name} is not supported by this server.`)
  }
  for (const name of ["media_io_kwargs", "mm_processor_kwargs"] as const) {
    if ((body[name] ?? null) !== null) return invalid(name, `${name} is not supported on /v1/responses.`)
  }
  if (body.background === true) {
    return invalid("background", "background needs stored responses, which this server has none of.")
  }
  if (body.enable_response_messages === true) {
    return invalid("enable_response_messages", "enable_response_messages is not supported by this server.")
  }
  if (body.spaces_between_special_tokens === false) {
    return invalid("spaces_between_special_tokens", "spaces_between_special_tokens cannot be false.")
  }
  const takesLogprobs = extensions.includes("logprobs")
  if (!takesLogprobs && (body.top_logprobs ?? 0) !== 0) {
    return invalid("top_logprobs", `logprobs of output text are not supported${unless("logprobs")}.`)
  }
  const known = takesLogprobs ? [encryptedInclude, logprobsInclude] : [encryptedInclude]
  const unknown = (body.include ?? []).find((each) => !known.includes(each))
  if (unknown !== undefined) {
    const how = unknown === logprobsInclude ? unless("logprobs") : ""
    return invalid("include", `include does not support '${unknown.slice(0, 64)}'${how}.`)
  }
  return null
}

/** What `include` may name: nothing is ever encrypted, so the first has no effect. */
const encryptedInclude = "reasoning.encrypted_content"
const logprobsInclude = "message.output_text.logprobs"

function logprobsFault(body: ResponseBody, context: LowerContext): InvalidRequest | null {
  const top = body.top_logprobs ?? 0
  const { maxLogprobs } = context.config
  if (top < 0) return invalid("top_logprobs", `top_logprobs must be at least 0, got ${top}.`)
  if (maxLogprobs === -1 || top <= maxLogprobs) return null
  return invalid("top_logprobs", `Requested top_logprobs of ${top}, which is greater than the allowed ${maxLogprobs}.`)
}

function valueFault(body: ResponseBody): InvalidRequest | null {
  // The top-level field is the param, the words name the field itself.
  const words = (field: string, value: string | null | undefined, allowed: readonly string[]): InvalidRequest | null =>
    value === null || value === undefined || allowed.includes(value)
      ? null
      : invalid(field.split(".", 1)[0]!, `${field} must be one of ${allowed.join(", ")}, got '${value.slice(0, 64)}'.`)
  const reply = body.max_output_tokens ?? null
  if (reply !== null && reply < 1) {
    return invalid("max_output_tokens", `max_output_tokens must be at least 1, got ${reply}.`)
  }
  if (body.structured_outputs != null && body.text?.format != null) {
    return invalid("structured_outputs", "structured_outputs and text.format cannot both be given.")
  }
  const format = body.text?.format ?? null
  if (format !== null && !["text", "json_object", "json_schema"].includes(String(format.type))) {
    return invalid("text", "text.format.type must be text, json_object or json_schema.")
  }
  if (format?.type === "json_schema" && typeof format.name !== "string") {
    return invalid("text", "text.format of type json_schema needs a name.")
  }
  const salt = body.cache_salt ?? ""
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is one of the characters that the rule names
  if (isLonger(salt, cacheSaltCharsMax) || /[@/\\\u0000]/.test(salt)) {
    return invalid(
      "cache_salt",
      `cache_salt must be at most ${cacheSaltCharsMax} characters and without @, /, \\ and NUL.`,
    )
  }
  return (
    words("truncation", body.truncation, ["disabled", "auto"]) ??
    words("service_tier", body.service_tier, ["auto", "default", "flex", "scale", "priority"]) ??
    words("prompt_cache_retention", body.prompt_cache_retention, ["in_memory", "in-memory", "24h"]) ??
    words("text.verbosity", body.text?.verbosity, ["low", "medium", "high"]) ??
    words("reasoning.summary", body.reasoning?.summary, ["auto", "concise", "detailed"]) ??
    words("reasoning.generate_summary", body.reasoning?.generate_summary, ["auto", "concise", "detailed"])
  )
}

const cacheSaltCharsMax = 128
const metadataPairsMax = 16
const metadataKeyCharsMax = 64
const metadataValueCharsMax = 512

/** Limits count characters, not bytes or UTF-16 units; of these a character has two at most. */
function isLonger(text: string, charsMax: number): boolean {
  return text.length > 2 * charsMax || (text.length > charsMax && [...text].length > charsMax)
}

function metadataFault(metadata: { readonly [key: string]: Json } | null): InvalidRequest | null {
  if (metadata === null) return null
  const pairs = Object.entries(metadata)
  if (pairs.length > metadataPairsMax) return invalid("metadata", `metadata has more than ${metadataPairsMax} pairs.`)
  for (const [key, value] of pairs) {
    if (isLonger(key, metadataKeyCharsMax)) {
      return invalid("metadata", `a metadata key has more than ${metadataKeyCharsMax} characters.`)
    }
    if (typeof value !== "string") return invalid("metadata", "metadata values must be strings.")
    if (isLonger(value, metadataValueCharsMax)) {
      return invalid("metadata", `a metadata value has more than ${metadataValueCharsMax} characters.`)
    }
  }
  return null
}
