/**
 * Whether an answer under load is the right one: its whole text, its token counts, its events in their order. Each
 * function throws when it is not, and gives the number of SSE events (0 for JSON).
 */

/** What every request of a run must be answered with. */
export interface Expected {
  readonly expectedText: string
  readonly tokensPerRequest: number
}

interface ChatChunk {
  readonly choices: readonly { readonly delta: { readonly content?: string }; readonly finish_reason: string | null }[]
  readonly usage?: { readonly completion_tokens: number } | null
}

/** A chat stream with `include_usage`. */
export function checkChatStream(body: string, expected: Expected): number {
  const frames = body.split("\n\n")
  if (frames.at(-1) !== "" || frames.at(-2) !== "data: [DONE]") throw wrong("end of the stream", body.slice(-200))
  let text = ""
  let finish: string | null = null
  let tokens = -1
  for (const frame of frames.slice(0, -2)) {
    if (!frame.startsWith("data: ")) throw wrong("frame", frame)
    const chunk: ChatChunk = JSON.parse(frame.slice(6))
    const choice = chunk.choices[0]
    if (choice !== undefined) {
      text += choice.delta.content ?? ""
      finish = choice.finish_reason ?? finish
    }
    tokens = chunk.usage?.completion_tokens ?? tokens
  }
  checkEnd(expected, text, finish === "stop", tokens)
  return frames.length - 1
}

/** A chat completion in one piece. */
export function checkChatAnswer(body: string, expected: Expected): number {
  const answer: {
    choices: { message: { content: string }; finish_reason: string }[]
    usage: { completion_tokens: number }
  } = JSON.parse(body)
  const choice = answer.choices[0]!
  checkEnd(expected, choice.message.content, choice.finish_reason === "stop", answer.usage.completion_tokens)
  return 0
}

interface Response {
  readonly status: string
  readonly output: readonly { readonly content?: readonly { readonly text: string }[] }[]
  readonly usage: { readonly output_tokens: number }
}

interface ResponseEvent {
  readonly type: string
  readonly sequence_number: number
  readonly delta?: string
  readonly response?: Response
}

/** A responses stream: numbered events, deltas that make the final text. */
export function checkResponsesStream(body: string, expected: Expected): number {
  const frames = body.split("\n\n")
  if (frames.pop() !== "") throw wrong("end of the stream", body.slice(-200))
  let text = ""
  let last: ResponseEvent = { type: "", sequence_number: -1 }
  for (const [at, frame] of frames.entries()) {
    const data = frame.indexOf("\ndata: ")
    if (data === -1 || !frame.startsWith("event: ")) throw wrong("frame", frame)
    const event: ResponseEvent = JSON.parse(frame.slice(data + 7))
    if (event.sequence_number !== at || event.type !== frame.slice(7, data)) throw wrong("event", frame)
    if (event.type === "response.output_text.delta") text += event.delta ?? ""
    last = event
  }
  if (last.type !== "response.completed" || last.response === undefined) throw wrong("last event", last.type)
  checkResponse(last.response, expected)
  if (text !== expected.expectedText) throw wrong("deltas", text)
  return frames.length
}

/** A response in one piece. */
export function checkResponsesAnswer(body: string, expected: Expected): number {
  checkResponse(JSON.parse(body), expected)
  return 0
}

function checkResponse(response: Response, expected: Expected): void {
  const text = response.output.flatMap(({ content }) => content ?? []).map((part) => part.text)
  checkEnd(expected, text.join(""), response.status === "completed", response.usage.output_tokens)
}

function checkEnd(expected: Expected, text: string, stopped: boolean, tokens: number): void {
  if (text !== expected.expectedText) throw wrong("text", text)
  if (!stopped) throw wrong("end", "not by the end token")
  if (tokens !== expected.tokensPerRequest) throw wrong("token count", tokens)
}

function wrong(what: string, got: unknown): Error {
  return new Error(`wrong ${what}: ${String(got).slice(0, 400)}`)
}
