/** What the parts of a tokenizer.json do, on a small vocabulary: expectations worked out by HF tokenizers 0.23.3. */
import { describe, expect, test } from "bun:test"
import { spellBytes } from "../../src/tokenizer/byte-level"
import { loadBytes } from "../../src/tokenizer/load"
import type { LoadedTokenizer } from "../../src/tokenizer/loaded-tokenizer"
import { openTokenizerJson } from "../../src/tokenizer/open"
import { byteLevelTokenizer, sentencePieceTokenizer } from "./small-tokenizers"

type Json = { [key: string]: unknown }

/** A tokenizer of the small byte-level vocabulary (ids 0–255 are bytes) with other parts in it. */
function withParts(parts: Json, added: readonly Json[] = []): LoadedTokenizer {
  return loaded({ ...(byteLevelTokenizer().json as Json), added_tokens: added, ...parts })
}

function loaded(json: unknown): LoadedTokenizer {
  const tokenizer = loadBytes(new TextEncoder().encode(JSON.stringify(json)))
  if (!tokenizer.ok) throw new Error(tokenizer.error.message)
  return tokenizer.value
}

function pieces(tokenizer: LoadedTokenizer, text: string): string[] {
  const ids = tokenizer.encode(text, { addSpecialTokens: false })
  if (!ids.ok) throw new Error(ids.error.message)
  return Array.from(ids.value, (id) => tokenizer.decode(Uint32Array.of(id), false))
}

function whole(tokenizer: LoadedTokenizer, text: string): string {
  return pieces(tokenizer, text).join("|")
}

function split(pattern: Json, behavior: string, invert = false): Json {
  const splits = { type: "Split", pattern, behavior, invert }
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false }
  return { pre_tokenizer: { type: "Sequence", pretokenizers: [splits, bytes] } }
}

/** The vocabulary with every piece a token of its own, so that ids show where pieces end. */
function piecesOf(parts: Json, text: string): string {
  const ids = new Map<string, number>()
  for (let byte = 0; byte < 256; byte++) ids.set(spellBytes(Uint8Array.of(byte)), byte)
  const bytes = new TextEncoder().encode(text)
  for (let start = 0; start < bytes.length; start++) {
    for (let end = start + 2; end <= bytes.length; end++) {
      const spelling = spellBytes(bytes.subarray(start, end))
      if (!ids.has(spelling)) ids.set(spelling, ids.size)
    }
  }
  const model = { type: "BPE", vocab: Object.fromEntries(ids), merges: [], ignore_merges: true }
  return whole(withParts({ ...parts, model }), text)
}

describe("a byte that the vocabulary lacks", () => {
  const texts = ["!\u0004? \u0004", " \u0004\u200d", "\u0004\u00e9\u6f22 \u0004x"]

  /** Ids and offsets of the texts; all bytes but 4 are tokens. */
  function seen(unk_token: string | null): unknown[] {
    const { model } = byteLevelTokenizer().json as { model: { vocab: { [token: string]: number } } }
    const bytes = Object.entries(model.vocab).filter(
      ([token, id]) => id < 256 && token !== spellBytes(Uint8Array.of(4)),
    )
    const vocab = { ...Object.fromEntries(bytes), "!?": 256, Ġâ: 257, ĠâĢ: 258 }
    const merges = ["! ?", "Ġ â", "Ġâ Ģ"]
    const tokenizer = withParts({ model: { type: "BPE", unk_token, vocab, merges } })
    return texts.map((text) => {
      const plain = tokenizer.encode(text, { addSpecialTokens: false })
      const encoded = tokenizer.encodeWithOffsets(text, "code_point", { addSpecialTokens: false })
      if (!encoded.ok) return encoded.error
      expect(plain.ok && plain.value).toEqual(encoded.value.tokenIds)
      return [Array.from(encoded.value.tokenIds).join(" "), Array.from(encoded.value.offsets).join(" ")]
    })
  }

  test("is dropped, its neighbours may merge, and what is behind it moves to the left", () => {
    expect(seen(null)).toEqual([
      ["256 32", "0 2 3 4"],
      ["258 141", "0 3 2 3"],
      ["195 169 230 188 162 32 120", "1 2 1 2 2 3 2 3 2 3 3 4 5 6"],
    ])
  })

  test("is the unknown token where there is one, which stands between its neighbours", () => {
    expect(seen("!")).toEqual([
      ["33 256 32 33", "0 1 1 3 3 4 4 5"],
      ["32 33 226 128 141", "0 1 1 2 2 3 2 3 2 3"],
      ["33 195 169 230 188 162 32 33 120", "0 1 1 2 1 2 2 3 2 3 2 3 3 4 4 5 5 6"],
    ])
  })
})

