/** How many requests are inside the generation routes: the limit on them, and the number that /load reports. */
export class Admission {
  private readonly requestsMax: number
  private count = 0

  /** `requestsMax`: requests inside at once. */
  constructor(requestsMax: number) {
    this.requestsMax = requestsMax
  }

  /** Requests inside now. */
  get inside(): number {
    return this.count
  }

  /** False when the server is full; each true must be followed by one `leave`. */
  enter(): boolean {
    if (this.count >= this.requestsMax) return false
    this.count += 1
    return true
  }

  /** A request that entered is done, whatever became of it. Leaving more often than entering is a bug and throws. */
  leave(): void {
    if (this.count === 0) throw new Error("a request left that had not entered")
    this.count -= 1
  }
}
