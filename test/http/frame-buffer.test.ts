import { describe, expect, test } from "bun:test"
import { DeltaFrame, FramePart } from "../../src/http/delta-frame"
import { FrameBuffer } from "../../src/http/frame-buffer"
import { jsonString } from "../../src/http/json-string"
import { seededRandom } from "../support/random"

function taken(buffer: FrameBuffer): string {
  const text = new TextDecoder().decode(buffer.view())
  buffer.clear()
  return text
}

const bare = new DeltaFrame("", new FramePart(""))

describe("a frame with a text", () => {
  test("has every UTF-16 unit as JSON.stringify has it, alone and among others", () => {
    const buffer = new FrameBuffer()
    const wrong: number[] = []
    for (let unit = 0; unit <= 0xffff; unit++) {
      const text = `a${String.fromCharCode(unit)}é`
      buffer.delta(bare, text, -1)
      const json = taken(buffer)
      if (json !== jsonString(text) || JSON.parse(json) !== text || /[\u0085\u2028\u2029\n]/.test(json))
        wrong.push(unit)
    }
    expect(wrong).toEqual([])
  })

  test("has pairs, halves and mixtures as JSON.stringify has them", () => {
    const random = seededRandom(5)
    const some = ["a", '"', "\\", "\n", "\t", "\u0000", "\u0085", "\u2028", "é", "東", "🌤️", "\ud83c", "\udf24", "</"]
    const buffer = new FrameBuffer()
    for (let i = 0; i < 2_000; i++) {
      let text = ""
      for (let left = Math.floor(random() * 12); left > 0; left--) text += some[Math.floor(random() * some.length)]!
      buffer.delta(bare, text, -1)
      expect(taken(buffer)).toBe(jsonString(text))
    }
  })

  test("stands between its head and its tail, and the number and the end behind them", () => {
    const frame = new DeltaFrame('data: {"é":', new FramePart(',"number":'), new FramePart("}\n\n"))
    const long = new DeltaFrame(
      `data: ${"x".repeat(300)}`,
      new FramePart("y".repeat(300)),
      new FramePart("z".repeat(300)),
    )
    const buffer = new FrameBuffer()
    let expected = ""
    for (const number of [-1, 0, 9, 10, 99, 100, 12_345, 999_999_999, 1_000_000_000, 2 ** 31 - 1]) {
      for (const each of [frame, long]) {
        buffer.delta(each, "Grüße", number)
        expected += each.with("Grüße", number)
      }
    }
    expect(buffer.length).toBe(Buffer.byteLength(expected))
    expect(taken(buffer)).toBe(expected)
    expect(frame.with("a", 7)).toBe('data: {"é":"a","number":7}\n\n')
    expect(frame.with("a", -1)).toBe('data: {"é":"a","number":')
  })
})

describe("a buffer of frames", () => {
  test("keeps what waits while it grows, and begins anew when it was cleared", () => {
    const buffer = new FrameBuffer()
    let expected = ""
    for (let i = 0; i < 3_000; i++) {
      buffer.text(`data: ${i} ü\n\n`)
      buffer.delta(bare, "東京".repeat(i % 50), i)
      expected += `data: ${i} ü\n\n${bare.with("東京".repeat(i % 50), i)}`
    }
    expect(taken(buffer)).toBe(expected)
    expect(buffer.length).toBe(0)
    buffer.text("a")
    expect(taken(buffer)).toBe("a")
  })
})