describe("pre-tokenizers", () => {
  test("split behaviors cut where the reference cuts", () => {
    const cases: [string, boolean, string][] = [
      ["Isolated", false, "a|-|-|b|-|c"],
      ["Removed", false, "a|b|c"],
      ["Removed", true, "-|-|-"],
      ["MergedWithPrevious", false, "a-|-|b-|c"],
      ["MergedWithNext", false, "a|-|-b|-c"],
      ["Contiguous", false, "a|--|b|-|c"],
      ["MergedWithPrevious", true, "a|-|-b|-c"],
    ]
    for (const [behavior, invert, expected] of cases) {
      expect(piecesOf(split({ Regex: "-" }, behavior, invert), "a--b-c"), `${behavior} ${invert}`).toBe(expected)
    }
  })

  test("a pattern without a scanner goes through the general matcher", () => {
    const pattern =
      "\\p{Han}+|[\\p{L}&&[^\\p{Han}]]+(?i:'s)?|\\d{1,3}(?=(?:\\d{3})*\\b)| ?[^\\s\\p{L}\\p{N}]++|\\s+(?!\\S)|\\s"
    const text = "漢字abc'S 1234567 !!  x"
    expect(piecesOf(split({ Regex: pattern }, "Isolated"), text)).toBe("漢字|abc'S| |1|234|567| !!| | |x")
  })

  test("digits are cut one by one, or in runs", () => {
    const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false }
    for (const [individual_digits, expected] of [
      [true, "a|1|2|b"],
      [false, "a|12|b"],
    ] as const) {
      const pre_tokenizer = { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits }, bytes] }
      expect(piecesOf({ pre_tokenizer }, "a12b")).toBe(expected)
    }
  })

  test("a hostile text for a slow pattern is refused by name, and the next one is encoded", () => {
    const tokenizer = withParts(split({ Regex: "(?:a+)+b|." }, "Isolated"))
    const hostile = tokenizer.encode("a".repeat(4000), { addSpecialTokens: false })
    expect(hostile.ok ? "encoded" : hostile.error).toEqual({
      kind: "encode_failed",
      message: "the text takes too many steps to split by this model's pattern",
    })
    expect(whole(tokenizer, "ab")).toBe("a|b")
  })
})

describe("normalizers", () => {
  const cases: [string, Json, string, string][] = [
    ["NFC joins", { type: "NFC" }, "e\u0301\u1100\u1161\u11a8x\u0323\u0301", "\u00e9\uac01x\u0323\u0301"],
    ["NFD takes apart", { type: "NFD" }, "\u00e9\uac01", "e\u0301\u1100\u1161\u11a8"],
    ["NFKC replaces", { type: "NFKC" }, "\ufb01\u2460\u00b2", "fi12"],
    [
      "NFC leaves alone what is newer than the reference's tables",
      { type: "NFC" },
      "\u{16d67}\u{16d67}",
      "\u{16d67}\u{16d67}",
    ],
    ["Lowercase knows no final sigma", { type: "Lowercase" }, "ΑΣ İ", "ασ i\u0307"],
    ["Replace, of text", { type: "Replace", pattern: { String: "aa" }, content: "$&" }, "aaa", "$&a"],
    ["Replace, of a pattern", { type: "Replace", pattern: { Regex: "\\s+" }, content: "_" }, "a \u0085b", "a_b"],
    ["Prepend", { type: "Prepend", prepend: "x" }, "a", "xa"],
    ["Strip", { type: "Strip", strip_left: true, strip_right: false }, " \u0085a ", "a "],
  ]
  for (const [name, normalizer, text, expected] of cases) {
    test(name, () => {
      const ids = withParts({ normalizer }).encode(text, { addSpecialTokens: false })
      expect(ids.ok && withParts({ normalizer }).decode(ids.value, false)).toBe(expected)
    })
  }
})

function added(id: number, content: string, flags: Json = {}): Json {
  const plain = { special: false, single_word: false, lstrip: false, rstrip: false, normalized: false }
  return { id, content, ...plain, ...flags }
}

