import { heapStats } from "bun:jsc"

/**
 * How many heap objects `run` makes, by the engine's own count, less what an empty run makes: the way to test that a
 * hot path makes none, where timing would only guess. Strings count as objects. `run` is called once before, to warm up.
 */
export function objectsMade(run: () => void): number {
  run()
  const empty = counted(() => {})
  return Math.max(0, counted(run) - empty)
}

function counted(run: () => void): number {
  Bun.gc(true)
  const before = heapStats().objectCount
  run()
  return heapStats().objectCount - before
}
