/**
 * Added tokens cut out in the core, and normal forms made there, against the same in JavaScript: same ids, also where
 * windows of text meet.
 */
import { describe, expect, test } from "bun:test"
import { type AddedToken, AddedTokens } from "../../src/tokenizer/added-tokens"
import type { AlignedText } from "../../src/tokenizer/aligned-text"
import { BpeCore, notPlain, type ScannerFamily } from "../../src/tokenizer/bpe-core"
import { normalizedText, readNormalizer } from "../../src/tokenizer/normalizer"
import { unicodeClass } from "../../src/tokenizer/unicode-class"
import { UnicodeForm } from "../../src/tokenizer/unicode-form"
import { nonStarters, whiteSpace, wordCharactersTiktoken } from "../../src/tokenizer/unicode-ranges"
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

function idsByJavaScript(
  core: BpeCore,
  added: readonly AddedToken[],
  text: string,
  form: { normalize(text: AlignedText): { readonly text: string } } | null = null,
): number[] {
  const ids: number[] = []
  const wellFormed = text.toWellFormed()
  const classes = { word: wordCharactersTiktoken, whiteSpace }
  new AddedTokens(added, ({ content }) => content, classes).cut(
    wellFormed,
    null,
    (start, end) => {
      const segment = { text: wellFormed.slice(start, end), starts: null, ends: null }
      const count = core.encode(form?.normalize(segment).text ?? segment.text, out, 0, Infinity)
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
      expect(core.takeRules(added, null)).toBe(true)
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
      expect(core.takeRules(added, null)).toBe(true)
      const bits = [...units, ...added.map(({ content }) => content), " word", " ", " the"]
      const text = joined(random, bits, 120_000 + Math.floor(random() * 1000))
      expect(Bun.deepEquals(idsByCore(core, text), idsByJavaScript(core, added, text))).toBe(true)
    }
  })

  test("one that goes on behind a window's end is not cut short", () => {
    const long = { id: 1000, content: "<".repeat(50), special: false, singleWord: false }
    const added = [{ ...long, lstrip: false, rstrip: false, normalized: false }]
    expect(core.takeRules(added, null)).toBe(true)
    // A window takes 131,072 units of a long text at a time.
    for (const before of [131_071, 131_072 - 49, 131_072 - 25, 131_072, 2 * 131_072 - 1]) {
      const text = `${"word ".repeat(before / 5).padEnd(before, "w")}${"<".repeat(50)} and more ${"text ".repeat(60_000)}<<<`
      expect(Bun.deepEquals(idsByCore(core, text), idsByJavaScript(core, added, text))).toBe(true)
    }
  })

  test("are as many as were asked for and one more, at least", () => {
    expect(core.takeRules(spellings(seededRandom(seed)), null)).toBe(true)
    const text = "<|a word of text\n".repeat(1000)
    const all = idsByCore(core, text)
    const some = idsByCore(core, text, 100)
    expect(some.length).toBeGreaterThan(100)
    expect(some).toEqual(all.slice(0, some.length))
  })
})

test(`long runs of marks have the form that JavaScript gives them, in time that grows with them (seed ${seed})`, () => {
  const random = seededRandom(seed)
  const form = new UnicodeForm("NFC")
  const marks: string[] = []
  for (let i = 0; i < nonStarters.length; i += 2) {
    for (let code = nonStarters[i]!; code <= nonStarters[i + 1]!; code++) marks.push(String.fromCodePoint(code))
  }
  const run = (length: number): string =>
    `e${joined(random, marks, length)}é${joined(random, ["\u0301", "\u0323"], length)}`
  for (let i = 0; i < 20; i++) {
    const text = run(100 + Math.floor(random() * 400))
    expect(form.normalize({ text, starts: null, ends: null }).text).toBe(text.normalize("NFC"))
  }
  // By insertion this would take minutes.
  expect(form.normalize({ text: run(200_000), starts: null, ends: null }).text.length).toBeGreaterThan(200_000)
})

