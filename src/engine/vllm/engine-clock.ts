/**
 * An engine's monotonic clock against ours; seconds. Moments of an engine mean nothing to anybody else (ENGINE_PROTOCOL
 * 15, trap 8), so they are moved by the least difference that a message has shown between its sending and its coming.
 */
export class EngineClock {
  private difference = Number.POSITIVE_INFINITY

  /** A message sent at `theirs` came at `ours`; a negative `theirs` is none. */
  note(theirs: number, ours: number): void {
    if (theirs >= 0 && ours - theirs < this.difference) this.difference = ours - theirs
  }

  /** A moment of the engine on our clock; -1 stays -1, and so does everything before the first message. */
  ours(theirs: number): number {
    return theirs < 0 || this.difference === Number.POSITIVE_INFINITY ? -1 : theirs + this.difference
  }
}
