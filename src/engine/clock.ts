/** Time as engines here see it; tests pass one that they move by hand. */
export interface Clock {
  /** Milliseconds on a monotonic clock. */
  now(): number
  /** Calls `run` once, not before this returns; the answer cancels it. */
  after(delayMs: number, run: () => void): () => void
}

/** Timers count whole milliseconds, so a wait below half of one is none. */
const shortestWaitMs = 0.5

/** The process's own monotonic clock. A wait of nothing lets sockets be read first (`setImmediate`). */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    if (delayMs < shortestWaitMs) {
      const immediate = setImmediate(run)
      return () => clearImmediate(immediate)
    }
    const timer = setTimeout(run, Math.round(delayMs))
    return () => clearTimeout(timer)
  },
}
