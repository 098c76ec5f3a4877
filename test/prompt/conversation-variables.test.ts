import { describe, expect, test } from "bun:test"
import type { Conversation, Message } from "../../src/ir/conversation"
import { renderConversation, templateVariables } from "../../src/prompt/conversation-variables"
import { type ChatTemplate, compileTemplate } from "../../src/prompt/template"
import { conversationOf, messageOf } from "../support/conversation"

const empty = conversationOf([])
const setting = { specialTokens: { bos_token: "<s>" }, contentFormat: "auto" } as const

function compiled(text: string): ChatTemplate {
  const template = compileTemplate(text)
  if (!template.ok) throw new Error(template.error.message)
  return template.value
}

const plain = compiled("{{ messages }}{{ bos_token }}{{ enable_thinking }}")
const parted = compiled("{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}")

describe("the variables", () => {
  test("are the conversation, None where there is nothing, and only kwargs that the template reads", () => {
    const templateKwargs = { enable_thinking: false, unread: 1, messages: "mine", bos_token: "<b>", tokenize: true }
    expect(templateVariables(plain, { ...empty, templateKwargs }, setting)).toEqual({
      bos_token: "<b>",
      enable_thinking: false,
      messages: [],
      tools: null,
      documents: null,
      add_generation_prompt: true,
    })
  })

  test("hold messages with the keys they have, and tools in the API's shape", () => {
    const conversation: Conversation = {
      ...empty,
      messages: [
        messageOf("user", "Hi", { name: "Ann" }),
        messageOf("assistant", null, {
          reasoning: "so",
          toolCalls: [
            { id: "c1", name: "f", arguments: { a: 1 } },
            { id: null, name: "g", arguments: {} },
          ],
        }),
        messageOf("tool", "3", { toolCallId: "c1" }),
      ],
      tools: [
        { name: "f", description: "d", parameters: { type: "object" }, strict: true },
        { name: "g", description: null, parameters: null, strict: null },
      ],
    }
    const variables = templateVariables(plain, conversation, setting)
    expect(variables.messages).toEqual([
      { role: "user", content: "Hi", name: "Ann" },
      {
        role: "assistant",
        content: "",
        reasoning: "so",
        reasoning_content: "so",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "f", arguments: { a: 1 } } },
          { type: "function", function: { name: "g", arguments: {} } },
        ],
      },
      { role: "tool", content: "3", tool_call_id: "c1" },
    ])
    expect(variables.tools).toEqual([
      { type: "function", function: { name: "f", description: "d", parameters: { type: "object" }, strict: true } },
      { type: "function", function: { name: "g", description: null, parameters: null } },
    ])
  })

  test("hold content as text or as parts, as the template or the flag wants it", () => {
    const parts = [
      { type: "text", text: "a" },
      { type: "image", source: "data:" },
      { type: "text", text: "b" },
    ] as const
    const conversation = { ...empty, messages: [messageOf("user", parts), messageOf("user", "c")] }
    const contents = (template: ChatTemplate, contentFormat: "auto" | "string" | "openai"): unknown =>
      templateVariables(template, conversation, { ...setting, contentFormat }).messages
    const asText = [
      { role: "user", content: "a\nb" },
      { role: "user", content: "c" },
    ]
    const asParts = [
      { role: "user", content: [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }] },
      { role: "user", content: [{ type: "text", text: "c" }] },
    ]
    expect(contents(plain, "auto")).toEqual(asText)
    expect(contents(plain, "openai")).toEqual(asParts)
    expect(contents(parted, "auto")).toEqual(asParts)
    expect(contents(parted, "string")).toEqual(asText)
  })

  test("turn developers into one system text unless the template knows them", () => {
    const messages = [
      messageOf("system", "S"),
      messageOf("user", "u"),
      messageOf("developer", [{ type: "text", text: "D" }]),
    ]
    expect(templateVariables(plain, { ...empty, messages }, setting).messages).toEqual([
      { role: "system", content: "S\n\nD" },
      { role: "user", content: "u" },
    ])
    const knowing = compiled("{{ messages }}{{ 'developer' }}")
    expect(templateVariables(knowing, { ...empty, messages: messages.slice(2) }, setting).messages).toEqual([
      { role: "developer", content: "D" },
    ])
    const parts = messageOf("developer", [
      { type: "text", text: "D" },
      { type: "text", text: "E" },
    ])
    const looping = compiled("{% for m in messages %}{% for p in m.content %}{{ p }}{% endfor %}{% endfor %}")
    expect(templateVariables(looping, { ...empty, messages: [parts] }, setting).messages).toEqual([
      {
        role: "system",
        content: [
          { type: "text", text: "D" },
          { type: "text", text: "E" },
        ],
      },
    ])
    const without = [messageOf("system", "A"), messageOf("user", "u"), messageOf("system", "B")]
    expect(templateVariables(plain, { ...empty, messages: without }, setting).messages).toHaveLength(3)
  })
})

describe("going on from the last message", () => {
  const turns = compiled(
    "{% for m in messages %}[{{ m.content }}]{% endfor %}{% if add_generation_prompt %}>{% endif %}",
  )
  const trimming = compiled("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}")

  function continued(template: ChatTemplate, messages: readonly Message[]): unknown {
    const result = renderConversation(template, { ...empty, messages, continueFinalMessage: true }, setting)
    return result.ok ? result.value : result.error.message
  }

  test("cuts what the template writes behind its text", () => {
    expect(continued(turns, [messageOf("user", "Sure, "), messageOf("assistant", "Sure, ")])).toBe("[Sure, ][Sure, ")
    expect(continued(trimming, [messageOf("user", "a"), messageOf("assistant", " b ")])).toBe("[a][b")
    expect(continued(turns, [messageOf("assistant", [{ type: "text", text: "p" }])])).toBe("[p")
  })

  test("is refused where there is no text to go on from, or the template leaves it out", () => {
    expect(continued(turns, [messageOf("assistant", null)])).toBe(
      "continue_final_message needs a last message with text",
    )
    expect(continued(turns, [])).toBe("continue_final_message needs a last message with text")
    expect(continued(compiled("fixed"), [messageOf("assistant", "a")])).toBe(
      "the chat template does not render the last message's text",
    )
  })
})
