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

/** Below this calls begin to be numbered: there is room above it for all calls of a process. */
const firstIdMax = 2 ** 48

/**
 * Calls of one engine's methods that wait for their answer (ENGINE_PROTOCOL 10). They are numbered from anywhere: the
 * engine may still answer what another process of this server asked it.
 */
export class UtilityCalls {
  private readonly pending = new Map<number, PendingCall>()
  private lastId = Math.floor(Math.random() * firstIdMax)

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

  /** The engine's answer; unknown ids (calls that timed out) are dropped. True = a call waited for it. */
  answered(id: number, failure: string | null, result: Json): boolean {
    return this.settle(id, failure === null ? ok(result) : err({ kind: "utility_failed", message: failure }))
  }

  /**
   * An answer that cannot be read: its call fails at once, since no other will come. `id` null = not even its number can
   * be read, so it may be any call's, and all of them fail. True = a call waited for it.
   */
  unreadable(id: number | null, why: string): boolean {
    let waited = false
    for (const each of id === null ? [...this.pending.keys()] : [id]) {
      const method = this.pending.get(each)?.method
      const message = `the answer to ${method} cannot be read: ${why}`
      waited = this.settle(each, err({ kind: "utility_failed", message })) || waited
    }
    return waited
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

  private settle(id: number, result: Result<Json, UtilityFailure>): boolean {
    const call = this.pending.get(id)
    if (call === undefined) return false
    this.pending.delete(id)
    if (call.timer !== null) clearTimeout(call.timer)
    call.settle(result)
    return true
  }
}
