import { describe, expect, test } from "bun:test"
import { joinShellWords, splitShellWords } from "../../../src/engine/process/shell-words"
import { seededRandom } from "../../support/random"

describe("words of a command line", () => {
  test.each([
    ["", []],
    [" \t\n ", []],
    ["vllm serve m", ["vllm", "serve", "m"]],
    ["  a\tb\n c  ", ["a", "b", "c"]],
    ["'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]],
    ["'' \"\" x''", ["", "", "x"]],
    ["a'b'\"c\"d", ["abcd"]],
    [`'a"\\b'`, ['a"\\b']],
    ['"a\\"b\\\\c\\$d\\`e\\n"', ['a"b\\c$d`e\\n']],
    ['"a\\\nb" c\\\nd', ["ab", "cd"]],
    ["a \\\n b", ["a", "b"]],
    ['--x={"a": 1}', ["--x={a:", "1}"]],
    [`--x='{"a": 1}'`, ['--x={"a": 1}']],
    ["$HOME *.txt a|b ; # x", ["$HOME", "*.txt", "a|b", ";", "#", "x"]],
  ] as const)("of %p are %p", (text, words) => {
    expect(splitShellWords(text)).toEqual({ ok: true, value: [...words] })
  })

  test.each([
    ["a 'b", "a single quote that is closed"],
    ['a "b', "a double quote that is closed"],
    ['"a\\', "a double quote that is closed"],
    ["a\\", "a character behind the last backslash"],
  ])("of %p are refused: expected %s", (text, expected) => {
    expect(splitShellWords(text)).toEqual({ ok: false, error: expected })
  })

  test("come back from the line that shows them, here and in a real shell", async () => {
    const seed = 1
    const random = seededRandom(seed)
    const pick = (from: string) => from[Math.floor(random() * from.length)]!
    const word = () => Array.from({ length: Math.floor(random() * 8) }, () => pick("ab -'\"\\$`\n\t*é;=")).join("")
    const words = Array.from({ length: 300 }, word)
    const line = joinShellWords(words)
    expect({ seed, split: splitShellWords(line) }).toEqual({ seed, split: { ok: true, value: words } })
    const shell = Bun.spawn(["sh", "-c", `printf '%s\\0' ${line}`], { stdout: "pipe" })
    expect((await new Response(shell.stdout).text()).split("\0")).toEqual([...words, ""])
  })

  test("are shown without quotes where they need none", () => {
    expect(joinShellWords(["vllm", "serve", "org/m", "--x=1", "it's", ""])).toBe("vllm serve org/m --x=1 'it'\\''s' ''")
  })
})
