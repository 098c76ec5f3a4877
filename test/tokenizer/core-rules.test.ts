/** Added tokens cut out in the core against the same cut in JavaScript: same ids, also where windows of text meet. */
import { describe, expect, test } from "bun:test"
import { type AddedToken, AddedTokens } from "../../src/tokenizer/added-tokens"
import { BpeCore, type ScannerFamily } from "../../src/tokenizer/bpe-core"
import { whiteSpace, wordCharactersTiktoken } from "../../src/tokenizer/unicode-ranges"
import { seededRandom } from "../support/random"

const seed = 20_261_129
const families: readonly ScannerFamily[] = ["whole", "gpt2", "gpt2_digits", "llama3", "qwen2", "o200k", "deepseek3"]
/** Spellings share beginnings, so that one may go on where another has ended. */
const units = ["<", "<|", "|>", "a", "b", "é", "漢", "😀", "\n", "[", "\t"]

function coreOf(scanner: ScannerFamily): BpeCore {
  const core = BpeCore.create({
    scanner,
    tokenBytes: [...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)), new TextEncoder().encode("ab")],
    merges: Uint32Array.of(97, 98),
    ignoreMerges: false,
    byteFallback: null,
    unknownId: -1,
    fuseUnknown: false,
  })
  if (!core.ok) throw new Error(core.error.message)
  return core.value
}

function joined(random: () => number, from: readonly string[], count: number): string {
  return Array.from({ length: count }, () => from[Math.floor(random() * from.length)]).join("")
}

function spellings(random: () => number): AddedToken[] {
  return Array.from({ length: 1 + Math.floor(random() * 12) }, (_, i) => ({
    id: 1000 + i,
    content: joined(random, units, 1 + Math.floor(random() * 5)),
    special: false,
    singleWord: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  }))
}

const out = new Uint32Array(4_000_000)

function idsByCore(core: BpeCore, text: string, tokensMax = Infinity): number[] {
  return [...out.subarray(0, core.encodePlain(text, null, true, out, 0, tokensMax))]
}

function idsByJavaScript(core: BpeCore, added: readonly AddedToken[], text: string): number[] {
  const ids: number[] = []
  const wellFormed = text.toWellFormed()
  const classes = { word: wordCharactersTiktoken, whiteSpace }
  new AddedTokens(added, ({ content }) => content, classes).cut(
    wellFormed,
    null,
    (start, end) => {
      const count = core.encode(wellFormed.slice(start, end), out, 0, Infinity)
      for (let i = 0; i < count; i++) ids.push(out[i]!)
      return true
    },
    ({ id }) => {
      ids.push(id)
      return true
    },
  )
  return ids
}

describe.each(families)("added tokens in the core, %s", (scanner) => {
  const core = coreOf(scanner)

  test(`have the ids of the cut in JavaScript in short texts (seed ${seed})`, () => {
    const random = seededRandom(seed)
    for (let round = 0; round < 60; round++) {
      const added = spellings(random)
      expect(core.takeAdded(added)).toBe(true)
      const bits = [...units, ...units, ...added.map(({ content }) => content), " ", " the", "1", "'s", "\ud83d"]
      for (let i = 0; i < 30; i++) {
        const text = joined(random, bits, Math.floor(random() * 40))
        expect({ text, ids: idsByCore(core, text) }).toEqual({ text, ids: idsByJavaScript(core, added, text) })
      }
    }
  })

  test(`have them in texts of several windows (seed ${seed})`, () => {
    const random = seededRandom(seed)
    for (let round = 0; round < 3; round++) {
      const added = spellings(random)
      expect(core.takeAdded(added)).toBe(true)
      const bits = [...units, ...added.map(({ content }) => content), " word", " ", " the"]
      const text = joined(random, bits, 120_000 + Math.floor(random() * 1000))
      expect(Bun.deepEquals(idsByCore(core, text), idsByJavaScript(core, added, text))).toBe(true)
    }
  })

  test("one that goes on behind a window's end is not cut short", () => {
    const long = { id: 1000, content: "<".repeat(50), special: false, singleWord: false }
    const added = [{ ...long, lstrip: false, rstrip: false, normalized: false }]
    expect(core.takeAdded(added)).toBe(true)
    // A window takes 131,072 units of a long text at a time.
    for (const before of [131_071, 131_072 - 49, 131_072 - 25, 131_072, 2 * 131_072 - 1]) {
      const text = `${"word ".repeat(before / 5).padEnd(before, "w")}${"<".repeat(50)} and more ${"text ".repeat(60_000)}<<<`
      expect(Bun.deepEquals(idsByCore(core, text), idsByJavaScript(core, added, text))).toBe(true)
    }
  })

  test("are as many as were asked for and one more, at least", () => {
    expect(core.takeAdded(spellings(seededRandom(seed)))).toBe(true)
    const text = "<|a word of text\n".repeat(1000)
    const all = idsByCore(core, text)
    const some = idsByCore(core, text, 100)
    expect(some.length).toBeGreaterThan(100)
    expect(some).toEqual(all.slice(0, some.length))
  })
})

test("spellings that are not text are not taken", () => {
  const core = coreOf("gpt2")
  expect(core.takeAdded([{ id: 300, content: "\ud800" }])).toBe(false)
  expect(core.takeAdded([{ id: 300, content: "" }])).toBe(false)
  expect(idsByCore(core, "ab")).toEqual([256])
})
