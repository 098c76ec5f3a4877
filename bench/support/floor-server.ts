/**
 * The floor of bench/latency.ts: a server that does nothing but write ready-made events at a pace. Its arguments are the
 * time of a step in milliseconds, the events of a reply, and the text of each. Every stream that is open gets one event
 * a step, as an engine would give it one token.
 */
const [stepMs, events, text] = [Number(Bun.argv[2]), Number(Bun.argv[3]), Bun.argv[4]!]

const chunk = (delta: object, finish: string | null) => {
  const choice = { index: 0, delta, logprobs: null, finish_reason: finish, token_ids: null }
  const named = { id: `chatcmpl-${"0".repeat(32)}`, object: "chat.completion.chunk", created: 0, model: "floor" }
  return Buffer.from(`data: ${JSON.stringify({ ...named, choices: [choice] })}\n\n`)
}
const first = chunk({ role: "assistant", content: "" }, null)
const each = chunk({ content: text }, null)
const usage = { prompt_tokens: 0, completion_tokens: events + 1, total_tokens: events + 1 }
const last = Buffer.concat([
  chunk({}, "stop"),
  Buffer.from(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`),
])

interface Stream {
  readonly controller: ReadableStreamDirectController
  left: number
}

const streams = new Set<Stream>()

setInterval(() => {
  for (const stream of streams) {
    stream.left -= 1
    stream.controller.write(stream.left < 0 ? last : each)
    if (stream.left >= 0) continue
    streams.delete(stream)
    stream.controller.end()
  }
}, stepMs)

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    if (request.method !== "POST") return new Response("")
    await request.json()
    const source: Bun.DirectUnderlyingSource = {
      type: "direct",
      pull: (controller) => {
        controller.write(first)
        streams.add({ controller, left: events })
      },
    }
    // The DOM's types know no direct streams.
    const body = new ReadableStream(source as unknown as UnderlyingDefaultSource)
    return new Response(body, { headers: { "content-type": "text/event-stream" } })
  },
})
console.log(`listening on http://127.0.0.1:${server.port}`)
