import { describe, expect, test } from "bun:test"
import { choiceGrammar, jsonText } from "../../../src/engine/vllm/structured-outputs"

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

describe("a schema as text", () => {
  test("is what it was, with the digits of large integers", () => {
    const schema = {
      type: "integer",
      maximum: 2n ** 70n,
      minimum: -1.5,
      enum: [null, true, 'é\n"', 2n ** 63n],
      "a b": {},
    }
    expect(jsonText(schema)).toBe(
      '{"type":"integer","maximum":1180591620717411303424,"minimum":-1.5,"enum":[null,true,"é\\n\\"",9223372036854775808],"a b":{}}',
    )
    expect(jsonText('{"type": "string"}')).toBe('{"type": "string"}')
  })

  test("keeps __proto__ as a key like others", () => {
    expect(jsonText(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}')
  })
})
