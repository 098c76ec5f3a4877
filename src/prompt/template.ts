/**
 * Chat templates: text compiled once per model, rendered per request. The reference is Jinja 3.1 in the environment of
 * transformers; `jinja/` parses and evaluates by its rules.
 */
import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { loopsOverContent, namesRead } from "./jinja/content-loop"
import { Context } from "./jinja/frame"
import { globalVariables } from "./jinja/globals"
import { JsonVariables } from "./jinja/json-value"
import type { Program } from "./jinja/own-blocks"
import { parseTemplate } from "./jinja/parser"
import { Run, systemClock, type TemplateClock, type TemplateLimits, templateLimits } from "./jinja/run"
import { compileProgram } from "./jinja/statement-compiler"
import type { Statement } from "./jinja/syntax"
import type { Value } from "./jinja/value"

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

/** What a template is compiled with: the clock behind `strftime_now` (local time), and what a rendering may cost. */
export interface TemplateSurroundings {
  readonly clock?: TemplateClock
  readonly limits?: TemplateLimits
}

/** Compiles a template. */
export function compileTemplate(
  text: string,
  { clock = systemClock, limits = templateLimits }: TemplateSurroundings = {},
): Result<ChatTemplate, TemplateUnusable> {
  try {
    return ok(new CompiledTemplate(text, parseTemplate(text), clock, limits))
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
  private readonly program: Program
  private readonly names: ReadonlySet<string>
  private readonly globals: ReadonlyMap<string, Value>
  private readonly clock: TemplateClock
  private readonly limits: TemplateLimits

  constructor(text: string, statements: readonly Statement[], clock: TemplateClock, limits: TemplateLimits) {
    this.program = compileProgram(statements)
    this.names = namesRead(statements)
    this.globals = globalVariables(clock)
    this.contentFormat = loopsOverContent(statements) ? "openai" : "string"
    this.knowsDeveloper = text.includes("'developer'") || text.includes('"developer"')
    this.clock = clock
    this.limits = limits
  }

  reads(name: string): boolean {
    return this.names.has(name)
  }

  render(variables: TemplateVariables): Result<string, TemplateRefused> {
    try {
      const context = new Context(new JsonVariables(variables), this.globals)
      return ok(this.program(context, new Run(this.clock, this.limits)))
    } catch (cause) {
      // Includes running out of stack or memory: the template's doing, whichever way it fails.
      return err({ kind: "template_refused", message: messageOf(cause) })
    }
  }
}

function messageOf(cause: unknown): string {
  if (cause instanceof RangeError) return `the template asks for too much: ${cause.message}`
  return cause instanceof Error ? cause.message : String(cause)
}
