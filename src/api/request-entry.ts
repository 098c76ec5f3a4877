/**
 * One request as the server sees it from outside: its line in the access log, written when the reply is complete so that
 * it tells the whole story, and the silence that its connection is allowed.
 */
export class RequestEntry {
  /** The reply's id, once there is one. */
  id = ""
  /** What there is to say beyond the status. */
  note = ""
  /** True for streams: the line waits for `end`. */
  deferred = false
  private readonly startedAt: number
  private readonly method: string
  private readonly path: string
  private readonly log: ((line: string) => void) | null
  private readonly now: () => number
  /** Seconds that the connection may stay silent; 0 = for ever, null = as at first. */
  readonly silence: (seconds: number | null) => void

  /** `log` null = this path is not logged. `now` in seconds, monotonic. */
  constructor(
    method: string,
    path: string,
    now: () => number,
    log: ((line: string) => void) | null,
    silence: (seconds: number | null) => void,
  ) {
    this.silence = silence
    this.method = method
    this.path = path
    this.now = now
    this.log = log
    this.startedAt = now()
  }

  /** Writes the line. */
  end(status: number): void {
    if (this.log === null) return
    const ms = ((this.now() - this.startedAt) * 1000).toFixed(1)
    const id = this.id === "" ? "" : ` ${this.id}`
    const note = this.note === "" ? "" : `, ${this.note}`
    this.log(`${this.method} ${this.path} ${status} ${ms} ms${id}${note}`)
  }
}
