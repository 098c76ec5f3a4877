/** What every renderer must hold, whatever its format (src/prompt/renderer.ts). Run by each one's own test. */
import { beforeAll, describe, expect, test } from "bun:test"
import type { Conversation, Message } from "../../src/ir/conversation"
import type { PromptRenderer, RenderedPrompt } from "../../src/prompt/renderer"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { conversationOf } from "../support/conversation"

/** A renderer under test. */
export interface RendererContract {
  readonly name: string
  /** `special` = a special token of the vocabulary, spelled out. */
  readonly open: () => Promise<{ renderer: PromptRenderer; tokenizer: Tokenizer; special: string }>
  /** Whether anything marks the beginning of a reply; default true. */
  readonly marksReply?: boolean
}

const unbounded = { textBytesMax: Number.MAX_SAFE_INTEGER, tokensMax: null }

/** Declares the contract's tests. */
export function rendererContract({ name, open, marksReply = true }: RendererContract): void {
  describe(`${name}: the contract of renderers`, () => {
    let renderer: PromptRenderer
    let tokenizer: Tokenizer
    let special = ""
    beforeAll(async () => {
      ;({ renderer, tokenizer, special } = await open())
    })

    function render(conversation: Conversation): RenderedPrompt {
      const rendered = renderer.render(conversation, unbounded)
      if (!rendered.ok) throw new Error(rendered.error.kind)
      return rendered.value
    }

    const tools = [{ name: "f", description: "Does.", parameters: { type: "object", properties: {} }, strict: null }]
    const turns: readonly Partial<Message>[] = [
      { role: "system", content: "Be brief." },
      { content: "Ä 1 😀" },
      { role: "assistant", toolCalls: [{ id: "c", name: "f", arguments: { a: 1 } }] },
      { role: "tool", toolCallId: "c", content: "done" },
      { role: "assistant", content: "Well.", reasoning: "Hm." },
      {
        content: [
          { type: "text", text: "And" },
          { type: "text", text: "then?" },
        ],
      },
    ]

    test("ids are those of the text, special tokens included", () => {
      const { tokenIds, text } = render(conversationOf(turns, { tools }))
      expect(tokenizer.decode(tokenIds, false)).toBe(text)
      for (const part of ["Be brief.", "Ä 1 😀", "done", "Well.", "then?"]) expect(text).toContain(part)
    })

    test("the same conversation gives the same prompt, and is not changed", () => {
      const conversation = conversationOf(turns, { tools })
      const before = JSON.stringify(conversation)
      const first = render(conversation)
      render(conversationOf([{ content: "Other" }]))
      expect(render(conversation)).toEqual(first)
      expect(JSON.stringify(conversation)).toBe(before)
    })

    test("a special token that a user or a tool spells out is text", () => {
      const countOf = (text: string): number => {
        const said = turns.map((turn) =>
          turn.role === "tool" || turn.role === undefined ? { ...turn, content: text } : turn,
        )
        const { tokenIds, text: shown } = render(conversationOf(said))
        expect(shown).toContain(text)
        return tokenIds.filter((id) => tokenizer.isSpecial(id)).length
      }
      expect(countOf(`a${special}b`)).toBe(countOf("ab"))
    })

    test("the beginning of a reply is left out when it is not wanted", () => {
      const without = render(conversationOf(turns, { addGenerationPrompt: false })).text
      const { text } = render(conversationOf(turns))
      expect(text.startsWith(without)).toBe(true)
      expect(text.length > without.length).toBe(marksReply)
    })

    test("a last message to go on with is the prompt's end", () => {
      const goOn = { addGenerationPrompt: false, continueFinalMessage: true }
      expect(render(conversationOf([{ content: "x" }, { role: "assistant", content: "It is" }], goOn)).text).toEndWith(
        "It is",
      )
      const rendered = renderer.render(conversationOf([{ content: "x" }, { role: "assistant" }], goOn), unbounded)
      expect(rendered.ok).toBe(false)
    })

    test("a text that is too long is refused, and encoding stops where a prompt is too long in any case", () => {
      const long = conversationOf([{ content: "word ".repeat(20_000) }, { content: "word ".repeat(20_000) }])
      expect(renderer.render(long, { textBytesMax: 50_000, tokensMax: null })).toMatchObject({
        ok: false,
        error: { kind: "text_too_long", textBytesMax: 50_000 },
      })
      const stopped = renderer.render(long, { ...unbounded, tokensMax: 100 })
      expect(stopped.ok && stopped.value.tokenIds.length > 100).toBe(true)
      expect(stopped.ok && stopped.value.tokenIds.length < 30_000).toBe(true)
    })
  })
}
