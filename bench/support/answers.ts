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

/** What a reply says, whatever its form: its items in their order, and how many tokens it counted. */
export interface Said {
  readonly items: readonly (readonly [kind: "reasoning" | "text" | "call", text: string])[]
  readonly tokens: number
}

/** Reads a whole reply from its bytes as text. A stream's deltas are joined, item by item. Throws on other events. */
export function foldedItems(api: "chat" | "responses", stream: boolean, body: string): Said {
  if (api === "chat") return stream ? chatStreamItems(body) : chatItems(JSON.parse(body))
  return stream ? responsesStreamItems(body) : responseItems(JSON.parse(body))
}

interface ChatMessage {
  readonly reasoning?: string | null
  readonly content?: string | null
  readonly tool_calls?: readonly { readonly function: { readonly arguments: string } }[]
}

function chatItems(answer: {
  readonly choices: readonly { readonly message: ChatMessage }[]
  readonly usage: { readonly completion_tokens: number }
}): Said {
  const said: Writable = { items: [], tokens: answer.usage.completion_tokens }
  say(said, answer.choices[0]!.message)
  return said
}

interface Writable {
  readonly items: ["reasoning" | "text" | "call", string][]
  tokens: number
}

function say(said: Writable, { reasoning, content, tool_calls }: ChatMessage): void {
  if (reasoning) add(said, "reasoning", reasoning)
  if (content) add(said, "text", content)
  for (const call of tool_calls ?? []) add(said, "call", call.function.arguments)
}

/** Chat joins what is of one kind. */
function add({ items }: Writable, kind: "reasoning" | "text" | "call", text: string): void {
  const last = items.at(-1)
  if (last?.[0] === kind) last[1] += text
  else items.push([kind, text])
}

function chatStreamItems(body: string): Said {
  const said: Writable = { items: [], tokens: -1 }
  for (const frame of body.split("\n\n")) {
    if (!frame.startsWith("data: {")) continue
    const chunk: { choices: { delta: ChatMessage }[]; usage?: { completion_tokens: number } } = JSON.parse(
      frame.slice(6),
    )
    if (chunk.choices[0] !== undefined) say(said, chunk.choices[0].delta)
    said.tokens = chunk.usage?.completion_tokens ?? said.tokens
  }
  return said
}

interface ResponseItem {
  readonly type: string
  readonly content?: readonly { readonly text: string }[]
  readonly arguments?: string
}

const itemKinds: { readonly [type: string]: "reasoning" | "text" | "call" } = {
  reasoning: "reasoning",
  message: "text",
  function_call: "call",
}

function responseItems(response: {
  readonly output: readonly ResponseItem[]
  readonly usage: { readonly output_tokens: number }
}): Said {
  const items = response.output.map((item) => {
    return [itemKinds[item.type]!, item.arguments ?? item.content![0]!.text] as const
  })
  return { items, tokens: response.usage.output_tokens }
}

function responsesStreamItems(body: string): Said {
  const items: string[] = []
  let final: Said = { items: [], tokens: -1 }
  for (const [at, frame] of body.split("\n\n").slice(0, -1).entries()) {
    const event = JSON.parse(frame.slice(frame.indexOf("\ndata: ") + 7))
    if (event.sequence_number !== at) throw wrong("sequence number", frame)
    if (event.delta !== undefined) items[event.output_index] = (items[event.output_index] ?? "") + event.delta
    if (event.type === "response.completed") final = responseItems(event.response)
  }
  const same = items.every((text, at) => text === final.items[at]?.[1])
  if (!same || items.length !== final.items.length) throw wrong("deltas", items.join("|"))
  return final
}
