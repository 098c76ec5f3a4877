/** UTF-16 units of a held text that its stand-in shows, for whoever looks at how it begins. */
const shownUnits = 128
/** Bytes that go out at once. */
const chunkBytes = 1024 * 1024

/**
 * Long texts of one request that are only passed on: they stay the bytes that they came as, and a short stand-in takes
 * their place in its values. A text is printable ASCII without quotes and backslashes, so that its bytes are also what it
 * looks like in JSON. Stand-ins hold a secret of this object: no client can write one.
 */
export class HeldTexts {
  private readonly secret = crypto.randomUUID()
  private readonly held: Uint8Array[] = []

  /** How many there are. */
  get count(): number {
    return this.held.length
  }

  /** Keeps the bytes, which are not copied, and gives what stands in for them. */
  hold(bytes: Uint8Array): string {
    this.held.push(bytes)
    return `${ascii(bytes.subarray(0, shownUnits))}<${this.secret}:${this.held.length - 1}>`
  }

  /** The bytes that a text is nothing but the stand-in of; null for any other text. */
  bytesOf(text: string): Uint8Array | null {
    const parts = this.parts(text)
    const [only] = parts
    return parts.length === 1 && typeof only === "object" ? only : null
  }

  /** A text with whatever was held in it, copied. */
  restore(text: string): string {
    return this.parts(text)
      .map((part) => (typeof part === "string" ? part : ascii(part)))
      .join("")
  }

  /** A text cut at its stand-ins, with the bytes in their places. */
  parts(text: string): (string | Uint8Array)[] {
    const parts: (string | Uint8Array)[] = []
    let from = 0
    for (;;) {
      const at = text.indexOf(this.secret, from)
      if (at === -1) break
      const end = text.indexOf(">", at)
      const bytes = this.held[Number(text.slice(at + this.secret.length + 1, end))]!
      const start = at - 1 - Math.min(shownUnits, bytes.length)
      if (start > from) parts.push(text.slice(from, start))
      parts.push(bytes)
      from = end + 1
    }
    if (from < text.length) parts.push(text.slice(from))
    return parts
  }

  /** Bytes of the body that `body` gives. */
  bodyBytes(json: string): number {
    let bytes = 0
    for (const part of this.parts(json)) bytes += typeof part === "string" ? Buffer.byteLength(part) : part.length
    return bytes
  }

  /**
   * JSON text with stand-ins as a body, sent in views of what is held: nothing grows with it. `ended` is called once all
   * of it was taken, or when nobody takes any more.
   */
  body(json: string, ended: () => void = () => {}): ReadableStream<Uint8Array> {
    const parts = this.parts(json)
    const encoder = new TextEncoder()
    let index = 0
    let at = 0
    let bytes: Uint8Array | null = null
    return new ReadableStream({
      pull: (controller) => {
        for (;;) {
          if (bytes === null) {
            const part = parts[index]
            if (part === undefined) {
              controller.close()
              return ended()
            }
            bytes = typeof part === "string" ? encoder.encode(part) : part
          }
          const chunk = bytes.subarray(at, at + chunkBytes)
          at += chunk.length
          if (at >= bytes.length) {
            bytes = null
            at = 0
            index += 1
          }
          if (chunk.length > 0) return controller.enqueue(chunk)
        }
      },
      cancel: () => ended(),
    })
  }
}

function ascii(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
}
