/**
 * Brings answers of two servers into one form: what each made up for itself (ids, times, log probabilities) becomes a
 * placeholder, and streams become what a client has in the end, with the key sets of their chunks.
 */
import type { Loose, RecordedEvent } from "./transcripts"

/**
 * A copy with ids numbered in the order in which they appear, times and log probabilities as placeholders, and no
 * error texts. Alternatives of a position keep their count and the sampled token.
 */
export function normalized(value: Loose): Loose {
  return new Normalizer().value(value)
}

const idPrefix = /^(chatcmpl-tool|call|chatcmpl|cmpl|resp|rs|msg|fc)[-_]/

class Normalizer {
  private readonly ids = new Map<string, string>()
  private readonly counts = new Map<string, number>()

  value(value: Loose): Loose {
    if (Array.isArray(value)) return value.map((entry) => this.value(entry))
    if (typeof value !== "object" || value === null) return value
    const entries = Object.entries<Loose>(value).map(([key, inner]) => [key, this.field(key, inner)])
    return Object.fromEntries(entries.filter(([key]) => key !== "message" || !("type" in value && "code" in value)))
  }

  private field(key: string, value: Loose): Loose {
    switch (key) {
      case "id":
      case "call_id":
      case "item_id":
        return typeof value === "string" ? this.id(value) : value
      case "created":
      case "created_at":
        return typeof value
      case "system_fingerprint":
        return value === null ? null : typeof value
      case "logprob":
        return typeof value
      case "token_logprobs":
        return value.map((entry: Loose) => (entry === null ? null : typeof entry))
      case "prompt_logprobs":
        return Array.isArray(value) ? value.map((entry) => this.promptPosition(entry)) : value
      case "top_logprobs":
        return Array.isArray(value) ? value.map((entry) => this.alternatives(entry)) : value
      default:
        return this.value(value)
    }
  }

  /** The prompt's own token and how many are listed. */
  private promptPosition(entry: Loose): Loose {
    if (entry === null) return null
    const [id, likeliest] = Object.entries<Loose>(entry).find(([, { rank }]) => rank === 1)!
    return { count: Object.keys(entry).length, id, token: this.value(likeliest) }
  }

  /** A completion's map of tokens, or one entry of a chat position. The sampled token is listed elsewhere too. */
  private alternatives(entry: Loose): Loose {
    if (entry === null) return null
    return "token" in entry ? Object.keys(entry).sort().join() : Object.keys(entry).length
  }

  private id(value: string): string {
    const prefix = idPrefix.exec(value)?.[1]
    if (prefix === undefined) return value
    const known = this.ids.get(value)
    if (known !== undefined) return known
    // The two servers spell call ids differently; that is listed as a difference for users.
    const kind = prefix === "chatcmpl-tool" ? "call" : prefix
    const count = (this.counts.get(kind) ?? 0) + 1
    this.counts.set(kind, count)
    this.ids.set(value, `${kind} ${count}`)
    return `${kind} ${count}`
  }
}

/** A chat or completions stream as a client has it in the end. */
export interface FoldedStream {
  readonly model: string
  readonly object: string
  readonly choices: Loose[]
  readonly usage: Loose
  readonly shape: StreamShape
  readonly done: boolean
}

/** Key sets of a stream's chunks, each as one sorted line: the different ones of each place. */
export interface StreamShape {
  readonly first: readonly string[]
  /** Between the first and the last chunk of a choice. */
  readonly body: readonly string[]
  readonly last: readonly string[]
  /** The first delta of a tool call, and those that follow. */
  readonly callOpening: readonly string[]
  readonly callRest: readonly string[]
  readonly usage: string | null
}