describe("added tokens", () => {
  test("the longest wins, and flags take white space along or ask for a word's edge", () => {
    const tokenizer = withParts({}, [
      added(265, "<l>", { lstrip: true }),
      added(266, "<r>", { rstrip: true }),
      added(267, "ab"),
      added(268, "abc"),
      added(269, "ww", { single_word: true }),
    ])
    const ids = (text: string): number[] => {
      const encoded = tokenizer.encode(text, { addSpecialTokens: false })
      return encoded.ok ? Array.from(encoded.value) : []
    }
    expect(ids("abcab")).toEqual([268, 267])
    expect(ids("x \n<l>")).toEqual([120, 265])
    expect(ids("<r> \u0085x")).toEqual([266, 120])
    expect(ids("ww-wwx")).toEqual([269, 45, 119, 119, 120])
  })

  test("a superscript is no word character, and white space stays with the token that took it", () => {
    const tokenizer = withParts({}, [
      added(265, "ww", { single_word: true }),
      added(266, "<r>", { rstrip: true }),
      added(267, " <l>", { lstrip: true }),
    ])
    const aligned = tokenizer.encodeWithOffsets("²ww<r>  <l>", "code_point", { addSpecialTokens: false })
    expect(aligned.ok && Array.from(aligned.value.tokenIds)).toEqual([0xc2, 0xb2, 265, 266, 267])
    expect(aligned.ok && Array.from(aligned.value.offsets)).toEqual([0, 1, 0, 1, 1, 3, 3, 8, 8, 11])
  })

  test("of white space that another token took along, nothing is left", () => {
    const tokenizer = withParts({}, [
      added(265, "<r>", { rstrip: true }),
      added(266, "\n", { lstrip: true }),
      added(267, "\t", { lstrip: true, rstrip: true }),
    ])
    const ids = (text: string): number[] => {
      const encoded = tokenizer.encode(text, { addSpecialTokens: false })
      return encoded.ok ? Array.from(encoded.value) : []
    }
    expect(ids("<r>\na")).toEqual([265, 97])
    expect(ids("<r>\na\n")).toEqual([265, 97, 266])
    expect(ids("a\t\t\tb")).toEqual([97, 267, 98])
  })

  test("a form that is longer than the text has room, however little the caller gave", () => {
    const tokenizer = withParts({ normalizer: { type: "NFC" } })
    // Six bytes for three, each a token.
    const spelled = Array.from(new TextEncoder().encode("\u0f90\u0fb5"))
    for (const count of [1, 2, 5000, 40_000]) {
      const text = `a${"\u0fb9".repeat(count)}`
      const wanted = [97, ...Array.from({ length: count }, () => spelled).flat()]
      const encoded = tokenizer.encode(text, { addSpecialTokens: false })
      expect(encoded.ok && Bun.deepEquals(Array.from(encoded.value), wanted)).toBe(true)
      for (const room of [0, 1, 3, 4, 3 * text.length, 3 * text.length + 1]) {
        const out = new Uint32Array(room)
        const reached = tokenizer.encodeInto(text, out, { addSpecialTokens: false })
        expect(reached).toEqual({ ok: true, value: wanted.length })
        expect(Bun.deepEquals(Array.from(out), [...wanted, ...Array(room).fill(0)].slice(0, room))).toBe(true)
      }
    }
  })

  test("ids are those that the reference gives, whatever the file says", () => {
    const tokenizer = withParts({}, [added(900, "<x>"), added(7, "the")])
    expect([tokenizer.tokenToId("<x>"), tokenizer.tokenToId("the"), tokenizer.vocabSize]).toEqual([265, 257, 266])
  })

  test("thousands of them cost no more than one", () => {
    const many = Array.from({ length: 6000 }, (_, i) => added(265 + i, `<unused${i}>`))
    const tokenizer = withParts({}, many)
    const text = "<unused<unused5999>".repeat(20_000)
    const start = performance.now()
    const encoded = tokenizer.encode(text, { addSpecialTokens: false })
    expect(performance.now() - start).toBeLessThan(2000)
    expect(encoded.ok && encoded.value.filter((id) => id === 265 + 5999).length).toBe(20_000)
  })
})

