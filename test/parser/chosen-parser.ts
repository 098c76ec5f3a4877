import type { ParserFactory } from "../../src/parser/parser"
import { chooseParser } from "../../src/parser/registry"
import { markers, vocabularyWith } from "./spelled-tokens"

/** A model of which nothing is known. */
export const unknownModel = { name: "m", modelType: "", architectures: [], chatTemplates: {} }

/** The parsers of those names over a vocabulary with these markers; throws why there are none. */
export function factoryOf(reasoning: string, tools: string, known: readonly string[] = markers): ParserFactory {
  const chosen = chooseParser(unknownModel, reasoning, tools, vocabularyWith(known))
  if (!chosen.ok) throw new Error(chosen.error.message)
  return chosen.value
}
