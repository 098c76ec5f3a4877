/**
 * The reference itself, openai-harmony, in a virtual environment that is made once beside this file. It would fetch its
 * vocabulary; the ranks of npm `tiktoken` are the same, in another format.
 */
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { askScript, prepareEnvironment } from "../../support/python-environment"

const root = join(import.meta.dir, "../../..")
const environment = join(import.meta.dir, ".venv")
const ranksFolder = join(environment, "ranks")

/** A message as the reference read it. */
export interface ParsedMessage {
  readonly role: string
  readonly name: string | null
  readonly channel: string | null
  readonly recipient: string | null
  readonly contentType: string | null
  readonly text: string
}

/** Answers questions (scripts/harmony-oracle.py), many at once; a text is a question in JSON. */
export async function askHarmony(questions: readonly (object | string)[]): Promise<unknown[]> {
  await prepareEnvironment(environment, join(import.meta.dir, "requirements.txt"))
  await writeRanks()
  const command = [join(environment, "bin/python"), "-B", join(root, "scripts/harmony-oracle.py")]
  return askScript(command, questions, { TIKTOKEN_ENCODINGS_BASE: ranksFolder })
}

/** Lines of `base64 rank`, whose digest the reference checks. */
async function writeRanks(): Promise<void> {
  const path = join(ranksFolder, "o200k_base.tiktoken")
  if (existsSync(path)) return
  mkdirSync(ranksFolder, { recursive: true })
  const { default: file } = await import("tiktoken/encoders/o200k_base.json")
  const lines: string[] = []
  for (const line of file.bpe_ranks.split("\n")) {
    const [, first, ...tokens] = line.split(" ")
    for (const [index, token] of tokens.entries()) lines.push(`${token} ${Number(first) + index}\n`)
  }
  await Bun.write(path, lines.join(""))
}
