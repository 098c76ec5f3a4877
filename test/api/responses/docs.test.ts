/** docs/responses.md against the schema and the server: each row of its table is tried. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { responseSchema } from "../../../src/api/responses/schema"
import { type ResponsesExtension, responsesExtensions } from "../../../src/config"
import { startTestServer, type TestServer } from "../../support/test-server"

interface Row {
  readonly kind: string
  readonly name: string
  readonly treatment: string
}

const table: readonly Row[] = readFileSync(join(import.meta.dir, "../../../docs/responses.md"), "utf8")
  .split("\n")
  .map((line) => /^\| (field|include|item|part|tool|choice) \| `([^`]+)` \| (\w+) \|/.exec(line))
  .filter((match) => match !== null)
  .map(([, kind, name, treatment]) => ({ kind: kind!, name: name!, treatment: treatment! }))

const look = { type: "function", name: "look", parameters: { type: "object" } }
const run = { type: "custom", name: "run" }

/** A value for each field; for the refused ones, one that is refused. */
const fieldValues: { readonly [name: string]: unknown } = {
  model: "",
  input: "Hi",
  instructions: "Be brief.",
  max_output_tokens: 5,
  temperature: 0.5,
  top_p: 0.5,
  stream: false,
  tools: [look],
  tool_choice: "auto",
  parallel_tool_calls: false,
  text: { format: { type: "json_object" }, verbosity: "low" },
  reasoning: { effort: "low", summary: "auto" },
  include_reasoning: true,
  include: [],
  top_logprobs: 1,
  truncation: "auto",
  request_id: "r",
  session_id: "s",
  priority: 1,
  cache_salt: "salt",
  chat_template_kwargs: { a: 1 },
  structured_outputs: { regex: "a" },
  top_k: 1,
  min_p: 0.1,
  presence_penalty: 0.1,
  frequency_penalty: 0.1,
  repetition_penalty: 1.1,
  seed: 1,
  stop: ["x"],
  stop_token_ids: [1],
  include_stop_str_in_output: true,
  ignore_eos: false,
  min_tokens: 1,
  skip_special_tokens: false,
  spaces_between_special_tokens: true,
  logit_bias: { "1": 1 },
  allowed_token_ids: [1],
  bad_words: ["x"],
  watermarking: true,
  thinking_token_budget: 1,
  repetition_detection: { max_pattern_size: 2, min_count: 2 },
  logprob_token_ids: [1],
  vllm_xargs: { sim_text: "x" },
  kv_transfer_params: { a: 1 },
  ec_transfer_params: { a: 1 },
  stream_interval: 2,
  metadata: { a: "b" },
  user: "u",
  safety_identifier: "i",
  prompt_cache_key: "k",
  prompt_cache_options: { mode: "auto" },
  prompt_cache_retention: "24h",
  service_tier: "flex",
  max_tool_calls: 3,
  store: true,
  stream_options: { include_obfuscation: false },
  background: true,
  previous_response_id: "resp_x",
  conversation: "conv_x",
  prompt: { id: "p" },
  previous_input_messages: [],
  enable_response_messages: true,
  media_io_kwargs: {},
  mm_processor_kwargs: {},
}

const user = { role: "user", content: "Hi" }
const items: { readonly [type: string]: object } = {
  message: { role: "assistant", content: "x" },
  reasoning: { summary: [], content: [{ type: "reasoning_text", text: "x" }] },
  function_call: { call_id: "c", name: "look", arguments: "{}" },
  function_call_output: { call_id: "c", output: "x" },
  custom_tool_call: { call_id: "c", name: "run", input: "x" },
  custom_tool_call_output: { call_id: "c", output: "x" },
  item_reference: { id: "msg_x" },
  web_search_call: { id: "ws_x" },
}

const parts: { readonly [type: string]: object } = {
  input_text: { text: "x" },
  output_text: { text: "x" },
  text: { text: "x" },
  refusal: { refusal: "x" },
  input_image: { image_url: "data:image/png;base64,AA==" },
  input_audio: { input_audio: { data: "AA==", format: "wav" } },
  input_file: { filename: "a.txt", file_data: "data:,x" },
}

const tools: { readonly [type: string]: object } = {
  function: look,
  custom: run,
  namespace: { type: "namespace", name: "n", tools: [look] },
  web_search: { type: "web_search" },
}

