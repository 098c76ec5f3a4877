import type { MistralCall, MistralChunk, MistralContent, MistralMessage } from "./message"
import type { MistralVersion } from "./setting"

/** A conversation with one message for each turn. */
export interface NormalConversation {
  readonly messages: readonly MistralMessage[]
  /** Of v3, where the system has no messages of its own; null = none. */
  readonly systemPrompt: string | null
}

const paragraph = "\n\n"

/**
 * What one side says in several messages becomes one message; results of tools stand in the order of their calls from
 * v11 on; before v7 the system's words are gathered, and the first message is the user's, if only an empty one. Source:
 * mistral-common 1.13.1, `normalize.py`.
 */
export function normalForm(messages: readonly MistralMessage[], version: MistralVersion): NormalConversation {
  const made: MistralMessage[] = []
  const latestCalls: string[] = []
  let start = 0
  for (let end = 1; end <= messages.length; end++) {
    const { role } = messages[start]!
    if (end < messages.length && messages[end]!.role === role) continue
    const run = messages.slice(start, end)
    start = end
    made.push(...normalRun(run, latestCalls, version))
    if (role === "assistant") latestCalls.push(...run.flatMap((each) => callsOf(each).map(({ id }) => id)))
    else if (role === "tool") latestCalls.length = 0
  }
  if (version >= 7) return { messages: made, systemPrompt: null }
  if (made[0]?.role !== "user") made.unshift({ role: "user", content: "" })
  const prompts = messages.flatMap(({ role, content }) =>
    role === "system" && content.length > 0 ? [joinedContent([content], version)] : [],
  )
  // Without thinking, which v3 has none of, what is joined is a text.
  return { messages: made, systemPrompt: prompts.length === 0 ? null : prompts.join(paragraph) }
}

/** Messages of one role in a row. */
function normalRun(
  run: readonly MistralMessage[],
  latestCalls: readonly string[],
  version: MistralVersion,
): readonly MistralMessage[] {
  const contents = run.map(({ content }) => content)
  const { role } = run[0]!
  switch (role) {
    case "user":
      return [{ role, content: joinedContent(contents, version) }]
    case "assistant": {
      const content = joinedContent(contents, version)
      const isOpen = run.some((each) => each.role === "assistant" && each.isOpen)
      return [{ role, content, calls: run.flatMap(callsOf), isOpen }]
    }
    case "system":
      return version < 7 ? [] : contents.map((content) => ({ role, content: joinedContent([content], version) }))
    case "tool": {
      const results = run.flatMap((each) =>
        each.role === "tool" ? [{ ...each, content: joinedContent([each.content], version) }] : [],
      )
      if (version < 11) return results
      // Of equal ids the last call counts.
      const place = (id: string): number =>
        latestCalls.includes(id) ? latestCalls.lastIndexOf(id) : latestCalls.length
      return results.sort((a, b) => place(a.callId) - place(b.callId))
    }
  }
}

function callsOf(message: MistralMessage): readonly MistralCall[] {
  return message.role === "assistant" ? message.calls : []
}

/** Texts of neighbours joined; a text where there is nothing else. */
function joinedContent(contents: readonly (MistralContent | null)[], version: MistralVersion): MistralContent {
  const betweenParts = version >= 15 ? "" : paragraph
  const chunks: MistralChunk[] = []
  // null: no text since the last chunk.
  let text: string | null = null
  const closeText = (): void => {
    if (text !== null) chunks.push({ type: "text", text })
    text = null
  }
  for (const content of contents) {
    let separator: string = text === null ? betweenParts : paragraph
    const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : (content ?? [])
    for (const part of parts) {
      if (part.type !== "text") {
        closeText()
        chunks.push(part)
      } else if (part.text !== "") {
        text = text === null ? part.text : text + separator + part.text
        separator = betweenParts
      }
    }
  }
  if (chunks.length === 0) return text ?? ""
  closeText()
  return chunks
}
