import { describe, expect, test } from "bun:test"
import type { Json } from "../../src/ir/conversation"
import { harmonyFactory } from "../../src/parser/families/harmony"
import { everySplit } from "../support/every-split"
import { seededRandom } from "../support/random"
import type { ParsedPart } from "../support/recording-sink"
import { parserContract } from "./contract"
import { harmonyPrompt, harmonyTokensOf, harmonyVocabulary } from "./harmony-tokens"
import { parse, parserFor } from "./spelled-tokens"

const opened = harmonyFactory(harmonyVocabulary)
if (!opened.ok) throw new Error(opened.error.message)
const factory = opened.value

const reasoning = (text: string): ParsedPart => ({ kind: "reasoning", text })
const text = (shown: string): ParsedPart => ({ kind: "text", text: shown })
const call = (name: string, args: string, ended = true): ParsedPart => ({
  kind: "call",
  name,
  id: "",
  arguments: args,
  ended,
})

/** Headers, whole or cut at the end, with the markers around them. */
function unframed(output: string): string {
  return `<|start|>assistant${output}`.replace(/<\|start\|>(?:(?!<\|message\|>|<\|end\|>).)*(?:<\|message\|>|$)/gs, "")
}

parserContract({
  name: "harmony",
  factory,
  unframed: (output) => unframed(output).replace(/<\|(?:end|call|return)\|>/g, ""),
  samples: [
    {
      title: "reasoning and an answer",
      output: harmonyTokensOf(
        "<|channel|>analysis<|message|>It may rain.<|end|><|start|>assistant<|channel|>final<|message|>Take a coat.<|return|>",
      ),
      parts: [reasoning("It may rain."), text("Take a coat.")],
      reasoningTokens: "It may rain.".length,
    },
    {
      title: "a word before a call",
      output: harmonyTokensOf(
        "<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant to=functions.now<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
      ),
      parts: [text("I will look."), call("now", "{}")],
    },
  ],
})

/** What a reply to a prompt that ends in `<|start|>assistant` is, in every split. */
function partsOf(output: string, prompt = "<|start|>assistant", parseCalls = true): readonly ParsedPart[] {
  const tokens = harmonyTokensOf(output)
  const start = { promptTokenIds: harmonyPrompt(prompt), parseCalls }
  const whole = parse(parserFor(factory, start), tokens, [tokens.length])
  for (const ends of everySplit(tokens.length)) {
    expect(parse(parserFor(factory, start), tokens, ends)).toEqual(whole)
  }
  return whole.parts
}

describe("calls", () => {
  const body = '<|message|>{"x": 1}<|call|>'
  const sum = [call("sum", '{"x": 1}')]

  test("have their recipient before or behind the channel, and a type or none", () => {
    for (const header of [
      " to=functions.sum<|channel|>commentary json",
      " to=functions.sum<|channel|>commentary <|constrain|>json",
      "<|channel|>commentary to=functions.sum <|constrain|>json",
      "<|channel|>commentary to=functions.sum<|constrain|>json",
      "<|channel|>commentary to=functions.sum json",
      "<|channel|>commentary to=functions.sum",
      "<|channel|>analysis to=functions.sum code",
      "<|channel|>final to=functions.sum <|constrain|>json",
      "<|channel|>commentary to=sum <|constrain|>json",
    ]) {
      expect(partsOf(header + body), header).toEqual(sum)
    }
  })

  test("have names with dots, dashes and no letters of ASCII", () => {
    expect(partsOf(`<|channel|>commentary to=functions.web-browsing${body}`)).toEqual([
      call("web-browsing", '{"x": 1}'),
    ])
    expect(partsOf(`<|channel|>commentary to=functions.a.b${body}`)).toEqual([call("a.b", '{"x": 1}')])
    expect(partsOf(`<|channel|>commentary to=functions.名${body}`)).toEqual([call("名", '{"x": 1}')])
  })

  test("keep arguments as they are, special tokens in them included", () => {
    expect(partsOf('<|channel|>commentary to=functions.f<|message|>{"a": "<|start|><|other|>", }<|call|>')).toEqual([
      call("f", '{"a": "<|start|><|other|>", }'),
    ])
  })

  test("that are cut stay as far as they came, and are whole when their object is", () => {
    expect(partsOf('<|channel|>commentary to=functions.f<|message|>{"a": ')).toEqual([call("f", '{"a": ', false)])
    expect(partsOf('<|channel|>commentary to=functions.f<|message|>{"a": 1}')).toEqual([call("f", '{"a": 1}')])
    expect(partsOf("<|channel|>commentary to=functions.f<|message|>")).toEqual([call("f", "", false)])
  })

  test("that end before their content have no arguments", () => {
    expect(partsOf("<|channel|>commentary to=functions.now <|constrain|>json<|call|>")).toEqual([call("now", "")])
  })

  test("are text where the request wants none", () => {
    expect(partsOf(`<|channel|>commentary to=functions.sum${body}`, "<|start|>assistant", false)).toEqual([
      text('{"x": 1}'),
    ])
  })

  test("of built-in tools are thoughts, whatever their channel", () => {
    for (const header of ["<|channel|>analysis to=python code", "<|channel|>commentary to=browser.search json"]) {
      expect(partsOf(`${header}<|message|>1 + 1<|call|>`), header).toEqual([reasoning("1 + 1")])
    }
  })
})

