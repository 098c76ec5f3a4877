import { expect, test } from "bun:test"
import { withAdapterIds } from "../src/adapter-ids"

const module = (name: string, path: string, is3dWeight = false) => ({ name, path, baseModelName: null, is3dWeight })
const idsOf = (...modules: Parameters<typeof withAdapterIds>[0]) => withAdapterIds(modules).map(({ id }) => id)

test("an adapter has the same number wherever it stands, and another one where it is another", () => {
  const [a, b] = [module("a", "/a"), module("b", "/b")]
  const [first] = idsOf(a)
  expect(idsOf(b, a)[1]).toBe(first!)
  expect(withAdapterIds([a])).toEqual([{ ...a, id: first! }])
  const others = [b, module("a", "/b"), module("a/", "a"), module("a", "/a", true)].flatMap((each) => idsOf(each))
  expect(new Set([first, ...others]).size).toBe(5)
})

test("adapters of one server have different numbers that engines take", () => {
  const ids = idsOf(...Array.from({ length: 10_000 }, (_, i) => module(`a${i}`, "/a")), module("a1", "/a"))
  expect(new Set(ids).size).toBe(10_001)
  expect(Math.min(...ids)).toBeGreaterThanOrEqual(1)
  expect(Math.max(...ids)).toBeLessThanOrEqual(2 ** 31 - 1)
  expect(ids.every(Number.isInteger)).toBe(true)
})
