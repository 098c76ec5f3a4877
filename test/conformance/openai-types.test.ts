/**
 * Every object and event of the three APIs against the types of the `openai` package. What vLLM's APIs have beyond them is
 * listed here, by the object that it stands in; anything else that the types lack is a fault.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { type Server, startServer } from "../support/server-process"
import { callText, type Script, script, sentence, thinking } from "./support/script"
import { type TypedSample, typeFaults } from "./support/typed-samples"

type Json = { [field: string]: unknown }

let server: Server
let withExtensions: Server

beforeAll(async () => {
  server = await startServer()
  withExtensions = await startServer("--responses-extensions", "all")
})
afterAll(async () => {
  expect([await server.end(), await withExtensions.end()]).toEqual([0, 0])
})

const imports = [
  'import type { ChatCompletion, ChatCompletionChunk } from "openai/resources/chat/completions"',
  'import type { Completion } from "openai/resources/completions"',
  'import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses"',
].join("\n")

/** Fields of vLLM's, by the value of `object` or `type` of what they stand in, else by the field that holds it. */
const beyond: { readonly [place: string]: readonly string[] } = {
  response: [
    ...["presence_penalty", "frequency_penalty", "kv_transfer_params", "ec_transfer_params"],
    ...["input_messages", "output_messages"],
  ],
  "response.function_call_arguments.done": ["name"],
  custom_tool_call: ["status"],
  output_tokens_details: ["tool_output_tokens"],
  "chat.completion": [
    ...["prompt_logprobs", "prompt_token_ids", "prompt_text", "kv_transfer_params", "ec_transfer_params", "metrics"],
  ],
  "chat.completion.chunk": ["prompt_token_ids", "prompt_text"],
  text_completion: ["service_tier", "kv_transfer_params", "ec_transfer_params", "metrics"],
  choices: [
    ...["stop_reason", "token_ids", "routed_experts", "weight_versions"],
    ...["prompt_token_ids", "prompt_logprobs", "prompt_text"],
  ],
  message: ["reasoning"],
  delta: ["reasoning"],
  prompt_tokens_details: ["created_cache_tokens", "multimodal_tokens"],
  // Items have them by the types too.
  "logprobs of response.output_text.delta": ["bytes"],
  "top_logprobs of response.output_text.delta": ["bytes"],
  "logprobs of response.output_text.done": ["bytes"],
  "top_logprobs of response.output_text.done": ["bytes"],
}

/** What the types want and no server of vLLM's sends: the first is the client's own, made of the output. */
const lacking: { readonly [place: string]: Json } = {
  response: { output_text: "", access_programs: null },
  "logprobs of chat.completion": { refusal: null },
  "logprobs of chat.completion.chunk": { refusal: null },
}

/** The value of a sample without what is listed in `beyond`, and with what is `lacking`. */
function known(value: unknown, field = "", within = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => known(item, field, within))
  if (typeof value !== "object" || value === null) return value
  const { object, type }: { object?: unknown; type?: unknown } = value
  const kind = String(object ?? type)
  const place = [kind, `${field} of ${within}`, field].find((each) => each in beyond || each in lacking) ?? ""
  const kept = Object.entries({ ...lacking[place], ...value }).filter(([name]) => !beyond[place]?.includes(name))
  const outermost = within === "" ? kind : within
  return Object.fromEntries(kept.map(([name, inner]) => [name, known(inner, name, outermost)]))
}

