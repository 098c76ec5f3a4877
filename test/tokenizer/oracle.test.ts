/**
 * The reference tokenizers themselves, in a virtual environment made once beside the vocabularies: other random texts
 * than the golden ones, and the Unicode tables. A failing case names the seed to run again.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { missingPython, prepareEnvironment, run } from "../support/python-environment"
import { hashOf, textAt, textHash, unpackHashes } from "./golden-texts"
import { vocabularies } from "./vocabularies"

const root = join(import.meta.dir, "../..")
const vocab = join(root, "test/vocab")
const environment = join(vocab, ".venv")
const python = join(environment, "bin/python")
const textsEach = 3_000
/** Another one each time, so that runs add up. */
const seed = 2 + Math.floor(Math.random() * 1_000_000)

const reason = missingPython()
if (reason !== null) console.log(`oracle: skipped, ${reason}`)

describe(`the reference tokenizers, seed ${seed}`, () => {
  /** By vocabulary: a hash of each text's ids. */
  const hashes = new Map<string, Uint16Array>()
  let textHashes: Uint16Array = new Uint16Array(0)
  const texts = Array.from({ length: textsEach }, (_, i) => textAt(seed, i))

  beforeAll(async () => {
    if (reason !== null) return
    await prepareEnvironment(environment, join(vocab, "requirements.txt"))
    const script = join(root, "scripts/tokenizer-golden.py")
    const out = await run(python, "-B", script, "--live", `${seed}`, `${textsEach}`)
    for (const line of out.trim().split("\n")) {
      const said: { texts?: string; name?: string; fuzz?: string } = JSON.parse(line)
      if (said.texts !== undefined) textHashes = unpackHashes(said.texts)
      else hashes.set(said.name!, unpackHashes(said.fuzz!))
    }
  }, 600_000)
  afterAll(() => Bun.gc(true))

  test.skipIf(reason !== null)("got the texts that we made", () => {
    expect(textHashes).toEqual(Uint16Array.from(texts, textHash))
  })

  for (const vocabulary of vocabularies()) {
    const skips = reason !== null || vocabulary.missing !== null
    test.skipIf(skips)(
      `${vocabulary.name}: ${textsEach} new random texts have the same ids`,
      () => {
        const opened = vocabulary.open()
        if (!opened.ok) throw new Error(opened.error.message)
        const wanted = hashes.get(vocabulary.name)!
        const differing = texts.filter((text, i) => {
          const encoded = opened.value.encode(text, { addSpecialTokens: false })
          return !encoded.ok || hashOf(encoded.value) !== wanted[i]
        })
        expect(differing.slice(0, 3).map((text) => JSON.stringify(text))).toEqual([])
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
