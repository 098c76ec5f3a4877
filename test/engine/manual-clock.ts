import type { Clock } from "../../src/engine/clock"

/** A clock that stands still until it is told to move; due timers run in the order of their times. */
export class ManualClock implements Clock {
  private time = 0
  private readonly timers: { at: number; run: () => void }[] = []

  now(): number {
    return this.time
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.time + delayMs, run }
    this.timers.push(timer)
    return () => {
      const at = this.timers.indexOf(timer)
      if (at !== -1) this.timers.splice(at, 1)
    }
  }

  /** Timers now set: an idle engine must leave none. */
  get pending(): number {
    return this.timers.length
  }

  /** Moves to `atMs`, running what becomes due on the way. */
  moveTo(atMs: number): void {
    for (;;) {
      const next = this.timers.reduce<(typeof this.timers)[number] | null>(
        (first, timer) => (first === null || timer.at < first.at ? timer : first),
        null,
      )
      if (next === null || next.at > atMs) break
      this.timers.splice(this.timers.indexOf(next), 1)
      this.time = Math.max(this.time, next.at)
      next.run()
    }
    this.time = atMs
  }

  /** Runs timers until none is set; for engines that come to an end. */
  runOut(): void {
    while (this.timers.length > 0) this.moveTo(Math.min(...this.timers.map((timer) => timer.at)))
  }
}
