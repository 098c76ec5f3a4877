/** What an event of a generate stream says: JSON text, or that nothing follows. */
export interface EventSink {
  /** The data of one event. */
  event(data: string): void
}

/** UTF-16 units of one event that are held until its end comes; a peer that sends more without one is not speaking SSE. */
const eventUnitsMax = 64 * 1024 * 1024

/** Splits a server-sent event stream into the data of its events, however its chunks fall. Comments are dropped. */
export class EventReader {
  private readonly sink: EventSink
  private readonly decoder = new TextDecoder()
  /** A line without its end so far. In pieces, so that a long one costs no more than its length. */
  private readonly pieces: string[] = []
  private units = 0

  constructor(sink: EventSink) {
    this.sink = sink
  }

  /** Takes one chunk of the body; false when the stream cannot be what it should be. */
  push(chunk: Uint8Array): boolean {
    const text = this.decoder.decode(chunk, { stream: true })
    let start = 0
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      this.line(this.taken(text.slice(start, end)))
      start = end + 1
    }
    if (start < text.length) {
      this.pieces.push(text.slice(start))
      this.units += text.length - start
    }
    return this.units <= eventUnitsMax
  }

  /** What was held, and this. */
  private taken(rest: string): string {
    if (this.pieces.length === 0) return rest
    this.pieces.push(rest)
    const line = this.pieces.join("")
    this.pieces.length = 0
    this.units = 0
    return line
  }

  /** Every event of such a stream is one line of data. */
  private line(line: string): void {
    if (!line.startsWith("data:")) return
    const end = line.endsWith("\r") ? line.length - 1 : line.length
    this.sink.event(line.slice(line.charCodeAt(5) === 32 ? 6 : 5, end))
  }
}
