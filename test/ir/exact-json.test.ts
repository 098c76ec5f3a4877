import { describe, expect, test } from "bun:test"
import { schemaText } from "../../src/ir/exact-json"

describe("a schema as text", () => {
  test("is what it was, with the digits of large integers", () => {
    const schema = {
      type: "integer",
      maximum: 2n ** 70n,
      minimum: -1.5,
      enum: [null, true, 'é\n"', 2n ** 63n],
      "a b": {},
    }
    expect(schemaText(schema)).toBe(
      '{"type":"integer","maximum":1180591620717411303424,"minimum":-1.5,"enum":[null,true,"é\\n\\"",9223372036854775808],"a b":{}}',
    )
    expect(schemaText('{"type": "string"}')).toBe('{"type": "string"}')
  })

  test("keeps __proto__ as a key like others", () => {
    expect(schemaText(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}')
  })
})
