/**
 * Chat templates: text compiled once per model, rendered per request. The lexer and parser are npm `@huggingface/jinja`'s;
 * evaluation (`jinja/`) follows the reference, which is Jinja 3.1 in the environment of transformers.
 */
import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { loopsOverContent } from "./jinja/content-loop"
import { globalScope, templateValue } from "./jinja/globals"
import { Interpreter, Scope } from "./jinja/interpreter"
import { type Node, nodesOf, parseTemplate } from "./jinja/syntax"

/** A template text that cannot be read. */
export interface TemplateUnusable {
  readonly kind: "template_unusable"
  readonly message: string
}

/** A template that would not render these variables: its own `raise_exception` message, or what went wrong in it. */
export interface TemplateRefused {
  readonly kind: "template_refused"
  readonly message: string
}

/** How message content reaches a template: one text, or the list of parts. */
export type ContentFormat = "string" | "openai"

/** Variables by name. `null` is Python's None; a name that is absent is undefined in the template. */
export interface TemplateVariables {
  readonly [name: string]: Json
}

/** A compiled template. Holds no state between renderings. */
export interface ChatTemplate {
  /** What `--chat-template-content-format auto` means for it: `openai` when it loops over a message's content. */
  readonly contentFormat: ContentFormat
  /** True when its text names the developer role in quotes, so that such messages keep their role. */
  readonly knowsDeveloper: boolean
  /** Whether the template reads a variable of that name. */
  reads(name: string): boolean
  /** The prompt's text, or the template's refusal. */
  render(variables: TemplateVariables): Result<string, TemplateRefused>
}

/** Compiles a template; `now` is the clock behind `strftime_now` (local time). */
export function compileTemplate(
  text: string,
  now: () => Date = () => new Date(),
): Result<ChatTemplate, TemplateUnusable> {
  try {
    return ok(new CompiledTemplate(text, parseTemplate(text), now))
  } catch (cause) {
    return err({ kind: "template_unusable", message: `the chat template cannot be read: ${messageOf(cause)}` })
  }
}

/**
 * The template text to use: the request's own, else `tool_use` when there are tools and the model has one, else
 * `default`, else the only one there is; null when the model has none. Source: PARSERS 6.
 */
export function chooseTemplate(
  templates: { readonly [name: string]: string },
  requestTemplate: string | null,
  hasTools: boolean,
): string | null {
  if (requestTemplate !== null) return requestTemplate
  if (hasTools && templates.tool_use !== undefined) return templates.tool_use
  if (templates.default !== undefined) return templates.default
  const [only, ...more] = Object.values(templates)
  return more.length === 0 ? (only ?? null) : null
}

class CompiledTemplate implements ChatTemplate {
  readonly contentFormat: ContentFormat
  readonly knowsDeveloper: boolean
  private readonly nodes: readonly Node[]
  private readonly names: ReadonlySet<string>
  private readonly now: () => Date

  constructor(text: string, nodes: readonly Node[], now: () => Date) {
    this.nodes = nodes
    this.now = now
    this.names = namesRead(nodes)
    this.contentFormat = loopsOverContent(nodes) ? "openai" : "string"
    this.knowsDeveloper = text.includes("'developer'") || text.includes('"developer"')
  }

  reads(name: string): boolean {
    return this.names.has(name)
  }

  render(variables: TemplateVariables): Result<string, TemplateRefused> {
    const scope = new Scope(globalScope(this.now))
    try {
      for (const name of Object.keys(variables)) scope.set(name, templateValue(variables[name]))
      return ok(new Interpreter().render(this.nodes, scope))
    } catch (cause) {
      // Includes running out of stack in a macro that calls itself: the template's doing, whichever way it fails.
      return err({ kind: "template_refused", message: messageOf(cause) })
    }
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

/** Every name the template looks up as a variable, whether or not it also sets it. */
function namesRead(nodes: readonly Node[]): Set<string> {
  const names = new Set<string>()
  // Names of attributes, arguments, filters and tests are identifiers too; their parents come first.
  const others = new Set<Node>()
  for (const node of nodesOf(nodes)) {
    if (node.type === "Identifier" && !others.has(node)) names.add(node.value)
    else if (node.type === "MemberExpression" && !node.computed) others.add(node.property)
    else if (node.type === "KeywordArgumentExpression") others.add(node.key)
    else if (node.type === "TestExpression") others.add(node.test)
    else if (node.type === "FilterExpression" || node.type === "FilterStatement") {
      others.add(node.filter.type === "Identifier" ? node.filter : node.filter.callee)
    }
  }
  return names
}
