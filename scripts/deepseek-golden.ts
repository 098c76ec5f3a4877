/**
 * Makes test/golden/deepseek/prompts.json: what vLLM's encoders say of the bodies in test/prompt/deepseek/bodies.ts, so
 * that tests compare with it where there is no Python. Run: `npx bun scripts/deepseek-golden.ts`
 */
import { join } from "node:path"
import { randomBody, versions, writtenBodies, writtenMessages } from "../test/prompt/deepseek/bodies"
import { answerHash, randomBodies } from "../test/prompt/deepseek/hashes"
import { askDeepseek, type DeepseekAnswer, reference } from "../test/prompt/deepseek/oracle"

const written = writtenBodies()
const plain = [...writtenMessages].map(([name, messages]) => ({ name, body: `{"messages":${messages}}` }))
const random = Array.from({ length: randomBodies }, (_, i) => randomBody(i + 1))
const prompts: { [version: string]: object } = {}
for (const version of versions) {
  const ask = (bodies: readonly string[]): Promise<readonly DeepseekAnswer[]> =>
    askDeepseek(bodies.map((body) => ({ version, body })))
  const texts = await ask(plain.map(({ body }) => body))
  prompts[version] = {
    writtenHashes: (await ask(written)).map(answerHash).join(" "),
    // Seeds from 1 on.
    randomHashes: (await ask(random)).map(answerHash).join(" "),
    texts: Object.fromEntries(plain.map(({ name }, i) => [name, texts[i]])),
  }
}
const folder = join(import.meta.dir, "../test/golden/deepseek")
const madeBy = `scripts/deepseek-golden.ts, ${reference}`
await Bun.write(join(folder, "prompts.json"), `${JSON.stringify({ madeBy, ...prompts }, null, 1)}\n`)
