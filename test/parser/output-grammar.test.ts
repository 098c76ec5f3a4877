import { expect, test } from "bun:test"
import { chooseParser } from "../../src/parser/registry"

const ids: { readonly [token: string]: number } = { "<think>": 1, "</think>": 2, "<tool_call>": 3, "</tool_call>": 4 }
const vocabulary = { tokenToId: (token: string) => ids[token] ?? -1, isSpecial: (id: number) => id === 9 }
const profile = { name: "m", modelType: "", architectures: [], chatTemplates: {} }

function family(reasoning: string, tools: string) {
  const chosen = chooseParser(profile, reasoning, tools, vocabulary)
  if (!chosen.ok) throw new Error(chosen.error.message)
  return chosen.value
}

const thinking = { type: "tag", begin: "<think>", content: { type: "any_text" }, end: "</think>" }
const rest = { ...thinking, begin: "" }
const blank = { type: "const_string", value: "\n\n" }

test.each([
  ["nothing is said of reasoning: it may come", "qwen3", [5, 9, 6], false, [optional(thinking, blank)]],
  ["the prompt opened it: its rest comes", "qwen3", [9, 1, 6], false, [rest, blank]],
  ["the prompt has it behind itself", "qwen3", [9, 1, 2, 6], true, []],
  [
    "an earlier turn had reasoning, which says nothing of this one",
    "qwen3",
    [1, 2, 9, 6],
    false,
    [optional(thinking, blank)],
  ],
  ["a family that leaves out the start is inside", "deepseek_r1", [9, 6], false, [rest]],
])("reasoning: %s", (_name, reasoning, prompt, ended, formats) => {
  expect(family(reasoning, "none").reasoningTag?.(Uint32Array.from(prompt))).toEqual({ ended, formats } as never)
})

function optional(...elements: object[]): object {
  return { type: "optional", content: { type: "sequence", elements } }
}

test("calls are held to either spelling of their frame, with names as JSON writes them", () => {
  const functions = [{ name: 'a"b', parameters: { type: "object" } }]
  const { callTag } = family("none", "hermes")
  const content = { type: "json_schema", json_schema: { type: "object" } }
  const tags = [
    { type: "tag", begin: '<tool_call>\n{"name": "a\\"b", "arguments": ', content, end: "}\n</tool_call>" },
    { type: "tag", begin: '<tool_call>{"name": "a\\"b", "arguments": ', content, end: "}</tool_call>" },
  ]
  expect([
    callTag?.({ functions, allowsText: false, single: false }),
    callTag?.({ functions, allowsText: true, single: true }),
  ]).toEqual([
    { type: "tags_with_separator", tags, separator: "", at_least_one: true, stop_after_first: false },
    { type: "triggered_tags", triggers: ["<tool_call>"], tags, at_least_one: false, stop_after_first: true },
  ])
})

test("a family without reasoning or calls has no formats for them", () => {
  const { callTag, reasoningTag } = family("none", "none")
  expect([callTag, reasoningTag]).toEqual([null, null])
})
