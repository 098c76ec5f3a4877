import { expect, test } from "bun:test"
import { PartialText } from "../../src/parser/partial"

/** What comes out in front, unit by unit, and what is held at the end. */
function run(whole: string, text: string): [string, string] {
  const partial = new PartialText(whole)
  let out = ""
  for (let i = 0; i < text.length; i++) {
    const seen = partial.held + text[i]!
    out += seen.slice(0, partial.step(text.charCodeAt(i)))
  }
  return [out, partial.held]
}

test("holds the longest end that may begin the text", () => {
  expect(run("<tool>", "a<to<t")).toEqual(["a<to", "<t"])
  expect(run("aab", "aaab")).toEqual(["a", "aab"])
  expect(run("abab", "ababab")).toEqual(["ab", "abab"])
  expect(run("\n", "\n\n\n")).toEqual(["\n\n", "\n"])
  expect(run("<tool>", "nothing")).toEqual(["nothing", ""])
})
