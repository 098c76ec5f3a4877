import { describe, expect, test } from "bun:test"
import { chooseParser, type ParserProfile } from "../../src/parser/registry"
import { harmonyVocabulary } from "./harmony-tokens"
import { markers, vocabularyWith } from "./spelled-tokens"

const qwenLike = '<think> </think> <tool_call>\\n{"name": <name>, "arguments": <args>}\\n</tool_call>'

function namesFor(profile: Partial<ParserProfile>, reasoning = "auto", tools = "auto", known = markers): unknown {
  const full = { name: "m", modelType: "", architectures: [], chatTemplates: {}, ...profile }
  const chosen = chooseParser(full, reasoning, tools, vocabularyWith(known))
  if (!chosen.ok) return chosen.error
  return [chosen.value.reasoning, chosen.value.tools]
}

describe("auto", () => {
  test("reads a template with both markers as qwen3 and hermes", () => {
    expect(namesFor({ chatTemplates: { default: qwenLike } })).toEqual(["qwen3", "hermes"])
  })

  test("knows DeepSeek-R1 and QwQ by their names", () => {
    expect(namesFor({ name: "deepseek-ai/DeepSeek-R1", chatTemplates: { default: "<think>" } })).toEqual([
      "deepseek_r1",
      "none",
    ])
    expect(namesFor({ name: "/models/QwQ-32B", chatTemplates: { default: qwenLike } })).toEqual([
      "deepseek_r1",
      "hermes",
    ])
  })

  test("goes by the format of prompts where a family has its own", () => {
    for (const [tokenizerMode, names] of [
      ["deepseek_v32", ["deepseek_v3", "deepseek_v32"]],
      ["deepseek_v4", ["deepseek_v4", "deepseek_v4"]],
      ["deepseek_v41", ["deepseek_v41", "deepseek_v41"]],
    ] as const) {
      expect(namesFor({ tokenizerMode, chatTemplates: { default: qwenLike } })).toEqual([...names])
    }
  })

  test("leaves calls of tagged parameters alone", () => {
    expect(namesFor({ chatTemplates: { default: `${qwenLike}<function=f>` } })).toEqual(["qwen3", "none"])
    expect(namesFor({ chatTemplates: { default: "<tool_call>{name}<arg_key>" } })).toEqual(["none", "none"])
  })

  test("goes without reasoning when the vocabulary lacks the markers", () => {
    expect(namesFor({ chatTemplates: { default: qwenLike } }, "auto", "auto", [])).toEqual(["none", "hermes"])
  })

  test("finds nothing in a plain template", () => {
    expect(namesFor({ chatTemplates: { default: "{{ messages }}" } })).toEqual(["none", "none"])
  })
})

describe("gpt-oss", () => {
  const model: Partial<ParserProfile> = { modelType: "gpt_oss", architectures: ["GptOssForCausalLM"] }
  const both = ["openai_gptoss", "openai"]
  function chosen(profile: Partial<ParserProfile>, reasoning: string, tools: string): unknown {
    const full = { name: "m", modelType: "", architectures: [], chatTemplates: {}, ...profile }
    const found = chooseParser(full, reasoning, tools, harmonyVocabulary)
    return found.ok ? [found.value.reasoning, found.value.tools, found.value.needsSpecialTokens] : found.error.kind
  }

  test("is known by its type or its architecture, whatever its template", () => {
    for (const known of [{ modelType: "gpt_oss" }, { architectures: ["GptOssForCausalLM"] }]) {
      expect(chosen({ ...known, chatTemplates: { default: qwenLike } }, "auto", "auto")).toEqual([...both, true])
    }
  })

  test("has one parser for both, under either name", () => {
    for (const [reasoning, tools] of [both, ["auto", "openai"], ["openai_gptoss", "auto"]] as const) {
      expect(chosen({}, reasoning!, tools!)).toEqual([...both, true])
      expect(chosen(model, reasoning!, tools!)).toEqual([...both, true])
    }
  })

  test("takes no other parser, and no half of its own, but none at all", () => {
    for (const [reasoning, tools] of [
      ["qwen3", "auto"],
      ["auto", "hermes"],
      ["none", "auto"],
      ["auto", "none"],
    ] as const) {
      expect(chosen(model, reasoning, tools)).toBe("parser_unusable")
    }
    expect(chosen({}, "openai_gptoss", "hermes")).toBe("parser_unusable")
    expect(chosen(model, "none", "none")).toEqual(["none", "none", false])
  })

  test("needs its tokens", () => {
    expect(namesFor(model)).toEqual({
      kind: "parser_unusable",
      message: "the vocabulary has no token <|start|>, which the parser needs",
    })
  })
})

describe("names", () => {
  test("are taken as given", () => {
    expect(namesFor({}, "qwen3", "qwen3_json")).toEqual(["qwen3", "qwen3_json"])
    expect(namesFor({ chatTemplates: { default: qwenLike } }, "none", "none")).toEqual(["none", "none"])
  })

  test("that are unknown are refused with the choices", () => {
    expect(namesFor({}, "qwen4")).toEqual({
      kind: "parser_unknown",
      message:
        "unknown reasoning parser qwen4: choose one of auto, none, deepseek_r1, deepseek_v3, deepseek_v4, deepseek_v41, qwen3, mistral, openai_gptoss",
    })
    expect(namesFor({}, "none", "xml")).toEqual({
      kind: "parser_unknown",
      message:
        "unknown tool call parser xml: choose one of auto, none, hermes, qwen3_json, mistral, deepseek_v32, deepseek_v4, deepseek_v41, openai",
    })
  })
})

test("markers that are special tokens must not be dropped on the way", () => {
  const special = { tokenToId: (token: string) => markers.indexOf(token) + 1, isSpecial: (id: number) => id >= 5 }
  const profile = { name: "m", modelType: "", architectures: [], chatTemplates: {} }
  const withCalls = chooseParser(profile, "qwen3", "hermes", special)
  expect(withCalls.ok && withCalls.value.needsSpecialTokens).toBe(true)
  const withoutCalls = chooseParser(profile, "qwen3", "none", special)
  expect(withoutCalls.ok && withoutCalls.value.needsSpecialTokens).toBe(false)
})
