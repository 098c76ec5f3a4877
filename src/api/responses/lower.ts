import type { FunctionTool, Json, ToolChoice } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { lowerTemplateKwargs } from "../conversation"
import type { LowerContext, Lowered } from "../endpoint"
import { type ApiError, type InvalidRequest, invalid } from "../errors"
import { asNumber, requestId, sessionId } from "../reply-fields"
import { lowerFormat, lowerSampling } from "../sampling"
import { isRecord } from "../schema"
import { lowerInput } from "./input"
import type { ResponseBody } from "./schema"

/** What both views of a response must know: the echo of the request, with resolved values. */
export interface ResponseAsk {
  readonly body: ResponseBody
  readonly toolChoice: Json
  readonly tools: readonly FunctionTool[]
  readonly truncation: string
}

/** Responses body → the intermediate representation (RESPONSES 1 to 7). */
export function lowerResponse(body: ResponseBody, context: LowerContext): Result<Lowered<ResponseAsk>, ApiError> {
  const previous = body.previous_response_id ?? null
  if (previous !== null) return err({ kind: "response_not_found", id: previous.slice(0, 128) })
  const fault = unsupportedFault(body) ?? valueFault(body) ?? metadataFault(body.metadata ?? null)
  if (fault !== null) return err(fault)

  const tools = lowerResponseTools(body)
  if (!tools.ok) return tools
  const toolChoice = lowerChoice(body, tools.value)
  if (!toolChoice.ok) return toolChoice
  const input = lowerInput(body.input, body.instructions ?? null)
  if (!input.ok) return input
  const kwargs = lowerTemplateKwargs(body.chat_template_kwargs ?? null, body.reasoning?.effort ?? null, context)
  if (!kwargs.ok) return kwargs
  const format = lowerFormat(body.text?.format ?? null, "text")
  if (!format.ok) return format
  const sampling = lowerSampling(body, { logprobs: null, promptLogprobs: null, format: format.value }, context)
  if (!sampling.ok) return sampling

  const { config } = context
  const hidesTools = toolChoice.value.kind === "none" && config.excludeToolsWhenToolChoiceNone
  const truncation = body.truncation ?? "disabled"
  const sessionArg = body.vllm_xargs?.session_id
  return ok({
    id: `resp_${requestId(body.request_id ?? null, context)}`,
    prompts: [
      {
        kind: "conversation",
        messages: input.value.messages,
        tools: hidesTools ? [] : tools.value,
        toolChoice: toolChoice.value,
        addGenerationPrompt: !input.value.continueFinalMessage,
        continueFinalMessage: input.value.continueFinalMessage,
        addSpecialTokens: false,
        documents: null,
        chatTemplate: null,
        templateKwargs: kwargs.value,
      },
    ],
    choicesPerPrompt: 1,
    sampling: sampling.value,
    replyTokensMax: asNumber(body.max_output_tokens),
    truncation: truncation === "auto" ? { tokensMax: -1, side: "left" } : null,
    parsing: { isChat: true, calls: toolChoice.value.kind !== "none" },
    includeReasoning: body.include_reasoning ?? true,
    parallelToolCalls: body.parallel_tool_calls ?? true,
    wantsSteps: false,
    intervalTokens: Math.max(config.streamIntervalTokens, body.stream_interval ?? 1),
    stream: body.stream ?? false,
    priority: headerPriority(context) ?? body.priority ?? 0,
    cacheSalt: body.cache_salt ?? null,
    sessionId: sessionId(body.session_id ?? null, context) ?? (typeof sessionArg === "string" ? sessionArg : null),
    ask: { body, toolChoice: echoChoice(toolChoice.value), tools: tools.value, truncation },
  })
}

function headerPriority(context: LowerContext): number | null {
  const header = context.headers.get("x-vllm-priority")
  return header !== null && /^-?\d{1,9}$/.test(header) ? Number(header) : null
}

/** Fields of a server that keeps state, or of one that shows its insides. */
function unsupportedFault(body: ResponseBody): InvalidRequest | null {
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
  if ((body.top_logprobs ?? 0) !== 0) return invalid("top_logprobs", "logprobs of output text are not supported.")
  const unknown = (body.include ?? []).find((each) => each !== "reasoning.encrypted_content")
  if (unknown !== undefined) return invalid("include", `include does not support '${unknown.slice(0, 64)}'.`)
  return null
}

