/**
 * The reference tokenizers themselves, in a virtual environment made once beside the vocabularies: other random texts
 * than the golden ones, and the Unicode tables. A failing case names the seed to run again.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { missingPython, run } from "../support/python-environment"
import { Answers, seededTexts } from "./answers"
import { hashOf, textHash, unpackHashes } from "./golden-texts"
import { type Golden, prepareReferences, python, vocabularies } from "./vocabularies"

const root = join(import.meta.dir, "../..")
const textsEach = 3_000
/** Another one each time, so that runs add up. */
const seed = 2 + Math.floor(Math.random() * 1_000_000)

/** What the script says of one vocabulary with `--live`. */
type Live = Pick<Golden, "fuzz" | "offsets" | "starts" | "truncated" | "mixedSegments" | "segments"> & {
  readonly name: string
}

const reason = missingPython()
if (reason !== null) console.log(`oracle: skipped, ${reason}`)

describe(`the reference tokenizers, seed ${seed}`, () => {
  /** By vocabulary: hashes of what the reference makes of the texts. */
  const references = new Map<string, Live>()
  let textHashes: Uint16Array = new Uint16Array(0)
  const texts = seededTexts(seed, textsEach)

  beforeAll(async () => {
    if (reason !== null) return
    await prepareReferences()
    const script = join(root, "scripts/tokenizer-golden.py")
    const out = await run(python, "-B", script, "--live", `${seed}`, `${textsEach}`)
    for (const line of out.trim().split("\n")) {
      // Lines of the script: first the texts, then one a vocabulary.
      const said: { readonly texts: string } | Live = JSON.parse(line)
      if ("texts" in said) textHashes = unpackHashes(said.texts)
      else references.set(said.name, said)
    }
  }, 600_000)
  afterAll(() => Bun.gc(true))

  test.skipIf(reason !== null)("got the texts that we made", () => {
    expect(textHashes).toEqual(Uint16Array.from(texts, textHash))
  })

  for (const vocabulary of vocabularies()) {
    const absent = vocabulary.missing !== null
    test.skipIf(reason !== null || absent)(
      `${vocabulary.name}: ${textsEach} new random texts have the same ids, some of them offsets, ends and segments`,
      () => {
        const opened = vocabulary.open()
        if (!opened.ok) throw new Error(opened.error.message)
        const wanted = references.get(vocabulary.name)!
        const answers = new Answers(opened.value, seed, texts, wanted.mixedSegments)
        /** Numbers of the texts that differ; none where the reference says nothing. */
        const differing = (
          base64: string | undefined,
          numbers: (i: number) => ArrayLike<number>,
        ): readonly number[] => {
          const hashes = unpackHashes(base64 ?? "")
          return Array.from(hashes.keys()).filter((i) => hashOf(numbers(i)) !== hashes[i])
        }
        expect({
          fuzz: differing(wanted.fuzz, (i) => answers.ids(i)),
          offsets: differing(wanted.offsets, (i) => answers.offsets(i, "utf16")),
          starts: differing(wanted.starts, (i) => answers.starts(i, "utf16")),
          truncated: differing(wanted.truncated, (i) => answers.truncated(i)),
          segments: differing(wanted.segments, (i) => answers.segmentIds(i)),
        }).toEqual({ fuzz: [], offsets: [], starts: [], truncated: [], segments: [] })
      },
      60_000,
    )
  }

  test.skipIf(reason !== null)(
    "have the Unicode classes of the tables",
    async () => {
      await run(python, "-B", join(root, "scripts/unicode-tables.py"), "--check")
    },
    300_000,
  )
})
