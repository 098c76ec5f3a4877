/**
 * Random replies by two roads: straight through an API, and through render, generate and derender on servers of both
 * roles. Whatever the model writes, whichever parsers read it and however its tokens come, both say the same.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Config, responsesExtensions } from "../../src/config"
import { loadModelFolder } from "../../src/model/files"
import type { ModelProfile } from "../../src/model/profile"
import { tekkenFile } from "../prompt/mistral/vocabularies"
import { deepseekProfile, type TokenizerJson, withControl } from "../support/deepseek-model"
import { gptOssProfile } from "../support/gpt-oss-model"
import { seededRandom } from "../support/random"
import { readEvents, type SentEvent } from "../support/sent-events"
import { startTestRenderer } from "../support/test-renderer"
import { startTestServer, type TestServer } from "../support/test-server"
import { byteLevelTokenizer } from "../tokenizer/small-tokenizers"

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
type Loose = any

const wholes = 120
const streams = 40

/** A model whose replies are read, and the pieces that they are made of. */
interface Family {
  readonly config?: Partial<Config>
  /** Its files may lie in the folder, which is the test's. */
  readonly profile?: (folder: string) => Promise<Partial<ModelProfile>>
  readonly pieces: readonly string[]
  /** Whether chats may have variables for a template: true where nothing else is said. */
  readonly takesKwargs?: boolean
}

const anyPieces = ["Hello", " world. ", "\n", "🎉👩‍👩‍👧", "é日本", "ab STOP cd"]
const hermesPieces = [
  ...anyPieces,
  "<think>",
  "</think>\n\n",
  "<think>\nhm, so\n</think>\n\n",
  '<tool_call>\n{"name": "look", "arguments": {"a": "é\\u00e9", "b": [1, 2.50]}}\n</tool_call>',
  '\n<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>',
  '<tool_call>\n{"name": "unknown"',
  "</tool_call>",
  "<|im_end|>",
]
const harmonyPieces = [
  "<|channel|>analysis<|message|>hm, so",
  "<|channel|>final<|message|>",
  "<|end|><|start|>assistant",
  '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"a": "é"}<|call|>',
  "<|return|>",
]
const mistralPieces = [
  "[THINK]",
  "[/THINK]",
  "[THINK]hm, so[/THINK]",
  '[TOOL_CALLS]look[ARGS]{"a": "é", "b": [1, 2.50]}',
  "[TOOL_CALLS]run[CALL_ID]abcdefghi[ARGS]{}",
  '[TOOL_CALLS] [{"name": "look", "arguments": {"a": "4C"}}]',
  "[TOOL_CALLS]unknown",
  "</s>",
]
/** `block` is what a list of calls stands in. */
const deepseekPieces = (block: string): readonly string[] => [
  "<think>",
  "</think>",
  "hm, so</think>",
  `\n\n<｜DSML｜${block}>\n<｜DSML｜invoke name="look">\n<｜DSML｜parameter name="a" string="true">é 4C</｜DSML｜parameter>\n` +
    `<｜DSML｜parameter name="b" string="false">[1, 2.50]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜${block}>`,
  `<｜DSML｜${block}>\n<｜DSML｜invoke name="run">\n</｜DSML｜invoke>\n</｜DSML｜${block}>`,
  `<｜DSML｜${block}>\n<｜DSML｜invoke name="unknown">`,
  "<｜end▁of▁sentence｜>",
]

const deepseek = (architecture: string, block: string): Family => ({
  profile: (folder) => deepseekProfile(folder, architecture, withControl(byteLevelTokenizer().json as TokenizerJson)),
  pieces: [...deepseekPieces(block), ...deepseekPieces(block), ...anyPieces],
})

/** What reads the output, by name. */
const families: { readonly [name: string]: Family } = {
  "reasoning and calls": { pieces: hermesPieces },
  "reasoning that is open from the start": {
    config: { reasoningParser: "deepseek_r1", toolCallParser: "none" },
    pieces: hermesPieces,
  },
  "calls alone": { config: { reasoningParser: "none", toolCallParser: "hermes" }, pieces: hermesPieces },
  nothing: { config: { reasoningParser: "none", toolCallParser: "none" }, pieces: hermesPieces },
  "messages in the Harmony format": {
    config: { harmonyStartDate: "2026-03-05" },
    profile: gptOssProfile,
    pieces: [...harmonyPieces, ...harmonyPieces, ...hermesPieces],
  },
  "Mistral's format": {
    profile: async (folder) => {
      await Bun.write(join(folder, "params.json"), JSON.stringify({ dim: 64, n_layers: 2, max_seq_len: 32_768 }))
      await Bun.write(join(folder, "tekken.json"), JSON.stringify(tekkenFile("v13")))
      const options = { contextTokensMax: null, generationConfig: "auto", overrideGenerationConfig: {} }
      const loaded = await loadModelFolder(folder, "m", { ...options, tokenizerFolder: null, tokenizerMode: "auto" })
      if (!loaded.ok) throw new Error(loaded.error.message)
      return loaded.value
    },
    pieces: [...mistralPieces, ...mistralPieces, ...anyPieces],
    takesKwargs: false,
  },
  "DeepSeek's format of V3.2": deepseek("DeepseekV32ForCausalLM", "function_calls"),
  "DeepSeek's format of V4": deepseek("DeepseekV4ForCausalLM", "tool_calls"),
}

