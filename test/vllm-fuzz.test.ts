/**
 * Hostile requests over HTTP: whatever clients send, no engine may get a message that it would die of or go deaf from
 * (ENGINE_PROTOCOL 4, 11, 15). Our own engine judges every message as it comes; the stand-in on libzmq records them.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { builtInProfile } from "../src/model/built-in"
import { openO200k } from "../src/tokenizer/open"
import { buildMockEngine, judge, MockEngine } from "./support/mock-engine"
import { seededRandom } from "./support/random"
import { until } from "./support/test-server"
import { startVllmServer, type VllmTestServer } from "./support/vllm-server"

setDefaultTimeout(60_000)

const seed = Number(process.env.FUZZ_SEED ?? 20_261)
const requestsEach = Number(process.env.FUZZ_REQUESTS ?? 300)
const atOnce = 16
/** Of the engine: small, so that no reply is long. */
const windowTokens = 512

/** JSON texts, since not all of these are what `JSON.stringify` could write. */
const numbers = [
  ..."0 -0 1 -1 2 3 20 0.5 1.0 3.0 2.0000001 -2.5 1e3 1E3 0.1e1 1e400 -1e400 5e-324 1e-400 1e308".split(" "),
  ..."127 128 255 256 32767 65535 65536 151936 200000 200063 2147483647 2147483648 -2147483648 -2147483649".split(" "),
  ..."4294967295 4294967296 9007199254740991 9007199254740992 9007199254740993 -9007199254740993".split(" "),
  ..."9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809".split(" "),
  ..."18446744073709551615 18446744073709551616 100000000000000000000000000000 1e18 1e19".split(" "),
]
const strings = [
  ...['""', '" "', '"a"', '"\\u0000"', '"\\ud800"', '"\\udfffx"', '"a\\ud83d\\ude00"', '"\\n\\r\\t"', '"1"', '"NaN"'],
  ...['"Infinity"', '"null"', '"é漢字"', `"${"x".repeat(511)}"`, `"${"y".repeat(5_000)}"`, '"root ::= \\"a\\""'],
]
const others = ["null", "true", "false", "[]", "{}", "[[]]", "[null]", '{"a":{}}', '{"":""}']
const wild = [...numbers, ...strings, ...others]

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
const ids = [
  ...["[]", "[0]", "[1,2,3]", "[-1]", "[200063]", "[2147483647]", "[2147483648]", "[1.0]", "[1.5]", '["1"]', "[1e2]"],
  ...[`[${new Array(129).fill(5)}]`, `[${new Array(2_000).fill(7)}]`, "[9007199254740993]", "[null]", "[5,5,5]"],
]
const constraints = [
  ...[
    '{"json":{"type":"object"}}',
    '{"json":"{}"}',
    '{"json":"{"}',
    '{"json":"[1]"}',
    '{"json":1e400}',
    '{"json":true}',
  ],
  ...['{"json":{"const":18446744073709551616}}', '{"json":{"a":"\\ud800"}}', '{"json":{"\\ud800":1}}', '{"json":""}'],
  ...[`{"json":${deep(40)}}`, `{"json":${deep(70)}}`, `{"json":${deep(250)}}`, '{"regex":"[a-z]+"}', '{"regex":"["}'],
  ...['{"regex":""}', '{"regex":"\\u0000"}', '{"regex":"\\ud800"}', '{"choice":["a","b"]}', '{"choice":[]}', "{}"],
  ...[
    '{"choice":[""]}',
    '{"choice":["\\"","\\\\","\\n","\\u0000","\\ud800","漢"]}',
    '{"choice":[1]}',
    '{"choice":null}',
  ],
  ...['{"grammar":"root ::= \\"x\\""}', '{"grammar":""}', '{"grammar":" \\n"}', '{"json_object":true}'],
  ...['{"json_object":false}', '{"json_object":1}', '{"structural_tag":{"type":"structural_tag","structures":[]}}'],
  ...[
    '{"structural_tag":"{"}',
    '{"structural_tag":1}',
    '{"json":{},"regex":"a"}',
    '{"regex":"a","whitespace_pattern":"\\\\s"}',
  ],
  ...['{"regex":"a","disable_any_whitespace":true}', '{"json":{},"_backend":7}', '{"json":{},"unknown":[1]}'],
]
const formats = [
  ...['{"type":"json_object"}', '{"type":"text"}', '{"type":"json_schema"}', '{"type":"json_schema","schema":{}}'],
  ...['{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"integer","maximum":1e400}}}', '{"type":"x"}'],
  ...[
    `{"type":"json_schema","json_schema":{"schema":${deep(80)}}}`,
    '{"type":"structural_tag","format":{"type":"any_text"}}',
  ],
  ...['{"type":"structural_tag","structures":[{"begin":"\\ud800"}],"triggers":[]}', '{"type":1}'],
]
const biases = [
  ...[
    '{"5":1}',
    '{"5":1e400}',
    '{"5":-1e400}',
    '{"-1":1}',
    '{"200063":1}',
    '{"1.0":1}',
    '{"1e2":1}',
    '{" 7 ":0}',
    "{}",
  ],
  ...['{"x":1}', '{"":1}', '{"99999999999999999999":1}', '{"5":"1"}', '{"5":null}', '{"+5":9007199254740993}'],
  `{${Array.from({ length: 3_000 }, (_, i) => `"${i}":${i % 200}`)}}`,
]
const argsOf = [
  ...['{"a":1}', '{"a":"\\ud800"}', '{"a":[1,2.5,"x"]}', '{"a":9223372036854775807}', '{"a":9223372036854775808}'],
  ...['{"a":18446744073709551616}', '{"a":1e400}', '{"a":[1e400]}', '{"a":null}', '{"a":true}', '{"a":{}}', '{"":1}'],
  ...[`{"a":${"[".repeat(300)}${"]".repeat(300)}}`, `{"a":${"[".repeat(50)}${"]".repeat(50)}}`, '{"\\ud800":5}', "{}"],
  `{"a":[${new Array(5_000).fill("1.5")}]}`,
]
const transfers = [
  ...['{"do_remote_decode":true}', `{"a":${deep(20)}}`, `{"a":${deep(40)}}`, `{"a":${deep(240)}}`, "{}", '{"a":1e400}'],
  ...['{"a":18446744073709551615}', '{"a":18446744073709551616}', '{"a":-9223372036854775809}', '{"a":"\\ud800"}'],
]
const repetitions = [
  ...['{"max_pattern_size":3,"min_count":2}', '{"max_pattern_size":3}', '{"max_pattern_size":-1}', "{}"],
  ...[
    '{"max_pattern_size":2,"min_pattern_size":3,"min_count":2}',
    '{"max_pattern_size":1e400}',
    '{"max_pattern_size":0}',
  ],
]
const texts = ["[]", '["a"]', '[""]', '["\\ud800"]', '[" "]', '["\\u0000"]', `[${new Array(129).fill('"b"')}]`, "[1]"]

