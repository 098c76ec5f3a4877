/**
 * Writes test/golden/templates/hashes.json: what the reference makes of every real template and conversation of
 * test/prompt. Needs Python: `bun scripts/template-golden.ts`. Run it when a template or conversation is new.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { triedConversations } from "../test/prompt/conversations"
import { realTemplates } from "../test/prompt/template-corpus"
import { type GoldenTemplates, goldenFile, hashOf, hashOfRendering } from "../test/prompt/template-golden"
import { askOracle, openOracle } from "../test/prompt/template-oracle"

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
console.log(`${templates.length} templates × ${contexts.length} conversations, ${reference}`)