interface Case {
  readonly body: { readonly [field: string]: Loose }
  readonly path: string
  readonly requestKey: string
}

function randomCase(seed: number, streams: boolean, { pieces: known, takesKwargs = true }: Family): Case {
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const chance = (share: number): boolean => random() < share
  const text = Array.from({ length: below(8) }, () => known[below(known.length)]!).join("")
  const shared = {
    vllm_xargs: {
      sim_text: text,
      sim_tokens_per_step: Array.from({ length: 1 + below(4) }, () => 1 + below(4)),
      ...(chance(0.2) && { sim_cached_tokens: 2 }),
      ...(chance(0.15) && { sim_finish: ["length", "abort", "repetition"][below(3)]! }),
    },
    ...(!streams && chance(0.3) && { stop: ["STOP", "wor"] }),
    ...(!streams && chance(0.2) && { include_stop_str_in_output: true }),
    ...(chance(0.15) && { skip_special_tokens: false }),
    ...(chance(0.15) && { ignore_eos: false, min_tokens: 2 }),
    request_id: `r${seed}`,
  }
  // A Responses stream is generated without usage chunks, so what the cache held stays unknown.
  const plain = { ...shared, vllm_xargs: { ...shared.vllm_xargs, sim_cached_tokens: 0 } }
  const limit = chance(0.4) ? 2 + below(25) : 400
  const parameters = { type: "object", properties: { a: {} } }
  const choice = ["auto", "none", "required", "named"][below(4)]!
  const usage = streams && chance(0.5) ? { stream_options: { include_usage: true } } : {}
  const several = streams || chance(0.6) ? 1 : 2
  switch (below(3)) {
    case 0:
      return {
        path: "/v1/chat/completions",
        requestKey: "chat_request",
        body: {
          ...shared,
          ...usage,
          messages: [{ role: "user", content: "hi" }],
          max_tokens: limit,
          n: several,
          include_reasoning: chance(0.8),
          parallel_tool_calls: chance(0.8),
          ...(chance(0.7) && {
            tools: [
              { type: "function", function: { name: "look", parameters } },
              { type: "function", function: { name: "run" } },
            ],
            tool_choice: choice === "named" ? { type: "function", function: { name: "look" } } : choice,
          }),
          ...(chance(0.3) && { logprobs: true, top_logprobs: below(4) }),
          ...(chance(0.3) && { return_token_ids: true }),
          ...(!streams && chance(0.2) && { prompt_logprobs: 1 }),
          ...(chance(0.2) && takesKwargs && { chat_template_kwargs: { enable_thinking: chance(0.5) } }),
        },
      }
    case 1:
      return {
        path: "/v1/completions",
        requestKey: "completion_request",
        body: {
          ...shared,
          ...usage,
          prompt: !streams && chance(0.4) ? ["one", "two é"] : "one prompt",
          max_tokens: limit,
          n: several,
          echo: chance(0.3),
          ...(chance(0.4) && { logprobs: below(4) }),
          ...(chance(0.3) && { return_token_ids: true }),
        },
      }
    default:
      return {
        path: "/v1/responses",
        requestKey: "responses_request",
        body: {
          ...(streams ? plain : shared),
          input: "hi",
          max_output_tokens: limit,
          include_reasoning: chance(0.8),
          ...(chance(0.7) && {
            tools: [
              { type: "function", name: "look", parameters },
              { type: "function", name: "run" },
            ],
            tool_choice: choice === "named" ? { type: "function", name: "look" } : choice,
          }),
          // Whose a hidden token's logprobs are follows from the engine's steps, which are one token each as a rule.
          ...(chance(0.3) && {
            include: ["message.output_text.logprobs"],
            top_logprobs: below(3),
            vllm_xargs: { ...(streams ? plain : shared).vllm_xargs, sim_tokens_per_step: [1] },
          }),
        },
      }
  }
}

/** A copy whose ids are numbered as they appear, and whose times are zero. Ids of replies themselves stay. */
function withoutChance(value: unknown): unknown {
  const known = new Map<string, string>()
  const text = JSON.stringify(value, (key, inner: unknown) => {
    if (["created", "created_at", "completed_at"].includes(key)) return inner === null ? null : 0
    if (typeof inner !== "string" || !["id", "item_id", "call_id"].includes(key)) return inner
    if (/^(chatcmpl-|cmpl-|resp_)/.test(inner)) return inner
    const name = known.get(inner) ?? `${inner.slice(0, inner.indexOf("_"))}${known.size}`
    known.set(inner, name)
    return name
  })
  return JSON.parse(text)
}

