/** Tokenizers out of a cache are the ones that were built, whatever became of the cache. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Result } from "../../src/result"
import type { Unsupported } from "../../src/tokenizer/json-shape"
import { keptVersion, openKept } from "../../src/tokenizer/kept-tokenizer"
import { load, loadBytes } from "../../src/tokenizer/load"
import type { LoadedTokenizer } from "../../src/tokenizer/loaded-tokenizer"
import { openParts } from "../../src/tokenizer/open-parts"
import { bytesOf } from "../../src/tokenizer/packed-tokens"
import { type RankFile, readRankFile, readTekken, readTiktokenFile } from "../../src/tokenizer/tiktoken-ranks"
import { readTokenizerJsonBytes } from "../../src/tokenizer/tokenizer-json"
import type { ReadParts } from "../../src/tokenizer/tokenizer-parts"
import texts from "./golden/texts.json"
import { byteLevelTokenizer, sentencePieceTokenizer } from "./small-tokenizers"
import { vocabularies, vocabularyFolder } from "./vocabularies"

type Read = () => Result<ReadParts, Unsupported>

const root = mkdtempSync(join(tmpdir(), "sluice-kept-"))
let folder = ""
let folders = 0
beforeEach(() => {
  folder = join(root, String(folders++))
})
afterAll(() => rmSync(root, { recursive: true }))

const utf8 = new TextEncoder()

/** Files of every kind, and of every kind of rule that a record keeps. */
const small: { readonly [name: string]: Read } = {
  "byte-level": jsonFile(byteLevelTokenizer().json),
  SentencePiece: jsonFile(sentencePieceTokenizer().json),
  // Spelled with blanks in the core; one added token holds one, which the vocabulary has only once it is added.
  "blanks as themselves": jsonFile({
    ...sentencePieceTokenizer().json,
    pre_tokenizer: null,
    normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
    added_tokens: [added(2, "</s>", { special: true }), added(400, "in between", { lstrip: true })],
  }),
  "normal forms and a pattern of its own": jsonFile({
    ...byteLevelTokenizer().json,
    normalizer: { type: "Sequence", normalizers: [{ type: "NFC" }, { type: "Lowercase" }] },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: "\\p{L}+|\\p{N}{2}|\\s" }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, use_regex: false },
      ],
    },
    added_tokens: [added(300, "The End", { normalized: true, single_word: true })],
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "t", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [],
      special_tokens: { t: { id: "t", ids: [116], tokens: ["t"] } },
    },
  }),
  ranks: () => readTiktokenFile(utf8.encode(rankLines()), "\\w+|\\W", { special: { "<s>": 90 }, added: { "<a>": 91 } }),
  tekken: () => readTekken(tekken()),
}

