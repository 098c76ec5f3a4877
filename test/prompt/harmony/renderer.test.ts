/** Prompts in the Harmony format: what the reference said of random ones (test/golden/harmony), and our own rules. */
import { beforeAll, describe, expect, test } from "bun:test"
import type { Conversation, Message } from "../../../src/ir/conversation"
import { harmonyConversation } from "../../../src/prompt/harmony/conversation"
import { floatText, jsonText } from "../../../src/prompt/harmony/json-text"
import { openHarmonyRenderer } from "../../../src/prompt/harmony/renderer"
import { schemaText } from "../../../src/prompt/harmony/schema-text"
import type { HarmonySetting } from "../../../src/prompt/harmony/setting"
import type { PromptRenderer } from "../../../src/prompt/renderer"
import { harmonyTokens } from "../../../src/tokenizer/extra-tokens"
import { openO200k } from "../../../src/tokenizer/open"
import type { Tokenizer } from "../../../src/tokenizer/tokenizer"
import prompts from "../../golden/harmony/prompts.json"
import schemas from "../../golden/harmony/schemas.json"
import { conversationOf } from "../../support/conversation"
import { vocabularies } from "../../tokenizer/vocabularies"
import { day, objectSchema, randomConversation } from "./conversations"
import { idsHash, textHash } from "./hashes"

const setting: HarmonySetting = { startDate: day, instructionsIn: "developer", now: () => new Date(2026, 0, 9, 23, 59) }
const everything = { textBytesMax: Number.MAX_SAFE_INTEGER, tokensMax: null }

let tokenizer: Tokenizer
let renderer: PromptRenderer
beforeAll(async () => {
  tokenizer = await openO200k(harmonyTokens())
  const opened = openHarmonyRenderer(tokenizer, setting)
  if (!opened.ok) throw new Error(opened.error.message)
  renderer = opened.value
})

function textOf(given: Conversation, used = renderer): string {
  const rendered = used.render(given, everything)
  if (!rendered.ok) throw new Error(rendered.error.kind)
  return rendered.value.text
}

describe("the reference's own output", () => {
  test("is made of the same ids for 300 conversations", () => {
    const hashes = prompts.idsHashes.split(" ").map((_, i) => {
      const rendered = renderer.render(randomConversation(i + 1), everything)
      return rendered.ok ? idsHash(rendered.value.tokenIds) : rendered.error.kind
    })
    expect(hashes.join(" ")).toBe(prompts.idsHashes)
  })

  test("reads the same", () => {
    expect(prompts.texts.map((_, i) => textOf(randomConversation(i + 1)))).toEqual(prompts.texts)
  })

  test("has the same types for 500 schemas", () => {
    const texts = schemas.textHashes.split(" ").map((_, i) => schemaText(objectSchema(i + 1), ""))
    expect(texts.slice(0, schemas.texts.length)).toEqual(schemas.texts)
    expect(texts.map(textHash).join(" ")).toBe(schemas.textHashes)
  })
})

const published = vocabularies().find(({ name }) => name === "gptoss")

test.skipIf(published === undefined || published.missing !== null)(
  "the published vocabulary gives the ids of the built-in one",
  () => {
    const opened = published!.open()
    if (!opened.ok) throw new Error(opened.error.message)
    const other = openHarmonyRenderer(opened.value, setting)
    if (!other.ok) throw new Error(other.error.message)
    for (let seed = 1; seed <= 100; seed++) {
      const conversation = randomConversation(seed)
      expect(other.value.render(conversation, everything)).toEqual(renderer.render(conversation, everything))
    }
  },
)

describe("instructions", () => {
  test("stand in the system message where the server says so, then and later", () => {
    const opened = openHarmonyRenderer(tokenizer, { ...setting, instructionsIn: "system" })
    if (!opened.ok) throw new Error(opened.error.message)
    const later = conversationOf([
      { role: "system", content: "A" },
      { role: "user", content: "x" },
      { role: "system", content: "B" },
      { role: "developer", content: "C" },
    ])
    const system = (text: string) =>
      `<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n${text}\nKnowledge cutoff: 2024-06\n` +
      `Current date: ${day}\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>`
    expect(textOf(later, opened.value)).toBe(
      `${system("A")}<|start|>user<|message|>x<|end|>${system("B")}` +
        "<|start|>developer<|message|># Instructions\n\nC<|end|><|start|>assistant",
    )
  })
})

