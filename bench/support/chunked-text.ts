/** The text inside HTTP's chunk framing. */
export function unchunked(raw: string): string {
  let text = ""
  for (let at = 0; ; ) {
    const lineEnd = raw.indexOf("\r\n", at)
    const length = Number.parseInt(raw.slice(at, lineEnd), 16)
    if (Number.isNaN(length)) throw new Error(`no chunk at ${at}`)
    if (length === 0) return text
    text += raw.slice(lineEnd + 2, lineEnd + 2 + length)
    at = lineEnd + 2 + length + 2
  }
}
