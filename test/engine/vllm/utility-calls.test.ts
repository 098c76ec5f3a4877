import { expect, test } from "bun:test"
import { UtilityCalls } from "../../../src/engine/vllm/utility-calls"

test("answers find their calls in any order, and those that nobody waits for are dropped", async () => {
  const calls = new UtilityCalls()
  const [first, second, third] = [calls.begin("a", null), calls.begin("b", 60_000), calls.begin("c", null)]
  expect(new Set([first.id, second.id, third.id]).size).toBe(3)
  calls.answered(999, null, 1)
  calls.answered(third.id, "no such method", null)
  calls.answered(second.id, null, { x: [1] })
  calls.answered(second.id, null, 2)
  calls.answered(first.id, null, false)
  expect(await Promise.all([first.answer, second.answer, third.answer])).toEqual([
    { ok: true, value: false },
    { ok: true, value: { x: [1] } },
    { ok: false, error: { kind: "utility_failed", message: "no such method" } },
  ])
})

test("an answer that cannot be read fails its call at once, or all of them when its number cannot be read", async () => {
  const calls = new UtilityCalls()
  const [first, second, third] = [calls.begin("a", null), calls.begin("b", 60_000), calls.begin("c", null)]
  const failed = (method: string, why: string) => {
    const message = `the answer to ${method} cannot be read: ${why}`
    return { ok: false, error: { kind: "utility_failed", message } } as const
  }
  calls.unreadable(second.id, "no string")
  calls.unreadable(999, "nobody's")
  expect(await second.answer).toEqual(failed("b", "no string"))
  calls.unreadable(null, "no number")
  expect(await Promise.all([first.answer, third.answer])).toEqual([failed("a", "no number"), failed("c", "no number")])
})

test("a call that is not answered in time fails by its method's name, and its late answer is dropped", async () => {
  const calls = new UtilityCalls()
  const { id, answer } = calls.begin("sleep", 5)
  const timeout = { kind: "utility_timeout", message: "the engine did not answer sleep within 5 ms" }
  expect(await answer).toEqual({ ok: false, error: timeout } as never)
  calls.answered(id, null, true)
})

test("a call that cannot be sent is not taken for one that the engine refused", async () => {
  const calls = new UtilityCalls()
  const { id, answer } = calls.begin("a", null)
  calls.unsent(id, "engine 0 cannot be reached")
  expect(await answer).toEqual({ ok: false, error: { kind: "engine_gone", message: "engine 0 cannot be reached" } })
})

test("all calls fail with their engine, and later ones can be made", async () => {
  const calls = new UtilityCalls()
  const answers = [calls.begin("a", null), calls.begin("b", 60_000)].map(({ answer }) => answer)
  calls.failAll("it is gone")
  const gone = { ok: false, error: { kind: "engine_gone", message: "it is gone" } } as const
  expect(await Promise.all(answers)).toEqual([gone, gone])
  const { id, answer } = calls.begin("c", null)
  calls.answered(id, null, 3)
  expect(await answer).toEqual({ ok: true, value: 3 })
})
