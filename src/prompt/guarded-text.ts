import type { ContentPart, Conversation, Message } from "../ir/conversation"
import type { TextSegment, Tokenizer } from "../tokenizer/tokenizer"

/** Stands around the number of a special token in guarded text. Private use: no vocabulary gives it a meaning. */
const mark = "\uf8fd"
/** The number itself, as one character of this block. */
const numberBase = 0xe000
const numbersMax = 0x1800

/** Each costs a look through the text. */
const beginningsMax = 4

/** Roles whose text is somebody else's: the client's user, or whatever a tool returned. */
const foreignRoles: ReadonlySet<string> = new Set(["user", "tool", "function"])

/**
 * Keeps the text of users and tools from becoming control: a special token that it spells out (`<|im_end|>`, image
 * placeholders …) is encoded as the text it is. The token is taken out before the template renders, which shows where
 * it lands, and put back afterwards as a segment that holds no special tokens. Text without such spellings is not
 * touched, so that its ids are the reference's.
 */
export class TextGuard {
  private readonly spellings: readonly string[]
  private readonly numbers = new Map<string, number>()
  private readonly pattern: RegExp | null
  /** How spellings begin, where they do so in few ways: a text without them is found out ten times as fast. */
  private readonly beginnings: readonly string[] | null
  /** What is not seen in foreign text: special tokens, or all added ones. */
  private readonly hides: "text" | "plain"

  /** Special tokens are those that `skip_special_tokens` drops; `control`: others that steer the model. */
  constructor(tokenizer: Tokenizer, control: readonly string[] = []) {
    const found = new Set(control.filter((spelling) => tokenizer.tokenToId(spelling) >= 0))
    this.hides = found.size === 0 ? "text" : "plain"
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const spelling = tokenizer.isSpecial(id) ? tokenizer.idToToken(id) : null
      if (spelling !== null && spelling !== "" && !spelling.includes(mark)) found.add(spelling)
    }
    const spellings = [...found]
    // The longest first, as the tokenizer would find them.
    this.spellings = spellings.sort((a, b) => b.length - a.length).slice(0, numbersMax)
    for (const [number, spelling] of this.spellings.entries()) this.numbers.set(spelling, number)
    this.pattern = spellings.length === 0 ? null : new RegExp(this.spellings.map(escapePattern).join("|"), "g")
    const beginnings = [...new Set(this.spellings.map((spelling) => spelling.slice(0, 2)))]
    this.beginnings = beginnings.length <= beginningsMax ? beginnings : null
  }

  /** The conversation with marks for special tokens in foreign text; null when there is nothing to guard. */
  mark(conversation: Conversation): Conversation | null {
    const { pattern } = this
    if (pattern === null) return null
    let isMarked = false
    const messages = conversation.messages.map((message): Message => {
      if (!foreignRoles.has(message.role)) return message
      const content = this.markContent(message.content)
      if (content === message.content) return message
      isMarked = true
      return { ...message, content }
    })
    return isMarked ? { ...conversation, messages } : null
  }

  /** True when marks would be taken for others: the client uses the same characters. */
  collides(conversation: Conversation): boolean {
    return conversation.messages.some(({ content }) => textsOf(content).some((text) => text.includes(mark)))
  }

  /** The rendered text in segments, marks turned back; null when the template changed a mark. */
  segments(rendered: string): TextSegment[] | null {
    const segments: TextSegment[] = []
    const pieces = rendered.split(mark)
    // Text, number, text, number … text.
    if (pieces.length % 2 === 0 || rendered.includes("\\uf8fd")) return null
    for (const [index, piece] of pieces.entries()) {
      if (index % 2 === 0) {
        if (piece !== "") segments.push({ text: piece, special: "token" })
        continue
      }
      const spelling = this.spellings[piece.charCodeAt(0) - numberBase]
      if (piece.length !== 1 || spelling === undefined) return null
      segments.push({ text: spelling, special: this.hides })
    }
    return segments
  }

  private markContent(content: Message["content"]): Message["content"] {
    if (content === null) return null
    if (typeof content === "string") return this.markText(content)
    const parts = content.map((part): ContentPart => {
      if (part.type !== "text") return part
      const text = this.markText(part.text)
      return text === part.text ? part : { type: "text", text }
    })
    return parts.every((part, index) => part === content[index]) ? content : parts
  }

  private markText(text: string): string {
    if (this.beginnings?.every((beginning) => !text.includes(beginning)) === true) return text
    return text.replace(this.pattern!, (spelling) => {
      const number = this.numbers.get(spelling)!
      return `${mark}${String.fromCharCode(numberBase + number)}${mark}`
    })
  }
}

function textsOf(content: Message["content"]): string[] {
  if (content === null) return []
  if (typeof content === "string") return [content]
  return content.flatMap((part) => (part.type === "text" ? [part.text] : []))
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")
}
