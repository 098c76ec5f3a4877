/**
 * Writes test/golden/templates: what the reference makes of every real template and conversation of test/prompt, as
 * hashes, and of the probes there. Needs Python: `bun scripts/template-golden.ts`. Run it when a template or conversation is new.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { triedConversations } from "../test/prompt/conversations"
import { realTemplates } from "../test/prompt/template-corpus"
import { type GoldenTemplates, goldenFile, hashOf, hashOfRendering, probeFile } from "../test/prompt/template-golden"
import { askOracle, openOracle } from "../test/prompt/template-oracle"
import { templateProbes } from "../test/prompt/template-probes"

const reference = await openOracle()
const templates = realTemplates()
const contexts = triedConversations.map((each) => each.context)
const answers = await askOracle(templates.map(({ text }) => ({ template: text, contexts })))
const golden: GoldenTemplates = {
  reference,
  conversations: triedConversations.map(({ name, context }) => `${name} ${hashOf(context)}`),
  templates: Object.fromEntries(
    templates.map(({ name, text }, i) => [
      name,
      { template: hashOf(text), rendered: answers[i]!.map(hashOfRendering).join(" ") },
    ]),
  ),
}
mkdirSync(join(goldenFile, ".."), { recursive: true })
writeFileSync(goldenFile, `${JSON.stringify(golden, null, 1)}\n`)

const probes = await askOracle(templateProbes.map(([template, context]) => ({ template, contexts: [context] })))
const answered = templateProbes.map(([template, context], i) => ({ template, context, ...probes[i]![0]! }))
writeFileSync(probeFile, `${JSON.stringify({ reference, answered }, null, 1)}\n`)
console.log(`${templates.length} templates × ${contexts.length} conversations, ${reference}`)
