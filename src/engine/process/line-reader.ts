/** Longer lines are cut: a log is for reading. */
export const lineBytesMax = 8 * 1024

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Control sequences of terminals (ECMA-48): colours and cursor moves. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
const controlSequence = /\u001b\[[0-?]*[ -/]*[@-~]/g

/**
 * Cuts a byte stream, in whatever chunks it comes, into lines of UTF-8 text without their ends, and calls `line` for
 * each that is not empty. What a terminal would not show is left out: colours, and whatever a carriage return goes back
 * over, as progress bars do. Bytes that are no UTF-8 become U+FFFD. Holds at most `lineBytesMax` bytes; of a longer line
 * the beginning is given, with "…" behind it.
 */
export class LineReader {
  private readonly line: (text: string) => void
  private readonly held = new Uint8Array(lineBytesMax)
  private heldBytes = 0
  /** Bytes of this line were dropped. */
  private cut = false
  /** A carriage return came last: unless the line ends here, it begins again. */
  private returned = false

  constructor(line: (text: string) => void) {
    this.line = line
  }

  /** Takes the next bytes; keeps none of the chunk. */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const feed = chunk.indexOf(lineFeed, at)
      this.hold(chunk.subarray(at, feed === -1 ? chunk.length : feed))
      if (feed === -1) return
      this.give()
      at = feed + 1
    }
  }

  /** The stream has ended: what is held is a line as well. */
  end(): void {
    this.give()
  }

  private hold(part: Uint8Array): void {
    let end = part.length
    while (end > 0 && part[end - 1] === carriageReturn) end--
    if (end > 0) {
      const last = part.lastIndexOf(carriageReturn, end - 1)
      if (last !== -1 || this.returned) this.forget()
      const shown = part.subarray(last + 1, end)
      const room = Math.min(shown.length, lineBytesMax - this.heldBytes)
      this.held.set(shown.subarray(0, room), this.heldBytes)
      this.heldBytes += room
      if (room < shown.length) this.cut = true
    }
    if (end < part.length) this.returned = true
  }

  private give(): void {
    let end = this.heldBytes
    if (this.cut) {
      // A cut must not leave a part of a character.
      while (end > 0 && (this.held[end - 1]! & 0xc0) === 0x80) end--
      if (end > 0 && this.held[end - 1]! >= 0xc0) end--
    }
    const text = new TextDecoder().decode(this.held.subarray(0, end)).replace(controlSequence, "")
    if (text.trim() !== "") this.line(this.cut ? `${text}…` : text)
    this.forget()
  }

  private forget(): void {
    this.heldBytes = 0
    this.cut = false
    this.returned = false
  }
}