async function post(to: Server, path: string, body: object): Promise<string> {
  const answer = await fetch(`${to.baseURL}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  expect([path, answer.status, answer.ok ? "" : text]).toEqual([path, 200, ""])
  return text
}

/** The objects in a stream's data lines. */
function eventsOf(stream: string): unknown[] {
  const data = stream.split("\n").flatMap((line) => (line.startsWith("data: {") ? [line.slice(6)] : []))
  return data.map((line): unknown => JSON.parse(line))
}

/** The answers to a request, streamed and not, as samples. */
async function answers(
  to: Server,
  path: string,
  [whole, event]: readonly [whole: string, event: string],
  title: string,
  body: object,
): Promise<TypedSample[]> {
  const object: unknown = JSON.parse(await post(to, path, body))
  const events = eventsOf(await post(to, path, { ...body, stream: true }))
  expect(events.length).toBeGreaterThan(2)
  return [
    { type: whole, title, value: known(object) },
    ...events.map((each) => ({ type: event, title: `${title}, streamed`, value: known(each) })),
  ]
}

const parameters = { type: "object", properties: { city: { type: "string" } } }
const mixed = thinking(
  "Let me see.",
  sentence + callText("get_weather", { city: "Zürich" }) + callText("get_weather", {}),
)

test("responses and their events have the package's types", async () => {
  const tools = [{ type: "function", name: "get_weather", parameters, strict: false }]
  const cases: { readonly [title: string]: object } = {
    "reasoning, text, calls": { tools, ...script(mixed) },
    "what a request may set": {
      ...{ instructions: "Brief.", metadata: { a: "b" }, user: "u", safety_identifier: "s", prompt_cache_key: "k" },
      ...{ temperature: 0.5, top_p: 0.5, max_output_tokens: 99, max_tool_calls: 3, parallel_tool_calls: false },
      ...{ reasoning: { effort: "low", summary: "auto" }, service_tier: "flex", truncation: "auto" },
      ...{ text: { verbosity: "low", format: { type: "json_object" } }, tools, tool_choice: "none", ...script("{}") },
    },
    "a function that is chosen by name": {
      tools,
      tool_choice: { type: "function", name: "get_weather" },
      ...script(mixed),
    },
    "a schema": {
      text: { format: { type: "json_schema", name: "weather", schema: parameters, strict: true } },
      ...script("{}"),
    },
    "cut by the limit": { max_output_tokens: 3, ...script("a b c d e") },
    "cut by an abort": script("a b c", { sim_finish: "abort" }),
  }
  const samples: TypedSample[] = []
  const types = ["Response", "ResponseStreamEvent"] as const
  for (const [title, body] of Object.entries(cases)) {
    samples.push(...(await answers(server, "/responses", types, title, { input: "Hi", ...body })))
  }
  const failing: readonly Script[] = [
    script("a b c", { sim_finish: "error" }),
    script("a b c", { sim_fail_after_tokens: 1, sim_error: "disconnect" }),
  ]
  for (const body of failing) {
    const events = eventsOf(await post(server, "/responses", { input: "Hi", stream: true, ...body }))
    samples.push(...events.map((each) => ({ type: types[1], title: "a failure", value: known(each) })))
  }
  const extended = {
    "custom tools": {
      tools: [{ type: "custom", name: "note" }],
      ...script(callText("note", { input: "Buy milk." })),
    },
    "a namespace of tools": {
      tools: [{ type: "namespace", name: "weather", description: "Weather", tools }],
      ...script(callText("weather__get_weather", { city: "Bern" })),
    },
    logprobs: { include: ["message.output_text.logprobs"], top_logprobs: 2, ...script(sentence) },
  }
  for (const [title, body] of Object.entries(extended)) {
    samples.push(...(await answers(withExtensions, "/responses", types, title, { input: "Hi", ...body })))
  }
  expect(await typeFaults("responses", imports, samples)).toEqual([])
})

test("chat completions and their chunks have the package's types", async () => {
  const tools = [{ type: "function", function: { name: "get_weather", parameters } }]
  const cases: { readonly [title: string]: object } = {
    "reasoning, text, calls": { tools, ...script(mixed) },
    logprobs: { logprobs: true, top_logprobs: 3, ...script(sentence) },
    choices: { n: 2, ...script("Two.") },
    "cut by the limit": { max_tokens: 2, ...script("a b c d") },
    ids: { return_token_ids: true, ...script(sentence) },
  }
  const samples: TypedSample[] = []
  const types = ["ChatCompletion", "ChatCompletionChunk"] as const
  const messages = [{ role: "user", content: "Hi" }]
  for (const [title, body] of Object.entries(cases)) {
    samples.push(...(await answers(server, "/chat/completions", types, title, { messages, ...body })))
  }
  const withUsage = { messages, stream: true, stream_options: { include_usage: true }, ...script("One.") }
  const events = eventsOf(await post(server, "/chat/completions", withUsage))
  samples.push(...events.map((each) => ({ type: types[1], title: "usage", value: known(each) })))
  expect(await typeFaults("chat", imports, samples)).toEqual([])
})

test("completions have the package's types; only their chunks' finish reason null is unknown to it", async () => {
  const cases: { readonly [title: string]: object } = {
    text: script(" upon."),
    "several prompts": { prompt: ["a", "b"], n: 2, ...script("x") },
    logprobs: { logprobs: 2, ...script(" upon.") },
  }
  const samples: TypedSample[] = []
  for (const [title, body] of Object.entries(cases)) {
    const types = ["Completion", "ChunkOfCompletion"] as const
    samples.push(...(await answers(server, "/completions", types, title, { prompt: "Once", ...body })))
  }
  const chunk = `type Chunk = Omit<Completion, "choices">
type ChoiceOfChunk = Omit<Completion["choices"][number], "finish_reason"> & { finish_reason: "stop" | "length" | null }
interface ChunkOfCompletion extends Chunk { choices: ChoiceOfChunk[] }`
  expect(await typeFaults("completions", `${imports}\n${chunk}`, samples)).toEqual([])
})

test("wrong, missing and surplus fields are noticed", async () => {
  const delta = {
    ...{ type: "response.output_text.delta", sequence_number: 4, item_id: "msg_1", output_index: 0, content_index: 0 },
    ...{ delta: "Hi", logprobs: [] },
  }
  const { item_id: _, ...missing } = delta
  const wrong: { readonly [title: string]: object } = {
    wrong: { ...delta, output_index: "0" },
    missing,
    surplus: { ...delta, colour: "red" },
    null: { ...delta, delta: null },
    unknown: { ...delta, type: "response.output_text.bit" },
  }
  const samples = Object.entries({ right: delta, ...wrong }).map(([title, value]) => {
    return { type: "ResponseStreamEvent", title, value }
  })
  const faults = await typeFaults("wrong", imports, samples)
  expect(faults.map((fault) => fault.split(":")[0])).toEqual(Object.keys(wrong))
})