describe("segments", () => {
  const end = byteLevelTokenizer().special[1]
  const think = byteLevelTokenizer().added[1]
  const tokenizer = loaded(byteLevelTokenizer().json)
  const segmentIds = (segments: [string, "token" | "text" | "plain"][]): number[] => {
    const encoded = tokenizer.encodeSegments(
      segments.map(([text, special]) => ({ text, special })),
      { addSpecialTokens: false },
    )
    return encoded.ok ? Array.from(encoded.value) : []
  }
  const plain = (text: string): number[] => Array.from(text, (char) => char.charCodeAt(0))

  test("special tokens count in control text alone; added ones that are not special count everywhere", () => {
    expect(segmentIds([["<|im_end|>", "token"]])).toEqual([end])
    expect(segmentIds([["<|im_end|>", "text"]])).toEqual(plain("<|im_end|>"))
    expect(
      segmentIds([
        ["<|im_end|><think>", "text"],
        ["<|im_end|>", "token"],
      ]),
    ).toEqual([...plain("<|im_end|>"), think, end])
  })

  test("no added token counts in plain text, not even one that only begins in it", () => {
    expect(
      segmentIds([
        ["<|im_end|><think>", "plain"],
        ["<think>", "text"],
        ["<think>", "token"],
      ]),
      // "th" is one of the vocabulary's own tokens, the first behind those of the bytes.
    ).toEqual([...plain("<|im_end|><"), 256, ...plain("ink>"), think, think])
    expect(
      segmentIds([
        ["<th", "token"],
        ["ink>", "plain"],
      ]),
    ).toEqual(segmentIds([["<think>", "plain"]]))
  })

  test("a special token that the text only begins, or ends, is none", () => {
    expect(
      segmentIds([
        ["<|im_", "text"],
        ["end|>", "token"],
      ]),
    ).toEqual(plain("<|im_end|>"))
    expect(
      segmentIds([
        ["<|im_", "token"],
        ["", "text"],
        ["end|>", "text"],
      ]),
    ).toEqual(plain("<|im_end|>"))
    expect(
      segmentIds([
        ["<|im_", "token"],
        ["", "text"],
        ["end|>", "token"],
      ]),
    ).toEqual([end])
  })

  test("without spelled-out tokens the cuts change nothing", () => {
    const text = "  the all\n\n the  ü"
    const reference = tokenizer.encode(text, { addSpecialTokens: false })
    for (let cut = 0; cut <= text.length; cut++) {
      const ids = segmentIds([
        [text.slice(0, cut), "token"],
        [text.slice(cut), "text"],
      ])
      expect(ids).toEqual(reference.ok ? Array.from(reference.value) : [])
    }
  })
})

