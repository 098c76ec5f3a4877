interface Wait {
  /** On the clock of `performance.now`. */
  readonly endsAt: number
  expire(): void
}

/**
 * One time limit for many waits. They share a timer, which only has to look at the oldest: a timer for each request was an
 * eighth of the processor time of rendering 1 KB (bench/render.ts).
 */
export class TimeLimit {
  private readonly ms: number
  /** In the order in which they end, since all are of one length. */
  private readonly waits = new Set<Wait>()
  private isTimed = false

  constructor(ms: number) {
    this.ms = ms
  }

  /** What a promise comes to, or null when that takes too long. */
  within<Value extends object>(promise: Promise<Value>): Promise<Value | null> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { endsAt: performance.now() + this.ms, expire: () => resolve(null) }
      this.waits.add(wait)
      if (!this.isTimed) this.lookIn(this.ms)
      promise.then(
        (value) => {
          this.waits.delete(wait)
          resolve(value)
        },
        (cause) => {
          this.waits.delete(wait)
          reject(cause)
        },
      )
    })
  }

  /** Those that wait now. */
  get size(): number {
    return this.waits.size
  }

  private lookIn(ms: number): void {
    this.isTimed = true
    // What is waited for keeps the process alive, not this.
    setTimeout(() => this.look(), Math.max(1, Math.ceil(ms))).unref()
  }

  /** Ends what is due, and looks again when the oldest of the others is. */
  private look(): void {
    this.isTimed = false
    const now = performance.now()
    for (const wait of this.waits) {
      if (wait.endsAt > now) {
        this.lookIn(wait.endsAt - now)
        return
      }
      this.waits.delete(wait)
      wait.expire()
    }
  }
}
