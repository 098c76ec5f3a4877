import { describe, expect, test } from "bun:test"
import { findSyntaxFault } from "../../src/http/json-syntax"
import { exactIntegersMax, jsonValuesMax, parseJsonText } from "../../src/http/json-text"
import { spellingOf } from "../../src/ir/json-spelling"
import { seededRandom } from "../support/random"

const depthMax = 256

function value(text: string): unknown {
  const parsed = parseJsonText(text, depthMax)
  if (!parsed.ok) throw new Error(parsed.error.message)
  return parsed.value
}

function message(text: string): string {
  const parsed = parseJsonText(text, depthMax)
  return parsed.ok ? "parsed" : parsed.error.message
}

describe("integers", () => {
  test("beyond 2^53 are exact, others stay numbers", () => {
    expect(value("[9007199254740991,9007199254740992,-9007199254740993]")).toEqual([
      9007199254740991,
      9007199254740992n,
      -9007199254740993n,
    ])
    expect(value('{"seed":9223372036854775807,"a":{"b":[18446744073709551615,"x"]},"c":1}')).toEqual({
      seed: 9223372036854775807n,
      a: { b: [18446744073709551615n, "x"] },
      c: 1,
    })
    expect(value("12345678901234567890")).toBe(12345678901234567890n)
  })

  test("written as fractions or with exponents are numbers, as in every JSON reader", () => {
    expect(value("[9007199254740993.0,1e20,0.12345678901234567890]")).toEqual([
      9007199254740992, 1e20, 0.12345678901234568,
    ])
    expect(Object.is(value("-0"), -0)).toBe(true)
  })

  test("inside strings and keys are text", () => {
    expect(value('{"12345678901234567890":"98765432109876543210","\\"1":1}')).toEqual({
      "12345678901234567890": "98765432109876543210",
      '"1': 1,
    })
  })

  test("that are no JSON stay errors beside exact ones", () => {
    for (const text of [
      "{12345678901234567890:1}",
      "{12345678901234567890 :1}",
      "[012345678901234567890]",
      "[12345678901234567890x]",
      "[--12345678901234567890]",
      "[1234567890 1234567890123456789]",
      "[12345678901234567890,]",
      '[12345678901234567890"a"]',
    ]) {
      expect([text, message(text)]).toEqual([text, expect.stringContaining("not valid JSON")])
    }
  })

  test("are exact in at most exactIntegersMax places", () => {
    const list = (count: number): string => `[${new Array<string>(count).fill("9007199254740993").join(",")}]`
    expect((value(list(exactIntegersMax)) as unknown[]).at(-1)).toBe(9007199254740993n)
    expect(message(list(exactIntegersMax + 1))).toBe("the body holds more than 65536 integers beyond 2^53")
  })
})

describe("what values cannot say", () => {
  const noted = (text: string): unknown => {
    const parsed = value(text)
    return spellingOf(parsed as object)
  }

  test("is noted: integers written as floats, and the order of keys that look like integers", () => {
    expect(noted('{"a":14.0,"b":14,"c":1e3,"d":0.5,"e":-0.0}')).toEqual({
      keys: null,
      floats: new Set(["a", "c", "e"]),
    })
    expect(noted("[1.0,1,2.00]")).toEqual({ keys: null, floats: new Set(["0", "2"]) })
    expect(noted('{"b":1,"10":1,"2":1,"a":1}')).toEqual({ keys: ["b", "10", "2", "a"], floats: null })
  })

  test("is noted where it stands, and only there", () => {
    const parsed = value('{"x":{"n":1.0},"y":[[2.0]],"z":{"n":1}}') as { x: object; y: object[]; z: object }
    const spellings = [parsed, parsed.x, parsed.y, parsed.y[0]!, parsed.z].map(spellingOf)
    expect(spellings.map((each) => each !== null)).toEqual([false, true, false, true, false])
    expect(parsed).toEqual({ x: { n: 1 }, y: [[2]], z: { n: 1 } })
    expect(noted('{"a":1.5,"01":2,"4294967295":3,"b":"1.0"}')).toBeNull()
  })

  test("follows the last of duplicate keys, which stands where the first stood", () => {
    expect(noted('{"a":1.0,"2":1,"a":1}')).toEqual({ keys: ["a", "2"], floats: new Set() })
    expect(noted('{"a":1,"2":1,"a":1.0}')).toEqual({ keys: ["a", "2"], floats: new Set(["a"]) })
  })

  test("does not change the values: 5,000 random texts are what the runtime's parser makes of them", () => {
    const random = seededRandom(11)
    const pick = (items: readonly string[]): string => items[Math.floor(random() * items.length)]!
    const write = (depth: number): string => {
      const kind = depth === 0 ? 0 : Math.floor(random() * 3)
      const count = Math.floor(random() * 4)
      if (kind === 0) return pick(["1.0", "2e2", "-0.0", "7", "null", "true", "false", '"a\\u00e9\\"x"', '""', "0.25"])
      const items = Array.from({ length: count }, () => `${pick(["", " ", "\n"])}${write(depth - 1)}${pick(["", " "])}`)
      if (kind === 1) return `[${items.join(",")}${count === 0 ? " " : ""}]`
      const keys = ['"a"', '"2"', '"1"', '"\\n"', '"__proto__"', '"é"']
      return `{${items.map((item) => `${pick(keys)} :${item}`).join(",")}}`
    }
    for (let i = 0; i < 5_000; i++) {
      const text = `[0.0,${write(4)}]`
      expect([text, value(text)]).toEqual([text, JSON.parse(text)])
    }
  })
})

