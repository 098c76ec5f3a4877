/**
 * Tools of a request (RESPONSES 1 and 4): what the model is shown of them, and what its calls are called again on the
 * way out. A model only knows functions, so custom tools are shown as functions with one text, and the functions of a
 * namespace by a name that holds both.
 */
import type { ResponsesExtension } from "../../config"
import type { FunctionTool, Json, ToolChoice } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { type InvalidRequest, invalid } from "../errors"
import { isRecord } from "../schema"
import type { ResponseBody } from "./schema"

/** A tool as the client knows it. */
export interface ToolName {
  readonly kind: "function" | "custom"
  readonly name: string
  /** null = outside of any namespace. */
  readonly namespace: string | null
}

/** Tools, lowered. */
export interface LoweredTools {
  /** As functions, under their flat names. */
  readonly functions: readonly FunctionTool[]
  /** By flat name. */
  readonly names: ReadonlyMap<string, ToolName>
  /** For the response object. */
  readonly echo: readonly Json[]
}

/** A tool choice, lowered, with the tools that it leaves. */
export interface LoweredChoice {
  readonly choice: ToolChoice
  readonly functions: readonly FunctionTool[]
  readonly echo: Json
}

type Tool = NonNullable<ResponseBody["tools"]>[number]
type Extensions = readonly ResponsesExtension[]

/** The name that a model sees: that of the namespace before the tool's own. */
export function flatToolName(namespace: Json | undefined, name: string): string {
  return typeof namespace === "string" && namespace !== "" ? `${namespace}__${name}` : name
}

/** What would let a refused request pass, to go behind the refusal's words. */
export function unless(extension: ResponsesExtension): string {
  return ` unless the server is started with --responses-extensions ${extension}`
}

/** A custom tool's input as the arguments of the function that stands for it. */
export function customArguments(input: string): Json {
  return { input }
}

/** What a call is called towards the client; a name that no tool has stays as the model wrote it. */
export function callName(names: ReadonlyMap<string, ToolName>, flatName: string): ToolName {
  return names.get(flatName) ?? { kind: "function", name: flatName, namespace: null }
}

/** All tools of a request, or which of them is refused. */
export function lowerResponseTools(body: ResponseBody, extensions: Extensions): Result<LoweredTools, InvalidRequest> {
  const reader = new ToolReader(extensions)
  for (const [index, tool] of (body.tools ?? []).entries()) {
    const fault = reader.read(tool, null, `tools[${index}]`)
    if (fault !== null) return err(fault)
    reader.echo.push(echoTool(tool))
  }
  return ok(reader)
}

class ToolReader implements LoweredTools {
  readonly functions: FunctionTool[] = []
  readonly names = new Map<string, ToolName>()
  readonly echo: Json[] = []
  private readonly extensions: Extensions

  constructor(extensions: Extensions) {
    this.extensions = extensions
  }

  /** Gives a fault, or null when the tool was taken. */
  read(tool: Tool, namespace: string | null, place: string): InvalidRequest | null {
    const refuse = (message: string): InvalidRequest => invalid("tools", `${place}: ${message}`)
    const { type, name } = tool
    const isNamespace = type === "namespace" && namespace === null && this.extensions.includes("namespace_tools")
    const isCustom = type === "custom" && this.extensions.includes("custom_tools")
    if (type !== "function" && !isNamespace && !isCustom) {
      const shown = `tools of type '${type.slice(0, 64)}' are not supported${namespace === null ? "" : " here"}`
      if (type === "custom") return refuse(`${shown}${unless("custom_tools")}.`)
      return refuse(`${shown}${type === "namespace" && namespace === null ? unless("namespace_tools") : ""}.`)
    }
    if (name == null || name === "") return refuse(`a ${type} needs a name.`)
    if (isNamespace) {
      for (const [index, inner] of (tool.tools ?? []).entries()) {
        const fault = this.read(inner, name, `${place}.tools[${index}]`)
        if (fault !== null) return fault
      }
      return null
    }
    const format = tool.format ?? null
    if (isCustom && format !== null && format.type !== "text") {
      return refuse("custom tools take the text format only; grammars are not supported.")
    }
    const flatName = flatToolName(namespace ?? undefined, name)
    const known = this.names.get(flatName)
    const kind = isCustom ? "custom" : "function"
    if (known !== undefined && (known.kind !== kind || known.namespace !== namespace)) {
      return refuse(`the name '${flatName.slice(0, 128)}' is taken by another tool.`)
    }
    this.names.set(flatName, { kind, name, namespace })
    this.functions.push(isCustom ? customFunction(tool, flatName) : plainFunction(tool, flatName))
    return null
  }
}

function plainFunction({ description, parameters, strict }: Tool, name: string): FunctionTool {
  return { name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? null }
}

