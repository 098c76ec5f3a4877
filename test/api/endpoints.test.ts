import { expect } from "bun:test"
import { checkResponseStream } from "../support/response-grammar"
import type { SentEvent } from "../support/sent-events"
import { type EndpointDriver, endpointContract } from "./contract"

/** What chunks of chat and completions have in common: plain data frames, `[DONE]` at the end, one id. */
function checkChunks(events: readonly SentEvent[]): void {
  expect(events.at(-1)?.data).toBe("[DONE]")
  const chunks = events.slice(0, -1)
  expect(new Set(events.map((each) => each.event))).toEqual(new Set([""]))
  expect(new Set(chunks.map((each) => each.json.id)).size).toBe(1)
  expect(chunks.at(-1)!.json.choices).toEqual([]) // the usage chunk
  const finishes = chunks.flatMap((each) => each.json.choices).filter((choice) => choice.finish_reason !== null)
  expect(finishes.length).toBe(1)
}

function failsAsChunks(events: readonly SentEvent[]): boolean {
  const last = events.at(-2)
  return events.at(-1)?.data === "[DONE]" && last?.json.error !== undefined && last.json.error.param !== undefined
}

const chat: EndpointDriver = {
  path: "/v1/chat/completions",
  body: (xargs, extra = {}) => ({ messages: [{ role: "user", content: "Hi" }], vllm_xargs: xargs, ...extra }),
  limitField: "max_tokens",
  promptField: "messages",
  usageExtra: { stream_options: { include_usage: true } },
  readWhole: (json: unknown) => {
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what is tested
    const { choices, usage } = json as any
    return {
      text: choices[0].message.content ?? "",
      finish: choices[0].finish_reason,
      promptTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    }
  },
  readStream: (events) => {
    const chunks = events.filter((each) => each.json !== null).map((each) => each.json)
    const choices = chunks.flatMap((chunk) => chunk.choices)
    const { usage } = chunks.at(-1)
    return {
      text: choices.map((choice) => choice.delta.content ?? "").join(""),
      finish: choices.at(-1).finish_reason,
      promptTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    }
  },
  checkGrammar: (events) => {
    checkChunks(events)
    expect(events[0]!.json.choices[0].delta).toEqual({ role: "assistant", content: "" })
  },
  endsInFailure: failsAsChunks,
}

const completions: EndpointDriver = {
  path: "/v1/completions",
  body: (xargs, extra = {}) => ({ prompt: "Hi", max_tokens: 500, vllm_xargs: xargs, ...extra }),
  limitField: "max_tokens",
  promptField: "prompt",
  usageExtra: { stream_options: { include_usage: true } },
  readWhole: (json: unknown) => {
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what is tested
    const { choices, usage } = json as any
    return {
      text: choices[0].text,
      finish: choices[0].finish_reason,
      promptTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    }
  },
  readStream: (events) => {
    const chunks = events.filter((each) => each.json !== null).map((each) => each.json)
    const choices = chunks.flatMap((chunk) => chunk.choices)
    const { usage } = chunks.at(-1)
    return {
      text: choices.map((choice) => choice.text).join(""),
      finish: choices.at(-1).finish_reason,
      promptTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    }
  },
  checkGrammar: checkChunks,
  endsInFailure: failsAsChunks,
}

/** `completed` and `incomplete` as the finish reasons that they stand for. */
function finishOf(status: string): string {
  return status === "completed" ? "stop" : status === "incomplete" ? "length" : status
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is what is tested
function readResponse(response: any) {
  const messages = response.output.filter((item: { type: string }) => item.type === "message")
  return {
    text: messages.map((item: { content: { text: string }[] }) => item.content[0]!.text).join(""),
    finish: finishOf(response.status),
    promptTokens: response.usage.input_tokens,
    outputTokens: response.usage.output_tokens,
  }
}

const responses: EndpointDriver = {
  path: "/v1/responses",
  body: (xargs, extra = {}) => ({ input: "Hi", vllm_xargs: xargs, ...extra }),
  limitField: "max_output_tokens",
  promptField: "input",
  usageExtra: {},
  readWhole: readResponse,
  readStream: (events) => readResponse(events.at(-1)!.json.response),
  checkGrammar: checkResponseStream,
  endsInFailure: (events) => checkResponseStream(events).ending === "failed",
}

endpointContract("chat", chat)
endpointContract("completions", completions)
endpointContract("Responses", responses)
