import { expect, test } from "bun:test"
import { chooseParser } from "../../src/parser/registry"
import { factoryOf, unknownModel } from "./chosen-parser"
import { type ParserSample, parserContract } from "./contract"
import { call, reasoning, text } from "./parsed-parts"
import { ordinary, parse, parserFor, promptOf, tokensOf, vocabularyWith } from "./spelled-tokens"

const qwen3Samples: readonly ParserSample[] = [
  { title: "text alone", output: "Hi 😀\n there", parts: [text("Hi 😀\n there")], reasoningTokens: 0 },
  {
    title: "reasoning with its framing",
    output: "<think>\nIt may\n\nrain.\n</think>\n\nTake a coat.",
    parts: [reasoning("It may\n\nrain."), text("Take a coat.")],
    reasoningTokens: 13,
  },
  {
    title: "framing that is not exact stays",
    output: "<think> a\n </think>\nb",
    parts: [reasoning(" a\n "), text("\nb")],
    reasoningTokens: 4,
  },
  { title: "an empty block", output: "<think>\n\n</think>\n\nYes", parts: [text("Yes")], reasoningTokens: 0 },
  { title: "a block with nothing at all", output: "<think></think>Yes", parts: [text("Yes")], reasoningTokens: 0 },
  {
    title: "reasoning that the prompt opened",
    prompt: "<|im_start|>a<think>\n",
    output: "\nso\n</think>\n\nYes",
    parts: [reasoning("\nso"), text("Yes")],
    reasoningTokens: 3,
  },
  {
    title: "a marker as the prompt's last token leaves the framing to the reply",
    prompt: "<think>",
    output: "\nso</think>Yes",
    parts: [reasoning("so"), text("Yes")],
    reasoningTokens: 2,
  },
  {
    title: "reasoning opened by the prompt and once more by the model",
    prompt: "<think>\n",
    output: "<think>\nso</think>Yes",
    parts: [reasoning("so"), text("Yes")],
  },
  {
    title: "reasoning that the prompt closed",
    prompt: "<think>\n\n</think>\n\n",
    output: "0.9</think> is larger",
    parts: [text("0.9</think> is larger")],
  },
  {
    title: "a special token before the marker hides it",
    prompt: "<think>\n<|im_end|>a",
    output: "Yes",
    parts: [text("Yes")],
  },
  { title: "reasoning without an end", output: "<think>\nendless\n", parts: [reasoning("endless\n")] },
  {
    title: "reasoning twice",
    output: "<think>\na\n</think>\n\nb<think>\nc\n</think>\n\nd",
    parts: [reasoning("a"), text("b"), reasoning("c"), text("d")],
    reasoningTokens: 2,
  },
  {
    title: "a start marker within reasoning is text",
    output: "<think>\na<think>b\n</think>\n\nd",
    parts: [reasoning("a<think>b"), text("d")],
  },
  {
    title: "a quoted end marker inside reasoning",
    output: [...tokensOf("<think>\nThe tag "), ...ordinary("</think>", 3), ...tokensOf(" ends.\n</think>\n\nOk")],
    parts: [reasoning("The tag </think> ends."), text("Ok")],
  },
  {
    title: "one ordinary token with the characters of several markers",
    output: [...tokensOf("<think>"), ...ordinary("</think><tool_call>", 100), ...tokensOf("</think>.")],
    parts: [reasoning("</think><tool_call>"), text(".")],
  },
  {
    title: "bytes of an unfinished character before a marker belong to what was before it",
    output: [...tokensOf("<think>a"), { id: 4, text: "\ufffd</think>" }, ...tokensOf("b")],
    parts: [reasoning("a\ufffd"), text("b")],
  },
  {
    title: "a call within reasoning is reasoning",
    output: '<think>\n<tool_call>{"name": "f"}</tool_call>\n</think>\n\nb',
    parts: [reasoning('<tool_call>{"name": "f"}</tool_call>'), text("b")],
  },
]

