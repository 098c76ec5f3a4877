import type { Json } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"

/** Why a call of an engine's method came to nothing. */
export interface UtilityFailure {
  readonly kind: "utility_failed" | "utility_timeout" | "engine_gone"
  readonly message: string
}

interface PendingCall {
  readonly method: string
  readonly timer: Timer | null
  readonly settle: (result: Result<Json, UtilityFailure>) => void
}

/** Calls of one engine's methods that wait for their answer (ENGINE_PROTOCOL 10). */
export class UtilityCalls {
  private readonly pending = new Map<number, PendingCall>()
  private lastId = 0

  /** Starts a call: its id for the message, and its answer. `timeoutMs` null = wait for as long as the engine lives. */
  begin(
    method: string,
    timeoutMs: number | null,
  ): { readonly id: number; readonly answer: Promise<Result<Json, UtilityFailure>> } {
    this.lastId += 1
    const id = this.lastId
    const answer = new Promise<Result<Json, UtilityFailure>>((resolve) => {
      const timer = timeoutMs === null ? null : setTimeout(() => this.timeOut(id, timeoutMs), timeoutMs)
      this.pending.set(id, { method, timer, settle: resolve })
    })
    return { id, answer }
  }

  /** The engine's answer; unknown ids (calls that timed out) are dropped. */
  answered(id: number, failure: string | null, result: Json): void {
    this.settle(id, failure === null ? ok(result) : err({ kind: "utility_failed", message: failure }))
  }

  /**
   * An answer that cannot be read: its call fails at once, since no other will come. `id` null = not even its number can
   * be read, so it may be any call's, and all of them fail.
   */
  unreadable(id: number | null, why: string): void {
    for (const each of id === null ? [...this.pending.keys()] : [id]) {
      const method = this.pending.get(each)?.method
      this.settle(each, err({ kind: "utility_failed", message: `the answer to ${method} cannot be read: ${why}` }))
    }
  }

  /** The call cannot be sent. */
  unsent(id: number, message: string): void {
    this.settle(id, err({ kind: "engine_gone", message }))
  }

  /** The engine is gone: nobody will answer. */
  failAll(message: string): void {
    for (const id of [...this.pending.keys()]) this.settle(id, err({ kind: "engine_gone", message }))
  }

  private timeOut(id: number, timeoutMs: number): void {
    const method = this.pending.get(id)?.method
    const message = `the engine did not answer ${method} within ${timeoutMs} ms`
    this.settle(id, err({ kind: "utility_timeout", message }))
  }

  private settle(id: number, result: Result<Json, UtilityFailure>): void {
    const call = this.pending.get(id)
    if (call === undefined) return
    this.pending.delete(id)
    if (call.timer !== null) clearTimeout(call.timer)
    call.settle(result)
  }
}