describe("small vocabularies", () => {
  for (const [name, read] of Object.entries(small)) {
    test(`${name}: what comes from the cache does all that the first one does`, () => {
      const first = good(openParts(read()))
      const written = good(openKept(folder, [name], read))
      const restored = good(openKept(folder, [name], unread))
      const wanted = seen(first)
      expect(seen(written)).toEqual(wanted)
      expect(seen(restored)).toEqual(wanted)
    }, 60_000)
  }

  test("other bytes, another pattern and other tokens are other vocabularies", () => {
    const bytes = utf8.encode(rankLines())
    const ids = (pattern: string, tokens: object, of = bytes) => {
      const loaded = good(loadBytes(of, { pattern, tokens: { special: { ...tokens }, added: {} }, cache: folder }))
      return Array.from(good(loaded.encode("ab<s>")))
    }
    for (let round = 0; round < 2; round++) {
      expect(ids("\\w+|\\W", {})).toEqual([3, 32, 85, 34])
      expect(ids("\\w|\\W", {})).toEqual([1, 2, 32, 85, 34])
      expect(ids("\\w+|\\W", { "<s>": 90 })).toEqual([3, 90])
      expect(ids("\\w+|\\W", {}, utf8.encode(rankLines().replace(`${btoa("ab")} 3`, `${btoa("ba")} 3`)))).toEqual([
        1, 2, 32, 85, 34,
      ])
    }
    expect(readdirSync(folder)).toHaveLength(4)
  })

  test("a vocabulary that is refused is refused every time, and nothing is kept", () => {
    const bytes = utf8.encode(JSON.stringify({ model: { type: "Unigram" } }))
    const refusal = loadBytes(bytes)
    expect(refusal.ok).toBe(false)
    for (let round = 0; round < 2; round++) expect(loadBytes(bytes, { cache: folder })).toEqual(refusal)
    expect(existsSync(folder)).toBe(false)
  })

  test("a record that is damaged anywhere is built again, and is whole afterwards", () => {
    const read = small["byte-level"]!
    const wanted = seen(good(openKept(folder, ["x"], read)))
    const path = join(folder, readdirSync(folder)[0]!)
    const whole = readFileSync(path)
    let reads = 0
    const counted: Read = () => {
      reads += 1
      return read()
    }
    const regions = 40
    for (let region = 0; region < regions; region++) {
      const damaged = Buffer.from(whole)
      damaged[Math.floor(((whole.length - 1) * region) / (regions - 1))]! ^= 0x10
      writeFileSync(
        path,
        region % 4 === 3 ? damaged.subarray(0, Math.floor((whole.length * region) / regions)) : damaged,
      )
      expect(seen(good(openKept(folder, ["x"], counted)))).toEqual(wanted)
      expect(reads).toBe(region + 1)
      expect(readFileSync(path).equals(whole)).toBe(true)
    }
  }, 60_000)

  test("processes that write at the same time all have the same ids, and leave a record that is whole", async () => {
    const path = join(root, "shared.json")
    writeFileSync(path, JSON.stringify(byteLevelTokenizer().json))
    const script = `
      const { load } = await import(${JSON.stringify(join(import.meta.dir, "../../src/tokenizer/load.ts"))})
      for (let round = 0; round < 10; round++) {
        const loaded = await load(${JSON.stringify(path)}, { cache: ${JSON.stringify(folder)} })
        console.log(Array.from(loaded.value.encode("the allü<|im_end|>").value).join())
      }`
    const runs = Array.from({ length: 3 }, () =>
      Bun.spawn([process.execPath, "--no-install", "-e", script], { stdout: "pipe", stderr: "pipe" }),
    )
    const outputs = await Promise.all(runs.map((run) => new Response(run.stdout).text()))
    const wanted = good(good(await load(path)).encode("the allü<|im_end|>")).join()
    for (const output of outputs) expect(output).toBe(`${wanted}\n`.repeat(10))
    expect(readdirSync(folder)).toHaveLength(1)
    const restored = good(openKept(folder, keySources(readFileSync(path)), unread))
    expect(good(restored.encode("the allü<|im_end|>")).join()).toBe(wanted)
  }, 60_000)

  test("what is kept of a file is what it was in this version", () => {
    const digest = createHash("sha256")
    for (const [name, read] of Object.entries(small)) {
      const { tables, keep } = good(read())
      const { kind, facts, arrays } = keep()
      const { tokenBytes, merges, byteFallback, ...rules } = tables
      digest.update(JSON.stringify([name, kind, facts, rules]))
      if ("ends" in tokenBytes) digest.update(tokenBytes.bytes).update(bytesOf(tokenBytes.ends))
      for (const array of [merges, byteFallback]) if (array !== null) digest.update(bytesOf(array))
      for (const array of arrays) digest.update(array)
    }
    // A difference means that records written before are not what would be written now: raise `keptVersion`, and put the
    // digest here. (What a new vocabulary in `small` adds is none.)
    const digests: { readonly [version: number]: string } = {
      1: "a0a25c41637c476f3b46103db3e8689e6254a0b57acb932393de2fa000b49778",
      2: "c893a19427b68ecf945d10ab03366b6fa470261fd93c41be678a2477de4b245d",
    }
    expect(digest.digest("hex")).toBe(digests[keptVersion]!)
  })
})

