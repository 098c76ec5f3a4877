import { describe, expect, test } from "bun:test"
import { LineReader, lineBytesMax } from "../../../src/engine/process/line-reader"
import { seededRandom } from "../../support/random"

/** The lines of a stream that comes in these chunks. */
function linesOf(chunks: readonly Uint8Array[]): string[] {
  const lines: string[] = []
  const reader = new LineReader((line) => lines.push(line))
  for (const chunk of chunks) {
    const passing = chunk.slice()
    reader.push(passing)
    // The reader must keep nothing of a chunk.
    passing.fill(0x23)
  }
  reader.end()
  return lines
}

const bytes = (text: string) => new TextEncoder().encode(text)

describe("lines", () => {
  test.each([
    ["ends of both kinds, and the last without one", "a\nb\r\nc", ["a", "b", "c"]],
    ["empty ones and blank ones are left out", "\n\n  \r\na\n", ["a"]],
    ["a progress bar shows its last state", "0%\r50%\r100%\ndone\n", ["100%", "done"]],
    ["a carriage return at the end goes back over nothing", "kept\r", ["kept"]],
    ["several carriage returns before the line feed", "kept\r\r\n", ["kept"]],
    [
      "colours are left out, other control characters stay",
      "\u001b[36m(x)\u001b[0;1m y\u001b[K\tz\u0007",
      ["(x) y\tz\u0007"],
    ],
    ["characters of every length", "é€😀\n", ["é€😀"]],
  ] as const)("%s, however the stream is cut", (_, text, lines) => {
    const all = bytes(text)
    expect(linesOf([all])).toEqual([...lines])
    expect(linesOf(Array.from(all, (_, at) => all.subarray(at, at + 1)))).toEqual([...lines])
    for (let at = 0; at <= all.length; at++) {
      expect(linesOf([all.subarray(0, at), all.subarray(at)])).toEqual([...lines])
    }
  })

  test("that are not UTF-8 have U+FFFD where it breaks", () => {
    expect(linesOf([Uint8Array.of(0x61, 0xff, 0x62, 0x0a, 0xe2, 0x82)])).toEqual(["a\ufffdb", "\ufffd"])
  })

  test("that are too long are cut between characters, and the next one is whole", () => {
    const fits = "x".repeat(lineBytesMax)
    expect(linesOf([bytes(`${fits}\n`)])).toEqual([fits])
    expect(linesOf([bytes(`${fits}y\nnext\n`)])).toEqual([`${fits}…`, "next"])
    const euros = "€".repeat(Math.floor(lineBytesMax / 3))
    expect(linesOf([bytes(`${euros}€€\nnext`)])).toEqual([`${euros}…`, "next"])
    expect(linesOf([bytes(`${fits}y\rshort\n`)])).toEqual(["short"])
  })

  test("of a stream without an end hold no more than one line", () => {
    const lines: string[] = []
    const reader = new LineReader((line) => lines.push(line))
    const chunk = new Uint8Array(1 << 20).fill(0x78)
    for (let round = 0; round < 64; round++) reader.push(chunk)
    expect(lines).toEqual([])
    reader.end()
    expect(lines).toEqual([`${"x".repeat(lineBytesMax)}…`])
  })

  test("are the same for any cutting of any bytes", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const random = seededRandom(seed)
      const pieces = ["a", "\r", "\n", "é", "\r\n", "x".repeat(lineBytesMax - 2)]
      const text = Array.from({ length: 12 }, () => pieces[Math.floor(random() ** 2 * pieces.length)]!).join("")
      const all = bytes(text)
      const chunks: Uint8Array[] = []
      for (let at = 0; at < all.length; ) {
        const end = at + 1 + Math.floor(random() * 5) * Math.floor(random() * 2_000)
        chunks.push(all.subarray(at, end))
        at = end
      }
      expect({ seed, lines: linesOf(chunks) }).toEqual({ seed, lines: linesOf([all]) })
    }
  })
})