describe("NFC in the core", () => {
  const form = new UnicodeForm("NFC")
  const angle = { special: false, singleWord: false, lstrip: false, rstrip: false, normalized: false }
  const added = ["<|end|>", "<e", "<"].map((content, i): AddedToken => ({ ...angle, id: 1000 + i, content }))
  const core = coreOf("qwen2")
  const rules = form.inCore(added.map(({ content }) => content))
  const { touched, firsts } = rules!.characters()
  const random = seededRandom(seed)
  const someOf = (ranges: ArrayLike<number>): string => {
    const range = 2 * Math.floor((random() * ranges.length) / 2)
    return String.fromCodePoint(ranges[range]! + Math.floor(random() * (ranges[range + 1]! - ranges[range]! + 1)))
  }
  const text = (length: number, plain: number): string => {
    const parts: string[] = []
    for (let i = 0; i < length; i++) {
      const kind = random()
      if (kind < plain) parts.push("the words ")
      else if (kind < plain + (1 - plain) / 3) parts.push(someOf(firsts))
      else parts.push(kind < 1 - (1 - plain) / 6 ? someOf(touched) : [...units, "<|end|>", "e\u0301", " "][i % 14]!)
    }
    return parts.join("")
  }
  const expectSame = (each: string): void => {
    expect({ text: each, ids: idsByCore(core, each) }).toEqual({
      text: each,
      ids: idsByJavaScript(core, added, each, form),
    })
  }
  test("is offered", () => {
    expect(rules === null ? false : core.takeRules(added, rules)).toBe(true)
  })

  test("gives every character its form, alone and behind another", () => {
    for (let i = 0; i < touched.length; i += 2) {
      let all = ""
      for (let code = touched[i]!; code <= touched[i + 1]!; code++) {
        const char = String.fromCodePoint(code)
        all += `${char} e${char}x가${char}<${char}`
      }
      expectSame(all)
    }
  })

  test(`gives texts the ids of their form (seed ${seed})`, () => {
    for (let i = 0; i < 4000; i++) expectSame(text(Math.floor(random() * 20), random()))
  })

  test(`also where windows meet (seed ${seed})`, () => {
    for (const plain of [0.2, 0.9, 0.999]) {
      const long = text(plain < 0.5 ? 150_000 : 250_000, plain)
      expect(Bun.deepEquals(idsByCore(core, long), idsByJavaScript(core, added, long, form))).toBe(true)
    }
  })

  test("takes long stretches, and long runs of what it has not met", () => {
    for (const each of ["\u0301", "\u0323\u0301", "e\u0301", "\u1100\u1161\u11a8", "क\u093c", ";\u0338"]) {
      const run = `a${each.repeat(20_000)}b`
      expect(Bun.deepEquals(idsByCore(core, run), idsByJavaScript(core, added, run, form))).toBe(true)
    }
  })

  test("gives up where the form does not fit, and the window is as usual afterwards", () => {
    // Six bytes for three.
    expect(core.encodePlain("\u0958".repeat(130_000), null, true, out, 0, Infinity)).toBe(notPlain)
    expect(core.encodePlain("\u0958".repeat(900_000), null, true, out, 0, Infinity)).toBe(notPlain)
    expectSame("\u0958".repeat(1000))
  })

  test("says how much room ids take that are more than the text has bytes", () => {
    // One window, and several: six bytes and ids for one unit, behind text that is its own form.
    for (const text of ["\u0fb9".repeat(5000), "a b ".repeat(32_000) + "\u0fb9".repeat(30_000)]) {
      const ids = idsByJavaScript(core, added, text, form)
      let room = 8
      for (let tries = 0; ; tries++) {
        const some = new Uint32Array(room)
        const end = core.encodePlain(text, null, true, some, 0, Infinity)
        if (end >= 0) {
          expect(Bun.deepEquals([...some.subarray(0, end)], ids)).toBe(true)
          break
        }
        // More each time, or the caller would ask for ever.
        expect(-end).toBeGreaterThan(room)
        expect(tries).toBeLessThan(5)
        room = -end
      }
    }
  })

  test("is not offered where a text in its form could spell an added token", () => {
    const producible = new Set<string>()
    for (let code = 0x80; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      for (const char of String.fromCodePoint(code).normalize("NFC")) if (char < "\x80") producible.add(char)
    }
    expect([...producible].sort()).toEqual([";", "K", "`"])
    for (const char of [...producible, "é"]) expect(form.inCore(["<|end|>", `<${char}>`])).toBeNull()
    expect(new UnicodeForm("NFKC").inCore([])).toBeNull()
  })
})

describe("one character for another in the core", () => {
  const angle = { special: false, singleWord: false, lstrip: false, rstrip: false, normalized: false }
  const added = ["\n", "▁▁", "▁▁▁▁", "<b>"].map((content, i): AddedToken => ({ ...angle, id: 1000 + i, content }))
  const spellings = added.map(({ content }) => content)
  const replace = (content: string, literal = "▁") => {
    const read = readNormalizer({ type: "Replace", pattern: { String: literal }, content }, unicodeClass)
    if (!read.ok || read.value === null) throw new Error("no normalizer")
    return read.value
  }
  const normalizer = replace(" ")

  test(`gives texts the ids of the replaced text, behind the cut (seed ${seed})`, () => {
    const random = seededRandom(seed)
    const core = coreOf("whole")
    const rules = normalizer.inCore!(spellings)!
    expect(core.takeRules(added, rules)).toBe(true)
    const form = { normalize: (text: AlignedText) => ({ text: normalizedText(normalizer, text.text) }) }
    const bits = ["▁", "▁", "▁▁", " ", "\n", "<b>", "a", "ab", "é", "漢", "▂"]
    for (let i = 0; i < 2000; i++) {
      const text = joined(random, bits, Math.floor(random() * 20))
      expect({ text, ids: idsByCore(core, text) }).toEqual({ text, ids: idsByJavaScript(core, added, text, form) })
    }
    const long = joined(random, bits, 300_000)
    expect(Bun.deepEquals(idsByCore(core, long), idsByJavaScript(core, added, long, form))).toBe(true)
  })

  test("is not offered where an added token could be spelled, or the core does not look for the character", () => {
    expect(normalizer.inCore!(["a b"])).toBeNull()
    expect(replace("").inCore!([])).toBeNull()
    expect(replace("ab").inCore!([])).toBeNull()
    expect(replace("▁", " ").inCore!([])).toBeNull()
    expect(replace(" ", "▁▁").inCore!([])).toBeNull()
    expect(replace(" ", "\ud800").inCore!([])).toBeNull()
  })
})

test("spellings that are not text are not taken", () => {
  const core = coreOf("gpt2")
  expect(core.takeRules([{ id: 300, content: "\ud800" }], null)).toBe(false)
  expect(core.takeRules([{ id: 300, content: "" }], null)).toBe(false)
  expect(idsByCore(core, "ab")).toEqual([256])
})
