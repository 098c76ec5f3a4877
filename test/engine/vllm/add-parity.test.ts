/**
 * The same HTTP requests to our server and to vLLM's two front ends: what reaches the engine means the same. Ours goes
 * from the body through lowering and prompt to the bytes of ADD; theirs was recorded. A strict reader reads both.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { checkAdd } from "../../../src/engine/vllm/add-check"
import { AddEncoder } from "../../../src/engine/vllm/add-encoder"
import type { AddRequest, EngineLimits } from "../../../src/engine/vllm/add-request"
import type { GenerateRequest } from "../../../src/ir/generate-request"
import { qwen3Profile } from "../../support/qwen3-model"
import { recordEngine } from "../../support/recorded-engine"
import { capturesExist, frontEndRequests } from "../../support/recorded-frames"
import { repository } from "../../support/serve"
import { type Decoded, type DecodedRequest, StrictEngine } from "../../support/strict-decoder"
import { startTestServer, type TestServer } from "../../support/test-server"
import { answerId, type Transcript, transcriptsExist } from "../../support/transcripts"

const frontEnds = [
  { name: "python_032", transcripts: "python_032_mock_qwen3", least: 70 },
  { name: "rust_033", transcripts: "rust_033_mock_qwen3", least: 60 },
] as const

const limits: EngineLimits = {
  contextTokensMax: 4_096,
  vocabSize: 151_936,
  supportsLora: false,
  structuredOutputsBackend: "xgrammar",
}

/** Fields that differ by what they are, not by what they mean. */
const ownFields = [
  "request_id", // ours carries a place
  "external_req_id", // random
  "arrival_time",
  // For the engine's own reasoning parser; where reasoning ends is found here, with the output.
  "reasoning_parser_kwargs",
  "reasoning_ended",
]

/** Sampling parameters that no engine looks at: how text is made, and when it is shown. The Rust one leaves them out too. */
const frontEndParams = [
  ...["stop", "detokenize", "skip_special_tokens", "spaces_between_special_tokens", "include_stop_str_in_output"],
  ...["output_kind", "stream_interval", "skip_clone", "output_text_buffer_length", "bad_words"],
  // Without a watermark in the engine it says nothing: Python turns it off, Rust on, we leave it at the default.
  "watermarking",
]

type Params = { readonly [name: string]: Decoded }

/** What is left is what the engine acts on. */
function essence(request: DecodedRequest): { readonly [field: string]: unknown } {
  const fields = Object.entries(request).filter(([name]) => !ownFields.includes(name))
  const sampling = request.sampling_params as Params // a map in every recording
  const params = Object.entries(sampling).filter(([name]) => !frontEndParams.includes(name))
  const outputs = sampling.structured_outputs as Params | null
  return {
    ...Object.fromEntries(fields),
    sampling_params: {
      ...Object.fromEntries(
        params.map(([name, value]) => [name, typeof value === "number" ? Math.fround(value) : value]),
      ),
      structured_outputs: outputs === null ? null : constraintOf(outputs),
    },
  }
}

/** One constraint, however it is written: schemas as text or as a map, choices as such (Rust) or as a grammar. */
function constraintOf(outputs: Params): unknown {
  const { json, choice, grammar, structural_tag, _backend_was_auto, ...rest } = outputs
  const choices = Array.isArray(choice) ? `root ::= ${choice.map((each) => JSON.stringify(each)).join(" | ")}` : null
  return {
    ...rest,
    json: typeof json === "string" ? JSON.parse(json) : json,
    grammar: grammar ?? choices,
    structural_tag: typeof structural_tag === "string" ? JSON.parse(structural_tag, withoutDefault) : structural_tag,
  }
}

/** Keys of structural tags that Python writes with their default, and that mean the same when they are missing. */
const tagDefaults: { readonly [key: string]: string } = {
  style: '"json"',
  any_order: "false",
  max_whitespace_cnt: "null",
  excludes: "[]",
}

function withoutDefault(key: string, value: unknown): unknown {
  return tagDefaults[key] === JSON.stringify(value) ? undefined : value
}

/** What is different about a request on purpose; all else about it must be the same. */
interface Difference {
  readonly why: string
  /** `request`: there is none of ours. `prompt` and `constraint`: only these differ. */
  readonly what: "request" | "prompt" | "constraint"
}

const refused = (why: string): Difference => ({ what: "request", why: `we refuse the request: ${why}` })
const reasoned: Difference = {
  what: "constraint",
  why: "the prompt has its reasoning behind it, so the grammar lets none in again",
}

