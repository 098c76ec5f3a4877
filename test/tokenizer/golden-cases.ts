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
import { Answers, seededTexts } from "./answers"
import texts from "./golden/texts.json"
import { drawAt, hashOf, longTexts, textHash, unpackHashes } from "./golden-texts"
import type { Golden, Vocabulary } from "./vocabularies"

const corpora = join(import.meta.dir, "../../../shared/corpora")
const corpusLines = 40
const idListSalt = 0x5bd1e995
/** An environment of Python packages may have to be made. */
const prepareMsMax = 600_000
/** Different texts shown of each kind. */
const shownMax = 3

const seed = 1
const fuzz = seededTexts(seed, 52_000)
const long = longTexts(20_000)
const corpus = existsSync(corpora) ? readCorpora() : new Map<string, string[]>()

/** Declares the cases of one vocabulary, in a group of its name. */
export function goldenCases(vocabulary: Vocabulary): void {
  if (vocabulary.missing !== null) console.log(`golden: ${vocabulary.name} skipped, ${vocabulary.missing}`)
  describe(vocabulary.name, () => cases(vocabulary, vocabulary.missing !== null))
}

function cases(vocabulary: Vocabulary, skips: boolean): void {
  let tokenizer: Tokenizer
  let answers: Answers
  const golden = vocabulary.golden()

  // One at a time: the largest vocabularies take hundreds of megabytes.
  beforeAll(async () => {
    if (skips) return
    await vocabulary.prepare()
    tokenizer = opened(vocabulary)
    answers = new Answers(tokenizer, seed, fuzz, golden.mixedSegments)
  }, prepareMsMax)
  afterAll(() => {
    // Dropped before the next one is opened; nothing reads them again.
    tokenizer = undefined as unknown as Tokenizer
    answers = undefined as unknown as Answers
    Bun.gc(true)
  })

  const check = (title: string, run: () => void): void => test.skipIf(skips)(title, run, 60_000)

  check(`${texts.length} texts have the ids of ${golden.reference}`, () => {
    expect(texts.map((text) => Array.from(answers.encoded(text, false)))).toEqual(golden.texts as number[][])
    expect(tokenizer.vocabSize).toBe(golden.vocabSize)
  })

  check(`${fuzz.length} random texts have its ids`, () => {
    expect(different(golden.fuzz, (i) => hashOf(answers.ids(i)), shownText)).toEqual([])
  })

  if (golden.offsets !== undefined) {
    check("random texts have its offsets, in code points and in UTF-16 units", () => {
      for (const unit of ["code_point", "utf16"] as const)
        expect(different(golden.offsets!, (i) => hashOf(answers.offsets(i, unit)), shownText)).toEqual([])
    })
  }

  if (golden.starts !== undefined) {
    check("tokens of random texts start where its tokens do, in code points and in UTF-16 units", () => {
      for (const unit of ["code_point", "utf16"] as const)
        expect(different(golden.starts!, (i) => hashOf(answers.starts(i, unit)), shownText)).toEqual([])
    })
  }

  check("random texts have its ids with special tokens around them", () => {
    expect(different(golden.withSpecial, (i) => hashOf(answers.idsWithSpecial(i)), shownText)).toEqual([])
  })

  if (golden.truncated !== undefined) {
    check("random texts have its ids and offsets when they are cut off at either end", () => {
      expect(different(golden.truncated!, (i) => hashOf(answers.truncated(i)), shownText)).toEqual([])
    })
  }

  const kinds = golden.mixedSegments ? "some segments are" : "all of a text is"
  check(`special tokens are text where ${kinds} not control`, () => {
    expect(different(golden.segments, (i) => hashOf(answers.segmentIds(i)), shownSegments)).toEqual([])
  })

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
    expect(different(golden.long, (i) => hashOf(answers.encoded(all[i]![1], false)), shown)).toEqual([])
  })

  for (const [name, hashes] of Object.entries(golden.corpora)) {
    const chunks = corpus.get(name)
    test.skipIf(skips || chunks === undefined)(
      `the ${name} corpus has its ids`,
      () => {
        expect(
          different(
            hashes,
            (i) => hashOf(answers.encoded(chunks![i]!, false)),
            (i) => `lines ${i * corpusLines}…`,
          ),
        ).toEqual([])
      },
      60_000,
    )
  }

  function shownSegments(i: number): string {
    return JSON.stringify(answers.segments(i).map(({ text, special }) => (special === "token" ? [text] : text)))
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
      const real = answers.ids(d.below(fuzz.length))
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