const hermesSamples: readonly ParserSample[] = [
  {
    title: "text, then a call",
    output: 'Hold on.\n<tool_call>\n{"name": "book", "arguments": {"seat": "4C", "n": 2}}\n</tool_call>',
    parts: [text("Hold on."), call("book", '{"seat": "4C", "n": 2}')],
  },
  {
    title: "calls next to each other, and text behind",
    output:
      '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\n<tool_call>{"name":"b","arguments":{"x":1,}}</tool_call>\nDone',
    parts: [call("a", "{}"), call("b", '{"x":1,}'), text("\nDone")],
  },
  {
    title: "only one line break before a call is framing",
    output: 'a\n\n<tool_call>{"name": "f", "arguments": {}}</tool_call>',
    parts: [text("a\n"), call("f", "{}")],
  },
  { title: "a call without arguments", output: '<tool_call>{"name": "f"}</tool_call>', parts: [call("f", "")] },
  {
    title: "arguments before the name",
    output: '<tool_call>\n{"arguments": {"city": "Bern"}, "name": "f"}\n</tool_call>',
    parts: [call("f", '{"city": "Bern"}')],
  },
  {
    title: "parameters, other keys, and a second name",
    output: '<tool_call>{"type": ["f{", {"a":"}"}], "name": "f", "parameters": {"a": 1}, "name": "g"}</tool_call>',
    parts: [call("f", '{"a": 1}')],
  },
  {
    title: "braces, quotes, escapes and markers inside strings",
    output:
      '<tool_call>{"name": "f", "arguments": {"a": "\\"}</tool_call>\\\\", "b": [{"c": "{<tool_call>"}]}}</tool_call>',
    parts: [call("f", '{"a": "\\"}</tool_call>\\\\", "b": [{"c": "{<tool_call>"}]}')],
  },
  {
    title: "any letters",
    output: '<tool_call>{"name": "f\\u00fcr", "arguments": {"ü": "漢字 😀"}}</tool_call>',
    parts: [call("für", '{"ü": "漢字 😀"}')],
  },
  {
    title: "arguments that are no object",
    output:
      '<tool_call>{"name": "f", "arguments": null}</tool_call><tool_call>{"name": "g", "arguments": "x}"}</tool_call>',
    parts: [call("f", "null"), call("g", '"x}"')],
  },
  {
    title: "a forgotten last brace",
    output: '<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>.',
    parts: [call("f", '{"a": 1}'), text(".")],
  },
  {
    title: "a forgotten end marker",
    output: '<tool_call>{"name": "f", "arguments": {}}\n<tool_call>{"name": "g", "arguments": {}}</tool_call>',
    parts: [call("f", "{}"), call("g", "{}")],
  },
  {
    title: "a call cut in its arguments",
    output: '<tool_call>\n{"name": "write", "arguments": {"path": "a", "content": "half',
    parts: [call("write", '{"path": "a", "content": "half', false)],
  },
  {
    title: "a call whose end marker never came",
    output: '<tool_call>\n{"name": "f", "arguments": {}}\n',
    parts: [call("f", "{}", true)],
  },
  {
    title: "a call cut before its name is whole",
    output: 'a\n<tool_call>\n{"name": "wri',
    parts: [text('a\n<tool_call>\n{"name": "wri')],
  },
  {
    title: "what is no call is text, and everything behind it",
    output: '<tool_call>oops</tool_call> <tool_call>{"name": "f", "arguments": {}}</tool_call>',
    parts: [text('<tool_call>oops</tool_call> <tool_call>{"name": "f", "arguments": {}}</tool_call>')],
  },
  {
    title: "a call that breaks behind its name keeps what was given out",
    output: '<tool_call>{"name": "f", "arguments": {"a": 1} oops}</tool_call>\n.',
    parts: [call("f", '{"a": 1}'), text("oops}</tool_call>\n.")],
  },
  {
    title: "an object without a name",
    output: 'a\n<tool_call>{"arguments": {}}</tool_call>',
    parts: [text('a\n<tool_call>{"arguments": {}}</tool_call>')],
  },
  { title: "an end marker alone", output: "a</tool_call>b", parts: [text("a</tool_call>b")] },
  {
    title: "beginnings of markers",
    output: "1 < 2 and <tool is not a tag, <tool_cal neither\n",
    parts: [text("1 < 2 and <tool is not a tag, <tool_cal neither\n")],
  },
]

