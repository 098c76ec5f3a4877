/** Replies in the Harmony format with what they mean, for comparisons with the reference. */
import { Piece } from "../../src/ir/piece"
import type { ParserFactory } from "../../src/parser/parser"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import type { ParsedMessage } from "../prompt/harmony/oracle"
import { seededRandom } from "../support/random"
import { ParsedFold, type ParsedPart } from "../support/recording-sink"

/** Ids of a text in which special tokens count. */
export function encode(tokenizer: Tokenizer, text: string): Uint32Array {
  const encoded = tokenizer.encode(text, { addSpecialTokens: false })
  if (!encoded.ok) throw new Error(encoded.error.message)
  return encoded.value
}

/** What our parser makes of a reply to `<|start|>assistant` that comes in steps which end at `ends`. */
export function partsOf(
  factory: ParserFactory,
  tokenizer: Tokenizer,
  ids: ArrayLike<number>,
  ends: readonly number[],
): readonly ParsedPart[] {
  const prompt = encode(tokenizer, "<|start|>assistant")
  const parser = factory.create({ promptTokenIds: prompt, parseCalls: true })
  const detokenizer = tokenizer.detokenizer(prompt, false)
  const fold = new ParsedFold()
  const piece = new Piece()
  let start = 0
  for (const end of ends) {
    piece.clear()
    for (let i = start; i < end; i++) detokenizer.push(ids[i]!, piece)
    if (end === ids.length) detokenizer.finish(piece)
    parser.push(piece, fold)
    start = end
  }
  parser.finish(fold)
  return fold.parts
}

/** What a chat reply shows of the reference's messages. */
export function meaningOf(messages: readonly ParsedMessage[]): ParsedPart[] {
  const parts: ParsedPart[] = []
  for (const { role, channel, recipient, text } of messages) {
    if (role !== "assistant") continue
    const isBuiltIn = /^(?:python|browser|container)(?:\.|$)/.test(recipient ?? "")
    const isAddressed = recipient !== null && !isBuiltIn && !/^(?:<\||(?:assistant|all)?$)/.test(recipient)
    if (isAddressed && recipient !== "functions." && (recipient.startsWith("functions.") || channel !== "final")) {
      const name = recipient.replace(/^functions\./, "")
      parts.push({ kind: "call", name, id: "", arguments: text, ended: true })
      continue
    }
    if (text === "") continue
    parts.push({ kind: isBuiltIn || channel === "analysis" ? "reasoning" : "text", text })
  }
  return parts
}

/** A reply of whole messages, with headers right and wrong, and contents that may be no text at all. */
export function randomReply(tokenizer: Tokenizer, seed: number): number[] {
  const random = seededRandom(seed)
  const of = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const ids: number[] = []
  const messages = 1 + Math.floor(random() * 4)
  for (let i = 0; i < messages; i++) {
    if (i > 0)
      ids.push(...encode(tokenizer, `<|start|>${of(["assistant", "assistant", "assistant", "user", "functions.f"])}`))
    ids.push(
      ...encode(tokenizer, of(["", "", "", " to=functions.f", " to=python", " to=assistant", " foo", "assistant"])),
    )
    const channel = of(["analysis", "analysis", "final", "commentary", "commentary––commentary", "a b", "final "])
    if (random() < 0.9) ids.push(...encode(tokenizer, `<|channel|>${channel}`))
    ids.push(...encode(tokenizer, of(["", "", " to=functions.g-h", " to=sum", " to=browser.open", " to=all", "\t "])))
    ids.push(
      ...encode(tokenizer, of(["", "", " <|constrain|>json", "<|constrain|>json", " json", " code", " <|constrain|>"])),
    )
    ids.push(...encode(tokenizer, "<|message|>"))
    const kind = random()
    if (kind < 0.2) for (let n = Math.floor(random() * 8); n > 0; n--) ids.push(Math.floor(random() * 199_998))
    else
      ids.push(
        ...encode(tokenizer, of(["", "Hello", '{"city": "Zürich"}', "👩‍👩‍👧 a\n", "x<|start|>y<|channel|>", "\n"])),
      )
    ids.push(...encode(tokenizer, of(["<|end|>", "<|end|>", "<|call|>", "<|return|>"])))
  }
  return ids
}
