/**
 * A reply's text, up to so many bytes; `isWhole` false = there was more, or it did not come in time, and the rest is not
 * read. Throws where the connection breaks.
 */
export async function boundedText(
  reply: Response,
  bytesMax: number,
  msMax: number | null,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  if (reply.body === null) return { text: "", isWhole: true }
  const reader = reply.body.getReader()
  let isWhole = true
  const stop = (): void => {
    isWhole = false
    // Nobody waits for the rest, however it ends.
    reader.cancel().catch(() => {})
  }
  const timer = msMax === null ? null : setTimeout(stop, msMax)
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let left = bytesMax
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      pieces.push(decoder.decode(value.subarray(0, left), { stream: true }))
      left -= value.length
      if (left < 0) {
        stop()
        break
      }
    }
  } finally {
    if (timer !== null) clearTimeout(timer)
  }
  return { text: pieces.join(""), isWhole }
}
