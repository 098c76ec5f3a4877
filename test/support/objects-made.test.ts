import { expect, test } from "bun:test"
import { objectsMade } from "./objects-made"

test("objects are counted though nothing keeps them, and strings are not", () => {
  let last: unknown = null
  const making = objectsMade(() => {
    for (let i = 0; i < 5_000; i++) last = { i }
  })
  expect(making).toBeGreaterThan(4_900)
  expect(last).toEqual({ i: 4_999 })
  const counting = objectsMade(() => {
    let sum = 0
    for (let i = 0; i < 5_000; i++) sum += `${i}x`.length
    last = sum
  })
  expect(counting).toBeLessThan(200)
})
