/** Answers of real models with what they mean, collected from public reports (the rows of the families built here). */
import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { chooseParser, reasoningParserNames, toolParserNames } from "../../src/parser/registry"
import { everySplit } from "../support/every-split"
import type { ParsedPart } from "../support/recording-sink"
import { markers, parse, parserFor, promptOf, tokensOf, vocabularyWith } from "./spelled-tokens"

const file = join(import.meta.dir, "../../../shared/cases/parsers.jsonl")

interface Meaning {
  readonly reasoning: string | null
  readonly content: string | null
  readonly tool_calls: readonly { readonly name: string; readonly arguments: unknown }[]
}

interface Case {
  readonly id: string
  readonly "parser/model": { readonly tool: string | null; readonly reasoning: string | null }
  readonly input: { readonly text: string; readonly prompt_tail?: string | null }
  readonly expected: Meaning
  readonly accept?: readonly Meaning[] | null
}

const cases = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(readCase) : []
const ours = cases.filter(
  ({ "parser/model": parser }) =>
    reasoningParserNames.includes(parser.reasoning ?? "none") && toolParserNames.includes(parser.tool ?? "none"),
)

function readCase(line: string): Case {
  // The file is made by a script and has this shape.
  return JSON.parse(line) as Case
}

describe.skipIf(!existsSync(file))("reported answers", () => {
  test("are there for the families built here", () => {
    expect(ours.length).toBeGreaterThan(10)
  })
  for (const each of ours) {
    test(each.id, () => {
      const { tool, reasoning } = each["parser/model"]
      const profile = { name: "m", modelType: "", architectures: [], chatTemplates: {} }
      const factory = chooseParser(profile, reasoning ?? "none", tool ?? "none", vocabularyWith(markers))
      if (!factory.ok) throw new Error(factory.error.message)
      const tokens = tokensOf(each.input.text)
      const accepted = [each.expected, ...(each.accept ?? [])].map((meaning) => normal(meaning))
      for (const ends of everySplit(tokens.length)) {
        const parser = parserFor(factory.value, { promptTokenIds: promptOf(each.input.prompt_tail ?? "") })
        expect(accepted).toContainEqual(normal(meaningOf(parse(parser, tokens, ends).parts)))
      }
    })
  }
})

function meaningOf(parts: readonly ParsedPart[]): Meaning {
  let reasoning = ""
  let content = ""
  const calls: { name: string; arguments: unknown }[] = []
  for (const part of parts) {
    if (part.kind === "call") calls.push({ name: part.name, arguments: argumentsOf(part.arguments) })
    else if (part.kind === "reasoning") reasoning += part.text
    else content += part.text
  }
  return { reasoning, content, tool_calls: calls }
}

function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return `RAW:${text}`
  }
}

/** The rows compare texts without white space around them, and nothing equals null. */
function normal(meaning: Meaning): Meaning {
  return {
    reasoning: (meaning.reasoning ?? "").trim(),
    content: (meaning.content ?? "").trim(),
    tool_calls: meaning.tool_calls.map((call) => ({ name: call.name, arguments: call.arguments })),
  }
}
