/** Replies in the Harmony format as openai-harmony reads them, and reported ones. A failing case names its seed. */
import { beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Piece } from "../../src/ir/piece"
import { harmonyFactory } from "../../src/parser/families/harmony"
import { parseHeader } from "../../src/parser/harmony-header"
import type { ParserFactory } from "../../src/parser/parser"
import { harmonyTokens } from "../../src/tokenizer/extra-tokens"
import { openO200k } from "../../src/tokenizer/open"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { askHarmony, type ParsedMessage } from "../prompt/harmony/oracle"
import { everySplit } from "../support/every-split"
import { missingPython } from "../support/python-environment"
import { seededRandom } from "../support/random"
import { ParsedFold, type ParsedPart } from "../support/recording-sink"

const reason = missingPython()
if (reason !== null) console.log(`harmony oracle: skipped, ${reason}`)

const repliesEach = 600
/** Another one each time, so that runs add up. */
const seed = Math.floor(Math.random() * 1_000_000)

let tokenizer: Tokenizer
let factory: ParserFactory
let prompt: Uint32Array

beforeAll(async () => {
  tokenizer = await openO200k(harmonyTokens())
  const opened = harmonyFactory(tokenizer)
  if (!opened.ok) throw new Error(opened.error.message)
  factory = opened.value
  prompt = encode("<|start|>assistant")
})

function encode(text: string): Uint32Array {
  const encoded = tokenizer.encode(text, { addSpecialTokens: false })
  if (!encoded.ok) throw new Error(encoded.error.message)
  return encoded.value
}

/** What our parser makes of a reply that comes in steps which end at `ends`. */
function partsOf(ids: ArrayLike<number>, ends: readonly number[]): readonly ParsedPart[] {
  const parser = factory.create({ promptTokenIds: prompt, parseCalls: true })
  const detokenizer = tokenizer.detokenizer(prompt, false)
  const fold = new ParsedFold()
  const piece = new Piece()
  let start = 0
  for (const end of ends) {
    piece.clear()
    for (let i = start; i < end; i++) detokenizer.push(ids[i]!, piece)
    if (end === ids.length) detokenizer.finish(piece)
    parser.push(piece, fold)
    start = end
  }
  parser.finish(fold)
  return fold.parts
}

/** What a chat reply shows of the reference's messages. */
function meaningOf(messages: readonly ParsedMessage[]): ParsedPart[] {
  const parts: ParsedPart[] = []
  const seen = { reasoning: false, text: false }
  for (const { role, channel, recipient, text } of messages) {
    if (role !== "assistant") continue
    const isBuiltIn = /^(?:python|browser|container)(?:\.|$)/.test(recipient ?? "")
    const isAddressed = recipient !== null && !isBuiltIn && !/^(?:<\||(?:assistant|all)?$)/.test(recipient)
    if (isAddressed && recipient !== "functions." && (recipient.startsWith("functions.") || channel !== "final")) {
      const name = recipient.replace(/^functions\./, "")
      parts.push({ kind: "call", name, id: "", arguments: text, ended: true })
      continue
    }
    if (text === "") continue
    const kind = isBuiltIn || channel === "analysis" ? "reasoning" : "text"
    const shown = seen[kind] ? `\n${text}` : text
    seen[kind] = true
    const last = parts.at(-1)
    if (last?.kind === kind) parts[parts.length - 1] = { kind, text: last.text + shown }
    else parts.push({ kind, text: shown })
  }
  return parts
}

/** A reply of whole messages, with headers right and wrong, and contents that may be no text at all. */
function randomReply(replySeed: number): number[] {
  const random = seededRandom(replySeed)
  const of = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const ids: number[] = []
  const messages = 1 + Math.floor(random() * 4)
  for (let i = 0; i < messages; i++) {
    if (i > 0) ids.push(...encode(`<|start|>${of(["assistant", "assistant", "assistant", "user", "functions.f"])}`))
    ids.push(...encode(of(["", "", "", " to=functions.f", " to=python", " to=assistant", " foo", "assistant"])))
    const channel = of(["analysis", "analysis", "final", "commentary", "commentary––commentary", "a b", "final "])
    if (random() < 0.9) ids.push(...encode(`<|channel|>${channel}`))
    ids.push(...encode(of(["", "", " to=functions.g-h", " to=sum", " to=browser.open", " to=all", "\t "])))
    ids.push(...encode(of(["", "", " <|constrain|>json", "<|constrain|>json", " json", " code", " <|constrain|>"])))
    ids.push(...encode("<|message|>"))
    const kind = random()
    if (kind < 0.2) for (let n = Math.floor(random() * 8); n > 0; n--) ids.push(Math.floor(random() * 199_998))
    else ids.push(...encode(of(["", "Hello", '{"city": "Zürich"}', "👩‍👩‍👧 a\n", "x<|start|>y<|channel|>", "\n"])))
    ids.push(...encode(of(["<|end|>", "<|end|>", "<|call|>", "<|return|>"])))
  }
  return ids
}

describe.skipIf(reason !== null)(`openai-harmony, seed ${seed}`, () => {
  test("reads random replies as we do, in any split", async () => {
    const replies = Array.from({ length: repliesEach }, (_, i) => randomReply(seed + i))
    const answers = (await askHarmony(replies.map((ids) => ({ ask: "parse", ids, role: "assistant" })))) as {
      readonly messages: readonly ParsedMessage[]
      readonly error: string | null
    }[]
    let compared = 0
    for (const [i, ids] of replies.entries()) {
      const { messages, error } = answers[i]!
      const whole = partsOf(ids, [ids.length])
      for (const ends of everySplit(ids.length).slice(0, 40)) {
        expect(partsOf(ids, ends), `seed ${seed + i}`).toEqual(whole)
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
      expect(Array.from(encode(input.text))).toEqual([...input.token_ids])
      const messages = expected.messages?.map((each) => ({ ...each, role: "assistant", name: null, contentType: null }))
      const wanted = messages === undefined ? calm[id]! : meaningOf(messages)
      for (const ends of everySplit(input.token_ids.length)) expect(partsOf(input.token_ids, ends)).toEqual(wanted)
    })
  }
})

function readCase(line: string): Case {
  // The file is made by a script and has this shape.
  return JSON.parse(line) as Case
}
