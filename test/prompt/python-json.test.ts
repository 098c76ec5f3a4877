/** JSON as Python's json module reads and writes it: what CPython 3.11 prints for `dumps(loads(text), ensure_ascii=False)`. */
import { expect, test } from "bun:test"
import { pythonJsonText, readPythonJson } from "../../src/prompt/python-json"

function written(text: string): string {
  const read = readPythonJson(text)
  if (!read.ok) return read.error.kind
  const made = pythonJsonText(read.value)
  return made.ok ? made.value : made.error.kind
}

test("values are written as Python writes them", () => {
  for (const [text, wanted] of [
    ['{"b":1,"a":[1,2,{}],"10":null,"2":true}', '{"b": 1, "a": [1, 2, {}], "10": null, "2": true}'],
    ['{"a":1,"b":2,"a":3}', '{"a": 3, "b": 2}'],
    [
      "[-0,-0.0,1.0,1e5,1E+16,1.5e-7,123456789012345678901]",
      "[0, -0.0, 1.0, 100000.0, 1e+16, 1.5e-07, 123456789012345678901]",
    ],
    ["[NaN,Infinity,-Infinity,1e400]", "[NaN, Infinity, -Infinity, Infinity]"],
    ['"\\u00e9\\/\\n\\u001f\u007f\\ud83d\\ude00"', '"é/\\n\\u001f\u007f😀"'],
    [' \t\r\n"\\"\\\\" ', '"\\"\\\\"'],
    [`${"[".repeat(512)}${"]".repeat(512)}`, `${"[".repeat(512)}${"]".repeat(512)}`],
  ] as const) {
    expect(written(text)).toBe(wanted)
  }
})

test("what is no JSON to Python is none", () => {
  for (const text of ["", " ", "{", "[1,]", '{"a":1,}', "{'a':1}", "01", "1.", ".5", "+1", "-", "nan", "True"]) {
    expect(written(text), text).toBe("not_json")
  }
  for (const text of [
    '"a',
    '"\\x"',
    '"\\u12g4"',
    '"\n"',
    '"a\\"',
    "[1 2]",
    '{"a" 1}',
    "{1:2}",
    "1 2",
    "\ufeff1",
    "\u00a01",
  ]) {
    expect(written(text), text).toBe("not_json")
  }
})

test("what Python would read no end of is too large", () => {
  expect(written("[".repeat(513))).toBe("json_too_large")
  expect(written("9".repeat(4300))).toBe("9".repeat(4300))
  expect(written(`-${"9".repeat(4301)}`)).toBe("json_too_large")
})

test("a long text is read in time that grows with it", () => {
  const text = JSON.stringify({ a: 'x"\\'.repeat(500_000) })
  expect(written(text)).toHaveLength(text.length + 1)
})