describe("messages", () => {
  test("stay apart, those of one kind as well", () => {
    expect(
      partsOf(
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>" +
          "<|start|>assistant<|channel|>final<|message|>c<|end|><|start|>assistant<|channel|>final<|message|>d<|return|>",
      ),
    ).toEqual([reasoning("a"), reasoning("b"), text("c"), text("d")])
  })

  test("without content are none", () => {
    expect(
      partsOf(
        "<|channel|>final<|message|><|end|><|start|>assistant<|channel|>final<|message|>c<|end|>" +
          "<|start|>assistant<|channel|>final<|message|><|return|>",
      ),
    ).toEqual([text("c")])
  })

  test("of other channels, or of none, are text", () => {
    expect(partsOf("<|channel|>commentary––commentary<|message|>x<|end|>")).toEqual([text("x")])
    expect(partsOf("<|message|>x<|end|>")).toEqual([text("x")])
    expect(partsOf("<|channel|><|message|>x<|end|>")).toEqual([text("x")])
  })

  test("in the name of others are swallowed", () => {
    const own = "<|channel|>final<|message|>a<|end|>"
    expect(partsOf(`${own}<|start|>user<|message|>b<|end|><|start|>assistant${own}`)).toEqual([text("a"), text("a")])
    expect(partsOf(`${own}<|start|>functions.f to=assistant<|channel|>commentary<|message|>b<|end|>`)).toEqual([
      text("a"),
    ])
  })

  test("take all tokens for text but those that end one", () => {
    expect(partsOf("<|channel|>final<|message|>a<|start|>b<|channel|>c<|message|>d<|constrain|>e<|other|>")).toEqual([
      text("a<|start|>b<|channel|>c<|message|>d<|constrain|>e<|other|>"),
    ])
  })
})

describe("what the reference refuses", () => {
  test("text where a message should start is shown", () => {
    expect(partsOf("<|channel|>analysis<|message|>a<|end|>Hello<|return|>")).toEqual([reasoning("a"), text("Hello")])
    expect(partsOf("<|channel|>final<|message|>a<|end|>Hello<|start|>assistant<|channel|>final<|message|>b")).toEqual([
      text("a"),
      text("Hello"),
      text("b"),
    ])
  })

  test("a second end is nothing", () => {
    expect(partsOf("<|channel|>final<|message|>ok<|return|><|return|>")).toEqual([text("ok")])
    expect(partsOf("<|end|><|call|>")).toEqual([])
  })

  test("a message without its start token is one of the assistant", () => {
    expect(partsOf("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b<|return|>")).toEqual([
      reasoning("a"),
      text("b"),
    ])
    expect(partsOf("<|channel|>analysis<|message|>a<|end|><|message|>b<|return|>")).toEqual([reasoning("a"), text("b")])
  })

  test("a reply without any marker is text, and comes as soon as it can be no header", () => {
    expect(partsOf("Hello")).toEqual([text("Hello")])
    expect(partsOf("Hello there, how are you?<|return|>")).toEqual([text("Hello there, how are you?")])
    const tokens = harmonyTokensOf("one two three")
    expect(parse(parserFor(factory), tokens, [tokens.length], false).parts).toEqual([text("one two three")])
  })

  test("a header that is too long for one is text", () => {
    const long = "x".repeat(1025)
    expect(partsOf(`${long}<|end|>`)).toEqual([text(long)])
  })

  test("a cut header is nothing", () => {
    for (const header of ["<|channel|>ana", "<|channel|>commentary to=functions.f", " to=functions.f", "<|channel|>"]) {
      expect(partsOf(header), header).toEqual([])
      expect(partsOf(`<|channel|>final<|message|>a<|end|><|start|>assistant${header}`), header).toEqual([text("a")])
    }
  })

  test("words in a header that ends without content are its content", () => {
    expect(partsOf("<|channel|>final one two three<|end|>")).toEqual([text("one two three")])
    expect(partsOf("<|channel|>analysis hm<|end|>")).toEqual([reasoning("hm")])
    expect(partsOf("<|channel|>final <|constrain|>json<|end|>")).toEqual([])
    expect(partsOf("<|channel|>analysis hm<|start|>assistant<|channel|>final<|message|>b<|end|>")).toEqual([text("b")])
  })
})

describe("the prompt", () => {
  test("that ends inside of a message goes on with it", () => {
    const next = " more<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>"
    expect(partsOf(next, "<|start|>assistant<|channel|>analysis<|message|>so")).toEqual([reasoning(" more"), text("b")])
    expect(partsOf(" more<|return|>", "<|start|>assistant<|channel|>final<|message|>so")).toEqual([text(" more")])
  })

  test("that ends behind a message, or in a start, leaves the role to the model", () => {
    expect(partsOf("<|start|>user<|message|>b<|end|>", "<|start|>user<|message|>a<|end|>")).toEqual([])
    expect(partsOf("user<|message|>b<|end|>", "<|start|>")).toEqual([])
    expect(partsOf("assistant<|channel|>final<|message|>b<|end|>", "<|start|>")).toEqual([text("b")])
  })
})

