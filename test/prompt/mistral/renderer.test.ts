/** Prompts in Mistral's format: what the reference said of requests (test/golden/mistral), and our own rules. */
import { describe, expect, test } from "bun:test"
import type { Json } from "../../../src/ir/conversation"
import { openMistralRenderer } from "../../../src/prompt/mistral/renderer"
import { readMistralSetting, sentencePieceSetting } from "../../../src/prompt/mistral/setting"
import type { PromptRenderer } from "../../../src/prompt/renderer"
import { openVocabularyFile } from "../../../src/tokenizer/open"
import golden from "../../golden/mistral/prompts.json"
import { conversationOf } from "../../support/conversation"
import { idsHash } from "../harmony/hashes"
import { conversationOfBody } from "./body-conversation"
import { namedRequests, randomRequest } from "./requests"
import { openTekken, tekkenFile, type Version, versions } from "./vocabularies"

const everything = { textBytesMax: Number.MAX_SAFE_INTEGER, tokensMax: null }

const opened = new Map(versions.map((version) => [version, openTekken(version)]))

function rendererOf(version: Version): PromptRenderer {
  return opened.get(version)!.renderer
}

function idsOf(version: Version, body: string): Uint32Array | null {
  const rendered = rendererOf(version).render(conversationOfBody(body), everything)
  return rendered.ok ? rendered.value.tokenIds : null
}

/** What is said of a conversation that is refused. */
function refusal(version: Version, conversation: Parameters<PromptRenderer["render"]>[0]): unknown {
  const rendered = rendererOf(version).render(conversation, everything)
  return rendered.ok ? rendered.value.text : rendered.error
}

describe.each([...versions])("the reference's own output, %s", (version) => {
  test("is made of the same ids, and what it refuses is refused", () => {
    const wanted: { readonly [name: string]: string } = golden.named[version]
    const ours = namedRequests.map(({ name, body }) => [name, idsOf(version, body)?.join(" ") ?? "refused"])
    const theirs = namedRequests.map(({ name }) => [name, String(wanted[name]).replace(/^refused.*/, "refused")])
    expect(ours).toEqual(theirs)
  })

  test("is made of the same ids for 200 random requests", () => {
    const hashes = golden.random[version].split(" ").map((_, i) => {
      const ids = idsOf(version, randomRequest(i + 1))
      return ids === null ? "refused" : idsHash(ids)
    })
    expect(hashes.join(" ")).toBe(golden.random[version])
  })

  test("reads as its ids", () => {
    const { tokenizer, renderer } = opened.get(version)!
    for (const { body } of namedRequests) {
      const rendered = renderer.render(conversationOfBody(body), everything)
      if (rendered.ok) expect(tokenizer.decode(rendered.value.tokenIds, false)).toBe(rendered.value.text)
    }
  })
})

describe("what is refused", () => {
  const user = { content: "x" }
  const messages = (message: string, param = "messages") => ({ kind: "conversation_refused", message, param })

  test("templates and variables for one, each by its field", () => {
    expect(refusal("v13", conversationOf([user], { chatTemplate: "{{ messages }}" }))).toEqual(
      messages("models with Mistral's format have no chat template", "chat_template"),
    )
    const kwargs: { [name: string]: Json }[] = [{ enable_thinking: false }, { reasoning_effort: "high", custom: 1 }]
    for (const templateKwargs of kwargs) {
      expect(refusal("v13", conversationOf([user], { templateKwargs }))).toMatchObject({
        param: "chat_template_kwargs",
      })
    }
  })

  test("an effort that the model does not know, where the model is told one", () => {
    const templateKwargs = { reasoning_effort: "medium", enable_thinking: true }
    expect(refusal("v15", conversationOf([user], { templateKwargs }))).toEqual(
      messages("reasoning_effort must be one of none, high for this model", "reasoning_effort"),
    )
    expect(refusal("v13", conversationOf([user], { templateKwargs }))).toBe("<s>[INST]x[/INST]")
  })

  test("media other than a user's images, in words", () => {
    const part = (role: string, type: "image" | "audio") => ({ role, content: [{ type, source: null }] }) as const
    expect(refusal("v3", conversationOf([part("user", "audio")]))).toEqual(
      messages("audio parts of a user message have no place in Mistral's format here"),
    )
    expect(refusal("v15", conversationOf([user, part("tool", "image")]))).toEqual(
      messages("image parts of a tool message have no place in Mistral's format here"),
    )
  })

  test("tools, by what is wrong with them", () => {
    const tool = (name: string, parameters: { [key: string]: Json }) => ({
      name,
      description: null,
      parameters,
      strict: null,
    })
    const said = (...tools: ReturnType<typeof tool>[]) => refusal("v3", conversationOf([user], { tools }))
    expect(said(tool("a b", {}))).toMatchObject({ param: "tools" })
    expect(said(tool("f", { anyOf: [] }))).toEqual(
      messages("the parameters of f are no JSON Schema of draft 7: anyOf must be an array of schemas", "tools"),
    )
    expect(said(tool("f", { properties: ["a"] }))).toMatchObject({
      message: "the parameters of f are no JSON Schema of draft 7: properties must be an object",
    })
    expect(said(tool("f", { properties: { must_have: { type: "thing" } } }))).toMatchObject({
      message: expect.stringContaining("draft 7: properties.must_have.type must be one of array, boolean"),
    })
  })

  test("arguments that nest too deeply or hold endless integers", () => {
    const call = (argumentsText: string) => ({
      role: "assistant",
      toolCalls: [{ id: "aaaaaaaaa", name: "f", arguments: {}, argumentsText }],
    })
    for (const [version, given] of [
      ["v3", "[".repeat(600)],
      ["v13", `{"a":${"9".repeat(4301)}}`],
    ] as const) {
      const result = { role: "tool", toolCallId: "aaaaaaaaa", content: "1" }
      expect(refusal(version, conversationOf([user, call(given), result]))).toMatchObject({
        kind: "conversation_refused",
        param: "messages",
      })
    }
  })
})

