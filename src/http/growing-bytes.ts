/** How much longer each array is than the one before, where it is known how long the last will be. */
const growth = 8

/** Where it is not known, arrays double, but grow by no more than this at once. */
const stepBytesMax = 64 * 1024 * 1024

/** Beside a long body its chunks look small to the collector, which would let all of them lie about till the end. */
const collectEveryBytes = 16 * 1024 * 1024

/**
 * Bytes that come in chunks, in one array that grows with what has come: a length that was only announced costs nothing.
 * While it grows, old and new are there at once: an eighth more than the length where that is known.
 */
export class GrowingBytes {
  private readonly length: number | null
  private readonly bytesMax: number
  private bytes = new Uint8Array(0)
  private at = 0

  /** `length`: of everything that will come; null = not known. `bytesMax`: no array is longer. */
  constructor(length: number | null, bytesMax: number) {
    this.length = length
    this.bytesMax = bytesMax
  }

  /** Bytes that the array has once so many more have come; more than `bytesMax` when these are too many. */
  capacityFor(more: number): number {
    const needed = this.at + more
    if (needed <= this.bytes.length) return this.bytes.length
    if (this.length === null || needed > this.length) {
      return Math.max(needed, Math.min(needed + Math.min(needed, stepBytesMax), this.bytesMax))
    }
    let capacity = this.length
    for (
      let less = Math.ceil(capacity / growth);
      less >= needed && less < capacity;
      less = Math.ceil(capacity / growth)
    ) {
      capacity = less
    }
    return capacity
  }

  /** Takes a copy of the chunk. */
  push(chunk: Uint8Array): void {
    const capacity = this.capacityFor(chunk.length)
    // The old array is freed here and not when somebody collects it.
    if (capacity > this.bytes.length) this.bytes = new Uint8Array(this.bytes.buffer.transfer(capacity))
    this.bytes.set(chunk, this.at)
    const before = this.at
    this.at += chunk.length
    if (Math.floor(this.at / collectEveryBytes) > Math.floor(before / collectEveryBytes)) Bun.gc(false)
  }

  /** Whether everything came that was announced. */
  get isWhole(): boolean {
    return this.length === null || this.at === this.length
  }

  /** What came; the caller's from now on. */
  take(): Uint8Array {
    return this.at === this.bytes.length ? this.bytes : this.bytes.subarray(0, this.at)
  }
}
