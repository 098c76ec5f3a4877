/** What every parser must hold, whatever its family (parser.ts). Run by each family's own test. */
import { describe, expect, test } from "bun:test"
import type { ParserFactory } from "../../src/parser/parser"
import { everySplit } from "../support/every-split"
import { seededRandom } from "../support/random"
import type { ParsedPart } from "../support/recording-sink"
import { markers, ordinary, parse, parserFor, promptOf, type SpelledToken, tokensOf } from "./spelled-tokens"

/** A text a family may write, with what it means. */
export interface ParserSample {
  readonly title: string
  /** Text whose markers are tokens of their own, or tokens as they are. */
  readonly output: string | readonly SpelledToken[]
  readonly parts: readonly ParsedPart[]
  readonly prompt?: string
  readonly reasoningTokens?: number
}

/** A family under test. */
export interface ParserContract {
  readonly name: string
  readonly factory: ParserFactory
  readonly samples: readonly ParserSample[]
  /** Takes away what is the family's frame around an output, whole or cut, beside the markers. */
  readonly unframed?: (output: string) => string
}

/** Declares the contract's tests. */
export function parserContract(contract: ParserContract): void {
  const { factory } = contract
  describe(`${contract.name}: the contract of parsers`, () => {
    for (const sample of contract.samples) {
      const tokens = typeof sample.output === "string" ? tokensOf(sample.output) : sample.output
      const start = { promptTokenIds: promptOf(sample.prompt ?? "") }

      test(`${sample.title}, in every split`, () => {
        const whole = parse(parserFor(factory, start), tokens, [tokens.length])
        expect(whole.parts).toEqual([...sample.parts])
        if (sample.reasoningTokens !== undefined) expect(whole.reasoningTokens).toBe(sample.reasoningTokens)
        for (const ends of everySplit(tokens.length)) {
          expect(parse(parserFor(factory, start), tokens, ends), JSON.stringify(ends)).toEqual(whole)
        }
      })

      test(`${sample.title}: cut after any token, nothing is lost and nothing made up`, () => {
        for (let count = 0; count <= tokens.length; count++) {
          const cut = tokens.slice(0, count)
          const { parts } = parse(parserFor(factory, start), cut, [count])
          expectNothingLost(cut, parts, contract.unframed)
        }
      })

      test(`${sample.title}: what was given out stays when more comes`, () => {
        let before = ""
        for (let count = 0; count <= tokens.length; count++) {
          const shown = flat(parse(parserFor(factory, start), tokens.slice(0, count), [count], false).parts)
          expect(shown.startsWith(before), JSON.stringify([before, shown])).toBe(true)
          before = shown
        }
      })
    }

    test("markers spelled with ordinary tokens are text", () => {
      for (const marker of markers) {
        for (const size of [1, 2, 3, 100]) {
          const tokens = ordinary(`so ${marker} and ${marker}${marker}.`, size)
          for (const ends of [[tokens.length], tokens.map((_, i) => i + 1)]) {
            const { parts } = parse(parserFor(factory, { promptTokenIds: promptOf("<think></think>.") }), tokens, ends)
            expect(parts).toEqual([{ kind: "text", text: `so ${marker} and ${marker}${marker}.` }])
          }
        }
      }
    })

    test("calls stay text when the request wants none", () => {
      const call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
      const start = { parseCalls: false, promptTokenIds: promptOf("</think>.") }
      const tokens = tokensOf(call)
      expect(parse(parserFor(factory, start), tokens, [tokens.length]).parts).toEqual([{ kind: "text", text: call }])
    })

    test("a sequence without tokens gives nothing", () => {
      expect(parse(parserFor(factory), [], [])).toEqual({ parts: [], reasoningTokens: 0 })
    })

    test("600 random mixtures of tokens never throw, lose nothing, and fold alike in any split", () => {
      const parts = [
        ...markers,
        ...markers,
        '{"name": "f", "arguments": {"a": [1]}}',
        '{"name"',
        ":",
        '"',
        "\\",
        "{",
        "}",
      ]
      const more = [
        ...parts,
        "\n",
        "\n\n",
        " ",
        ",",
        "x",
        "é😀",
        "</thi",
        "<tool_call",
        '"arguments"',
        "null",
        "[",
        "]",
      ]
      for (let seed = 1; seed <= 600; seed++) {
        const random = seededRandom(seed)
        const pick = (): string => more[Math.floor(random() * more.length)]!
        const tokens: SpelledToken[] = []
        for (let i = Math.floor(random() * 30); i >= 0; i--) {
          const part = pick()
          tokens.push(...(random() < 0.7 ? tokensOf(part) : ordinary(part, 1 + Math.floor(random() * 5))))
          // Half a character: the token has no text yet.
          if (random() < 0.1) tokens.push({ id: 999, text: "" })
        }
        const start = { promptTokenIds: promptOf(random() < 0.5 ? "" : `${pick()}${pick()}`) }
        const whole = parse(parserFor(factory, start), tokens, [tokens.length])
        expectNothingLost(tokens, whole.parts)
        for (let round = 0; round < 4; round++) {
          const ends: number[] = []
          for (let at = 1; at < tokens.length; at++) if (random() < 0.5) ends.push(at)
          const split = parse(parserFor(factory, start), tokens, [...ends, tokens.length])
          expect(split, JSON.stringify({ seed, ends })).toEqual(whole)
        }
      }
    })
  })
}

function flat(parts: readonly ParsedPart[]): string {
  return parts
    .map((part) => (part.kind === "call" ? `${part.name}(${part.arguments}` : `${part.kind}:${part.text}`))
    .join("|")
}

/** Without calls: the text is the tokens' text but for markers and white space. With calls: it comes in its order. */
function expectNothingLost(
  tokens: readonly SpelledToken[],
  parts: readonly ParsedPart[],
  unframed = (output: string): string => output,
): void {
  const given = parts.map((part) => (part.kind === "call" ? part.arguments : part.text)).join("")
  const input = unframed(tokens.map((token) => token.text).join(""))
  if (parts.some((part) => part.kind === "call")) {
    // Arguments that waited for the name are out of order, but every other character is.
    const text = parts.map((part) => (part.kind === "call" ? "" : part.text)).join("")
    expect(isWithin(bare(text), bare(input)), JSON.stringify([input, parts])).toBe(true)
    return
  }
  const unmarked = (text: string): string => markers.reduce((rest, marker) => rest.replaceAll(marker, ""), bare(text))
  expect(unmarked(given), JSON.stringify([input, parts])).toBe(unmarked(input))
}

function bare(text: string): string {
  return text.replace(/\s/g, "")
}

/** Whether the characters of `part` stand in `whole` in this order. */
function isWithin(part: string, whole: string): boolean {
  let at = 0
  for (const char of part) {
    at = whole.indexOf(char, at) + 1
    if (at === 0) return false
  }
  return true
}
