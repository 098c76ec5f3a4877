/**
 * Makes test/golden/mistral/*.json: what mistral-common says of requests in each version of its format, so that tests
 * compare with it where there is no Python. Run: `npx bun scripts/mistral-golden.ts`
 */
import { join } from "node:path"
import { idsHash } from "../test/prompt/harmony/hashes"
import { askMistral, askPrompts, type MistralAnswer } from "../test/prompt/mistral/oracle"
import { namedRequests, randomRequest } from "../test/prompt/mistral/requests"
import { type Version, versions } from "../test/prompt/mistral/vocabularies"

const randomCount = 200
const folder = join(import.meta.dir, "../test/golden/mistral")
const [version] = await askMistral([{ ask: "version" }])
const madeBy = `scripts/mistral-golden.ts, mistral-common ${version}`

const [ranks] = (await askMistral([{ ask: "vocabulary", size: 3000 }])) as [{ pattern: string; tokens: string[] }]
const vocabulary = { madeBy, pattern: ranks.pattern, tokens: ranks.tokens.join(" ") }
const path = join(folder, "vocabulary.json")
if ((await Bun.file(path).text()) !== `${JSON.stringify(vocabulary, null, 1)}\n`) {
  await write("vocabulary", vocabulary)
  console.log("the vocabulary is another one now: run this again, since its readers have the old one")
  process.exit(0)
}

const named: { [version: string]: { [name: string]: string } } = {}
const random: { [version: string]: string } = {}
for (const each of versions) {
  const answers = await askPrompts(namedRequests.map(({ body }) => ({ version: each, body })))
  named[each] = Object.fromEntries(answers.map((answer, i) => [namedRequests[i]!.name, spelled(answer)]))
  random[each] = (await askPrompts(randomOf(each)))
    .map((answer) => ("refused" in answer ? "refused" : idsHash(answer)))
    .join(" ")
}
// Ids, or the kind of the reference's error. Seeds from 1 on.
await write("prompts", { madeBy, named, random })

function randomOf(version: Version): { version: Version; body: string }[] {
  return Array.from({ length: randomCount }, (_, i) => ({ version, body: randomRequest(i + 1) }))
}

function spelled(answer: MistralAnswer): string {
  return "refused" in answer ? `refused: ${answer.refused.split(":")[0]}` : answer.join(" ")
}

async function write(name: string, value: object): Promise<void> {
  await Bun.write(join(folder, `${name}.json`), `${JSON.stringify(value, null, 1)}\n`)
}
