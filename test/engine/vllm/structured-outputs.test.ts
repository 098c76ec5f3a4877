import { describe, expect, test } from "bun:test"
import { choiceGrammar } from "../../../src/engine/vllm/structured-outputs"

describe("a choice as a grammar", () => {
  test("takes exactly the texts", () => {
    expect(choiceGrammar(["Yes", "No"])).toBe('root ::= "Yes" | "No"')
    expect(choiceGrammar([""])).toBe('root ::= ""')
    expect(choiceGrammar(["日本 😀"])).toBe('root ::= "日本 😀"')
  })

  test("escapes what would end the text or the rule", () => {
    expect(choiceGrammar(['a"b', "c\\d", "e\nf", "g\rh", "i\tj", "k\0l", "m\u001bn", "o\u007fp"])).toBe(
      'root ::= "a\\"b" | "c\\\\d" | "e\\nf" | "g\\rh" | "i\\tj" | "k\\u0000l" | "m\\u001bn" | "o\\u007fp"',
    )
  })
})
