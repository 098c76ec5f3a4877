import { describe, expect, test } from "bun:test"
import { CustomInput, customInput } from "../../../src/api/responses/custom-input"
import { everySplit } from "../../support/every-split"

/** What comes out of each piece, and at the end. */
function pieces(text: string, ends: readonly number[]): string[] {
  const input = new CustomInput()
  let from = 0
  const out: string[] = []
  for (const end of ends) {
    out.push(input.push(text.slice(from, end)))
    from = end
  }
  return [...out, input.finish()]
}

describe("the input of a custom call", () => {
  test.each([
    ["plain", '{"input": "ls -l"}', "ls -l"],
    ["with white space around everything", ' \n{\t"input" :\r\n"x" } ', "x"],
    ["with every escape", String.raw`{"input":"a\"b\\c\/d\b\f\n\r\t\u00e9"}`, 'a"b\\c/d\b\f\n\r\té'],
    ["of a pair written as escapes", String.raw`{"input":"\ud83c\udf89!"}`, "🎉!"],
    ["of a pair as it is", '{"input":"🎉!"}', "🎉!"],
    ["with a half that stands alone", String.raw`{"input":"\ud83c!"}`, "\ufffd!"],
    ["that ends with a half", String.raw`{"input":"x\ud83c"}`, "x\ufffd"],
    ["that is cut within a pair", String.raw`{"input":"x\ud83c`, "x"],
    ["that is cut within an escape", '{"input":"x\\', "x"],
    ["that is cut within an escape's digits", '{"input":"x\\u00', "x"],
    ["that is cut in the text", '{"input":"abc', "abc"],
    ["that is cut before the text", '{"inp', ""],
    ["that is empty", '{"input":""}', ""],
    ["without arguments", "", ""],
    ["with line breaks that JSON would not allow", '{"input":"a\nb"}', "a\nb"],
    ["with an escape that JSON does not know", String.raw`{"input":"\q\u12x"}`, String.raw`q\u12x`],
    ["with more keys behind it", '{"input":"a","more":"b"}', "a"],
    ["behind other keys", '{"more":1,"input":"é"}', "é"],
    ["that is no text", '{"input":5}', '{"input":5}'],
    ["that is not there", '{"command":"ls"}', '{"command":"ls"}'],
    ["that is no object", "ls -l", "ls -l"],
  ])("%s", (_name, text, expected) => {
    expect(customInput(text)).toBe(expected)
    for (const ends of everySplit(text.length)) {
      const out = pieces(text, ends)
      expect(out.join("")).toBe(expected)
      // A delta never ends inside a character.
      for (const piece of out) expect(piece.isWellFormed()).toBe(true)
    }
  })

  test("comes as soon as it can be told", () => {
    const input = new CustomInput()
    const out = ['{"inp', 'ut": "a', "b\\", "nc", String.raw`\ud83c`, String.raw`\udf89d`, '"}'].map((piece) =>
      input.push(piece),
    )
    expect(out).toEqual(["", "a", "b", "\nc", "", "🎉d", ""])
    expect(input.finish()).toBe("")
  })
})
