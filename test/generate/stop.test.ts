import { describe, expect, test } from "bun:test"
import { StopFilter } from "../../src/generate/stop"
import { Piece } from "../../src/ir/piece"
import { everySplit } from "../support/every-split"
import { seededRandom } from "../support/random"

interface Filtered {
  readonly text: string
  readonly matched: string | null
  /** Tokens that belong to the reply. */
  readonly tokens: number
  /** Text by token id, as attributed. */
  readonly owned: readonly string[]
}

/** Runs the filter over tokens (id = place) that come in pieces ending at `ends`. */
function filter(
  tokens: readonly string[],
  ends: readonly number[],
  stop: readonly string[],
  include = false,
  minTokens = 0,
): Filtered {
  const filtering = new StopFilter(stop, include, minTokens)
  const released = new Piece()
  let text = ""
  let kept = 0
  let start = 0
  const owned = tokens.map(() => "")
  const take = (): void => {
    let from = 0
    for (let i = 0; i < released.count; i++) {
      owned[released.ids[i]!] += released.text.slice(from, released.ends[i]!)
      from = released.ends[i]!
    }
    text += released.text
    released.clear()
  }
  for (const end of ends) {
    const piece = new Piece()
    for (let i = start; i < end; i++) piece.add(i, tokens[i]!)
    kept += filtering.push(piece, released)
    take()
    if (filtering.matched !== null) return { text, matched: filtering.matched, tokens: kept, owned }
    start = end
  }
  filtering.finish(released)
  take()
  return { text, matched: null, tokens: kept, owned }
}

/** The rule, spelled out over whole text: the oracle. */
function expected(
  tokens: readonly string[],
  stop: readonly string[],
  include: boolean,
  minTokens: number,
): Omit<Filtered, "owned"> {
  let text = ""
  for (const [index, token] of tokens.entries()) {
    const before = text.length
    text += token
    if (index + 1 <= minTokens || token === "") continue
    let best: { end: number; start: number; stop: string } | null = null
    const window = Math.max(...stop.map((each) => each.length)) - 1
    for (const each of stop) {
      const at = text.indexOf(each, Math.max(0, before - Math.min(window, each.length - 1)))
      if (at === -1) continue
      const end = at + each.length
      if (best === null || end < best.end || (end === best.end && at < best.start))
        best = { end, start: at, stop: each }
    }
    if (best === null) continue
    return { text: text.slice(0, include ? best.end : best.start), matched: best.stop, tokens: index + 1 }
  }
  return { text, matched: null, tokens: tokens.length }
}

describe("a stop filter", () => {
  test("cuts before the string, in every chunking", () => {
    const tokens = ["One", ", two", ", ST", "OP", " more"]
    for (const ends of everySplit(tokens.length)) {
      const { text, matched, tokens: kept } = filter(tokens, ends, ["STOP"])
      expect({ text, matched, kept }).toEqual({ text: "One, two, ", matched: "STOP", kept: 4 })
    }
  })

  test("keeps the string when asked to, and nothing behind it", () => {
    const { text, owned } = filter(["a S", "TOP b"], [1, 2], ["STOP"], true)
    expect({ text, owned }).toEqual({ text: "a STOP", owned: ["a S", "TOP"] })
  })

  test("takes the match that completes first, and of two that complete together the longest", () => {
    expect(filter(["abcd"], [1], ["bcd", "ab"]).matched).toBe("ab")
    expect(filter(["abcd"], [1], ["cd", "bcd"]).matched).toBe("bcd")
    expect(filter(["abcd"], [1], ["bcd", "cd"]).matched).toBe("bcd")
  })

  test("lets no token up to min_tokens complete a match, though a match may begin in one", () => {
    expect(filter(["STOP", "x", "y"], [3], ["STOP"], false, 1)).toMatchObject({ text: "STOPxy", matched: null })
    expect(filter(["ST", "OP", "y"], [3], ["STOP"], false, 1)).toMatchObject({ text: "", matched: "STOP", tokens: 2 })
  })

  test("gives held text back at the end, with the tokens that made it", () => {
    expect(filter(["a", "ST", "O"], [1, 2, 3], ["STOP"])).toEqual({
      text: "aSTO",
      matched: null,
      tokens: 3,
      owned: ["a", "ST", "O"],
    })
  })

  test("holds only what may become a stop string", () => {
    const filtering = new StopFilter(["a long stop string"], false, 0)
    const released = new Piece()
    const shown = ["Hello", " a", " lon", "e wolf"].map((text, id) => {
      const piece = new Piece()
      piece.add(id, text)
      released.clear()
      filtering.push(piece, released)
      return released.text
    })
    expect(shown).toEqual(["Hello", "", "", " a lone wolf"])
  })

  test("takes time by the length of text and strings alone", () => {
    const startedAt = performance.now()
    const stop = Array.from({ length: 128 }, () => `${"a".repeat(10_000)}b`)
    const { matched } = filter(
      Array.from({ length: 2_000 }, () => "aaaa"),
      [2_000],
      stop,
    )
    expect(matched).toBeNull()
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test("never shows what a later match takes back, on 5000 random texts", () => {
    const random = seededRandom(11)
    const pick = (from: string): string => from[Math.floor(random() * from.length)]!
    for (let round = 0; round < 5000; round++) {
      const word = (max: number): string =>
        Array.from({ length: Math.floor(random() * max) }, () => pick("ab ")).join("")
      const tokens = Array.from({ length: 1 + Math.floor(random() * 9) }, () => word(4))
      const stop = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick("ab ") + word(4))
      const include = random() < 0.3
      const minTokens = random() < 0.3 ? Math.floor(random() * 4) : 0
      const ends: number[] = []
      for (let i = 1; i < tokens.length; i++) if (random() < 0.5) ends.push(i)
      ends.push(tokens.length)
      const { text, matched, tokens: kept } = filter(tokens, ends, stop, include, minTokens)
      const seen = { text, matched, tokens: kept }
      expect(seen, JSON.stringify({ round, tokens, stop, include, minTokens, ends })).toEqual(
        expected(tokens, stop, include, minTokens),
      )
    }
  })
})
