/** What Mistral's models write: calls of both generations, and reasoning between tokens. */
import { describe, expect, test } from "bun:test"
import { chooseParser } from "../../src/parser/registry"
import { factoryOf, unknownModel } from "./chosen-parser"
import { type ParserSample, parserContract } from "./contract"
import { call, reasoning, text } from "./parsed-parts"
import { markers, ordinary, parse, parserFor, tokensOf, vocabularyWith } from "./spelled-tokens"

const samples: readonly ParserSample[] = [
  { title: "text alone", output: "Hi [ARGS] [1]", parts: [text("Hi [ARGS] [1]")] },
  { title: "a call", output: '[TOOL_CALLS]lamp[ARGS]{"on": true}', parts: [call("lamp", '{"on": true}')] },
  {
    title: "calls, with text before them",
    output: 'Let me see. [TOOL_CALLS]lamp[ARGS]{"on": true}[TOOL_CALLS]fan[ARGS]{"lvl": {"a": [1]}}',
    parts: [text("Let me see. "), call("lamp", '{"on": true}'), call("fan", '{"lvl": {"a": [1]}}')],
  },
  {
    title: "a call with an id",
    output: "[TOOL_CALLS]f[CALL_ID]aBcDeF123[ARGS]{}",
    parts: [call("f", "{}", true, "aBcDeF123")],
  },
  { title: "arguments without their marker", output: '[TOOL_CALLS]f{"a": 1}', parts: [call("f", '{"a": 1}')] },
  { title: "white space in the frame", output: "[TOOL_CALLS] f [ARGS] {}", parts: [call("f", "{}")] },
  { title: "text behind a call", output: "[TOOL_CALLS]f[ARGS]{} Done", parts: [call("f", "{}"), text(" Done")] },
  {
    title: "a call without arguments before another",
    output: "[TOOL_CALLS]f[ARGS][TOOL_CALLS]g[ARGS]{}",
    parts: [call("f", ""), call("g", "{}")],
  },
  { title: "arguments that are a text", output: '[TOOL_CALLS]f[ARGS]"x"', parts: [call("f", '"x"')] },
  { title: "arguments that break off", output: '[TOOL_CALLS]f[ARGS]{"a": "b', parts: [call("f", '{"a": "b', false)] },
  { title: "a name that breaks off", output: "a[TOOL_CALLS]get_we", parts: [text("a[TOOL_CALLS]get_we")] },
  { title: "a call without a name", output: "[TOOL_CALLS][ARGS]{}", parts: [text("[TOOL_CALLS][ARGS]{}")] },
  {
    title: "arguments that are none",
    output: "[TOOL_CALLS]f[ARGS]well then",
    parts: [call("f", "", false), text("well then")],
  },
  {
    title: "a marker inside a string",
    output: '[TOOL_CALLS]f[ARGS]{"a": "[TOOL_CALLS]g[ARGS]{}"}',
    parts: [call("f", '{"a": "[TOOL_CALLS]g[ARGS]{}"}')],
  },
  {
    title: "a list of calls",
    output: '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "]}"}}, {"arguments": {}, "id": "x", "name": "g"}]',
    parts: [call("f", '{"a": "]}"}'), call("g", "{}")],
  },
  {
    title: "a list close to its marker, and text before it",
    output: 'So[TOOL_CALLS][{"name":"f","arguments":{}}]',
    parts: [text("So"), call("f", "{}")],
  },
  {
    title: "a list that breaks off behind a call",
    output: '[TOOL_CALLS] [{"name": "f", "arguments": {}}, ',
    parts: [call("f", "{}")],
  },
  {
    title: "a list that breaks off in a call",
    output: '[TOOL_CALLS] [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a"',
    parts: [call("f", "{}"), call("g", '{"a"', false)],
  },
  {
    title: "a list that breaks off before a name",
    output: '[TOOL_CALLS] [{"na',
    parts: [text('[TOOL_CALLS] [{"na')],
  },
  { title: "an empty list", output: "[TOOL_CALLS] []", parts: [text("[TOOL_CALLS] []")] },
  {
    title: "a list of something else",
    output: '[TOOL_CALLS] [{"name": "f"}, 7] x',
    parts: [call("f", ""), text(", 7] x")],
  },
]

const thinking: readonly ParserSample[] = [
  {
    title: "reasoning",
    output: "[THINK]It may rain.[/THINK]Take a coat.",
    parts: [reasoning("It may rain."), text("Take a coat.")],
    reasoningTokens: 12,
  },
  {
    title: "reasoning that the prompt opened",
    prompt: "<|im_end|>[THINK]It",
    output: " rains.[/THINK]Yes",
    parts: [reasoning(" rains."), text("Yes")],
  },
  {
    title: "reasoning and a call",
    output: "[THINK]Hm.[/THINK][TOOL_CALLS]f[ARGS]{}",
    parts: [reasoning("Hm."), call("f", "{}")],
  },
  {
    title: "a call that ends reasoning",
    output: "[THINK]Hm.[TOOL_CALLS]f[ARGS]{}",
    parts: [reasoning("Hm."), call("f", "{}")],
    reasoningTokens: 3,
  },
]

parserContract({ name: "mistral calls", factory: factoryOf("none", "mistral"), samples })
parserContract({
  name: "mistral calls and reasoning",
  factory: factoryOf("mistral", "mistral"),
  samples: [...samples, ...thinking],
})

test("markers that are spelled with ordinary tokens are none", () => {
  const tokens = [...tokensOf("[TOOL_CALLS]f"), ...ordinary("[ARGS]"), ...tokensOf("{}")]
  const { parts } = parse(parserFor(factoryOf("none", "mistral")), tokens, [tokens.length])
  expect(parts).toEqual([call("f[ARGS]", "{}")])
})

describe("the families of mistral", () => {
  const chosen = (more: object, reasoning = "auto", tools = "auto", known: readonly string[] = markers): unknown => {
    const found = chooseParser({ ...unknownModel, ...more }, reasoning, tools, vocabularyWith(known))
    return found.ok ? [found.value.reasoning, found.value.tools] : found.error.message
  }
  const older = ["[TOOL_CALLS]"]

  test("are those of models with its prompts, as far as the vocabulary goes", () => {
    expect(chosen({ tokenizerMode: "mistral" })).toEqual(["mistral", "mistral"])
    expect(chosen({ tokenizerMode: "mistral" }, "auto", "auto", older)).toEqual(["none", "mistral"])
    expect(chosen({ tokenizerMode: "mistral" }, "auto", "auto", [])).toEqual(["none", "none"])
    expect(chosen({ tokenizerMode: "hf" })).toEqual(["none", "none"])
  })

  test("are known by templates that write their markers", () => {
    expect(chosen({ chatTemplates: { default: "[INST] [TOOL_CALLS]" } })).toEqual(["none", "mistral"])
    expect(chosen({ chatTemplates: { default: "[THINK] [TOOL_CALLS]" } })).toEqual(["mistral", "mistral"])
  })

  test("are refused by name where the vocabulary has no markers", () => {
    expect(chosen({}, "none", "mistral", ["[THINK]"])).toBe(
      "the vocabulary has not the markers that the mistral tool call parser needs",
    )
    expect(chosen({}, "mistral", "none", older)).toContain("[THINK]")
  })
})
