/** The reference itself, mistral-common, in the environment of the reference tokenizers (test/vocab). */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { askScript } from "../../support/python-environment"
import { prepareReferences, python } from "../../tokenizer/vocabularies"
import { tekkenFile, type Version, versions } from "./vocabularies"

/** What the reference makes of a request: ids, or why it refuses it. */
export type MistralAnswer = readonly number[] | { readonly refused: string }

/** Answers questions (scripts/mistral-oracle.py), many at once; a text is a question in JSON. */
export async function askMistral(questions: readonly (object | string)[]): Promise<unknown[]> {
  await prepareReferences()
  return askScript([python, "-B", join(import.meta.dir, "../../../scripts/mistral-oracle.py")], questions)
}

/** Prompts of requests, each a version and a chat completion's body in JSON. */
export async function askPrompts(
  requests: readonly { readonly version: Version; readonly body: string }[],
): Promise<MistralAnswer[]> {
  const folder = mkdtempSync(join(tmpdir(), "mistral-oracle-"))
  try {
    for (const version of versions) {
      await Bun.write(join(folder, `tekken_${version}.json`), JSON.stringify(tekkenFile(version)))
    }
    const questions = requests.map(({ version, body }) => {
      const file = JSON.stringify(join(folder, `tekken_${version}.json`))
      return `{"ask":"render","file":${file},"body":${body}}`
    })
    // What the script prints for such a question.
    return (await askMistral(questions)) as MistralAnswer[]
  } finally {
    rmSync(folder, { recursive: true })
  }
}