/** Choices with the tools that they need; a custom choice needs a custom tool. */
const choices: { readonly [type: string]: object } = {
  function: { tools: [look], tool_choice: { type: "function", name: "look" } },
  custom: { tools: [run], tool_choice: { type: "custom", name: "run" } },
  allowed_tools: { tools: [look], tool_choice: { type: "allowed_tools", mode: "auto", tools: [look] } },
  web_search_preview: { tools: [look], tool_choice: { type: "web_search_preview" } },
}

/** A request that has what a row is about, and nothing else of note. */
function requestWith({ kind, name }: Row): object {
  switch (kind) {
    case "field": {
      if (!(name in fieldValues)) throw new Error(`no value for ${name}`)
      // Ids are only looked at where logprobs are asked for.
      const include = name === "logprob_token_ids" ? { include: ["message.output_text.logprobs"] } : {}
      return { input: "Hi", ...include, [name]: fieldValues[name] }
    }
    case "include":
      return { input: "Hi", include: [name] }
    case "item":
      return { input: [user, { type: name, ...items[name] }, user] }
    case "part": {
      const role = name === "refusal" ? "assistant" : "user"
      return { input: [{ role, content: [{ type: name, ...parts[name] }] }, user] }
    }
    case "tool":
      return { input: "Hi", tools: [tools[name]] }
    default:
      return { input: "Hi", ...choices[name] }
  }
}

const params: { readonly [kind: string]: string } = { item: "input", part: "input", tool: "tools" }

/** The param of a refusal. A custom choice is refused for its tool, which stands first. */
function paramOf({ kind, name }: Row): string {
  if (name === "previous_response_id") return "response_id"
  if (name === "item_reference") return "previous_response_id"
  if (name === "logprob_token_ids" || kind === "include") return "include"
  if (kind === "choice") return name === "custom" ? "tools" : "tool_choice"
  return params[kind] ?? name
}

describe("docs/responses.md", () => {
  const servers = new Map<string, TestServer>()
  beforeAll(async () => {
    servers.set("none", await startTestServer())
    for (const word of responsesExtensions) {
      servers.set(word, await startTestServer({ config: { responsesExtensions: [word] } }))
    }
  })
  afterAll(async () => {
    for (const server of servers.values()) await server.stop()
  })

  test("lists every field of the schema once, and no others but those that it calls ignored", () => {
    const listed = table.filter(({ kind }) => kind === "field").map(({ name }) => name)
    const known = Object.keys(responseSchema.properties)
    expect([...new Set(listed)].sort()).toEqual([...listed].sort())
    expect(known.filter((name) => !listed.includes(name))).toEqual([])
    const unknown = table.filter(({ kind, name }) => kind === "field" && !known.includes(name))
    expect(unknown.map(({ treatment }) => treatment)).toEqual(unknown.map(() => "ignored"))
  })

  test("lists every item, part, tool and choice that is tried here", () => {
    for (const [kind, known] of Object.entries({ item: items, part: parts, tool: tools, choice: choices })) {
      const listed = table.filter((row) => row.kind === kind).map(({ name }) => name)
      expect(listed.sort()).toEqual(Object.keys(known).sort())
    }
  })

  test.each(table.map((row) => [row.kind, row.name, row.treatment, row] as const))(
    "says of the %s %s that it is %s",
    async (_kind, name, treatment, row) => {
      const ask = (server: string) => servers.get(server)!.post("/v1/responses", requestWith(row))
      const plain = await ask("none")
      if (["supported", "echoed", "ignored"].includes(treatment)) {
        expect([plain.status, plain.json.error]).toEqual([200, null])
        if (treatment === "echoed") expect(plain.json[name]).toEqual(fieldValues[name])
        if (treatment === "ignored") expect(plain.json[name]).toBeUndefined()
        return
      }
      expect([plain.status, plain.json.error?.param]).toEqual([
        name === "previous_response_id" ? 404 : 400,
        paramOf(row),
      ])
      if (treatment === "refused") {
        for (const word of responsesExtensions) expect((await ask(word)).status).toBe(plain.status)
        return
      }
      expect(responsesExtensions).toContain(treatment as ResponsesExtension) // fails for any other word
      for (const word of responsesExtensions) {
        expect([word, (await ask(word)).status]).toEqual([word, word === treatment ? 200 : 400])
      }
    },
  )
})
