import type { BodyClaim } from "../http/body-budget"

/**
 * One request as the server sees it from outside: its line in the access log, written when the reply is complete so that
 * it tells the whole story, the silence that its connection is allowed, and the room that its body takes until then.
 */
export class RequestEntry {
  /** The reply's id, once there is one. */
  id = ""
  /** What there is to say beyond the status. */
  note = ""
  /** True where the reply is not complete when the route returns: the line, and what the body holds, wait for `end`. */
  deferred = false
  private readonly startedAt: number
  private readonly method: string
  private readonly path: string
  private readonly log: ((line: string) => void) | null
  private readonly now: () => number
  /** Seconds that the connection may stay silent; 0 = for ever, null = as at first. */
  readonly silence: (seconds: number | null) => void
  /** What the body takes of all that bodies may take. */
  readonly claim: BodyClaim

  /** `log` null = this path is not logged. `now` in seconds, monotonic. */
  constructor(
    method: string,
    path: string,
    now: () => number,
    log: ((line: string) => void) | null,
    silence: (seconds: number | null) => void,
    claim: BodyClaim,
  ) {
    this.silence = silence
    this.claim = claim
    this.method = method
    this.path = path
    this.now = now
    this.log = log
    this.startedAt = now()
  }

  /** The reply is complete, or nobody waits for it: writes the line, and gives back what the body took. */
  end(status: number): void {
    this.claim.release()
    if (this.log === null) return
    const ms = ((this.now() - this.startedAt) * 1000).toFixed(1)
    const id = this.id === "" ? "" : ` ${this.id}`
    const note = this.note === "" ? "" : `, ${this.note}`
    this.log(`${this.method} ${this.path} ${status} ${ms} ms${id}${note}`)
  }
}