describe("today", () => {
  test("is the local day where nothing else is said", () => {
    const opened = openHarmonyRenderer(tokenizer, { ...setting, startDate: null })
    if (!opened.ok) throw new Error(opened.error.message)
    expect(textOf(conversationOf([{ content: "x" }]), opened.value)).toContain("\nCurrent date: 2026-01-09\n")
  })
})

describe("a tool's message", () => {
  test("takes its function's name from its call, or says it itself", () => {
    const named = conversationOf([{ role: "tool", content: "1", name: "f" }])
    expect(textOf(named)).toContain("<|start|>functions.f to=assistant<|channel|>commentary<|message|>1<|end|>")
    expect(textOf(conversationOf([{ role: "function", content: "1", name: "functions.g" }]))).toContain(
      "<|start|>functions.g to=assistant",
    )
  })

  test("is refused without a name", () => {
    expect(renderer.render(conversationOf([{ role: "tool", content: "1", toolCallId: "c" }]), everything)).toEqual({
      ok: false,
      error: { kind: "conversation_refused", message: "No call message found for c", param: null },
    })
  })
})

test("arguments that came as an object are JSON without blanks", () => {
  const call = { id: "c", name: "f", arguments: { a: [1, 0.5, 2n ** 60n], é: "\n" } }
  expect(textOf(conversationOf([{ role: "assistant", toolCalls: [call] }]))).toContain(
    '<|message|>{"a":[1,0.5,1152921504606846976],"é":"\\n"}<|call|>',
  )
})

describe("a last message to go on with", () => {
  const goOn = (last: Partial<Message>) =>
    harmonyConversation(conversationOf([{ content: "x" }, last], { continueFinalMessage: true }), setting)

  test("keeps the reasoning that led to it, but not that of answers before", () => {
    const made = harmonyConversation(
      conversationOf(
        [
          { role: "assistant", content: "a", reasoning: "old" },
          { content: "x" },
          { role: "assistant", content: "b", reasoning: "new" },
        ],
        { continueFinalMessage: true },
      ),
      setting,
    )
    expect(made.ok && made.value.messages.map(({ channel, texts }) => [channel, ...texts]).slice(1)).toEqual([
      ["final", "a"],
      [null, "x"],
      ["analysis", "new"],
      ["final", "b"],
    ])
    expect(made.ok && made.value.isOpen).toBe(true)
  })

  test("is one of the assistant with text or reasoning, and no call", () => {
    expect(goOn({ role: "assistant", reasoning: "so" }).ok).toBe(true)
    const call = { id: "c", name: "f", arguments: {} }
    for (const last of [
      { role: "user", content: "y" },
      { role: "assistant" },
      { role: "assistant", toolCalls: [call] },
    ]) {
      expect(goOn(last)).toMatchObject({ ok: false, error: { kind: "conversation_refused", param: null } })
    }
  })
})

test("a vocabulary without the format's tokens is refused", async () => {
  const plain = await openO200k({ special: { "<|start|>": 200_006 }, added: {} })
  const opened = openHarmonyRenderer(plain, setting)
  expect(opened).toEqual({
    ok: false,
    error: {
      kind: "renderer_unusable",
      message: "the vocabulary has no token <|channel|>, which prompts in the Harmony format need",
    },
  })
})

test("numbers are printed with the fewest digits, floats with a point or an exponent", () => {
  expect([1, -1.5, 1e15, 1e16, 1e21, 1.5e300, 1e-5, 1.25e-6, 1e-7, -0, 123456.789].map(floatText)).toEqual([
    ...["1.0", "-1.5", "1000000000000000.0", "1e16", "1e21", "1.5e300", "0.00001", "1.25e-6", "1e-7", "-0.0"],
    "123456.789",
  ])
  expect([1, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 70n), -0].map(jsonText)).toEqual([
    ...["1", "18446744073709551615", "1.8446744073709552e19", "-1.1805916207174113e21", "0"],
  ])
})
