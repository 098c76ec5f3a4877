import { heapStats } from "bun:jsc"

/**
 * How many heap objects other than strings `run` makes, by the engine's own count of cells, alive or not, less what an
 * empty run makes: the way to test that a hot path makes none, where timing would only guess. `run` is called once before,
 * to warm up, and must be small enough that no collection comes in between (some ten thousand objects).
 */
export function objectsMade(run: () => void): number {
  run()
  const empty = counted(() => {})
  return Math.max(0, counted(run) - empty)
}

function counted(run: () => void): number {
  Bun.gc(true)
  const before = cells()
  run()
  return cells() - before
}

function cells(): number {
  const { string: _strings, ...others } = heapStats().objectTypeCounts
  return Object.values(others).reduce((sum, each) => sum + each, 0)
}
