/** Replies in the Harmony format as openai-harmony reads them, and reported ones. A failing case names its seed. */
import { beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { harmonyFactory } from "../../src/parser/families/harmony"
import { parseHeader } from "../../src/parser/harmony-header"
import type { ParserFactory } from "../../src/parser/parser"
import { harmonyTokens } from "../../src/tokenizer/extra-tokens"
import { openO200k } from "../../src/tokenizer/open"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import golden from "../golden/harmony/replies.json"
import { askHarmony, type ParsedMessage } from "../prompt/harmony/oracle"
import { everySplit } from "../support/every-split"
import { missingPython } from "../support/python-environment"
import { seededRandom } from "../support/random"
import type { ParsedPart } from "../support/recording-sink"
import { encode, meaningOf, partsOf, randomReply } from "./harmony-replies"

const reason = missingPython()
if (reason !== null) console.log(`harmony oracle: skipped, ${reason}`)

const repliesEach = 600
/** Another one each time, so that runs add up. */
const seed = Math.floor(Math.random() * 1_000_000)

let tokenizer: Tokenizer
let factory: ParserFactory

beforeAll(async () => {
  tokenizer = await openO200k(harmonyTokens())
  const opened = harmonyFactory(tokenizer)
  if (!opened.ok) throw new Error(opened.error.message)
  factory = opened.value
})

describe.skipIf(reason !== null)(`openai-harmony, seed ${seed}`, () => {
  test("reads random replies as we do, in any split", async () => {
    const replies = Array.from({ length: repliesEach }, (_, i) => randomReply(tokenizer, seed + i))
    const answers = (await askHarmony(replies.map((ids) => ({ ask: "parse", ids, role: "assistant" })))) as {
      readonly messages: readonly ParsedMessage[]
      readonly error: string | null
    }[]
    let compared = 0
    for (const [i, ids] of replies.entries()) {
      const { messages, error } = answers[i]!
      const whole = partsOf(factory, tokenizer, ids, [ids.length])
      for (const ends of everySplit(ids.length).slice(0, 40)) {
        expect(partsOf(factory, tokenizer, ids, ends), `seed ${seed + i}`).toEqual(whole)
      }
      // Where the reference refuses, others tests say what is right.
      if (error !== null) continue
      compared += 1
      expect(whole, `seed ${seed + i}: ${tokenizer.decode(Uint32Array.from(ids), false)}`).toEqual(meaningOf(messages))
    }
    expect(compared).toBeGreaterThan(repliesEach / 4)
  }, 120_000)

  test("reads random headers as we do", async () => {
    const random = seededRandom(seed)
    const of = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
    const pieces = [
      ...["assistant", "user", "tool", "functions.f", "foo", " ", "  ", "\n", "\t", " ", "\u00a0", "\u0085", "\ufeff"],
      ...[" to=functions.f", "to=", " to=python", "<|channel|>", "<|channel|>analysis", "<|constrain|>", " json"],
      ...["<|channel|>final", "<|constrain|>json", " code", "–", "<"],
    ]
    const questions = Array.from({ length: 3_000 }, () => ({
      ask: "header",
      role: of([null, "assistant", "assistant"]),
      text: Array.from({ length: Math.floor(random() * 6) }, () => of(pieces)).join(""),
    }))
    // Without a role the header stands behind a start token.
    const answers = (await askHarmony(
      questions.map((each) => (each.role === null ? { ...each, text: `<|start|>${each.text}` } : each)),
    )) as ({ readonly header: ParsedMessage } | { readonly error: string })[]
    for (const [i, { text, role }] of questions.entries()) {
      const answer = answers[i]!
      const { rest, ...ours } = parseHeader(text, role)
      if ("error" in answer) {
        const hasNoChannel = text.includes("<|channel|>") && ours.channel === null
        expect(rest !== "" || ours.role === null || hasNoChannel, JSON.stringify([text, role, answer])).toBe(true)
      } else {
        const { text: _content, ...header } = answer.header
        expect({ ...ours, rest }, JSON.stringify([text, role])).toEqual({ ...rightAddress(header), rest: "" })
      }
    }
  }, 120_000)
})

/** Version 0.0.8 takes a content type that stands alone for a recipient; later ones do not. */
function rightAddress<T extends Pick<ParsedMessage, "recipient" | "contentType">>(header: T): T {
  const isType = header.contentType === null && header.recipient?.startsWith("<|constrain|>") === true
  return isType ? { ...header, recipient: null, contentType: header.recipient } : header
}

describe("the reference's own output", () => {
  for (const [i, { ids: written, messages }] of golden.replies.entries()) {
    test(`reply ${i + 1}`, () => {
      const ids = written.split(" ").map(Number)
      for (const ends of everySplit(ids.length).slice(0, 60)) {
        expect(partsOf(factory, tokenizer, ids, ends)).toEqual(meaningOf(messages))
      }
    })
  }
})

const file = join(import.meta.dir, "../../../shared/cases/harmony.jsonl")

interface Case {
  readonly id: string
  readonly input: { readonly text: string; readonly token_ids: readonly number[] }
  readonly expected: {
    readonly messages:
      | readonly { readonly channel: string; readonly recipient: string | null; readonly text: string }[]
      | null
  }
}

/** Replies that the reference refuses, with what is right by their notes. */
const calm: { readonly [id: string]: readonly ParsedPart[] } = {
  "harmony-missing-start": [
    { kind: "reasoning", text: "a" },
    { kind: "text", text: "Hello" },
  ],
  "harmony-return-after-call": [{ kind: "text", text: "ok" }],
}

describe.skipIf(!existsSync(file))("reported replies", () => {
  const cases = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(readCase) : []

  for (const { id, input, expected } of cases) {
    test(id, () => {
      expect(Array.from(encode(tokenizer, input.text))).toEqual([...input.token_ids])
      const messages = expected.messages?.map((each) => ({ ...each, role: "assistant", name: null, contentType: null }))
      const wanted = messages === undefined ? calm[id]! : meaningOf(messages)
      for (const ends of everySplit(input.token_ids.length))
        expect(partsOf(factory, tokenizer, input.token_ids, ends)).toEqual(wanted)
    })
  }
})

function readCase(line: string): Case {
  // The file is made by a script and has this shape.
  return JSON.parse(line) as Case
}
