/**
 * Answers of vLLM's Python server, recorded with a stand-in engine, against ours: the same requests, the same token ids
 * from the engine. What differs on purpose stands in transcript-differences.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { qwen3Profile } from "./support/qwen3-model"
import { checkResponseStream } from "./support/response-grammar"
import { readEvents } from "./support/sent-events"
import { type Reply, startTestServer, type TestServer } from "./support/test-server"
import { foldChat, foldCompletion, foldResponse, normalized } from "./support/transcript-shape"
import {
  answerId,
  type Loose,
  type RecordedEvent,
  readTranscript,
  renderedPrompts,
  scriptTokenIds,
  sentPrompts,
  type Transcript,
  transcriptNames,
  transcriptsExist,
} from "./support/transcripts"
import { type Answer, differences, notCompared } from "./transcript-differences"

/** What the recorded engine said to requests that name no script. */
const defaultScript = "plain"

/** Rendered prompts that differ on purpose: our length in tokens, or null where we refuse. */
const otherPrompts: { readonly [name: string]: { readonly tokens: number | null; readonly reason: string } } = {
  assistant_parts: { tokens: 23, reason: "an assistant's history keeps every text part" },
  history_call_parts: { tokens: 202, reason: "the parts of a call's output join without a separator" },
  background: { tokens: null, reason: "`background` is refused" },
  builtin: { tokens: null, reason: "built-in tools are refused" },
}

const skipped = Object.keys(notCompared).map((pattern) => new RegExp(`^${pattern.replace("*", ".*")}$`))
const compared = transcriptNames().filter((name) => !skipped.some((pattern) => pattern.test(name)))

// Bun reports the hooks of a skipped group as tests without a name, so the group is not declared at all.
if (!transcriptsExist) test.skip("vLLM's own transcripts", () => {})
const compareTranscripts = (): void => {
  let server: TestServer

  beforeAll(async () => {
    server = await startTestServer({
      profile: await qwen3Profile(),
      config: { enablePromptTokensDetails: true },
    })
  })
  afterAll(() => server.stop())

  for (const name of compared) {
    test(name, async () => {
      const transcript = readTranscript(name)
      const expected = recordedAnswer(transcript)
      for (const difference of differences) difference.apply(expected, transcript)
      const ours = answerOf(transcript, await send(server, transcript, 1))
      matchShape(expected, ours)
      expect(ours).toStrictEqual(expected)
      // Steps of several tokens change chunks, never what a client has in the end.
      const inLeaps = answerOf(transcript, await send(server, transcript, [2, 5, 1, 7]))
      expect(withoutShape(inLeaps)).toStrictEqual(withoutShape(expected))
    })
  }

  test("show every difference that is listed at least once", () => {
    const unseen = new Set(differences.map(({ reason }) => reason))
    for (const transcript of compared.map(readTranscript)) {
      const answer = recordedAnswer(transcript)
      for (const { reason, apply } of differences) {
        const before = JSON.stringify(answer)
        apply(answer, transcript)
        if (JSON.stringify(answer) !== before) unseen.delete(reason)
      }
    }
    expect([...unseen]).toEqual([])
  })

  describe("prompt ids that the recorded engine got", () => {
    const prompts = sentPrompts()
    for (const name of compared) {
      const transcript = readTranscript(name)
      const tokenIds = prompts.get(answerId(transcript) ?? "")
      const { path, body } = transcript.request
      const isChat = path === "/v1/chat/completions"
      if (tokenIds === undefined || !(isChat || typeof body?.prompt === "string")) continue
      test(name, async () => {
        const { messages, tools, chat_template_kwargs, reasoning_effort, prompt } = body
        const asked = isChat ? { messages, tools, chat_template_kwargs, reasoning_effort } : { prompt }
        expect((await server.post("/tokenize", asked)).json.tokens).toEqual([...tokenIds])
      })
    }
  })

  describe("prompts of the render server", () => {
    for (const { name, path, request, tokenIds } of renderedPrompts()) {
      test(`${path} ${name}`, async () => {
        if (path.startsWith("/v1/chat")) {
          const body = { ...request, max_tokens: 1, return_token_ids: true }
          expect((await server.post("/v1/chat/completions", body)).json.prompt_token_ids).toEqual([...tokenIds])
        } else {
          const reply = await server.post("/v1/responses", { ...request, stream: false, max_output_tokens: 1 })
          const other = otherPrompts[name]
          const tokens = other === undefined ? tokenIds.length : other.tokens
          expect([reply.status, reply.json.usage?.input_tokens ?? null]).toEqual([tokens === null ? 400 : 200, tokens])
        }
        const text: string = (await server.post("/detokenize", { tokens: tokenIds })).json.prompt
        const again = await server.post("/tokenize", { prompt: text, add_special_tokens: false })
        expect(again.json.tokens).toEqual([...tokenIds])
      })
    }
  })
}
if (transcriptsExist) describe("vLLM's own transcripts", compareTranscripts)

/** Sends a recorded request; the script's name becomes its token ids, and the engine adds EOS as the recorded one did. */
function send(server: TestServer, transcript: Transcript, tokensPerStep: number | readonly number[]): Promise<Reply> {
  const { method, path, headers, body, body_raw } = transcript.request
  const named = Object.fromEntries(headers.map((line) => line.split(/: (.*)/, 2) as [string, string]))
  if (method !== "POST") return sendPlain(server.url + path, method, named)
  const generates = ["/v1/chat/completions", "/v1/completions", "/v1/responses"].includes(path)
  if (!generates || body === undefined) return server.post(path, body ?? body_raw, lowerCaseKeys(named))
  const { vllm_xargs, ...rest } = body
  const script = {
    sim_token_ids: scriptTokenIds(vllm_xargs?.mock_script ?? defaultScript),
    sim_tokens_per_step: tokensPerStep,
  }
  return server.post(path, { ...rest, vllm_xargs: script }, lowerCaseKeys(named))
}

async function sendPlain(url: string, method: string, headers: { readonly [name: string]: string }): Promise<Reply> {
  const response = await fetch(url, { method, headers })
  const text = await response.text()
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null }
}

/** So that a recorded content type takes the place of the default one. */
function lowerCaseKeys(headers: { readonly [name: string]: string }): { [name: string]: string } {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function recordedAnswer({ request, response }: Transcript): Answer {
  const { status, sse, body, body_text } = response
  if (sse !== undefined) return { status, stream: normalized(folded(request.path, sse)) }
  return { status, body: normalized(body ?? body_text ?? "") }
}

function answerOf({ request }: Transcript, reply: Reply): Answer {
  if (reply.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
    return { status: reply.status, body: normalized(reply.json ?? reply.text) }
  }
  const sent = readEvents(reply.text)
  if (request.path === "/v1/responses") checkResponseStream(sent)
  const events = sent.map(({ event, data, json }) => ({ event, data: json ?? data }))
  return { status: reply.status, stream: normalized(folded(request.path, events)) }
}

function folded(path: string, events: readonly RecordedEvent[]): Loose {
  if (path === "/v1/chat/completions") return foldChat(events)
  return path === "/v1/completions" ? foldCompletion(events) : foldResponse(events)
}

/** The recorded engine was now and then so far ahead that nothing came between the first and the last chunk. */
function matchShape({ stream: recorded }: Answer, { stream: ours }: Answer): void {
  if (recorded?.shape?.body.length === 0 && ours?.shape) ours.shape.body = []
}

function withoutShape(answer: Answer): Answer {
  if (answer.stream?.shape === undefined) return answer
  const { shape: _, ...stream } = answer.stream
  return { ...answer, stream }
}