describe("real vocabularies", () => {
  for (const name of ["llama3_1", "gemma"]) {
    const vocabulary = vocabularies().find((each) => each.name === name)!
    test.skipIf(vocabulary.missing !== null)(
      `${name}: golden ids, with the cache and without`,
      async () => {
        const golden = vocabulary.golden()
        const path = join(vocabularyFolder(name), "tokenizer.json")
        const plain = seen(good(await load(path)))
        const bytes = readFileSync(path)
        for (const loaded of [
          good(await load(path, { cache: folder })),
          good(openKept(folder, keySources(bytes), unread)),
        ]) {
          const ids = texts.map((text) => Array.from(good(loaded.encode(text, { addSpecialTokens: false }))))
          expect(ids).toEqual(golden.texts as number[][])
          expect(seen(loaded)).toEqual(plain)
        }
      },
      120_000,
    )
  }

  test("o200k_base: golden ids, with the cache and without", async () => {
    const path = join(import.meta.dir, "../../node_modules/tiktoken/encoders/o200k_base.json")
    const golden = vocabularies()
      .find((each) => each.name === "o200k_base")!
      .golden()
    const file = (await Bun.file(path).json()) as RankFile // The package's own file.
    const extra = { special: { "<|endoftext|>": 199_999, "<|endofprompt|>": 200_018 }, added: {} }
    const read: Read = () => readRankFile(file, extra)
    const plain = seen(good(openParts(read())))
    for (const loaded of [good(openKept(folder, ["o200k"], read)), good(openKept(folder, ["o200k"], unread))]) {
      expect(texts.map((text) => Array.from(good(loaded.encode(text))))).toEqual(golden.texts as number[][])
      expect(seen(loaded)).toEqual(plain)
    }
  }, 120_000)
})

/** What a file without options is known by. */
function keySources(bytes: Uint8Array): (string | Uint8Array)[] {
  return [JSON.stringify([null, null]), bytes]
}

/** For a tokenizer that must come from the cache. */
function unread(): never {
  throw new Error("the file was read again")
}

function good<T>(result: Result<T, { readonly message: string }>): T {
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}

/** All that a tokenizer shows, over texts that are cut, normalized and spelled in every way. */
function seen(tokenizer: LoadedTokenizer): unknown {
  const shown = [...texts.slice(0, 150), "In Between in between the end The End<s>ab<a>", "e\u0301 ▁ ü\ud800 漢 🤗"]
  const ids = shown.map((text) => Array.from(good(tokenizer.encode(text))))
  const bare = Uint32Array.from({ length: 400 }, (_, i) => i)
  return {
    ids,
    control: shown.map((text) => Array.from(good(tokenizer.encodeSegments([{ text, special: "text" }])))),
    offsets: shown.map((text) => Array.from(good(tokenizer.encodeWithOffsets(text, "code_point")).offsets)),
    decoded: ids.map((each) => [true, false].map((skips) => tokenizer.decode(Uint32Array.from(each), skips))),
    single: tokenizer.decode(bare, false),
    streamed: [...bare].map((id) => {
      const stream = tokenizer.stream(false)
      return stream.push(id) + stream.finish()
    }),
    spellings: [...bare].map((id) => tokenizer.idToToken(id)),
    named: ["Ġthe", "▁the", "in between", "the end", "<s>", "ab", "nothing"].map((each) => tokenizer.tokenToId(each)),
    special: [...bare].filter((id) => tokenizer.isSpecial(id)),
    sizes: [tokenizer.vocabSize, tokenizer.tokenBytesMax],
  }
}

function jsonFile(json: object): Read {
  return () => readTokenizerJsonBytes(utf8.encode(JSON.stringify(json)))
}

function added(id: number, content: string, flags: object): object {
  return { id, content, special: false, single_word: false, lstrip: false, rstrip: false, normalized: false, ...flags }
}

/** Ranks from 1: a, b, ab, and then all printing ASCII but these. */
function rankLines(): string {
  const tokens = ["", "a", "b", "ab"]
  for (let code = 0x20; code < 0x7f; code++) {
    const char = String.fromCharCode(code)
    if (char !== "a" && char !== "b") tokens.push(char)
  }
  return tokens.flatMap((token, rank) => (token === "" ? [] : [`${btoa(token)} ${rank}`])).join("\n")
}

function tekken(): object {
  const tokens = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    utf8.encode("th"),
    utf8.encode("the"),
  ]
  return {
    config: { pattern: "\\p{L}+|\\P{L}", default_vocab_size: 268, default_num_special_tokens: 10 },
    vocab: tokens.map((token, rank) => ({ rank, token_bytes: btoa(String.fromCharCode(...token)), token_str: null })),
    special_tokens: [{ rank: 0, token_str: "<s>", is_control: true }],
  }
}
