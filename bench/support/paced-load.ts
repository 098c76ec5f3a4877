/**
 * The client of bench/latency.ts, a process of its own: opens a number of chat streams, one after another within a
 * while, and notes when their events come. Given its plan as JSON in its only argument; prints one JSON line.
 */
import { checkChatStream, type Expected } from "./answers"
import { unchunked } from "./chunked-text"

/** What to send and what to expect. */
export interface PacedPlan extends Expected {
  readonly origin: string
  /** JSON of the request. */
  readonly body: string
  readonly streams: number
  /** The requests are sent evenly over this time. */
  readonly spreadMs: number
}

/** p50, p99 and the largest of some times, in milliseconds. */
export type Quantiles = readonly [p50: number, p99: number, max: number]

/** What was seen. */
export interface PacedLoad {
  /** From sending a request to its first event with text. */
  readonly firstMs: Quantiles
  /** Between two events with text of one stream; those that come together are 0 apart. */
  readonly gapMs: Quantiles
  /** Events with text, of all streams. */
  readonly events: number
}

if (import.meta.main) {
  const plan: PacedPlan = JSON.parse(Bun.argv[2]!)
  console.log(JSON.stringify(await run(plan)))
  process.exit(0)
}

async function run(plan: PacedPlan): Promise<PacedLoad> {
  const first: number[] = []
  const gaps: number[] = []
  let events = 0
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: plan.streams }, async (_, at) => {
      const due = startedAt + (plan.spreadMs * at) / plan.streams
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
      const { body, sentAt, textAt } = await exchange(plan)
      checkChatStream(body, plan)
      first.push(textAt[0]! - sentAt)
      for (let i = 1; i < textAt.length; i++) gaps.push(textAt[i]! - textAt[i - 1]!)
      events += textAt.length
    }),
  )
  return { firstMs: quantiles(first), gapMs: quantiles(gaps), events }
}

function quantiles(times: number[]): Quantiles {
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.max(0, Math.ceil(share * times.length) - 1)] ?? 0
  return [at(0.5), at(0.99), at(1)]
}

interface Exchange {
  readonly body: string
  readonly sentAt: number
  /** When each event with text came. */
  readonly textAt: readonly number[]
}

/** One request on a connection of its own. Bytes are taken as Latin-1: the expected text is ASCII. */
function exchange(plan: PacedPlan): Promise<Exchange> {
  const url = new URL(plan.origin)
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    `Host: ${url.host}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(plan.body)}`,
  ]
  const { promise, resolve, reject } = Promise.withResolvers<Exchange>()
  const textAt: number[] = []
  let received = ""
  let scannedTo = 0
  let sentAt = 0
  const hanging = setTimeout(() => reject(new Error(`no end: ${received.slice(-200)}`)), 60_000)
  const failed = (reason: string) => reject(new Error(`${reason}: ${received.slice(0, 400)}`))
  const connecting = Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      open(socket) {
        sentAt = performance.now()
        socket.write(`${head.join("\r\n")}\r\n\r\n${plan.body}`)
      },
      data(socket, bytes) {
        const now = performance.now()
        received += bytes.toString("latin1")
        for (let at = received.indexOf("\n\n", scannedTo); at !== -1; at = received.indexOf("\n\n", scannedTo)) {
          const content = received.indexOf('"content":"', scannedTo)
          // Its text is empty where another quote follows.
          if (content !== -1 && content < at && received.charCodeAt(content + 11) !== 0x22) textAt.push(now)
          scannedTo = at + 2
        }
        if (!received.endsWith("\r\n0\r\n\r\n")) return
        clearTimeout(hanging)
        if (!received.startsWith("HTTP/1.1 200 ")) failed("not 200")
        else resolve({ body: unchunked(received.slice(received.indexOf("\r\n\r\n") + 4)), sentAt, textAt })
        socket.end()
      },
      close: () => failed("closed"),
      error: (_socket, error) => reject(error),
    },
  })
  connecting.catch(reject)
  return promise
}