/** Fields of all APIs, with values made for them; every field also gets values that were made for others. */
const fields: { readonly [name: string]: readonly string[] } = {
  temperature: [],
  top_p: [],
  top_k: [],
  min_p: [],
  presence_penalty: [],
  frequency_penalty: [],
  repetition_penalty: [],
  seed: [],
  min_tokens: [],
  max_tokens: [],
  max_completion_tokens: [],
  max_output_tokens: [],
  stop: [...texts, `["${"z".repeat(16_385)}"]`],
  stop_token_ids: ids,
  ignore_eos: [],
  include_stop_str_in_output: [],
  skip_special_tokens: [],
  logit_bias: biases,
  allowed_token_ids: ids,
  bad_words: [...texts, `["${"word ".repeat(200)}"]`],
  watermarking: [],
  structured_outputs: constraints,
  response_format: formats,
  text: formats.map((format) => `{"format":${format}}`),
  thinking_token_budget: [],
  repetition_detection: repetitions,
  logprob_token_ids: ids,
  logprobs: ["true", "20", "21", "-1"],
  top_logprobs: ["20", "21", "-1"],
  prompt_logprobs: ["20", "21", "-1"],
  vllm_xargs: argsOf,
  kv_transfer_params: transfers,
  ec_transfer_params: transfers,
  priority: [],
  request_id: [],
  session_id: [],
  cache_salt: [],
  stream_interval: [],
  n: ["2", "3", "16385"],
  truncate_prompt_tokens: ["-1", "1", "511", "512", "513"],
  echo: [],
  chat_template_kwargs: transfers,
  tools: [
    '[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]',
    '[{"type":"function","name":"f","parameters":{"a":18446744073709551616}}]',
  ],
  tool_choice: ['"required"', '"auto"', '"none"', '{"type":"function","function":{"name":"f"}}'],
  prompt: [
    ...[
      '""',
      "[]",
      "[[]]",
      '[""]',
      "[1,2]",
      "[[1],[2]]",
      '["a","b"]',
      "[200063]",
      "[200100]",
      "[-1]",
      "[1.5]",
      '"\\ud800"',
    ],
    ...[510, 511, 512, 513, 2_000].map((tokens) => `[${new Array(tokens).fill(9)}]`),
    `"${"word ".repeat(505)}"`,
    `"${"word ".repeat(600)}"`,
    '[1,"a"]',
  ],
  input: ['""', '"\\ud800"', "[]", `"${"word ".repeat(600)}"`, '[{"role":"user","content":"x"}]', "[1]"],
  messages: [
    '[{"role":"user","content":""}]',
    '[{"role":"user","content":"\\ud800\\u0000<|im_end|>"}]',
    `[{"role":"user","content":"${"word ".repeat(600)}"}]`,
    "[]",
    '[{"role":"x","content":1}]',
  ],
}
/** That many sequences are what was asked for, and cost what they cost. */
const tooExpensive = new Set(["n:16384", "n:127", "n:128", "n:255", "n:256", "n:1e3", "n:1E3"])