function valueFault(body: ResponseBody): InvalidRequest | null {
  const words = (param: string, value: string | null | undefined, allowed: readonly string[]): InvalidRequest | null =>
    value === null || value === undefined || allowed.includes(value)
      ? null
      : invalid(param, `${param} must be one of ${allowed.join(", ")}, got '${value.slice(0, 64)}'.`)
  const reply = body.max_output_tokens ?? null
  if (reply !== null && reply < 1) {
    return invalid("max_output_tokens", `max_output_tokens must be at least 1, got ${reply}.`)
  }
  if (body.structured_outputs != null && body.text?.format != null) {
    return invalid("structured_outputs", "structured_outputs and text.format cannot both be given.")
  }
  const salt = body.cache_salt ?? ""
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is one of the characters that the rule names
  if (salt.length > 128 || /[@/\\\u0000]/.test(salt)) {
    return invalid("cache_salt", "cache_salt must be at most 128 characters and without @, /, \\ and NUL.")
  }
  return (
    words("truncation", body.truncation, ["disabled", "auto"]) ??
    words("service_tier", body.service_tier, ["auto", "default", "flex", "scale", "priority"]) ??
    words("prompt_cache_retention", body.prompt_cache_retention, ["in_memory", "in-memory", "24h"]) ??
    words("text", body.text?.verbosity, ["low", "medium", "high"]) ??
    words("reasoning", body.reasoning?.summary, ["auto", "concise", "detailed"]) ??
    words("reasoning", body.reasoning?.generate_summary, ["auto", "concise", "detailed"])
  )
}

const metadataPairsMax = 16
const metadataKeyCharsMax = 64
const metadataValueCharsMax = 512

/** Limits count characters, not bytes or UTF-16 units. */
function metadataFault(metadata: { readonly [key: string]: Json } | null): InvalidRequest | null {
  if (metadata === null) return null
  const pairs = Object.entries(metadata)
  if (pairs.length > metadataPairsMax) return invalid("metadata", `metadata has more than ${metadataPairsMax} pairs.`)
  for (const [key, value] of pairs) {
    if ([...key].length > metadataKeyCharsMax) {
      return invalid("metadata", `a metadata key has more than ${metadataKeyCharsMax} characters.`)
    }
    if (typeof value !== "string") return invalid("metadata", "metadata values must be strings.")
    if ([...value].length > metadataValueCharsMax) {
      return invalid("metadata", `a metadata value has more than ${metadataValueCharsMax} characters.`)
    }
  }
  return null
}

function lowerResponseTools(body: ResponseBody): Result<FunctionTool[], InvalidRequest> {
  const lowered: FunctionTool[] = []
  for (const [index, tool] of (body.tools ?? []).entries()) {
    if (tool.type !== "function") {
      return err(invalid("tools", `tools[${index}]: tools of type '${tool.type.slice(0, 64)}' are not supported.`))
    }
    if (tool.name == null || tool.name === "") return err(invalid("tools", `tools[${index}]: a function needs a name.`))
    lowered.push({
      name: tool.name,
      description: tool.description ?? null,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? null,
    })
  }
  return ok(lowered)
}

function lowerChoice(body: ResponseBody, tools: readonly FunctionTool[]): Result<ToolChoice, InvalidRequest> {
  const choice = body.tool_choice ?? "auto"
  const refuse = (message: string): Result<ToolChoice, InvalidRequest> => err(invalid("tool_choice", message))
  if (typeof choice === "string") {
    if (choice !== "none" && choice !== "auto" && choice !== "required") {
      return refuse(`tool_choice must be none, auto, required or a function, got '${choice.slice(0, 64)}'.`)
    }
    if (tools.length > 0) return ok({ kind: choice })
    return choice === "required" ? refuse("tool_choice 'required' needs tools.") : ok({ kind: "none" })
  }
  if (!isRecord(choice) || choice.type !== "function" || typeof choice.name !== "string") {
    return refuse("tool_choice must be {type: 'function', name}.")
  }
  const { name } = choice
  if (!tools.some((tool) => tool.name === name)) {
    return refuse(`The function '${name.slice(0, 64)}' was not found in 'tools' parameter.`)
  }
  return ok({ kind: "named", name })
}

function echoChoice(choice: ToolChoice): Json {
  return choice.kind === "named" ? { type: "function", name: choice.name } : choice.kind
}
