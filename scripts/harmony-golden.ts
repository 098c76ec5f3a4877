/**
 * Makes test/golden/harmony/*.json: what openai-harmony says of random conversations, schemas and replies, so that tests
 * compare with it where there is no Python. Run: `npx bun scripts/harmony-golden.ts`
 */
import { join } from "node:path"
import { harmonyTokens } from "../src/tokenizer/extra-tokens"
import { openO200k } from "../src/tokenizer/open"
import { randomReply } from "../test/parser/harmony-replies"
import { day, objectSchema, randomConversation } from "../test/prompt/harmony/conversations"
import { idsHash, textHash } from "../test/prompt/harmony/hashes"
import { askHarmony } from "../test/prompt/harmony/oracle"

const seeds = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1)
const folder = join(import.meta.dir, "../test/golden/harmony")
const tokenizer = await openO200k(harmonyTokens())
const [version] = await askHarmony([{ ask: "version" }])
const madeBy = `scripts/harmony-golden.ts, openai-harmony ${version}`

const conversations = seeds(300).map(randomConversation)
const rendered = (await askHarmony(
  conversations.map((conversation) => ({ ask: "render", conversation, date: day })),
)) as number[][]
await write("prompts", {
  madeBy,
  // Seeds from 1 on.
  idsHashes: rendered.map(idsHash).join(" "),
  texts: rendered.slice(0, 12).map((ids) => tokenizer.decode(Uint32Array.from(ids), false)),
})

const schemas = seeds(500).map(objectSchema)
const types = (await askHarmony(schemas.map((schema) => ({ ask: "schema", schema })))) as string[]
const typeOf = (text: string): string =>
  /type f = \(_: ([\s\S]*)\) => any;\n\n\} \/\/ namespace functions/.exec(text)![1]!
await write("schemas", {
  madeBy,
  textHashes: types.map(typeOf).map(textHash).join(" "),
  texts: types.slice(0, 20).map(typeOf),
})

const replies = seeds(200).map((seed) => randomReply(tokenizer, seed))
const parsed = (await askHarmony(replies.map((ids) => ({ ask: "parse", ids, role: "assistant" })))) as {
  readonly messages: unknown
  readonly error: string | null
}[]
await write("replies", {
  madeBy,
  // What it refuses has no right answer.
  replies: parsed.flatMap(({ messages, error }, i) =>
    error === null ? [{ ids: replies[i]!.join(" "), messages }] : [],
  ),
})

async function write(name: string, value: object): Promise<void> {
  await Bun.write(join(folder, `${name}.json`), `${JSON.stringify(value, null, 1)}\n`)
}