const surfaces = [
  { path: "/v1/chat/completions", body: { messages: '[{"role":"user","content":"Hi"}]', max_tokens: "4" } },
  { path: "/v1/completions", body: { prompt: '"Hi"', max_tokens: "4" } },
  { path: "/v1/responses", body: { input: '"Hi"', max_output_tokens: "4" } },
] as const
const headers: readonly { readonly [name: string]: string }[] = [
  { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b" },
  { traceparent: "x".repeat(8_200) },
  { traceparent: "é" },
  { "x-data-parallel-rank": "0" },
  { "x-data-parallel-rank": "abc" },
  { "x-data-parallel-rank": "-1" },
  { "x-data-parallel-rank": "1" },
  { "x-data-parallel-rank": "99999999999999999999" },
  { "x-request-id": "y".repeat(5_000) },
]

interface HostileRequest {
  readonly path: string
  readonly text: string
  readonly headers: { readonly [name: string]: string }
  /** Fields that are not as they should be. */
  readonly changed: readonly string[]
}

/** Fields that only one of the APIs has; elsewhere they would be let through unread. */
const onlyAt: { readonly [name: string]: string } = {
  prompt: "/v1/completions",
  input: "/v1/responses",
  text: "/v1/responses",
  messages: "/v1/chat/completions",
  max_completion_tokens: "/v1/chat/completions",
  max_output_tokens: "/v1/responses",
}

function requestOf(surface: (typeof surfaces)[number], name: string, value: string): HostileRequest {
  const body = new Map<string, string>([...Object.entries(surface.body), [name, value]])
  return { path: surface.path, text: textOf(body), headers: {}, changed: [name] }
}

function textOf(body: ReadonlyMap<string, string>): string {
  return `{${[...body].map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`
}

/** Every field with each value made for it, and with each number or, where none was made for it, with everything. */
function everyValue(): HostileRequest[] {
  let turn = 0
  const requests: HostileRequest[] = headers.map((sent) => ({
    path: surfaces[0].path,
    text: textOf(new Map(Object.entries(surfaces[0].body))),
    headers: sent,
    changed: [],
  }))
  for (const [name, own] of Object.entries(fields)) {
    const able = surfaces.filter(({ path }) => (onlyAt[name] ?? path) === path)
    for (const value of own.length === 0 ? wild : own) {
      if (tooExpensive.has(`${name}:${value}`)) continue
      turn += 1
      requests.push(requestOf(able[turn % able.length]!, name, value))
    }
  }
  return requests
}

function hostileRequests(random: () => number, count: number): HostileRequest[] {
  const pick = <Value>(from: readonly Value[]): Value => from[Math.floor(random() * from.length)]!
  const names = Object.keys(fields)
  return Array.from({ length: count }, () => {
    const surface = pick(surfaces)
    const body = new Map<string, string>(Object.entries(surface.body))
    const changed: string[] = []
    const changes = 1 + Math.floor(random() * 3)
    while (changed.length < changes) {
      const name = pick(names)
      const own = fields[name]!
      const value = own.length > 0 && random() < 0.8 ? pick(own) : pick(random() < 0.6 ? numbers : wild)
      if (tooExpensive.has(`${name}:${value}`)) continue
      body.set(name, value)
      changed.push(name)
    }
    if (random() < 0.2) body.set("stream", "true")
    if (random() < 0.3) body.set("ignore_eos", "true")
    return { path: surface.path, text: textOf(body), headers: random() < 0.15 ? pick(headers) : {}, changed }
  })
}

let vocabSize = 0
let server: VllmTestServer
beforeAll(async () => {
  const { tokenizer } = await builtInProfile()
  if (tokenizer.kind !== "o200k") throw new Error("the built-in profile has another tokenizer")
  vocabSize = (await openO200k({ special: tokenizer.specialTokens, added: tokenizer.addedTokens })).vocabSize
})

/** Sends all of them; every answer is a reply, or a refusal that names a field. */
async function attack(requests: readonly HostileRequest[]): Promise<{ readonly ok: number; readonly refused: number }> {
  let ok = 0
  let refused = 0
  const odd: string[] = []
  const queue = [...requests]
  const worker = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const reply = await server.post(next.path, next.text, next.headers)
      if (reply.status === 200) {
        ok += 1
        continue
      }
      refused += 1
      const error = reply.json?.error
      const names = [...next.changed, ...Object.keys(next.headers)]
      if (reply.status === 400 && namesField(error, names)) continue
      odd.push(`${reply.status} ${JSON.stringify(error)} ${next.path} ${next.text.slice(0, 500)}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  expect(odd).toEqual([])
  return { ok, refused }
}

/** Whether an error says what it is about: by `param`, in its words, or where in a body that is no JSON we can read. */
function namesField(
  error: { readonly param: string | null; readonly message: string } | undefined,
  names: string[],
): boolean {
  if (error === undefined) return false
  if (error.param !== null || error.message.startsWith("the body ")) return true
  return names.some((name) => error.message.includes(name))
}

/** All values one by one, then a seeded mixture; the seed is printed with a failure. */
function testAttack(offset: number, run: (requests: readonly HostileRequest[]) => Promise<void>): void {
  test(`survives every value and ${requestsEach} mixtures (FUZZ_SEED=${seed})`, async () => {
    await run([...everyValue(), ...hostileRequests(seededRandom(seed + offset), requestsEach)])
  })
}

describe("an engine of our own", () => {
  beforeAll(async () => {
    server = await startVllmServer()
  })
  afterAll(() => server.stop())

  testAttack(0, async (requests) => {
    const engine = await server.attach({ vocabSize, maxModelLen: windowTokens, stepMs: 0 })
    const { ok, refused } = await attack(requests)
    await until(() => engine.live.length === 0)
    expect(engine.deaths).toEqual([])
    expect([ok > requestsEach / 10, refused > requestsEach / 10]).toEqual([true, true])
    const works = await server.post("/v1/completions", { prompt: "Hi", max_tokens: 3, ignore_eos: true })
    expect([works.status, works.json.usage.completion_tokens]).toEqual([200, 3])
    expect(server.log.filter((line) => line.includes("internal error") || line.includes("is lost"))).toEqual([])
  })
})

const mock = buildMockEngine()
describe.skipIf(!mock.ok)("the stand-in engine", () => {
  beforeAll(async () => {
    server = await startVllmServer()
  })
  afterAll(() => server.stop())

  testAttack(1, async (requests) => {
    const flags = ["--step-ms", "0", "--vocab", String(vocabSize), "--max-model-len", String(windowTokens)]
    await using engine = MockEngine.start(mock.ok ? mock.value : "", server.address, flags, true)
    await server.said("engine 0 is ready")
    const { ok, refused } = await attack(requests)
    expect([ok > requestsEach / 10, refused > requestsEach / 10]).toEqual([true, true])
    await until(async () => (await server.counts()).running === 0)
    const judgement = judge(engine.messages(), { maxModelLen: windowTokens, vocabSize })
    expect(judgement.deaths).toEqual([])
    expect(judgement.adds).toBeGreaterThan(requestsEach / 10)
    expect(server.log.filter((line) => line.includes("internal error") || line.includes("is lost"))).toEqual([])
  })
})
