/** Room for long bodies, and the array that one is gathered in. */
import { describe, expect, test } from "bun:test"
import { BodyBudget, longBodyBytesMin } from "../../src/http/body-budget"
import { GrowingBytes } from "../../src/http/growing-bytes"
import { seededRandom } from "../support/random"

describe("the budget", () => {
  test("has what is claimed and not released, and never more than its limit", () => {
    const budget = new BodyBudget(1_000_000)
    const first = budget.claim()
    const second = budget.claim()
    expect([first.raise(400_000), first.raise(600_000), first.raise(500_000), budget.bytes]).toEqual([
      true,
      true,
      true,
      600_000,
    ])
    expect([second.raise(400_001), budget.bytes]).toEqual([false, 600_000])
    expect([second.raise(400_000), budget.bytes]).toEqual([true, 1_000_000])
    first.release()
    first.release()
    expect(budget.bytes).toBe(400_000)
    second.release()
    expect(budget.bytes).toBe(0)
  })

  test("does not count short bodies, and nothing of a request that is over", () => {
    const budget = new BodyBudget(0)
    expect(budget.claim().raise(longBodyBytesMin - 1)).toBe(true)
    expect(budget.claim().raise(longBodyBytesMin)).toBe(false)
    const roomy = new BodyBudget(1_000_000)
    const over = roomy.claim()
    over.release()
    expect([over.raise(500_000), over.raise(1), roomy.bytes]).toEqual([false, false, 0])
  })
})

describe("bytes that grow", () => {
  test("are what came, in whatever chunks and whether or not their number was known", () => {
    const random = seededRandom(7)
    for (let round = 0; round < 60; round++) {
      const chunks = Array.from({ length: Math.floor(random() * 12) }, () =>
        Uint8Array.from({ length: Math.floor(random() ** 3 * 3_000) }, () => Math.floor(random() * 256)),
      )
      const all = Buffer.concat(chunks)
      for (const length of [all.length, null]) {
        const bytes = new GrowingBytes(length, all.length)
        for (const chunk of chunks) bytes.push(chunk)
        expect(Buffer.from(bytes.take()).equals(all)).toBe(true)
        expect(bytes.isWhole).toBe(true)
      }
    }
  })

  test("take no more than eight times what came, however much was announced", () => {
    for (const length of [1, 7, 8, 9, 1_000, 4_097, 2 ** 20, 2 ** 29, 2 ** 29 + 13, 10 ** 9]) {
      for (let came = 1; came <= length; came = came * 3 + 1) {
        const capacity = new GrowingBytes(length, length).capacityFor(came)
        expect(capacity).toBeGreaterThanOrEqual(came)
        expect(capacity).toBeLessThanOrEqual(Math.min(length, 8 * came))
      }
      expect(new GrowingBytes(length, length).capacityFor(length)).toBe(length)
    }
  })

  test("are never more than may be, and not whole when some are missing", () => {
    const bytes = new GrowingBytes(null, 1_000)
    bytes.push(new Uint8Array(600))
    expect([bytes.capacityFor(100), bytes.capacityFor(400), bytes.capacityFor(401)]).toEqual([1_000, 1_000, 1_001])
    const short = new GrowingBytes(100, 1_000)
    short.push(new Uint8Array(99))
    expect(short.isWhole).toBe(false)
    short.push(new Uint8Array(1))
    expect(short.isWhole).toBe(true)
  })
})
