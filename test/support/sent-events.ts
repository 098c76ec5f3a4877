/** One server-sent event. */
export interface SentEvent {
  /** The `event:` line; "" where there is none. */
  readonly event: string
  /** Text of the `data:` line. */
  readonly data: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
  readonly json: any
}

/** Reads a whole stream strictly: every event is an optional `event:` line, one `data:` line, and a blank line. */
export function readEvents(text: string): SentEvent[] {
  if (text !== "" && !text.endsWith("\n\n")) throw new Error(`the stream ends inside an event: ${text.slice(-100)}`)
  return text
    .split("\n\n")
    .slice(0, -1)
    .filter((block) => !block.startsWith(":"))
    .map((block) => {
      const match = /^(?:event: (.*)\n)?data: (.*)$/.exec(block)
      if (match === null) throw new Error(`not an event: ${block}`)
      const data = match[2]!
      return { event: match[1] ?? "", data, json: data === "[DONE]" ? null : JSON.parse(data) }
    })
}
