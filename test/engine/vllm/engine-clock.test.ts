import { expect, test } from "bun:test"
import { EngineClock } from "../../../src/engine/vllm/engine-clock"

test("a moment of the engine is moved by the least difference that a message has shown", () => {
  const clock = new EngineClock()
  expect(clock.ours(5)).toBe(-1)
  clock.note(-1, 100)
  expect(clock.ours(5)).toBe(-1)
  clock.note(10, 110.5)
  expect(clock.ours(10)).toBe(110.5)
  clock.note(11, 111.25)
  expect(clock.ours(10)).toBe(110.25)
  // A message that was long on its way says nothing new.
  clock.note(12, 120)
  expect([clock.ours(10), clock.ours(0), clock.ours(-1)]).toEqual([110.25, 100.25, -1])
})

test("the engine's clock may be ahead of ours", () => {
  const clock = new EngineClock()
  clock.note(1_000, 1)
  expect(clock.ours(1_000.5)).toBe(1.5)
})
