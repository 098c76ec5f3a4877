/** The reference itself (jinja2 in transformers' environment), asked through scripts/template-oracle.py. */
import { join } from "node:path"
import { parseJsonText } from "../../src/http/json-text"
import type { TemplateClock } from "../../src/prompt/jinja/run"
import { compileTemplate, type TemplateVariables } from "../../src/prompt/template"
import { askScript, prepareEnvironment, run } from "../support/python-environment"

const root = join(import.meta.dir, "../..")
const environment = join(import.meta.dir, ".venv")
/** Its Python. */
export const oraclePython = join(environment, "bin/python")
const script = join(root, "scripts/template-oracle.py")

/** A rendering: its text, or why there is none. */
export type Rendering = { readonly text: string } | { readonly error: string }

/** A template and the JSON texts of variables to render it with. */
export interface RenderingJob {
  readonly template: string
  readonly contexts: readonly string[]
}

/** The moment at which the reference's clock stands still, in local time. */
export const stoppedClock: TemplateClock = { now: () => new Date(2026, 2, 5, 14, 7, 9), elapsed: () => 0 }

/** Makes the environment, once, and tells the versions in it. */
export async function openOracle(): Promise<string> {
  await prepareEnvironment(environment, join(import.meta.dir, "requirements.txt"))
  return (await run(oraclePython, "-B", script, "--version")).trim()
}

/** What the reference makes of each job's contexts, in order. */
export async function askOracle(jobs: readonly RenderingJob[]): Promise<readonly (readonly Rendering[])[]> {
  // The script writes this shape.
  return (await askScript([oraclePython, "-B", script], jobs)) as Rendering[][]
}

/** What we make of them. */
export function renderOurselves({ template, contexts }: RenderingJob): readonly Rendering[] {
  const compiled = compileTemplate(template, { clock: stoppedClock })
  if (!compiled.ok) return contexts.map(() => ({ error: compiled.error.message }))
  return contexts.map((context) => {
    const rendered = compiled.value.render(variablesOf(context))
    return rendered.ok ? { text: rendered.value } : { error: rendered.error.message }
  })
}

/** Variables as a body's reader would give them: exact integers, floats told apart, keys in their order. */
export function variablesOf(context: string): TemplateVariables {
  const parsed = parseJsonText(context, 64)
  if (!parsed.ok) throw new Error(parsed.error.message)
  // Contexts are objects.
  return parsed.value as TemplateVariables
}

/** True when both rendered the same text, or both failed: messages may differ. */
export function isSame(ours: Rendering, theirs: Rendering): boolean {
  if ("error" in ours || "error" in theirs) return "error" in ours && "error" in theirs
  return ours.text === theirs.text
}
