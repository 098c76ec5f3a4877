import { describe, expect, test } from "bun:test"
import type { Conversation, Message } from "../../src/ir/conversation"
import { builtInProfile } from "../../src/model/built-in"
import { chooseParser } from "../../src/parser/registry"
import { renderConversation } from "../../src/prompt/conversation-variables"
import { compileTemplate } from "../../src/prompt/template"
import { openO200k } from "../../src/tokenizer/open"
import { conversationOf, messageOf } from "../support/conversation"

const profile = builtInProfile()
const source = profile.tokenizer
if (source.kind !== "o200k") throw new Error("the built-in profile has another tokenizer")
const tokenizer = await openO200k({ special: source.specialTokens, added: source.addedTokens })
const compiled = compileTemplate(profile.chatTemplates.default!)
if (!compiled.ok) throw new Error(compiled.error.message)
const template = compiled.value

function render(messages: readonly Message[], rest: Partial<Conversation> = {}): string {
  const rendered = renderConversation(template, conversationOf(messages, rest), {
    specialTokens: profile.specialTokens,
    contentFormat: "auto",
  })
  if (!rendered.ok) throw new Error(rendered.error.message)
  return rendered.value
}

describe("the template", () => {
  test("writes turns and opens the assistant's, never its thinking", () => {
    expect(render([messageOf("system", "Be kind."), messageOf("user", "Hi")])).toBe(
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("adds an empty think block when thinking is off", () => {
    expect(render([messageOf("user", "Hi")], { templateKwargs: { enable_thinking: false } })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    )
    expect(render([messageOf("user", "Hi")], { templateKwargs: { enable_thinking: true } })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("makes developer texts part of the system turn", () => {
    expect(render([messageOf("developer", "D"), messageOf("user", "Hi"), messageOf("system", "S")])).toBe(
      "<|im_start|>system\nD\n\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("lists the tools, and shows calls, their results and reasoning since the last question", () => {
    const rendered = render(
      [
        messageOf("user", "Weather?"),
        messageOf("assistant", "Old.", { reasoning: "forgotten" }),
        messageOf("user", "And now?"),
        messageOf("assistant", null, {
          reasoning: "look",
          toolCalls: [
            { id: "a", name: "get", arguments: { city: "Zürich", n: 2n ** 60n } },
            { id: "b", name: "now", arguments: {} },
          ],
        }),
        messageOf("tool", "rain", { toolCallId: "a" }),
        messageOf("tool", "12:00", { toolCallId: "b" }),
      ],
      { tools: [{ name: "get", description: "Gets <it>", parameters: { type: "object" }, strict: null }] },
    )
    expect(rendered).toContain(
      '\n<tools>\n{"type": "function", "function": {"name": "get", "description": "Gets <it>", "parameters": {"type": "object"}}}\n</tools>\n',
    )
    expect(rendered).toEndWith(
      `${[
        "<|im_start|>user\nWeather?<|im_end|>",
        "<|im_start|>assistant\nOld.<|im_end|>",
        "<|im_start|>user\nAnd now?<|im_end|>",
        "<|im_start|>assistant\n<think>\nlook\n</think>\n\n<tool_call>",
        '{"name": "get", "arguments": {"city": "Zürich", "n": 1152921504606846976}}',
        "</tool_call>\n<tool_call>",
        '{"name": "now", "arguments": {}}',
        "</tool_call><|im_end|>",
        "<|im_start|>user\n<tool_response>\nrain\n</tool_response>\n<tool_response>\n12:00\n</tool_response><|im_end|>",
        "<|im_start|>assistant",
      ].join("\n")}\n`,
    )
  })

  test("renders 100 000 messages within seconds", () => {
    const messages = Array.from({ length: 100_000 }, (_, i) => messageOf(i % 2 === 0 ? "user" : "assistant", `m${i}`))
    const startedAt = performance.now()
    expect(render(messages)).toEndWith("m99999<|im_end|>\n<|im_start|>assistant\n")
    expect(performance.now() - startedAt).toBeLessThan(25_000)
  })
})

describe("the profile", () => {
  test("has each marker as one token, and only ChatML's are special", () => {
    const text = "<|endoftext|><|im_start|><|im_end|><think></think><tool_call></tool_call>"
    const encoded = tokenizer.encode(text, { addSpecialTokens: false })
    expect(encoded.ok && Array.from(encoded.value)).toEqual([
      199_999, 200_019, 200_020, 200_021, 200_022, 200_023, 200_024,
    ])
    expect(encoded.ok && tokenizer.decode(encoded.value, true)).toBe("<think></think><tool_call></tool_call>")
    expect(tokenizer.vocabSize).toBe(200_025)
  })

  test("ends with its own end token first", () => {
    expect(profile.eosTokenIds).toEqual([200_020, 199_999])
    expect(profile.eosToken).toBe("<|im_end|>")
  })

  test("is read by qwen3 and hermes", () => {
    const chosen = chooseParser(profile, "auto", "auto", tokenizer)
    expect(chosen.ok && [chosen.value.reasoning, chosen.value.tools, chosen.value.needsSpecialTokens]).toEqual([
      "qwen3",
      "hermes",
      false,
    ])
  })
})
