/** What DeepSeek's models write since V3.2: calls in tags, and reasoning that the prompt opens. */
import { describe, expect, test } from "bun:test"
import type { ParsedPart } from "../support/recording-sink"
import { factoryOf } from "./chosen-parser"
import { type ParserSample, parserContract } from "./contract"
import { call, reasoning, text } from "./parsed-parts"
import { markers, ordinary, parse, parserFor, promptOf, tokensOf } from "./spelled-tokens"

/** Spells a text of V3.2's tags, written without the marker, in a version's own. */
function spelled(version: "v32" | "v4" | "v41", output: string): string {
  const names = {
    v32: { calls: "function_calls", call: "invoke", parameter: "parameter" },
    v4: { calls: "tool_calls", call: "invoke", parameter: "parameter" },
    v41: { calls: " calls", call: " invoke", parameter: " parameter" },
  }[version]
  return output.replace(/<(\/?)(calls|call|parameter)(?=[ >])/g, (_, slash: string, name: keyof typeof names) => {
    return `<${slash}｜DSML｜${names[name]}`
  })
}

function samplesOf(version: "v32" | "v4" | "v41"): ParserSample[] {
  const sample = (title: string, output: string, ...parts: ParsedPart[]): ParserSample => ({
    title,
    output: spelled(version, output),
    parts: parts.map((part) => (part.kind === "text" ? text(spelled(version, part.text)) : part)),
  })
  const seat = '<call name="book">\n<parameter name="seat" string="true">4C</parameter>\n</call>'
  return [
    sample("text alone", "1 < 2\n\n<b>\n", text("1 < 2\n\n<b>\n")),
    sample("a call", `<calls>\n${seat}\n</calls>`, call("book", '{"seat":"4C"}')),
    sample(
      "a call behind text",
      `Hold on.\n\n<calls>\n${seat}\n</calls>`,
      text("Hold on."),
      call("book", '{"seat":"4C"}'),
    ),
    sample(
      "two calls, one without parameters, and text behind them",
      `<calls>\n<call name="now">\n</call>\n${seat}\n</calls>\nDone`,
      call("now", "{}"),
      call("book", '{"seat":"4C"}'),
      text("\nDone"),
    ),
    sample(
      "values of all kinds",
      '<calls><call name="f"><parameter name="a" string="false">[1, {"b": 2.50}]</parameter><parameter name="n" string="false"> null\n</parameter><parameter name="s" string="true">\n"q" \\ </x> 1 > 0\n</parameter><parameter name="t" string="false">soon</parameter><parameter name="u">3</parameter></call></calls>',
      call("f", '{"a":[1, {"b": 2.50}],"n":null,"s":"\\n\\"q\\" \\\\ </x> 1 > 0\\n","t":"soon","u":3}'),
    ),
    sample(
      "a parameter whose end is missing before the next one",
      '<calls><call name="f"><parameter name="a" string="true">x<parameter name="b" string="true">y</parameter></call></calls>',
      call("f", '{"a":"x","b":"y"}'),
    ),
    sample(
      "the end of a call inside a parameter",
      '<calls><call name="f"><parameter name="a" string="true">x</call>y</parameter></call></calls>',
      call("f", JSON.stringify({ a: spelled(version, "x</call>y") })),
    ),
    sample("a block that breaks off behind a call", `<calls>\n${seat}\n`, call("book", '{"seat":"4C"}')),
    sample(
      "a call that breaks off",
      `<calls>\n${seat}\n<call name="g"><parameter name="a" string="true">x`,
      call("book", '{"seat":"4C"}'),
      text('\n<call name="g"><parameter name="a" string="true">x'),
    ),
    sample("a block without calls", "a\n\n<calls>\n</calls>b", text("a\n\n<calls>\n</calls>b")),
    sample(
      "a call without a name",
      '<calls><call name="">x</call></calls>',
      text('<calls><call name="">x</call></calls>'),
    ),
    sample(
      "a call with something else in it",
      '<calls><call name="f">{"a": 1}</call></calls>',
      text('<calls><call name="f">{"a": 1}</call></calls>'),
    ),
    sample("a call without its block", seat, text(seat)),
    sample("the marker alone", "｜DSML｜<｜DSML｜x>", text("｜DSML｜<｜DSML｜x>")),
  ]
}

