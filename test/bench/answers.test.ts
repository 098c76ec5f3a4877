import { describe, expect, test } from "bun:test"
import {
  checkChatAnswer,
  checkChatStream,
  checkResponsesAnswer,
  checkResponsesStream,
} from "../../bench/support/answers"
import { optionsOf } from "../../bench/support/options"

const expected = { expectedText: "one two", tokensPerRequest: 3 }

function chatFrames(pieces: readonly string[], tokens: number): string {
  const chunks = [
    { choices: [{ delta: { role: "assistant", content: "" }, finish_reason: null }] },
    ...pieces.map((content) => ({ choices: [{ delta: { content }, finish_reason: null }] })),
    { choices: [{ delta: {}, finish_reason: "stop" }] },
    { choices: [], usage: { completion_tokens: tokens } },
  ]
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`
}

function response(text: string, tokens: number) {
  return { status: "completed", output: [{ content: [{ text }] }], usage: { output_tokens: tokens } }
}

function responsesFrames(pieces: readonly string[], tokens: number): string {
  const events = [
    { type: "response.created" },
    ...pieces.map((delta) => ({ type: "response.output_text.delta", delta })),
    { type: "response.completed", response: response("one two", tokens) },
  ]
  return events
    .map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`)
    .join("")
}

describe("a bench's check of an answer", () => {
  test("counts the events of right streams", () => {
    expect(checkChatStream(chatFrames(["one", " two"], 3), expected)).toBe(6)
    expect(checkResponsesStream(responsesFrames(["one", " two"], 3), expected)).toBe(4)
  })

  test("throws at a wrong text, a wrong count, a missing end, a gap", () => {
    expect(() => checkChatStream(chatFrames(["one", " too"], 3), expected)).toThrow("wrong text")
    expect(() => checkChatStream(chatFrames(["one", " two"], 4), expected)).toThrow("wrong token count")
    expect(() => checkChatStream(chatFrames(["one two"], 3).slice(0, -16), expected)).toThrow("wrong end")
    expect(() => checkResponsesStream(responsesFrames(["one"], 3), expected)).toThrow("wrong deltas")
    expect(() => checkResponsesStream(responsesFrames(["one two"], 4), expected)).toThrow("wrong token count")
    const gap = responsesFrames(["one", " two"], 3).replace('"sequence_number":2', '"sequence_number":3')
    expect(() => checkResponsesStream(gap, expected)).toThrow("wrong event")
  })

  test("reads answers in one piece as well", () => {
    const chat = (content: string) =>
      JSON.stringify({ choices: [{ message: { content }, finish_reason: "stop" }], usage: { completion_tokens: 3 } })
    expect(checkChatAnswer(chat("one two"), expected)).toBe(0)
    expect(() => checkChatAnswer(chat("one"), expected)).toThrow("wrong text")
    expect(checkResponsesAnswer(JSON.stringify(response("one two", 3)), expected)).toBe(0)
    expect(() => checkResponsesAnswer(JSON.stringify(response("one", 3)), expected)).toThrow("wrong text")
  })
})

describe("a bench's options", () => {
  test("are as asked, and refuse what they do not know", () => {
    const options = optionsOf(["--connections", "1,20", "--api", "chat", "--step-ms", "2.5"])
    expect([options.connections, options.apis, options.stepMs]).toEqual([[1, 20], ["chat"], 2.5])
    expect(() => optionsOf(["--api", "messages"])).toThrow("chat or responses")
    expect(() => optionsOf(["--repeats", "many"])).toThrow("not a number")
    expect(() => optionsOf(["--speed", "1"])).toThrow()
  })
})