test("numbers that no double holds are refused", () => {
  const outOfRange = "the body holds a number out of range at char 1"
  for (const number of ["1e400", "-1E+309", "1e0400", `1${"0".repeat(250)}e99`, "9".repeat(309), "9".repeat(100_000)]) {
    expect(message(`[${number}]`)).toBe(outOfRange)
  }
  expect(value("[1e308,1e-400,1e007]")).toEqual([1e308, 0, 1e7])
  expect(value(`${"9".repeat(308)}`)).toBe(BigInt("9".repeat(308)))
})

test("a key named __proto__ is a property like others, exact integers included", () => {
  for (const [text, inner] of [
    ['{"__proto__":{"admin":true}}', { admin: true }],
    ['{"__proto__":12345678901234567890}', 12345678901234567890n],
    ['{"__proto__":[12345678901234567890]}', [12345678901234567890n]],
  ] as const) {
    const parsed = value(text) as object
    expect(Object.getOwnPropertyDescriptor(parsed, "__proto__")?.value).toEqual(inner)
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype)
  }
})

test("of duplicate keys the last wins, and lone surrogates stay", () => {
  expect(value('{"a":1,"a":12345678901234567890,"a":3}')).toEqual({ a: 3 })
  expect(value('"\\ud800x"')).toBe("\ud800x")
})

test("nesting is counted outside strings and refused before it is parsed", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth)
  expect(message(nested(depthMax))).toBe("parsed")
  expect(message(nested(depthMax + 1))).toBe("the body nests arrays and objects more than 256 deep")
  expect(message('{"a":'.repeat(100_000))).toBe("the body nests arrays and objects more than 256 deep")
  expect(message(JSON.stringify("[{".repeat(1_000)))).toBe("parsed")
  expect(message(`["\\"${"[".repeat(300)}"]`)).toBe("parsed")
  expect(message(`["\\\\",${"[".repeat(300)}`)).toBe("the body nests arrays and objects more than 256 deep")
})

describe("a text that is no JSON", () => {
  test("is refused with what was expected and where", () => {
    const at = (text: string): string => message(text).replace("the body is not valid JSON: expected ", "")
    expect(at('{"a":1,}')).toBe("a property name in double quotes at line 1 column 8 (char 7)")
    expect(at('{"a":nul}')).toBe("a value at line 1 column 6 (char 5)")
    expect(at("[1,2")).toBe('"," or "]" at line 1 column 5 (char 4)')
    expect(at('{\n  "a": 1\n  "b": 2\n}')).toBe('"," or "}" at line 3 column 3 (char 13)')
    expect(at('{"a" 1}')).toBe('":" at line 1 column 6 (char 5)')
    expect(at('"abc')).toBe("the end of a string at line 1 column 1 (char 0)")
    expect(at('["a\nb"]')).toBe("no control character in a string at line 1 column 4 (char 3)")
    expect(at('["\\x"]')).toBe("a valid escape at line 1 column 3 (char 2)")
    expect(at("{} {}")).toBe("nothing more at line 1 column 4 (char 3)")
    expect(at("NaN")).toBe("a value at line 1 column 1 (char 0)")
    expect(at("[12345678901234567890,x]")).toBe("a value at line 1 column 23 (char 22)")
  })

  test("is told apart from one exactly where the runtime's parser does: 20,000 mutated texts", () => {
    const random = seededRandom(11)
    const pieces = [...'{}[]:,"\\u0041 \n-0.19eE+tfn', '"a"', "true", "false", "null", "1.5e3", '"\\n"', '{"k":', "[1,"]
    let refused = 0
    for (let round = 0; round < 20_000; round++) {
      let text = ""
      for (let i = 0; i < 1 + random() * 8; i++) text += pieces[Math.floor(random() * pieces.length)]!
      let valid = true
      try {
        JSON.parse(text)
      } catch {
        valid = false
        refused += 1
      }
      const ours = parseJsonText(text, depthMax)
      const outOfRange = !ours.ok && ours.error.message.includes("out of range")
      expect([text, findSyntaxFault(text) === null, ours.ok]).toEqual([text, valid, valid && !outOfRange])
    }
    expect(refused).toBeGreaterThan(5_000)
    expect(refused).toBeLessThan(19_990)
  })
})

test("one long integer does not make ten megabytes cost a multiple of plain parsing", () => {
  const text = `[${"0,".repeat(5_000_000)}12345678901234567890]`
  const time = (run: () => void): number => {
    const start = performance.now()
    run()
    return performance.now() - start
  }
  const plain = Math.min(
    time(() => JSON.parse(text)),
    time(() => JSON.parse(text)),
  )
  const exact = Math.min(
    time(() => parseJsonText(text, depthMax)),
    time(() => parseJsonText(text, depthMax)),
  )
  // The reviver would take fifteen; the bound leaves room for a busy machine.
  expect(exact / plain).toBeLessThan(30)
}, 30_000)

test("more values than a request can use are refused, while they are counted", () => {
  const many = `[${"0,".repeat(jsonValuesMax + 1)}0]`
  const refused = parseJsonText(many, 16)
  expect(refused.ok ? null : refused.error.kind).toBe("body_not_json")
  expect(parseJsonText(`{"a": "${",".repeat(100)}"}`, 16).ok).toBe(true)
})