/** Requests whose meaning differs on purpose, by the recording's name. */
const differences: { readonly [name: string]: Difference } = {
  "python_032 comp_use_beam": refused("there are no beams"),
  "python_032 err_max_tokens_string": refused("numbers and booleans are never read from strings"),
  "python_032 err_stream_string": refused("numbers and booleans are never read from strings"),
  "python_032 messages_plain": refused("another vendor's API"),
  "rust_033 err_max_tokens_huge": refused("more tokens than the window has, as for the Python front end"),
  "rust_033 chat_content_parts": { what: "prompt", why: "text parts are joined as the Python front end joins them" },
  "rust_033 chat_developer": {
    what: "prompt",
    why: "a developer message reaches the template as one, as with the Python front end",
  },
  "rust_033 chat_json_object": reasoned,
  "rust_033 chat_json_schema": reasoned,
  "rust_033 chat_json_schema_stream": reasoned,
  "rust_033 chat_parallel_false_stream": reasoned,
  "rust_033 chat_tools_named": reasoned,
  "rust_033 chat_tools_named_stream": reasoned,
  "rust_033 chat_tools_required": reasoned,
  "rust_033 chat_tools_required_native_stream": reasoned,
  "rust_033 chat_tools_required_stream": reasoned,
  "rust_033 chat_tools_required_two": reasoned,
  "rust_033 chat_tools_strict": reasoned,
}

/** The essence without what differs. */
function withoutDifference(of: ReturnType<typeof essence>, { what }: Difference): unknown {
  const { prompt_token_ids, sampling_params, ...rest } = of
  const { max_tokens, structured_outputs, ...params } = sampling_params as Params // `essence` makes it one
  return what === "prompt"
    ? // What fits behind a prompt depends on its length.
      { ...rest, sampling_params: { ...params, structured_outputs } }
    : { ...rest, prompt_token_ids, sampling_params: { ...params, max_tokens } }
}

interface Case {
  readonly name: string
  readonly transcript: Transcript
  readonly theirs: readonly Uint8Array[]
}

function casesOf({ name, transcripts }: (typeof frontEnds)[number]): readonly Case[] {
  const folder = join(repository, "../shared/transcripts", transcripts)
  const adds = frontEndRequests(name).filter(({ type }) => type === "ADD")
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      if (!file.endsWith(".json")) return []
      const transcript: Transcript = JSON.parse(readFileSync(join(folder, file), "utf8"))
      const id = answerId(transcript)
      // The external id is the answer's, some with the prompt's number behind it.
      const theirs = id === null ? [] : adds.filter(({ body }) => body[16] === id || body[16].startsWith(`${id}-`))
      return theirs.length === 0
        ? []
        : [{ name: file.slice(0, -5), transcript, theirs: theirs.map(({ bytes }) => bytes) }]
    })
}

function encoded(request: GenerateRequest, serial: number): Uint8Array {
  const add: AddRequest = {
    request,
    engineRequestId: `${request.requestId.slice(0, 64)}-${serial}`,
    arrivalTime: 1_795_954_105.5,
    clientIndex: 0,
    currentWave: 0,
    badWordTokenIds: [],
  }
  expect(checkAdd(add, limits)).toEqual({ ok: true, value: null })
  return new AddEncoder(limits).encode(add)
}

if (!capturesExist || !transcriptsExist) test.skip("the same request as a front end's", () => {})

const compareFrontEnds = (): void => {
  let server: TestServer

  beforeAll(async () => {
    server = await startTestServer({ profile: await qwen3Profile() })
  })
  afterAll(() => server.stop())

  for (const frontEnd of frontEnds) {
    describe(frontEnd.name, () => {
      const cases = casesOf(frontEnd)

      test("has recordings to compare with", () => {
        expect(cases.length).toBeGreaterThan(frontEnd.least)
      })

      for (const { name, transcript, theirs } of cases) {
        test(name, async () => {
          const { path, body, body_raw, headers } = transcript.request
          const named = Object.fromEntries(headers.map((line) => line.toLowerCase().split(/: (.*)/, 2)))
          using record = recordEngine()
          await server.post(path, body ?? body_raw, named)
          const engine = new StrictEngine({ maxModelLen: limits.contextTokensMax, vocabSize: limits.vocabSize! })
          const ours = record.requests.map((request, i) => essence(engine.add(encoded(request, i))))
          const expected = theirs.map((bytes) =>
            essence(new StrictEngine({ maxModelLen: 4_096, vocabSize: 151_936 }).add(bytes)),
          )
          const difference = differences[`${frontEnd.name} ${name}`]
          if (difference === undefined) expect(ours).toEqual(expected)
          else if (difference.what === "request") expect([ours, expected.length > 0]).toEqual([[], true])
          else {
            expect(ours).not.toEqual(expected)
            const rest = (of: typeof ours): unknown => of.map((each) => withoutDifference(each, difference))
            expect(rest(ours)).toEqual(rest(expected))
          }
        })
      }
    })
  }
}
if (capturesExist && transcriptsExist) describe("the same request as a front end's", compareFrontEnds)
