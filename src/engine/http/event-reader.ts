/** What an event of a generate stream says: JSON text, or that nothing follows. */
export interface EventSink {
  /** The data of one event. */
  event(data: string): void
}

/** Bytes of one event that are held until its end comes; a peer that sends more without one is not speaking SSE. */
const eventBytesMax = 64 * 1024 * 1024

/** Splits a server-sent event stream into the data of its events, however its chunks fall. Comments are dropped. */
export class EventReader {
  private readonly sink: EventSink
  private readonly decoder = new TextDecoder()
  private held = ""

  constructor(sink: EventSink) {
    this.sink = sink
  }

  /** Takes one chunk of the body; false when the stream cannot be what it should be. */
  push(chunk: Uint8Array): boolean {
    this.held += this.decoder.decode(chunk, { stream: true })
    let start = 0
    for (let end = this.held.indexOf("\n", start); end !== -1; end = this.held.indexOf("\n", start)) {
      const line = this.held.slice(start, this.held.charCodeAt(end - 1) === 13 ? end - 1 : end)
      start = end + 1
      // Every event of such a stream is one line of data.
      if (line.startsWith("data:")) this.sink.event(line.slice(line.charCodeAt(5) === 32 ? 6 : 5))
    }
    if (start > 0) this.held = this.held.slice(start)
    return this.held.length <= eventBytesMax
  }
}
