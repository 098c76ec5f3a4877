import type { EngineRestart } from "../../config"

/** How a process ended: a status, or the signal that ended it, or neither when it could not be started. */
export interface EngineExit {
  readonly status: number | null
  readonly signal: string | null
}

/** What follows: a start again after a wait, or none and why. */
export type AfterExit =
  | { readonly kind: "restart"; readonly delayMs: number; readonly restart: number }
  | { readonly kind: "gave_up"; readonly why: string }

/** Counts starts again in a row, and says how long to wait for the next one or that there is none. */
export class RestartRow {
  private readonly config: EngineRestart
  private restarts = 0

  constructor(config: EngineRestart) {
    this.config = config
  }

  /** A process ended after `ranMs`. `wanted` = we ended it so that it starts again, whatever its status. */
  next(exit: EngineExit, ranMs: number, wanted: boolean): AfterExit {
    const { policy, delayMs, delayMsMax, restartsMax, stableMs } = this.config
    if (policy === "never" || (policy === "on-failure" && exit.status === 0 && !wanted)) {
      return { kind: "gave_up", why: `--engine-restart is ${policy}` }
    }
    if (ranMs >= stableMs) this.restarts = 0
    if (this.restarts >= restartsMax) {
      return { kind: "gave_up", why: `--engine-restart-limit is ${restartsMax}` }
    }
    const wait = Math.min(delayMs * 2 ** this.restarts, delayMsMax)
    this.restarts++
    return { kind: "restart", delayMs: wait, restart: this.restarts }
  }
}
