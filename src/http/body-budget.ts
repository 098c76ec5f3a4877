/**
 * The sum of all bodies that a process holds at one time. One body has a limit (http/body), but many at once would still
 * be more than the memory that there is. Short bodies are not counted: whoever has nothing but text must never wait for
 * others' media, and requests are bounded in number.
 */

/** Bodies below this are not counted. */
export const longBodyBytesMin = 256 * 1024

/** Room for the long bodies of all requests. */
export class BodyBudget {
  readonly bytesMax: number
  private taken = 0

  /** `bytesMax`: bytes of all long bodies together. */
  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.taken
  }

  /** One request's part, nothing at first; whoever takes it sees to its `release`. */
  claim(): BodyClaim {
    return new BodyClaim(this)
  }

  /** Takes or gives back; false when there is no room for it. */
  move(bytes: number): boolean {
    if (bytes > 0 && this.taken + bytes > this.bytesMax) return false
    this.taken += bytes
    return true
  }
}

/** What one request holds of the budget, until it is answered or its client is gone. */
export class BodyClaim {
  private readonly budget: BodyBudget
  private bytes = 0
  private isOver = false

  constructor(budget: BodyBudget) {
    this.budget = budget
  }

  /** The most that could ever be claimed. */
  get bytesMax(): number {
    return this.budget.bytesMax
  }

  /** Claims so many bytes in all. False when others hold too much for that, or the request is over: then nothing changes. */
  raise(bytes: number): boolean {
    if (bytes < longBodyBytesMin || bytes <= this.bytes) return !this.isOver
    if (this.isOver || !this.budget.move(bytes - this.bytes)) return false
    this.bytes = bytes
    return true
  }

  /** Gives all of it back, once and for all. */
  release(): void {
    this.isOver = true
    this.budget.move(-this.bytes)
    this.bytes = 0
  }
}
