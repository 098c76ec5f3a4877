import { describe, expect, test } from "bun:test"
import { lowerPart, type MediaUse, mediaFault } from "../../src/api/content-part"
import { lowerMessages } from "../../src/api/conversation"
import type { LowerContext, ModelFacts } from "../../src/api/endpoint"
import { lowerInput } from "../../src/api/responses/input"
import { defaultConfig } from "../../src/config"
import type { ContentPart, MediaKind, Message } from "../../src/ir/conversation"

function facts(...mediaKinds: MediaKind[]): ModelFacts {
  return {
    names: ["m"],
    root: "m",
    contextTokensMax: 100,
    samplingDefaults: {},
    vocabSize: 10,
    hasChatTemplate: true,
    writesHarmony: false,
    parsesReasoning: false,
    parsesCalls: false,
    adapters: [],
    mediaKinds,
    tokenText: () => "",
    decode: () => "",
  }
}

function context(...mediaKinds: MediaKind[]): LowerContext {
  return {
    config: defaultConfig,
    model: facts(...mediaKinds),
    headers: new Headers(),
    mediaRefusal: null,
    newId: () => "",
  }
}

describe("a content part", () => {
  test("is the same in either API's words", () => {
    const url = "https://example.test/a.png"
    const same: readonly (readonly [{ readonly type: string; readonly [field: string]: unknown }, ContentPart])[] = [
      [
        { type: "text", text: "a" },
        { type: "text", text: "a" },
      ],
      [
        { type: "input_text", text: "a" },
        { type: "text", text: "a" },
      ],
      [
        { type: "refusal", refusal: "a" },
        { type: "text", text: "a" },
      ],
      [
        { type: "image_url", image_url: { url, detail: "low" } },
        { type: "image", source: { url, detail: "low" } },
      ],
      [
        { type: "image_url", image_url: url },
        { type: "image", source: { url } },
      ],
      [
        { type: "input_image", image_url: url, detail: "low", file_id: null },
        { type: "image", source: { url, detail: "low" } },
      ],
      [
        { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
        { type: "audio", source: { data: "AA==", format: "wav" } },
      ],
      [
        { type: "video_url", video_url: { url } },
        { type: "video", source: { url } },
      ],
      [
        { type: "input_file", filename: "a", file_data: "data:,x", file_id: null },
        { type: "file", source: { file_data: "data:,x", filename: "a" } },
      ],
    ]
    for (const [part, lowered] of same) {
      expect(lowerPart(part)).toEqual({ ok: true, value: lowered })
    }
  })

  test("that cannot be read says why", () => {
    expect(lowerPart({ type: "toString" })).toEqual({ ok: false, error: { kind: "unknown_type", type: "toString" } })
    for (const part of [
      { type: "text" },
      { type: "input_image" },
      { type: "input_image", image_url: "" },
      { type: "input_image", file_id: "f", image_url: "data:," },
      { type: "input_audio", input_audio: { data: "", format: "wav" } },
      { type: "input_audio", input_audio: { data: "AA==" } },
      { type: "input_file" },
    ]) {
      expect(lowerPart(part)).toEqual({ ok: false, error: { kind: "malformed", message: expect.any(String) } })
    }
  })
})

test("media are refused by role and by what the model takes", () => {
  const use = (kind: Exclude<MediaKind, "file">, role: string): MediaUse => ({
    kind,
    type: `input_${kind}`,
    place: "input[0]",
    role,
    part: { type: kind, source: { url: "https://example.test/a" } },
  })
  const fault = (uses: readonly MediaUse[], ...kinds: MediaKind[]) =>
    mediaFault(uses, "input", context(...kinds))?.message ?? null
  expect(fault([])).toBeNull()
  expect(fault([use("image", "user"), use("image", "tool")], "image")).toBeNull()
  expect(fault([use("image", "user"), use("audio", "user")], "image")).toBe(
    "input[0]: this model takes no input_audio parts.",
  )
  expect(fault([use("image", "assistant")], "image")).toBe(
    "input[0]: an assistant's message cannot hold input_image parts.",
  )
  const refusing = { ...context("image"), mediaRefusal: "nobody can" }
  expect(mediaFault([use("image", "user")], "input", refusing)?.message).toBe(
    "input[0]: input_image parts cannot be taken here: nobody can.",
  )
})

test("chat and Responses give the same message with media in it", () => {
  const url = "data:image/png;base64,AA=="
  const audio = { type: "input_audio", input_audio: { data: "AA==", format: "wav" } }
  const text = { type: "text", text: "What?" }
  const image = { type: "image_url", image_url: { url } }
  const chat = lowerMessages(
    [
      {
        role: "user",
        content: [text, image, audio],
      },
    ],
    context("image", "audio"),
  )
  const responses = lowerInput(
    [
      {
        role: "user",
        content: [{ type: "input_text", text: "What?" }, { type: "input_image", image_url: url }, audio],
      },
    ],
    null,
    context("image", "audio"),
  )
  expect(chat.ok && chat.value.messages).toEqual((responses.ok && responses.value.messages) as false | Message[])
  expect(chat.ok && chat.value.media).toEqual({
    contentParts: [
      { type: "image_url", url },
      { type: "audio_url", url: "data:audio/wav;base64,AA==" },
    ],
    features: null,
  })
  expect(responses.ok && responses.value.media).toEqual(chat.ok && chat.value.media)
  expect(chat.ok).toBe(true)
  const output = lowerInput(
    [
      { type: "function_call_output", call_id: "c", output: [{ type: "input_image", image_url: url }] },
      {
        type: "function_call_output",
        call_id: "d",
        output: [
          { type: "input_text", text: "a" },
          { type: "input_text", text: "b" },
        ],
      },
    ],
    null,
    context("image"),
  )
  expect(output.ok && output.value.messages.map(({ content }) => content)).toEqual([
    [{ type: "image", source: { url } }],
    "ab",
  ])
})