describe("a vocabulary", () => {
  test("of the first version, of an unknown one, or of none is refused", () => {
    for (const version of ["v1", "v2", "v99", undefined]) {
      const read = readMistralSetting({ ...tekkenFile("v3"), config: { version } })
      expect(read.ok ? read.value : read.error.message).toStartWith("tekken.json has the format version")
    }
    expect(readMistralSetting(null).ok).toBe(false)
  })

  test("that is a SentencePiece model tells its version by its file's name", () => {
    expect(sentencePieceSetting("tokenizer.model.v3")).toEqual({ ok: true, value: { version: 3, efforts: null } })
    expect(sentencePieceSetting("tokenizer.model.v7m1")).toEqual({ ok: true, value: { version: 7, efforts: null } })
    for (const name of ["tokenizer.model.v1", "tokenizer.model.v2", "tokenizer.model"]) {
      expect(sentencePieceSetting(name).ok).toBe(false)
    }
  })

  test("has model settings exactly from v15 on, with a default among the efforts", () => {
    const { model_settings_builder: settings, ...rest } = tekkenFile("v15")
    expect(readMistralSetting(rest).ok).toBe(false)
    expect(readMistralSetting({ ...tekkenFile("v13"), model_settings_builder: settings }).ok).toBe(false)
    const without = { ...rest, model_settings_builder: { reasoning_effort: null } }
    expect(readMistralSetting(without)).toEqual({ ok: true, value: { version: 15, efforts: null } })
    const odd = { ...rest, model_settings_builder: { reasoning_effort: { values: ["high"], default: "low" } } }
    expect(readMistralSetting(odd).ok).toBe(false)
  })

  test("of a model that is told no effort writes none", () => {
    const file = { ...tekkenFile("v15"), model_settings_builder: { reasoning_effort: null } }
    const rendered = openTekken("v15", file).renderer.render(conversationOf([{ content: "x" }]), everything)
    expect(rendered.ok && rendered.value.text).toBe("<s>[INST]x[/INST]")
  })

  test("without a control token of its version is refused, and without those for thinking refuses thinking", () => {
    const without = (...left: readonly string[]) => {
      const file = tekkenFile("v13")
      const named = file.special_tokens as readonly { readonly token_str: string }[]
      const special_tokens = named.map((each) =>
        left.includes(each.token_str) ? { ...each, token_str: `-${each.token_str}` } : each,
      )
      return openVocabularyFile(
        "tekken.json",
        new TextEncoder().encode(JSON.stringify({ ...file, special_tokens })),
        {},
      )
    }
    const open = (tokenizer: ReturnType<typeof without>) => {
      if (!tokenizer.ok) throw new Error(tokenizer.error.message)
      return openMistralRenderer(tokenizer.value, { version: 13, efforts: null })
    }
    expect(open(without("[ARGS]"))).toEqual({
      ok: false,
      error: {
        kind: "renderer_unusable",
        message: "the vocabulary has no token [ARGS], which prompts of version v13 need",
      },
    })
    const thoughtless = open(without("[THINK]"))
    const asked = conversationOf([
      { content: "x" },
      { role: "assistant", content: "a", reasoning: "b" },
      { content: "y" },
    ])
    expect(thoughtless.ok && thoughtless.value.render(asked, everything)).toMatchObject({
      ok: false,
      error: { kind: "conversation_refused" },
    })
  })
})