for (const [name, family] of Object.entries(families)) {
  describe(`read for ${name}`, () => {
    let server: TestServer
    let renderer: TestServer
    const { config, profile: profileIn } = family
    const folder = mkdtempSync(join(tmpdir(), "derender-"))
    beforeAll(async () => {
      const profile = (await profileIn?.(folder)) ?? {}
      const both = { responsesExtensions, enablePromptTokensDetails: true, enableScaleOut: true, ...config }
      server = await startTestServer({ config: both, profile })
      renderer = await startTestRenderer({ config: both, profile })
    }, 60_000)
    afterAll(async () => {
      await server.stop()
      await renderer.stop()
      rmSync(folder, { recursive: true })
    })

    const ok = async (reply: Promise<{ status: number; text: string; json: Loose }>): Promise<Loose> => {
      const { status, text, json } = await reply
      if (status !== 200) throw new Error(`${status}: ${text}`)
      return json
    }

    test("whole answers", async () => {
      for (let seed = 1; seed <= wholes; seed++) {
        const { path, body, requestKey } = randomCase(seed, false, family)
        const direct = await ok(server.post(path, body))
        const rendered = await ok(renderer.post(`${path}/render`, body))
        const list: Loose[] = Array.isArray(rendered) ? rendered : [rendered]
        const generated: Loose[] = []
        for (const each of list) generated.push(await ok(server.post("/inference/v1/generate", each)))
        const prompts = list.map((each) => each.token_ids)
        const isList = path === "/v1/completions"
        const answer = await ok(
          renderer.post(`${path}/derender`, {
            ...(isList ? { generate_responses: generated } : { generate_response: generated[0] }),
            // Without them the request is rendered again.
            ...(seed % 3 > 0 && { prompt_token_ids: isList ? prompts : prompts[0] }),
            [requestKey]: body,
          }),
        )
        expect([seed, withoutChance(answer)]).toEqual([seed, withoutChance(direct)])
      }
    }, 120_000)

    test("streams, chunk by chunk with the state in the client's hands", async () => {
      for (let seed = 1_001; seed <= 1_000 + streams; seed++) {
        const { path, body, requestKey } = randomCase(seed, true, family)
        const direct = await server.events(path, body)
        const rendered = await ok(renderer.post(`${path}/render`, { ...body, stream: true }))
        const [one] = Array.isArray(rendered) ? rendered : [rendered]
        const reply = await server.post("/inference/v1/generate", one)
        const replies: Loose[] = []
        let state: Loose = null
        for (const { json } of readEvents(reply.text)) {
          if (json === null) continue
          const chunk = { stream: true, generate_chunk: json, stream_state: state, prompt_token_ids: one.token_ids }
          const next = await ok(
            renderer.post(`${path}/derender`, { ...chunk, [requestKey]: { ...body, stream: true } }),
          )
          state = next.stream_state
          replies.push(next)
        }
        const ours = replies.flatMap((each) => each.events ?? [each.chunk])
        const theirs = direct.filter((event: SentEvent) => event.json !== null).map((event) => event.json)
        const shape = path === "/v1/responses" ? withoutChance : (events: Loose[]) => withoutChance(joined(events))
        expect([seed, shape(ours)]).toEqual([seed, shape(theirs)])
      }
    }, 120_000)
  })
}

/** What a client has of a stream of chunks in the end. */
function joined(chunks: readonly Loose[]): Loose {
  const told: Loose = { text: "", reasoning: "", calls: {}, logprobs: [], lists: [], ids: [], usage: null }
  for (const { choices, usage, ...head } of chunks) {
    told.head = { ...told.head, id: head.id, object: head.object, model: head.model }
    if (usage != null) told.usage = usage
    for (const choice of choices) {
      const { content, reasoning, tool_calls, role } = choice.delta ?? {}
      told.text += content ?? choice.text ?? ""
      told.reasoning += reasoning ?? ""
      if (role !== undefined) told.role = role
      for (const call of tool_calls ?? []) {
        const known = told.calls[call.index] ?? { id: null, name: "", arguments: "" }
        told.calls[call.index] = {
          id: call.id ?? known.id,
          name: known.name + (call.function.name ?? ""),
          arguments: known.arguments + (call.function.arguments ?? ""),
        }
      }
      told.logprobs.push(...(choice.logprobs?.content ?? []))
      for (const list of ["tokens", "token_logprobs", "text_offset", "top_logprobs"]) {
        told.lists.push(...(choice.logprobs?.[list] ?? []).map((value: Loose) => [list, value]))
      }
      told.ids.push(...(choice.token_ids ?? []))
      if (choice.finish_reason !== null) told.finish = [choice.finish_reason, choice.stop_reason ?? null]
    }
  }
  told.lists.sort((a: Loose, b: Loose) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
  return told
}