parserContract({ name: "deepseek_v32", factory: factoryOf("deepseek_v3", "deepseek_v32"), samples: samplesOf("v32") })
parserContract({ name: "deepseek_v4", factory: factoryOf("deepseek_v4", "deepseek_v4"), samples: samplesOf("v4") })
parserContract({ name: "deepseek_v41", factory: factoryOf("deepseek_v41", "deepseek_v41"), samples: samplesOf("v41") })

describe("reasoning", () => {
  const factory = factoryOf("deepseek_v3", "deepseek_v32")
  const partsOf = (prompt: string, output: string): ParsedPart[] => {
    const tokens = tokensOf(output)
    return [...parse(parserFor(factory, { promptTokenIds: promptOf(prompt) }), tokens, [tokens.length]).parts]
  }

  test("begins where the prompt says so, and its text keeps its white space", () => {
    expect(partsOf("x<think>", "\nHm.\n</think>\nYes")).toEqual([reasoning("\nHm.\n"), text("\nYes")])
    expect(partsOf("x<think>y</think>", "Yes")).toEqual([text("Yes")])
    expect(partsOf("x", "Yes")).toEqual([text("Yes")])
  })

  test("comes before calls", () => {
    const calls = spelled("v32", '\n\n<calls>\n<call name="now">\n</call>\n</calls>')
    expect(partsOf("<think>", `Hm.</think>${calls}`)).toEqual([reasoning("Hm."), call("now", "{}")])
  })
})

test("a call ends reasoning that was left open, and only a call does", () => {
  for (const version of ["v32", "v4", "v41"] as const) {
    const factory = factoryOf("deepseek_v3", `deepseek_${version}`)
    const cases: readonly (readonly [string, readonly ParsedPart[]])[] = [
      ['Hm.\n\n<calls>\n<call name="now">\n</call>\n</calls>', [reasoning("Hm."), call("now", "{}")]],
      ['<calls>\n<call name="now">\n</call>\n</calls>', [call("now", "{}")]],
      ["a < b\n\n<\n\n", [reasoning("a < b\n\n<\n\n")]],
      ["a\n<</think>\n\n<b>", [reasoning("a\n<"), text("\n\n<b>")]],
      ["see </call> here</think>Yes", [reasoning(spelled(version, "see </call> here")), text("Yes")]],
    ]
    for (const [output, parts] of cases) {
      const tokens = tokensOf(spelled(version, output))
      for (let at = 0; at <= tokens.length; at++) {
        const parser = parserFor(factory, { promptTokenIds: promptOf("<think>") })
        expect([output, at, parse(parser, tokens, [at, tokens.length]).parts]).toEqual([output, at, [...parts]])
      }
    }
  }
})

test("V4's first tag may be shortened, as the model was seen to do", () => {
  for (const name of ["toolcalls", "tool"]) {
    const tokens = tokensOf(spelled("v4", '<calls><call name="now"></call></calls>').replace("tool_calls>", `${name}>`))
    expect(parse(parserFor(factoryOf("none", "deepseek_v4")), tokens, [tokens.length]).parts).toEqual([
      call("now", "{}"),
    ])
  }
})

test("tags of ordinary tokens are text", () => {
  const output = spelled("v32", '<calls><call name="now"></call></calls>')
  for (const size of [1, 2, 5, 100]) {
    const tokens = ordinary(output, size)
    expect(parse(parserFor(factoryOf("none", "deepseek_v32")), tokens, [tokens.length]).parts).toEqual([text(output)])
  }
})

test("a vocabulary without the token has no such calls", () => {
  const known = markers.filter((marker) => marker !== "｜DSML｜")
  expect(() => factoryOf("none", "deepseek_v4", known)).toThrow("has not the markers")
})

test("a call of many parameters takes time in proportion", () => {
  const parameters = Array.from({ length: 20_000 }, (_, i) => `<parameter name="p${i}" string="false">${i}</parameter>`)
  const tokens = tokensOf(spelled("v4", `<calls><call name="f">${parameters.join("\n")}</call></calls>`))
  const started = performance.now()
  const { parts } = parse(parserFor(factoryOf("none", "deepseek_v4")), tokens, [tokens.length])
  expect(parts).toHaveLength(1)
  expect(performance.now() - started).toBeLessThan(10_000)
}, 60_000)