test("half a character counts with its text, and comes out before the end of its message", () => {
  const tokens = [
    ...harmonyTokensOf("<|channel|>analysis<|message|>a"),
    { id: 999, text: "" },
    { id: 107, text: "\ufffd<|end|>" },
  ]
  const parsed = parse(parserFor(factory), tokens, [tokens.length])
  expect(parsed).toEqual({ parts: [reasoning("a\ufffd")], reasoningTokens: 3 })
})

test("special tokens that the text does not show are markers all the same", () => {
  const shown = harmonyTokensOf(
    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|><|start|>assistant<|message|>x",
  )
  const hidden = shown.map(({ id, text: own }) => ({ id, text: harmonyVocabulary.isSpecial(id) ? "" : own }))
  expect(parse(parserFor(factory), hidden, [hidden.length]).parts).toEqual([call("f", "{}"), text("x")])
})

test("5000 random mixtures never throw and fold alike in any split", () => {
  const pieces = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"]
  const words = ["assistant", "user", "analysis", "final", "commentary", " to=functions.f", " json", "{}", "\n", "é😀"]
  for (let seed = 1; seed <= 5_000; seed++) {
    const random = seededRandom(seed)
    const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!
    let output = ""
    for (let i = Math.floor(random() * 16); i >= 0; i--) output += pick(random() < 0.5 ? pieces : words)
    const tokens = harmonyTokensOf(output)
    const whole = parse(parserFor(factory), tokens, [tokens.length])
    const ends: number[] = []
    for (let at = 1; at < tokens.length; at++) if (random() < 0.5) ends.push(at)
    expect(parse(parserFor(factory), tokens, [...ends, tokens.length]), JSON.stringify({ seed, ends })).toEqual(whole)
  }
})

describe("grammars", () => {
  const f = { name: "f", parameters: { type: "object" } }

  test("let reasoning come first, unless the prompt has it behind itself", () => {
    const message = {
      type: "tag",
      begin: "<|channel|>analysis<|message|>",
      content: { type: "any_text" },
      end: "<|end|>",
    }
    const next = { type: "const_string", value: "<|start|>assistant" }
    const tagOf = (prompt: string) => factory.reasoningTag?.(harmonyPrompt(prompt))
    expect(tagOf("<|start|>user<|message|>a<|end|><|start|>assistant")).toEqual({
      ended: false,
      formats: [{ type: "optional", content: { type: "sequence", elements: [message, next] } }],
    })
    expect(tagOf("<|start|>assistant<|channel|>analysis<|message|>a")).toEqual({
      ended: false,
      formats: [{ ...message, begin: "" }, next],
    })
    expect(tagOf("<|start|>assistant<|channel|>final<|message|>a")).toEqual({ ended: true, formats: [] })
  })

  test("write every spelling of a call, and a final answer where text may stand in its place", () => {
    const begins = (allowsText: boolean): unknown => {
      const format = factory.callTag?.({ functions: [f], allowsText, single: true })
      // A sequence: an optional message, then one of these.
      return JSON.parse(JSON.stringify(format)).elements[1].elements.map((tag: { begin: string }) => tag.begin)
    }
    const calls = ["commentary", "analysis", "final"].flatMap((channel) =>
      [` to=functions.f<|channel|>${channel}`, `<|channel|>${channel} to=functions.f`].flatMap((begin) => [
        `${begin} json<|message|>`,
        `${begin} <|constrain|>json<|message|>`,
      ]),
    )
    expect(begins(false)).toEqual(calls)
    expect(begins(true)).toEqual([
      ...calls,
      "<|channel|>final<|message|>",
      "<|channel|>final json<|message|>",
      "<|channel|>final <|constrain|>json<|message|>",
    ])
  })

  test("put an answer of JSON, or of another form, into the final channel", () => {
    const json = { type: "json_schema", json_schema: true }
    const final = (type: string, content: Json): Json => ({
      type: "tag",
      begin: `<|channel|>final${type}<|message|>`,
      content,
      end: ["<|end|>", ""],
    })
    expect(factory.textTag?.(json)).toEqual({
      type: "or",
      elements: [final(" json", json), final(" <|constrain|>json", json)],
    })
    const regex = { type: "regex", pattern: "a+" }
    expect(factory.textTag?.(regex)).toEqual(final("", regex))
  })
})

test("a vocabulary without one of the tokens is refused", () => {
  const lacking = { ...harmonyVocabulary, tokenToId: (token: string) => (token === "<|call|>" ? -1 : 1) }
  expect(harmonyFactory(lacking)).toEqual({
    ok: false,
    error: { kind: "parser_unusable", message: "the vocabulary has no token <|call|>, which the parser needs" },
  })
})
