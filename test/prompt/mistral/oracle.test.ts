/** Prompts in Mistral's format, compared with mistral-common itself. A failing case names its seed. */
import { beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { openMistralRenderer } from "../../../src/prompt/mistral/renderer"
import { sentencePieceSetting } from "../../../src/prompt/mistral/setting"
import golden from "../../golden/mistral/prompts.json"
import { missingPython } from "../../support/python-environment"
import { vocabularies } from "../../tokenizer/vocabularies"
import { conversationOfBody } from "./body-conversation"
import { askMistral, askPrompts, type MistralAnswer } from "./oracle"
import { namedRequests, randomRequest } from "./requests"
import { type OpenedTekken, openTekken, versions } from "./vocabularies"

const reason = missingPython()
if (reason !== null) console.log(`mistral oracle: skipped, ${reason}`)

/** Another one each time, so that runs add up. */
const seed = Math.floor(Math.random() * 1_000_000)
const everything = { textBytesMax: Number.MAX_SAFE_INTEGER, tokensMax: null }

function answerOf({ renderer }: OpenedTekken, body: string): readonly number[] | "refused" {
  const rendered = renderer.render(conversationOfBody(body), everything)
  return rendered.ok ? Array.from(rendered.value.tokenIds) : "refused"
}

function plain(answer: MistralAnswer): readonly number[] | "refused" {
  return "refused" in answer ? "refused" : answer
}

describe.skipIf(reason !== null)(`mistral-common, seed ${seed}`, () => {
  beforeAll(async () => {
    const [version] = await askMistral([{ ask: "version" }])
    expect(golden.madeBy).toEndWith(`mistral-common ${version}`)
  }, 600_000)

  test.each([...versions])(
    "makes the same ids of 300 random requests, %s",
    async (version) => {
      const bodies = Array.from({ length: 300 }, (_, i) => randomRequest(seed + i))
      const wanted = await askPrompts(bodies.map((body) => ({ version, body })))
      const own = openTekken(version)
      for (const [i, body] of bodies.entries()) {
        expect(answerOf(own, body), `seed ${seed + i}: ${body}`).toEqual(plain(wanted[i]!))
      }
    },
    120_000,
  )

  test.each(["tekken_240718.json", "tekken_240911.json"])(
    "makes the same ids with its own %s",
    async (name) => {
      const [folder] = (await askMistral([{ ask: "files" }])) as [string]
      const path = join(folder, name)
      const own = openTekken("v3", JSON.parse(readFileSync(path, "utf8")))
      const bodies = [
        ...namedRequests.map(({ body }) => body),
        ...Array.from({ length: 50 }, (_, i) => randomRequest(i)),
      ]
      const wanted = (await askMistral(
        bodies.map((body) => `{"ask":"render","file":${JSON.stringify(path)},"body":${body}}`),
      )) as MistralAnswer[]
      expect(bodies.map((body) => answerOf(own, body))).toEqual(wanted.map(plain))
    },
    120_000,
  )

  test("makes the ids of its SentencePiece model with the tokenizer.json for that", async () => {
    const [folder] = (await askMistral([{ ask: "files" }])) as [string]
    const path = JSON.stringify(join(folder, "mistral_instruct_tokenizer_240323.model.v3"))
    const vocabulary = vocabularies()
      .find(({ name }) => name === "mistral_7b_v3")!
      .open()
    const setting = sentencePieceSetting("tokenizer.model.v3")
    if (!vocabulary.ok || !setting.ok) throw new Error("the converted vocabulary cannot be opened")
    const renderer = openMistralRenderer(vocabulary.value, setting.value)
    if (!renderer.ok) throw new Error(renderer.error.message)
    const own = { tokenizer: vocabulary.value, renderer: renderer.value }
    const bodies = [
      ...namedRequests.map(({ body }) => body),
      ...Array.from({ length: 100 }, (_, i) => randomRequest(seed + i)),
    ]
    // Its bindings take no half characters.
    const whole = bodies.filter((body) => !body.includes("ud800"))
    const wanted = await askMistral(whole.map((body) => `{"ask":"render","file":${path},"body":${body}}`))
    expect(whole.map((body) => answerOf(own, body))).toEqual((wanted as MistralAnswer[]).map(plain))
  }, 120_000)
})
