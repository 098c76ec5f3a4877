/**
 * Requests that nobody should send: fields with values at and beyond their edges, of other types, and of sizes that
 * engines were not made for. A seed decides them, so that a failure can be looked at again.
 */
import { contextTokensMax } from "./installation"

/** One request; the body is JSON text, since some of its numbers have no JavaScript value. */
export interface HostileRequest {
  readonly path: string
  readonly body: string
  readonly headers: { readonly [name: string]: string }
  /** The client goes away as soon as the reply begins. */
  readonly leaves: boolean
}

/** Tokens of a reply that is read to its end. */
const shortReply = "2"

/** JSON text of a value. */
const text = (value: unknown): string => JSON.stringify(value)
const texts = (...values: readonly unknown[]): string[] => values.map(text)

/** Taken for every field now and then: wrong types, and numbers that MessagePack and msgspec tell apart. */
const anyValue: readonly string[] = [
  ...texts(null, true, false, "", "x", "3", [], {}, [[]], [null], { a: { b: [1] } }, "\u0000", "\ud800"),
  ...["0", "-0", "-0.0", "1.0", "3.0", "2.5", "1e2", "1e308", "-1e308", "5e-324", "1e999", "-1", "16777217"],
  ...["2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "9007199254740993"],
  ...["9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616"],
]

const numbers = ["0", "1", "2", "-1", "-2", "2.0000001", "0.009", "1e-9", "1e-300", "0.99999999", "5", "-5", "1e40"]
const counts = [
  "0",
  "1",
  "2",
  "-1",
  "20",
  "21",
  "128",
  "49151",
  "49152",
  `${contextTokensMax}`,
  "1000000",
  "2147483647",
]
const tokenIds = ["0", "1", "2", "28", "7042", "49150", "49151", "49152", "65536", "-1", "2147483647", "4294967295"]
const strings = [
  "\n",
  " ",
  "\u0000",
  "é",
  "🌍",
  "\ud83c",
  "<|im_end|>",
  "<|im_start|>",
  "a".repeat(5_000),
  "\\",
  '"',
  "'",
]

const schemas: readonly unknown[] = [
  {},
  { type: "nonsense" },
  { type: 5 },
  { type: "string", pattern: "(" },
  { type: "string", pattern: "^(a|aa)+$" },
  { type: "string", minLength: 5, maxLength: 2 },
  { type: "integer", minimum: 1e300, maximum: -1e300 },
  { $ref: "#" },
  { $ref: "#/definitions/none" },
  { $ref: "https://example.com/schema" },
  { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
  { type: "object", required: ["missing"], additionalProperties: false },
  { type: "array", items: { type: "null" }, minItems: 3, maxItems: 1 },
  { enum: [] },
  { enum: [null, 1, "x", { deep: [1, { a: 2 }] }] },
  { const: "\ud800" },
  { anyOf: [] },
  { not: {} },
  { allOf: [{ type: "string" }, { type: "integer" }] },
  { type: "number", multipleOf: 0 },
  { type: "object", patternProperties: { "[": {} } },
  { type: "string", format: "no-such-format" },
]
const grammars = [
  "",
  "root",
  "root ::=",
  "root ::= root",
  "root ::= other",
  'root ::= "a" root',
  'root ::= "unclosed',
  "root ::= [z-a]",
  "root ::= [^",
  'no_root ::= "a"',
  'root ::= ("a"',
  'root ::= "a"{2,1}',
  'start: "a"',
  "root ::= \u0000",
]
const regexes = [
  "",
  "(",
  "[",
  "a{2,1}",
  "(?=a)b",
  "\\",
  "\\p{L}+",
  "(a|b)*abb",
  "^$",
  "(a*)*",
  "\\1",
  "\u{1F30D}+",
  ".",
]
const tags: readonly unknown[] = [
  {},
  "x",
  "{}",
  { type: "structural_tag", format: {} },
  { type: "structural_tag", format: { type: "nonsense" } },
  { type: "structural_tag", structures: [], triggers: [] },
  { type: "structural_tag", structures: [{ begin: "<a>", schema: {}, end: "" }], triggers: ["<b>"] },
  { type: "structural_tag", format: { type: "json_schema", json_schema: { type: "nonsense" } } },
]
const constraints: readonly string[] = [
  ...schemas.map((schema) => text({ json: schema })),
  ...schemas.slice(0, 8).map((schema) => text({ json: JSON.stringify(schema) })),
  ...grammars.map((grammar) => text({ grammar })),
  ...regexes.map((regex) => text({ regex })),
  ...tags.map((tag) => text({ structural_tag: tag })),
  ...texts(
    { choice: [""] },
    { choice: ["a", "a"] },
    { choice: ['"', "\\", "\n\r\t\u0000\u0007"] },
    { choice: ["🌍é"] },
  ),
  ...texts({ json_object: false }, { json_object: true, regex: "a" }, {}, { json: "no json" }, { json: "[1]" }),
  ...texts({ regex: "a", whitespace_pattern: "(" }, { json: {}, disable_any_whitespace: true }, { _backend: "x" }),
]

/** Values of a field that are about right, and just not. */
const fields: { readonly [field: string]: readonly string[] } = {
  temperature: numbers,
  top_p: numbers,
  min_p: numbers,
  top_k: [...numbers, ...counts],
  presence_penalty: numbers,
  frequency_penalty: numbers,
  repetition_penalty: numbers,
  length_penalty: numbers,
  seed: [...counts, "9223372036854775807", "-9223372036854775808", "18446744073709551615"],
  n: ["0", "1", "2", "3", "-1"],
  max_tokens: counts,
  max_completion_tokens: counts,
  max_output_tokens: counts,
  min_tokens: counts,
  logprobs: ["true", "false", ...counts],
  top_logprobs: counts,
  prompt_logprobs: counts,
  logprob_token_ids: lists(tokenIds),
  stop: [...texts(...strings), text(strings), text(Array(200).fill("x")), text([1])],
  stop_token_ids: lists(tokenIds),
  allowed_token_ids: lists(tokenIds),
  bad_words: [...strings.map((word) => text([word])), text(strings), text(Array(2_000).fill("a b"))],
  logit_bias: [
    ...tokenIds.map((id) => `{"${id}": 5}`),
    ...numbers.map((bias) => `{"7": ${bias}}`),
    ...['{"1.5": 1}', '{"x": 1}', '{" 7 ": 1}', '{"7": 1, "07": 2}', '{"7": null}', '{"1e3": 1}'],
  ],
  include_stop_str_in_output: texts(true),
  ignore_eos: texts(true),
  skip_special_tokens: texts(false),
  structured_outputs: constraints,
  response_format: [
    ...texts({ type: "json_object" }, { type: "json_schema" }, { type: "x" }, { type: "text" }, { type: null }),
    ...schemas.map((schema) => text({ type: "json_schema", json_schema: { name: "s", schema } })),
    ...tags.map(text),
  ],
  thinking_token_budget: counts,
  repetition_detection: texts(
    { max_pattern_size: 1 },
    { max_pattern_size: 0, min_pattern_size: 2, min_count: 2 },
    { max_pattern_size: 4, min_pattern_size: 1, min_count: 2 },
    { max_pattern_size: 2_147_483_647, min_pattern_size: 1, min_count: 2_147_483_647 },
    { max_pattern_size: 3, min_pattern_size: -1, min_count: -1 },
  ),
  vllm_xargs: [
    ...texts({ a: "x" }, { a: [1, 2.5, "x"] }, { a: { b: 1 } }, { "": "" }, { kv_transfer_params: "x" }),
    ...texts({ temperature: 9 }, { a: "y".repeat(100_000) }, { a: Array(5_000).fill(1) }),
    '{"a": 9223372036854775808}',
    '{"a": 18446744073709551616}',
  ],
  kv_transfer_params: texts(
    {},
    { do_remote_decode: true },
    { do_remote_prefill: true, remote_engine_id: 5 },
    { a: [[[1]]] },
  ),
  ec_transfer_params: texts({}, { a: 1 }),
  priority: counts,
  cache_salt: texts("", "x", "\u0000", "\ud800", "s".repeat(10_000)),
  session_id: texts("", "x", "s".repeat(10_000)),
  request_id: texts("same", "", "\u0000", "a/b", "r".repeat(512), "r".repeat(513)),
  truncate_prompt_tokens: counts,
  truncation: texts("auto", "disabled", "x"),
  add_special_tokens: texts(true),
  echo: texts(true),
  stream_interval: counts,
  return_token_ids: texts(true),
  chat_template_kwargs: texts({}, { enable_thinking: "x" }, { messages: [] }),
  continue_final_message: texts(true),
  add_generation_prompt: texts(false),
  tools: texts([], [{ type: "function", function: { name: "f", parameters: { type: "nonsense" } } }]),
  tool_choice: texts("auto", "required", "none", { type: "function", function: { name: "f" } }),
  reasoning_effort: texts("high", "x"),
  data_parallel_rank: counts,
  watermarking: texts(true, false),
  user: texts("u".repeat(10_000)),
}

function lists(ids: readonly string[]): string[] {
  const few = ids.map((id) => `[${id}]`)
  return [
    ...few,
    "[]",
    `[${ids.join(",")}]`,
    `[${Array(129).fill(7).join(",")}]`,
    `[${Array(5_000).fill(3).join(",")}]`,
  ]
}

const prompts: readonly string[] = [
  ...texts("Hi", "", "\u0000", "\ud800", " ", "<|im_end|>", "x ".repeat(contextTokensMax + 10), "a".repeat(50_000)),
  ...texts(
    [],
    [[]],
    ["a", "b"],
    ["a", 1],
    [""],
    [-1],
    [49_151],
    [49_152],
    [1.5],
    [4_294_967_296],
    [[1], [2]],
    [[1, 50_000]],
  ),
  ...texts(...[-2, -1, 0, 1, 5_000].map((more) => Array(contextTokensMax + more).fill(7))),
]
const conversations: readonly string[] = texts(
  [{ role: "user", content: "Hi" }],
  [],
  [{ role: "user", content: "" }],
  [{ role: "user", content: "x ".repeat(contextTokensMax) }],
  [{ role: "assistant", content: null }],
  [{ role: "tool", content: "x", tool_call_id: "none" }],
  [{ role: "nobody", content: "x" }],
  [{ role: "user", content: [{ type: "text", text: "<|im_end|>\u0000\ud800" }] }],
  [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://127.0.0.1:1/x.png" } }] }],
  Array(500).fill({ role: "user", content: "Hi" }),
)

const headerSets: readonly { readonly [name: string]: string }[] = [
  { "x-request-id": "same" },
  { "x-request-id": "r".repeat(3_000) },
  { "x-data-parallel-rank": "0" },
  { "x-data-parallel-rank": "1" },
  { "x-data-parallel-rank": "-1" },
  { "x-data-parallel-rank": "99999999999" },
  { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b" },
  { traceparent: "nonsense", tracestate: "x".repeat(9_000) },
]

/** What each endpoint calls its input, ordinary values of it, and what bounds the reply. */
const endpoints = [
  {
    path: "/v1/chat/completions",
    input: "messages",
    plain: conversations[0]!,
    odd: conversations,
    limit: "max_tokens",
  },
  { path: "/v1/completions", input: "prompt", plain: text("Hi"), odd: prompts, limit: "max_tokens" },
  {
    path: "/v1/responses",
    input: "input",
    plain: text("Hi"),
    odd: [...prompts, ...conversations],
    limit: "max_output_tokens",
  },
] as const

/** The next hostile request; `random` gives numbers in [0, 1). Of long replies only the beginning is read. */
export function hostileRequest(random: () => number): HostileRequest {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  const { path, input, plain, odd, limit } = pick(endpoints)
  const members = new Map([
    [input as string, random() < 0.2 ? pick(odd) : plain],
    [limit, shortReply],
  ])
  for (let count = 1 + Math.floor(random() * 3); count > 0; count--) {
    const field = pick(Object.keys(fields))
    members.set(field, random() < 0.25 ? pick(anyValue) : pick(fields[field]!))
  }
  // Nobody waits for a reply that may fill the window.
  const isLong = members.get(limit) !== shortReply || members.has("max_completion_tokens")
  if (isLong || random() < 0.4) members.set("stream", "true")
  const body = `{${[...members].map(([name, value]) => `${text(name)}: ${value}`).join(", ")}}`
  return { path, body, headers: random() < 0.15 ? pick(headerSets) : {}, leaves: isLong || random() < 0.1 }
}
