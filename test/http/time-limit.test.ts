import { describe, expect, test } from "bun:test"
import { TimeLimit } from "../../src/http/time-limit"

const never = (): Promise<object> => new Promise(() => {})

describe("a time limit", () => {
  test("gives what comes in time, and keeps nothing of it", async () => {
    const limit = new TimeLimit(60_000)
    const value = { is: "there" }
    expect(await limit.within(Promise.resolve(value))).toBe(value)
    expect(limit.size).toBe(0)
  })

  test("passes a failure on", async () => {
    const limit = new TimeLimit(60_000)
    await expect(limit.within(Promise.reject(new Error("broken")))).rejects.toThrow("broken")
    expect(limit.size).toBe(0)
  })

  test("gives null for what takes too long, each at its own time", async () => {
    const limit = new TimeLimit(80)
    const startedAt = performance.now()
    const first = limit.within(never())
    await Bun.sleep(40)
    const secondAt = performance.now()
    const second = limit.within(never())
    expect(await first).toBeNull()
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(80)
    expect(limit.size).toBe(1)
    expect(await second).toBeNull()
    expect(performance.now() - secondAt).toBeGreaterThanOrEqual(80)
    expect(limit.size).toBe(0)
  })

  test("looks again after a time without anybody waiting", async () => {
    const limit = new TimeLimit(20)
    await limit.within(Promise.resolve({}))
    await Bun.sleep(60)
    expect(await limit.within(never())).toBeNull()
  })

  test("does not hold those up that are in time behind one that is late", async () => {
    const limit = new TimeLimit(40)
    const late = limit.within(never())
    const value = {}
    expect(await limit.within(Bun.sleep(1).then(() => value))).toBe(value)
    expect(await late).toBeNull()
  })
})