/** A function whose only argument is the text that the tool takes. */
function customFunction({ description }: Tool, name: string): FunctionTool {
  const parameters = {
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
    additionalProperties: false,
  }
  return { name, description: description ?? null, parameters, strict: null }
}

/** Functions always with the same keys (RESPONSES, Decided), other tools as they came. */
function echoTool(tool: Tool): Json {
  // Bodies are parsed JSON.
  if (tool.type !== "function") return tool as { [field: string]: Json }
  const { name, description, parameters, strict } = tool
  return {
    type: "function",
    name: name ?? null,
    description: description ?? null,
    parameters: parameters ?? null,
    strict: strict ?? null,
  }
}

/** `tool_choice` against the tools; what is echoed is the choice as it was resolved. */
export function lowerChoice(
  body: ResponseBody,
  tools: LoweredTools,
  extensions: Extensions,
): Result<LoweredChoice, InvalidRequest> {
  const choice = body.tool_choice ?? "auto"
  const { functions } = tools
  if (typeof choice === "string") {
    if (choice !== "none" && choice !== "auto" && choice !== "required") {
      return refuse(`tool_choice must be none, auto, required or a function, got '${choice.slice(0, 64)}'.`)
    }
    if (functions.length > 0) return ok({ choice: { kind: choice }, functions, echo: choice })
    if (choice === "required") return refuse("tool_choice 'required' needs tools.")
    return ok({ choice: { kind: "none" }, functions, echo: "none" })
  }
  if (choice.type === "allowed_tools" && extensions.includes("allowed_tools")) return lowerAllowed(choice, tools)
  if (choice.type === "allowed_tools") return refuse(`allowed_tools are not supported${unless("allowed_tools")}.`)
  const isCustom = choice.type === "custom"
  if (isCustom && !extensions.includes("custom_tools")) {
    return refuse(`a custom tool_choice is not supported${unless("custom_tools")}.`)
  }
  if (choice.type !== "function" && !isCustom) return refuse("tool_choice must be {type: 'function', name}.")
  const found = findTool(choice, tools)
  if (!found.ok) return found
  const { name, namespace, kind } = found.value.tool
  const echo: { [field: string]: Json } = { type: kind, name }
  if (namespace !== null) echo.namespace = namespace
  return ok({ choice: { kind: "named", name: found.value.flatName }, functions, echo })
}

/** `{type: "allowed_tools", mode, tools}`: the model is shown the tools that it may call, and no others. */
function lowerAllowed(
  choice: { readonly [field: string]: Json },
  tools: LoweredTools,
): Result<LoweredChoice, InvalidRequest> {
  const { mode, tools: listed } = choice
  if (mode !== "auto" && mode !== "required") return refuse("the mode of allowed_tools must be auto or required.")
  if (!Array.isArray(listed)) return refuse("allowed_tools needs a list of tools.")
  const allowed = new Set<string>()
  for (const each of listed) {
    if (!isRecord(each)) return refuse("each of allowed_tools must be {type, name}.")
    const found = findTool(each, tools)
    if (!found.ok) return found
    allowed.add(found.value.flatName)
  }
  const functions = tools.functions.filter(({ name }) => allowed.has(name))
  if (functions.length === 0 && mode === "required") return refuse("allowed_tools of mode required names no tool.")
  const kind = functions.length === 0 ? "none" : mode
  return ok({ choice: { kind }, functions, echo: { ...choice } })
}

/** A tool by its flat name, by name and namespace, or by its bare name where only one namespace has it. */
function findTool(
  asked: { readonly [field: string]: Json },
  tools: LoweredTools,
): Result<{ readonly flatName: string; readonly tool: ToolName }, InvalidRequest> {
  const { type, name, namespace } = asked
  if (typeof name !== "string") return refuse("a tool is chosen by {type: 'function', name}.")
  const shown = name.slice(0, 64)
  const matches = (tool: ToolName | undefined): tool is ToolName => tool !== undefined && tool.kind === type
  const flatName = flatToolName(namespace, name)
  const exact = tools.names.get(flatName)
  if (matches(exact)) return ok({ flatName, tool: exact })
  const bare = [...tools.names].filter(([, tool]) => tool.name === name && matches(tool))
  if (typeof namespace !== "string" && bare.length === 1) return ok({ flatName: bare[0]![0], tool: bare[0]![1] })
  if (typeof namespace !== "string" && bare.length > 1) {
    return refuse(`The function '${shown}' is in more than one namespace; name it with its namespace.`)
  }
  return refuse(`The function '${shown}' was not found in 'tools' parameter.`)
}

function refuse(message: string): Result<never, InvalidRequest> {
  return err(invalid("tool_choice", message))
}
