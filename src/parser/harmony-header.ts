/** The words in which the reference knows who writes; any other word in their place may be a tool's name. */
const roles: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool"])

const channelMarker = "<|channel|>"
const constrainMarker = "<|constrain|>"

/** White space as Unicode has it, which ends a channel's name; words are told apart by that of ASCII alone. */
const space = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
const channelEnd = new RegExp(`[${space}<]`)
const outerSpace = new RegExp(`^[${space}]+|[${space}]+$`, "g")
const betweenWords = /[\t\n\f\r ]+/

/** What stands between `<|start|>` and `<|message|>`. */
export interface HarmonyHeader {
  /** null = a word that is none, with nothing to tell that a tool wrote it. */
  readonly role: string | null
  /** A tool's name. */
  readonly name: string | null
  readonly channel: string | null
  readonly recipient: string | null
  /** As written, with its marker: `<|constrain|>json`. */
  readonly contentType: string | null
  /** Words that have no place in a header; "" in a right one. */
  readonly rest: string
}

/**
 * Reads a header: ` to=functions.f<|channel|>commentary <|constrain|>json` behind the prompt's `assistant`, or with the
 * recipient behind the channel. `role` is that of the prompt; null = the header names it. What the reference refuses is
 * told in `role` and `rest`, and the other parts are as good as can be. Source: openai-harmony 0.0.8, but for a content
 * type that stands alone, which it takes for a recipient (later versions do not).
 */
export function parseHeader(text: string, role: string | null): HarmonyHeader {
  let words = text
  let channel: string | null = null
  const at = text.indexOf(channelMarker)
  if (at >= 0) {
    const behind = text.slice(at + channelMarker.length)
    const end = behind.search(channelEnd)
    channel = (end < 0 ? behind : behind.slice(0, end)) || null
    words = text.slice(0, at) + (end < 0 ? "" : behind.slice(end))
  }
  // A content type may follow without a blank.
  const apart = words.replace(outerSpace, "").replaceAll(constrainMarker, ` ${constrainMarker}`)
  const left = apart.split(betweenWords).filter((word) => word !== "")

  let author = role
  let name: string | null = null
  if (role === null) {
    const [first] = left
    if (first !== undefined && roles.has(first)) {
      author = first
      // An unknown writer that has a recipient is a tool.
    } else if (left.length > 1 || first?.startsWith("to=") === true) {
      author = "tool"
      left.shift()
    }
    if (author === "tool") name = first ?? null
  }
  if (author !== null && left[0] === author) left.shift()
  return { role: author, name, channel, ...addressOf(left) }
}

/** Words behind the role: recipient and content type, in this order, either of which may be missing. */
function addressOf(words: readonly string[]): Pick<HarmonyHeader, "recipient" | "contentType" | "rest"> {
  const last = words.at(-1)
  if (last === undefined) return { recipient: null, contentType: null, rest: "" }
  const before = words.slice(0, -1)
  if (last.startsWith("to=")) return { recipient: last.slice(3), contentType: null, rest: before.join(" ") }
  if (before.length === 0 && !last.startsWith(constrainMarker)) return { recipient: last, contentType: null, rest: "" }
  const recipient = before.pop() ?? null
  return {
    recipient: recipient?.startsWith("to=") === true ? recipient.slice(3) : recipient,
    contentType: last,
    rest: before.join(" "),
  }
}

/** Words that a right header has at most before its first marker: role, recipient, content type. */
const wordsMax = 3

/** Whether a text without markers can no longer become a header. `role` as in `parseHeader`. */
export function isNoHeader(text: string, role: string | null): boolean {
  const words = text.replace(outerSpace, "").split(betweenWords)
  return words.length > (role === null || words[0] === role ? wordsMax : wordsMax - 1)
}