/** Folds a chat stream: texts and arguments joined for each choice and call, the last value of everything else. */
export function foldChat(events: readonly RecordedEvent[]): FoldedStream {
  return fold(events, (choice, chunk) => {
    const { delta } = chunk
    choice.message ??= { role: null, content: null, reasoning: null, tool_calls: [] }
    const { message } = choice
    message.role ??= delta.role ?? null
    for (const key of ["content", "reasoning"] as const) {
      if (typeof delta[key] === "string" && delta[key] !== "") message[key] = (message[key] ?? "") + delta[key]
    }
    for (const call of delta.tool_calls ?? []) {
      message.tool_calls[call.index] ??= { id: null, type: null, name: null, arguments: "" }
      const known = message.tool_calls[call.index]
      known.id ??= call.id ?? null
      known.type ??= call.type ?? null
      known.name ??= call.function.name ?? null
      known.arguments += call.function.arguments ?? ""
    }
    if (chunk.logprobs !== null) {
      choice.logprobs ??= { content: [] }
      choice.logprobs.content.push(...chunk.logprobs.content)
    }
  })
}

/** Folds a completions stream. */
export function foldCompletion(events: readonly RecordedEvent[]): FoldedStream {
  return fold(events, (choice, chunk) => {
    choice.text = (choice.text ?? "") + chunk.text
    if (chunk.prompt_token_ids !== null) choice.prompt_token_ids = chunk.prompt_token_ids
    if (chunk.logprobs === null) return
    choice.logprobs ??= {}
    for (const [key, list] of Object.entries<Loose>(chunk.logprobs)) {
      choice.logprobs[key] = [...(choice.logprobs[key] ?? []), ...list]
    }
  })
}

function fold(events: readonly RecordedEvent[], add: (choice: Loose, chunk: Loose) => void): FoldedStream {
  const chunks = events.filter(({ data }) => data !== "[DONE]").map(({ data }) => data)
  const choices: Loose[] = []
  let usage: Loose = null
  const seen = new Set<number>()
  const shape = {
    first: new Set<string>(),
    body: new Set<string>(),
    last: new Set<string>(),
    callOpening: new Set<string>(),
    callRest: new Set<string>(),
  }
  let usageShape: string | null = null
  for (const chunk of chunks) {
    if (chunk.usage !== undefined && chunk.choices.length === 0) {
      usage = chunk.usage
      usageShape = keysOf(chunk)
    }
    for (const part of chunk.choices) {
      choices[part.index] ??= { index: part.index, logprobs: null, finish_reason: null, stop_reason: null }
      const choice = choices[part.index]
      add(choice, part)
      const keys = `${keysOf(chunk)} | ${keysOf(part)}`
      if (part.finish_reason !== null) {
        choice.finish_reason = part.finish_reason
        choice.stop_reason = part.stop_reason
        shape.last.add(keys)
      } else if (!seen.has(part.index)) shape.first.add(keys)
      else shape.body.add(keys)
      seen.add(part.index)
      for (const call of part.delta?.tool_calls ?? []) {
        const place = call.id === undefined ? shape.callRest : shape.callOpening
        place.add(`${keysOf(call)} | ${keysOf(call.function)}`)
      }
    }
  }
  return {
    model: [...new Set(chunks.map((chunk) => chunk.model))].join(),
    object: [...new Set(chunks.map((chunk) => chunk.object))].join(),
    choices,
    usage,
    shape: {
      first: [...shape.first].sort(),
      body: [...shape.body].sort(),
      last: [...shape.last].sort(),
      callOpening: [...shape.callOpening].sort(),
      callRest: [...shape.callRest].sort(),
      usage: usageShape,
    },
    done: events.at(-1)?.data === "[DONE]",
  }
}

function keysOf(object: object): string {
  return Object.keys(object).sort().join(" ")
}

/** A Responses stream with neighbouring deltas of one item joined. Sequence numbers are checked and then left out. */
export function foldResponse(events: readonly RecordedEvent[]): Loose[] {
  const folded: Loose[] = []
  for (const [index, { event, data }] of events.entries()) {
    if (data.sequence_number !== index) throw new Error(`event ${index} has sequence number ${data.sequence_number}`)
    if (data.type !== event) throw new Error(`event ${event} has type ${data.type}`)
    const { sequence_number: _, ...rest } = data
    const before = folded.at(-1)
    if (typeof rest.delta === "string" && before?.type === rest.type && before.item_id === rest.item_id) {
      before.delta += rest.delta
    } else folded.push(rest)
  }
  return folded
}
