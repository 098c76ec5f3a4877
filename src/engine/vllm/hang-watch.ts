import type { EngineLink } from "./engine-link"
import { probeMethod } from "./engine-pool"

/** What the watch looks at, and whom it tells. */
export interface HangWatchPorts {
  links(): readonly (EngineLink | null)[]
  /** An engine with work has neither sent anything nor answered a call for so long. */
  hangs(link: EngineLink, silentMs: number): void
  /** Milliseconds on a monotonic clock. */
  now(): number
}

/** Silence after which an engine with work is called. */
const quietMsMax = 1_000

/**
 * Finds engines that hang. Their connections stay open, and a PONG would only prove that their I/O thread lives; so an
 * engine that has work and sends nothing is called, and hangs when the call stays unanswered too.
 */
export class HangWatch {
  private readonly ports: HangWatchPorts
  private readonly timeoutMs: number
  private readonly everyMs: number
  private readonly timer: Timer
  private tickedAt: number

  constructor(timeoutMs: number, ports: HangWatchPorts) {
    this.ports = ports
    this.timeoutMs = timeoutMs
    this.everyMs = Math.min(quietMsMax, Math.max(10, timeoutMs / 10))
    this.tickedAt = ports.now()
    this.timer = setInterval(() => this.tick(), this.everyMs)
    this.timer.unref()
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private tick(): void {
    const now = this.ports.now()
    // When this process itself stood still, what engines sent meanwhile has not been read yet.
    const stoodStill = now - this.tickedAt > 3 * this.everyMs
    this.tickedAt = now
    if (stoodStill) return
    for (const link of this.ports.links()) {
      if (link !== null && link.state === "ready" && link.running.size > 0) this.look(link, now)
    }
  }

  private look(link: EngineLink, now: number): void {
    if (link.probedAt >= 0) {
      const silentMs = now - Math.max(link.probedAt, link.heardAt)
      if (silentMs >= this.timeoutMs) this.ports.hangs(link, silentMs)
    } else if (now - link.heardAt >= Math.min(quietMsMax, this.timeoutMs / 4)) {
      link.probedAt = now
      void link.call(probeMethod, [], null).then(() => {
        link.probedAt = -1
      })
    }
  }
}
