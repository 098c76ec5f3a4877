/** Texts and ids from public reports, with what the reference gave: ../shared/cases, which is not in the repository. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Piece } from "../../src/ir/piece"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { vocabularies } from "./vocabularies"

const folder = join(import.meta.dir, "../../../shared/cases")

interface TextCase {
  readonly id: string
  readonly input: { readonly text: string }
  readonly expected: {
    readonly [vocabulary: string]: {
      readonly ids: readonly number[]
      readonly ids_with_special: readonly number[] | null
      readonly decode: string
      readonly decode_skip_special: string
    }
  }
}

interface IdsCase {
  readonly id: string
  readonly "parser/model": string
  readonly input: { readonly token_ids: readonly number[] }
  readonly expected: { readonly steps_1_token: readonly string[]; readonly full: string }
}

const textCases = lines("tokenization.jsonl") as TextCase[] // Of this form, by the README beside the file.
const idsCases = lines("detokenization.jsonl") as IdsCase[] // The same.
const missing = textCases.length === 0 ? "../shared/cases is absent" : null
if (missing !== null) console.log(`tokenizer cases: skipped, ${missing}`)

test.skipIf(missing !== null)("there are cases for vocabularies that we have", () => {
  const names = new Set(textCases.flatMap((each) => Object.keys(each.expected)))
  expect([...names].filter((name) => !vocabularies().some((vocabulary) => vocabulary.name === name))).toEqual([])
})

for (const vocabulary of vocabularies()) {
  const texts = textCases.filter((each) => Object.hasOwn(each.expected, vocabulary.name))
  const lists = idsCases.filter((each) => each["parser/model"] === vocabulary.name)
  if (texts.length + lists.length === 0) continue
  const skips = vocabulary.missing !== null
  describe(vocabulary.name, () => {
    let tokenizer: Tokenizer
    beforeAll(() => {
      if (skips) return
      const opened = vocabulary.open()
      if (!opened.ok) throw new Error(opened.error.message)
      tokenizer = opened.value
    }, 60_000)
    afterAll(() => {
      tokenizer = undefined as unknown as Tokenizer // Dropped before the next one is opened; nothing reads it again.
    })

    for (const { id, input, expected } of texts) {
      test.skipIf(skips)(id, () => {
        const wanted = expected[vocabulary.name]!
        const ids = encoded(input.text, false)
        expect({
          ids: Array.from(ids),
          ids_with_special: Array.from(encoded(input.text, true)),
          decode: tokenizer.decode(ids, false),
          decode_skip_special: tokenizer.decode(ids, true),
        }).toEqual({
          ids: [...wanted.ids],
          ids_with_special: [...(wanted.ids_with_special ?? wanted.ids)],
          decode: wanted.decode,
          decode_skip_special: wanted.decode_skip_special,
        })
      })
    }

    for (const { id, input, expected } of lists) {
      test.skipIf(skips)(`${id}, by 1 token, 2 and all`, () => {
        const ids = Uint32Array.from(input.token_ids)
        expect(steps(ids, 1)).toEqual([...expected.steps_1_token])
        expect(steps(ids, 2).join("")).toBe(expected.full)
        expect(steps(ids, ids.length)).toEqual([expected.full])
        expect(tokenizer.decode(ids, false)).toBe(expected.full)
      })
    }

    function encoded(text: string, addSpecialTokens: boolean): Uint32Array {
      const result = tokenizer.encode(text, { addSpecialTokens })
      if (!result.ok) throw new Error(result.error.message)
      return result.value
    }

    /** The text of each step of so many ids; what the end adds belongs to the last. */
    function steps(ids: Uint32Array, size: number): string[] {
      const detokenizer = tokenizer.detokenizer(new Uint32Array(0), false)
      const piece = new Piece()
      const texts: string[] = []
      for (let start = 0; start < ids.length; start += size) {
        piece.clear()
        for (const id of ids.subarray(start, start + size)) detokenizer.push(id, piece)
        if (start + size >= ids.length) detokenizer.finish(piece)
        texts.push(piece.text)
      }
      return texts
    }
  })
}

function lines(name: string): unknown[] {
  const path = join(folder, name)
  if (!existsSync(path)) return []
  const text = readFileSync(path, "utf8").trim()
  return text.split("\n").map((line) => JSON.parse(line))
}