parserContract({ name: "plain", factory: factoryOf("none", "none"), samples: [qwen3Samples[0]!] })
parserContract({ name: "qwen3", factory: factoryOf("qwen3", "none"), samples: qwen3Samples })
parserContract({ name: "hermes", factory: factoryOf("none", "hermes"), samples: hermesSamples })
parserContract({ name: "qwen3_json", factory: factoryOf("none", "qwen3_json"), samples: hermesSamples })
parserContract({
  name: "qwen3 with hermes",
  factory: factoryOf("qwen3", "hermes"),
  samples: [
    ...qwen3Samples,
    ...hermesSamples,
    {
      title: "reasoning, text and a call",
      output: '<think>\nneed it\n</think>\n\nSo.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
      parts: [reasoning("need it"), text("So."), call("f", '{"a": 1}')],
      reasoningTokens: 7,
    },
    {
      title: "a call right behind reasoning",
      output: '<think>\nneed it\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
      parts: [reasoning("need it"), call("f", "{}")],
    },
    {
      title: "reasoning between two calls",
      output:
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n<think>\nmore\n</think>\n\n<tool_call>{"name": "g", "arguments": {}}</tool_call>',
      parts: [call("f", "{}"), text("\n"), reasoning("more"), call("g", "{}")],
    },
    {
      title: "a reasoning marker inside a call's arguments",
      output: '<tool_call>{"name": "f", "arguments": {"a": "<think>x</think>"}}</tool_call>',
      parts: [call("f", '{"a": "<think>x</think>"}')],
    },
  ],
})
parserContract({
  name: "deepseek_r1",
  factory: factoryOf("deepseek_r1", "none"),
  samples: [
    { title: "a reply without markers", output: "just text", parts: [reasoning("just text")], reasoningTokens: 9 },
    {
      title: "a reply without a start marker",
      output: "so it is\n</think>\n\nYes",
      parts: [reasoning("so it is\n"), text("\n\nYes")],
    },
    {
      title: "a reply with both markers",
      output: "<think>\nso\n</think>\n\nYes",
      parts: [reasoning("so\n"), text("\n\nYes")],
      reasoningTokens: 3,
    },
  ],
})

test("without marker tokens calls are found in the text, whatever tokens spell them", () => {
  const factory = factoryOf("none", "hermes", [])
  for (const sample of hermesSamples) {
    // Here a marker inside an unfinished call cannot be told from text, so those two samples mean something else.
    if (sample.title.startsWith("a forgotten")) continue
    for (const size of [1, 2, 3, 5, 1000]) {
      const tokens = ordinary(String(sample.output), size)
      for (const ends of [[tokens.length], tokens.map((_, i) => i + 1)]) {
        const parsed = parse(parserFor(factory), tokens, ends)
        expect(parsed.parts, JSON.stringify([sample.title, size])).toEqual([...sample.parts])
      }
    }
  }
})

test("a reasoning parser is refused when the vocabulary lacks its markers", () => {
  expect(chooseParser(unknownModel, "qwen3", "none", vocabularyWith(["<think>"]))).toEqual({
    ok: false,
    error: { kind: "parser_unusable", message: "the vocabulary has no token </think>, which the parser needs" },
  })
})

test("a name longer than any function's is no call", () => {
  const output = `<tool_call>{"name": "${"n".repeat(600)}", "arguments": {}}</tool_call>`
  const tokens = tokensOf(output)
  expect(parse(parserFor(factoryOf("none", "hermes")), tokens, [tokens.length]).parts).toEqual([text(output)])
})

test("one step gives one call of a kind to the sink", () => {
  const tokens = tokensOf('<think>\nabc\n</think>\n\n<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')
  const parsed = parse(parserFor(factoryOf("qwen3", "hermes"), { promptTokenIds: promptOf("x") }), tokens, [
    tokens.length,
  ])
  expect(parsed.parts).toEqual([reasoning("abc"), call("f", '{"a": 1}')])
})