describe("ids around a text, truncation and offsets", () => {
  const [, end] = byteLevelTokenizer().special
  const template = {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: "<|im_end|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    pair: [],
    special_tokens: { "<|im_end|>": { id: "<|im_end|>", ids: [end], tokens: ["<|im_end|>"] } },
  }
  const tokenizer = loaded({ ...byteLevelTokenizer().json, post_processor: template })

  test("the post-processor's ids come when asked for", () => {
    const encoded = tokenizer.encode("ab", { addSpecialTokens: true })
    expect(encoded.ok && Array.from(encoded.value)).toEqual([end, 97, 98])
  })

  test("they come unless told otherwise, whatever other options are given", () => {
    for (const options of [undefined, {}, { tokensMax: 9 }, { truncate: { tokensMax: 9, side: "left" } }] as const) {
      const encoded = tokenizer.encode("ab", options)
      expect(encoded.ok && Array.from(encoded.value)).toEqual([end, 97, 98])
    }
    const without = tokenizer.encode("ab", { addSpecialTokens: false })
    expect(without.ok && Array.from(without.value)).toEqual([97, 98])
  })

  test("truncation keeps them, and drops the text's left or right end", () => {
    for (const [side, expected] of [
      ["left", [end, 99, 100]],
      ["right", [end, 97, 98]],
    ] as const) {
      const options = { addSpecialTokens: true, truncate: { tokensMax: 3, side } }
      const encoded = tokenizer.encode("abcd", options)
      expect(encoded.ok && Array.from(encoded.value)).toEqual([...expected])
      const aligned = tokenizer.encodeWithOffsets("abcd", "code_point", options)
      expect(aligned.ok && Array.from(aligned.value.offsets)).toEqual(
        side === "left" ? [0, 0, 2, 3, 3, 4] : [0, 0, 0, 1, 1, 2],
      )
    }
  })

  test("offsets cover whole characters, in code points or UTF-16 units", () => {
    for (const [unit, expected] of [
      ["code_point", [0, 1, 1, 2, 1, 2, 1, 2, 2, 3]],
      ["utf16", [0, 1, 1, 3, 1, 3, 1, 3, 3, 4]],
    ] as const) {
      const aligned = tokenizer.encodeWithOffsets("a😀b", unit, { addSpecialTokens: false })
      expect(aligned.ok && Array.from(aligned.value.offsets)).toEqual([...expected])
    }
  })

  test("offsets follow a normalizer back to the text as it came", () => {
    const nfc = withParts({ normalizer: { type: "NFC" } })
    const aligned = nfc.encodeWithOffsets("ae\u0301b", "code_point", { addSpecialTokens: false })
    // The composed character stands for the first of the two, as in the reference.
    expect(aligned.ok && Array.from(aligned.value.offsets)).toEqual([0, 1, 1, 2, 1, 2, 3, 4])
  })

  test("tokensMax stops early, with more ids than allowed", () => {
    const encoded = tokenizer.encode("a b ".repeat(100_000), { addSpecialTokens: false, tokensMax: 10 })
    expect(encoded.ok && encoded.value.length > 10 && encoded.value.length < 200_000).toBe(true)
  })

  test("encodeInto fills the caller's array, and says what it takes", () => {
    const out = new Uint32Array(3)
    expect(tokenizer.encodeInto("ab", out, { addSpecialTokens: true })).toEqual({ ok: true, value: 3 })
    expect(Array.from(out)).toEqual([end, 97, 98])
    expect(tokenizer.encodeInto("abcd", out, { addSpecialTokens: true })).toEqual({ ok: true, value: 5 })
    expect(Array.from(out)).toEqual([end, 97, 98])
  })
})

describe("a stream", () => {
  test("can be copied in the middle of a character", () => {
    for (const json of [byteLevelTokenizer().json, sentencePieceTokenizer().json]) {
      const tokenizer = loaded(json)
      const ids = tokenizer.encode("a😀", { addSpecialTokens: false })
      if (!ids.ok) throw new Error(ids.error.message)
      const stream = tokenizer.stream()
      for (const id of ids.value.subarray(0, -1)) stream.push(id)
      const twin = stream.copy()
      expect([stream.push(ids.value.at(-1)!), stream.finish()]).toEqual(["😀", ""])
      expect([twin.push(tokenizer.tokenToId("b")), twin.finish()].join("")).toEndWith("b")
    }
  })
})

describe("what is not supported", () => {
  const base = byteLevelTokenizer().json as Json
  const model = base.model as Json
  const cases: [string, Json][] = [
    ["the normalizer Nmt", { normalizer: { type: "Nmt" } }],
    ["the pre-tokenizer UnicodeScripts", { pre_tokenizer: { type: "UnicodeScripts" } }],
    ["the decoder CTC", { decoder: { type: "CTC" } }],
    ["the post-processor Other", { post_processor: { type: "Other" } }],
    ["the model kind WordLevel", { model: { ...model, type: "WordLevel" } }],
    ["a BPE model with dropout, which is random", { model: { ...model, dropout: 0.1 } }],
    ["a BPE model with end_of_word_suffix", { model: { ...model, end_of_word_suffix: "</w>" } }],
    [
      "a pre-tokenizer behind ByteLevel",
      {
        pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "ByteLevel" }, { type: "Digits" }] },
      },
    ],
    ['the pattern "(a)\\\\1" has an escape \\1', split({ Regex: "(a)\\1" }, "Isolated")],
    [
      'the pattern "\\\\p{Thai}" has the class Thai, for which there is no table',
      split({ Regex: "\\p{Thai}" }, "Isolated"),
    ],
    ['the merge ["a","zz"] of no tokens', { model: { ...model, merges: [["a", "zz"]] } }],
  ]
  for (const [reason, parts] of cases) {
    test(`is refused with the reason: ${reason}`, () => {
      const opened = openTokenizerJson({ ...base, ...parts })
      expect(opened.ok ? "opened" : opened.error.message).toBe(`the tokenizer is not supported: ${reason}`)
    })
  }
})
