import { heapStats } from "bun:jsc"

/** Heap cells by kind. */
export interface Cells {
  readonly strings: number
  /** Everything else. */
  readonly objects: number
}

/**
 * What `run` leaves on the heap, by the engine's own count of cells, alive or not, less what an empty run leaves: the way
 * to test that a hot path makes no objects, where timing would only guess. `run` is called once before, to warm up, and
 * must be small enough that no collection comes in between (some ten thousand objects).
 */
export function cellsMade(run: () => void): Cells {
  run()
  const empty = counted(() => {})
  const made = counted(run)
  return {
    strings: Math.max(0, made.strings - empty.strings),
    objects: Math.max(0, made.objects - empty.objects),
  }
}

/** How many heap objects other than strings `run` makes (see `cellsMade`). */
export function objectsMade(run: () => void): number {
  return cellsMade(run).objects
}

function counted(run: () => void): Cells {
  Bun.gc(true)
  const before = cells()
  run()
  const after = cells()
  return { strings: after.strings - before.strings, objects: after.objects - before.objects }
}

function cells(): Cells {
  const { string: strings = 0, ...others } = heapStats().objectTypeCounts
  return { strings, objects: Object.values(others).reduce((sum, each) => sum + each, 0) }
}
