/** Prompts in the Harmony format, compared with openai-harmony itself. A failing case names its seed. */
import { beforeAll, describe, expect, test } from "bun:test"
import { parseJsonText } from "../../../src/http/json-text"
import { floatText } from "../../../src/prompt/harmony/json-text"
import { type HarmonyMessage, harmonyMessage } from "../../../src/prompt/harmony/message"
import { openHarmonyRenderer } from "../../../src/prompt/harmony/renderer"
import { schemaText } from "../../../src/prompt/harmony/schema-text"
import { HarmonyWriter, harmonyVocabulary } from "../../../src/prompt/harmony/tokens"
import type { PromptRenderer } from "../../../src/prompt/renderer"
import { harmonyTokens } from "../../../src/tokenizer/extra-tokens"
import { openO200k } from "../../../src/tokenizer/open"
import type { Tokenizer } from "../../../src/tokenizer/tokenizer"
import { missingPython } from "../../support/python-environment"
import { seededRandom } from "../../support/random"
import { day, objectSchema, randomConversation } from "./conversations"
import { askHarmony } from "./oracle"

const reason = missingPython()
if (reason !== null) console.log(`harmony oracle: skipped, ${reason}`)

/** Another one each time, so that runs add up. */
const seed = Math.floor(Math.random() * 1_000_000)
const everything = { textBytesMax: Number.MAX_SAFE_INTEGER, tokensMax: null }

describe.skipIf(reason !== null)(`openai-harmony, seed ${seed}`, () => {
  let tokenizer: Tokenizer
  let renderer: PromptRenderer

  beforeAll(async () => {
    tokenizer = await openO200k(harmonyTokens())
    const opened = openHarmonyRenderer(tokenizer, {
      startDate: day,
      instructionsIn: "developer",
      now: () => new Date(0),
    })
    if (!opened.ok) throw new Error(opened.error.message)
    renderer = opened.value
    expect(await askHarmony([{ ask: "version" }])).toEqual(["0.0.8"])
  }, 600_000)

  test("makes the same ids of 400 random conversations", async () => {
    const conversations = Array.from({ length: 400 }, (_, i) => randomConversation(seed + i))
    const wanted = await askHarmony(conversations.map((conversation) => ({ ask: "render", conversation, date: day })))
    for (const [i, conversation] of conversations.entries()) {
      const rendered = renderer.render(conversation, everything)
      if (!rendered.ok) throw new Error(`seed ${seed + i}: ${rendered.error.kind}`)
      const text = (ids: readonly number[]): string => tokenizer.decode(Uint32Array.from(ids), false)
      const ids = wanted[i] as number[]
      expect(rendered.value.text, `seed ${seed + i}`).toBe(text(ids))
      expect(Array.from(rendered.value.tokenIds), `seed ${seed + i}`).toEqual(ids)
    }
  }, 120_000)

  test("writes the same types for 2000 random schemas", async () => {
    const schemas = Array.from({ length: 2_000 }, (_, i) => objectSchema(seed + i))
    const wanted = await askHarmony(schemas.map((schema) => ({ ask: "schema", schema })))
    for (const [i, schema] of schemas.entries()) {
      const ours = `type f = (_: ${schemaText(schema, "")}) => any;`
      expect((wanted[i] as string).includes(ours), JSON.stringify([schema, ours, wanted[i]], null, 1)).toBe(true)
    }
  }, 120_000)

  test("keeps floats, large integers and the order of keys as they were written", async () => {
    const values = [
      "1.0",
      "-0.0",
      "-0",
      "1e2",
      "9007199254740993",
      "18446744073709551616",
      '{"b":[2.0,2],"10":1,"2":0.50}',
    ]
    const written = values.map(
      (value) => `{"type":"object","properties":{"10":{"default":${value}},"2":{"type":"string"},"a":{}}}`,
    )
    const wanted = await askHarmony(written.map((schema) => `{"ask":"schema","schema":${schema}}`))
    for (const [i, schema] of written.entries()) {
      const parsed = parseJsonText(schema, 100)
      if (!parsed.ok) throw new Error(parsed.error.message)
      expect(wanted[i] as string).toContain(`type f = (_: ${schemaText(parsed.value, "")}) => any;`)
    }
  })

  test("writes the same ids for messages with any header", async () => {
    const random = seededRandom(seed)
    const of = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
    const messages: HarmonyMessage[] = Array.from({ length: 300 }, () => {
      const role = of(["user", "assistant", "tool"] as const)
      return harmonyMessage(role, of([[], ["x"], ["Hel", "lo"], ["<|end|>", "\n"]]), {
        name: role === "tool" ? of(["functions.f", "python", "browser.search"]) : of([null, null, "Ann", "a b"]),
        recipient: of([null, "all", "assistant", "functions.f", "python"]),
        channel: of([null, "analysis", "commentary", "final", "other"]),
        contentType: of([null, "json", "<|constrain|>json", "<|constrain|>", "code"]),
      })
    })
    const wanted = await askHarmony(messages.map((message) => ({ ask: "message", message })))
    const vocabulary = harmonyVocabulary(tokenizer)
    if (!vocabulary.ok) throw new Error(vocabulary.error.message)
    for (const [i, message] of messages.entries()) {
      const writer = new HarmonyWriter(vocabulary.value, everything)
      writer.message(message)
      const written = writer.finish()
      if (!written.ok) throw new Error(written.error.kind)
      expect(Array.from(written.value.tokenIds), JSON.stringify(message)).toEqual(wanted[i] as number[])
    }
  }, 60_000)

  test("prints the same digits of 2000 random numbers", async () => {
    const random = seededRandom(seed)
    // The reference reads some numbers of more digits as their neighbours.
    const numbers = Array.from({ length: 2_000 }, () =>
      Number(((random() - 0.5) * 10 ** Math.floor(random() * 22 - 9)).toPrecision(1 + Math.floor(random() * 9))),
    )
    const fractions = numbers.filter((number) => !Number.isInteger(number))
    const wanted = await askHarmony(
      fractions.map((value) => ({ ask: "schema", schema: { type: "object", properties: { x: { default: value } } } })),
    )
    const digits = wanted.map((text) => /default: (.*)$/m.exec(text as string)?.[1])
    expect(digits).toEqual(fractions.map(floatText))
  }, 60_000)
})
