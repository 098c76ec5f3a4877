/**
 * Ids, offsets and text of every vocabulary against what the reference tokenizers gave: golden/*.json, made by
 * scripts/tokenizer-golden.py. A hash has 16 bits, so a single wrong text may slip through once in 65 536; a wrong rule
 * does not.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import texts from "./golden/texts.json"
import { drawAt, hashOf, longTexts, textAt, textHash, unpackHashes } from "./golden-texts"
import { type Golden, type Vocabulary, vocabularies } from "./vocabularies"

/** Vocabularies that are not exact yet, with the reason: the list may only get shorter. */
const notYet: { readonly [name: string]: string } = {}

const corpora = join(import.meta.dir, "../../../shared/corpora")
const corpusLines = 40
const idListSalt = 0x5bd1e995
/** Different texts shown of each kind. */
const shownMax = 3

const seed = 1
const fuzz = Array.from({ length: 52_000 }, (_, i) => textAt(seed, i))
const long = longTexts(20_000)
const corpus = existsSync(corpora) ? readCorpora() : new Map<string, string[]>()

for (const vocabulary of vocabularies()) {
  const reason = vocabulary.missing ?? notYet[vocabulary.name] ?? null
  if (reason !== null) console.log(`golden: ${vocabulary.name} skipped, ${reason}`)
  describe(vocabulary.name, () => cases(vocabulary, reason !== null))
}

test("every vocabulary that is not exact yet is one that there is", () => {
  const names = vocabularies().map((vocabulary) => vocabulary.name)
  expect(Object.keys(notYet).filter((name) => !names.includes(name))).toEqual([])
  expect(names.length).toBeGreaterThanOrEqual(21)
})

function cases(vocabulary: Vocabulary, skips: boolean): void {
  let tokenizer: Tokenizer
  const golden = vocabulary.golden()

  // One at a time: the largest vocabularies take hundreds of megabytes.
  beforeAll(() => {
    if (!skips) tokenizer = opened(vocabulary)
  }, 60_000)
  afterAll(() => {
    tokenizer = undefined as unknown as Tokenizer // Dropped before the next one is opened; nothing reads it again.
    Bun.gc(true)
  })

  const check = (title: string, run: () => void): void => test.skipIf(skips)(title, run, 60_000)

  check(`${texts.length} texts have the ids of ${golden.reference}`, () => {
    expect(texts.map((text) => ids(text))).toEqual(golden.texts as number[][])
    expect(tokenizer.vocabSize).toBe(golden.vocabSize)
  })

  check(`${fuzz.length} random texts have its ids`, () => {
    expect(different(golden.fuzz, (i) => hashOf(encoded(fuzz[i]!, false)), shownText)).toEqual([])
  })

  if (golden.offsets !== undefined) {
    check("random texts have its offsets, in code points", () => {
      expect(different(golden.offsets!, (i) => hashOf(offsets(fuzz[i]!)), shownText)).toEqual([])
    })
  }

  if (golden.withSpecial !== undefined) {
    check("random texts have its ids with special tokens around them", () => {
      expect(different(golden.withSpecial!, (i) => hashOf(encoded(fuzz[i]!, true)), shownText)).toEqual([])
    })
  }

  check("lists of any ids have its text, with special tokens and without", () => {
    const lists = idLists(golden)
    const shown = (i: number): string => `[${lists[i]!}]`
    expect(different(golden.idLists, (i) => hashOf(lists[i]!), shown)).toEqual([])
    const text = (i: number, skip: boolean): number => textHash(tokenizer.decode(lists[i]!, skip))
    expect(different(golden.decoded, (i) => text(i, false), shown)).toEqual([])
    expect(different(golden.decodedSkippingSpecial, (i) => text(i, true), shown)).toEqual([])
  })

  check(`${long.size} texts of one long run have its ids`, () => {
    const all = Array.from(long)
    const shown = (i: number): string => `20 000 of ${all[i]![0]}`
    expect(different(golden.long, (i) => hashOf(encoded(all[i]![1], false)), shown)).toEqual([])
  })

  for (const [name, hashes] of Object.entries(golden.corpora)) {
    const chunks = corpus.get(name)
    test.skipIf(skips || chunks === undefined)(
      `the ${name} corpus has its ids`,
      () => {
        expect(
          different(
            hashes,
            (i) => hashOf(encoded(chunks![i]!, false)),
            (i) => `lines ${i * corpusLines}…`,
          ),
        ).toEqual([])
      },
      60_000,
    )
  }

  function encoded(text: string, addSpecialTokens: boolean): Uint32Array {
    const result = tokenizer.encode(text, { addSpecialTokens })
    if (!result.ok) throw new Error(`${JSON.stringify(text.slice(0, 100))}: ${result.error.message}`)
    return result.value
  }

  function ids(text: string): number[] {
    return Array.from(encoded(text, false))
  }

  function offsets(text: string): Uint32Array {
    if (tokenizer.encodeWithOffsets === undefined) throw new Error("this plug has no offsets")
    const result = tokenizer.encodeWithOffsets(text, "code_point", { addSpecialTokens: false })
    if (!result.ok) throw new Error(result.error.message)
    return result.value.offsets
  }

  /** Any ids, and stretches of real ones that begin and end anywhere; `id_lists` in the script. */
  function idLists({ vocabSize, idLists: hashes, reference }: Golden): Uint32Array[] {
    // HF tokenizers passes over ids that it does not know, tiktoken raises: there they are left out.
    const knows = (id: number): boolean => !reference.startsWith("tiktoken") || tokenizer.idToToken(id) !== null
    return Array.from({ length: unpackHashes(hashes).length }, (_, i) => {
      const d = drawAt(seed, i, idListSalt)
      if (d.below(2) === 0) {
        const any = Uint32Array.from({ length: 1 + d.below(12) }, () => d.below(vocabSize))
        return any.filter(knows)
      }
      const real = encoded(fuzz[d.below(fuzz.length)]!, false)
      const start = d.below(real.length + 1)
      const stop = start + d.below(real.length - start + 1)
      return real.slice(start, Math.min(stop, start + 40)).filter(knows)
    })
  }
}

/** How many hashes differ, and the first few of them; nothing when all are equal. */
function different(golden: string, hash: (i: number) => number, shown: (i: number) => string): string[] {
  const wanted = unpackHashes(golden)
  const found: string[] = []
  let count = 0
  for (let i = 0; i < wanted.length; i++) {
    if (hash(i) === wanted[i]) continue
    count += 1
    if (found.length < shownMax) found.push(`${i}: ${shown(i)}`)
  }
  return count === 0 ? [] : [`${count} of ${wanted.length} differ`, ...found]
}

function shownText(i: number): string {
  return JSON.stringify(fuzz[i]!.slice(0, 200))
}

function opened(vocabulary: Vocabulary): Tokenizer {
  const result = vocabulary.open()
  if (!result.ok) throw new Error(`${vocabulary.name}: ${result.error.message}`)
  return result.value
}

function readCorpora(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const name of ["code", "en", "multi"]) {
    const lines = gunzipSync(readFileSync(join(corpora, `${name}.txt.gz`)))
      .toString("utf8")
      .split("\n")
    const chunks: string[] = []
    for (let at = 0; at < lines.length; at += corpusLines) chunks.push(lines.slice(at, at + corpusLines).join("\n"))
    found.set(name, chunks)
  }
  return found
}
