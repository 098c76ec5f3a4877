import { describe, expect, test } from "bun:test"
import { OutputFields } from "../../../src/engine/vllm/output-fields"
import { OutputsDecoder } from "../../../src/engine/vllm/outputs-decoder"
import { RequestIds } from "../../../src/engine/vllm/request-id"
import { messageOf, outputOf } from "../../support/engine-outputs"
import { extension, float, inlineArray, type Packable, pack } from "../../support/message-pack"
import { cellsMade } from "../../support/objects-made"

const ids = new RequestIds(0xfeed)

/** A message of one output with the given fields, and the frames behind it. */
function fieldsOf(
  fields: { readonly [position: number]: Packable },
  tokenIds: readonly number[] = [7],
  aux: readonly Uint8Array[] = [],
): OutputFields {
  const decoder = new OutputsDecoder(ids)
  const decoded = decoder.decode([messageOf([outputOf({ requestId: "a", tokenIds, fields }, 19)]), ...aux])
  if (!decoded.ok) throw new Error(decoded.error.message)
  return new OutputFields(decoder.batch, ids)
}

function faultOf(
  result: { readonly ok: boolean } & ({ ok: true } | { ok: false; error: { message: string } }),
): string {
  return result.ok ? "none" : result.error.message
}

/** Logprobs of tokens whose arrays were packed as given. */
function rows(triples: readonly [Packable, Packable, Packable], tokens = 1, aux: readonly Uint8Array[] = []): unknown {
  const fields = fieldsOf({ 2: [...triples, null] }, Array(tokens).fill(7), aux)
  const read = fields.logprobs(0)
  if (!read.ok) return read.error.message
  const { width, tokenIds, logprobs, ranks } = read.value!
  return {
    width,
    tokenIds: [...tokenIds.subarray(0, tokens * width)],
    logprobs: [...logprobs.subarray(0, tokens * width)],
    ranks: [...ranks.subarray(0, tokens)],
  }
}

const bytesOf = (array: ArrayBufferView): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice()
const idsOf = inlineArray("<i4", [1, 3], Int32Array.of(7, 9, 8))
const valuesOf = inlineArray("<f4", [1, 3], Float32Array.of(-0.5, -0.25, -2))
const rankOf = inlineArray("<i8", [1], BigInt64Array.of(2n))
const expected = { width: 3, tokenIds: [7, 9, 8], logprobs: [-0.5, -0.25, -2], ranks: [2] }

describe("logprobs", () => {
  test("are read from every element type, by numpy's and torch's names", () => {
    const asIds: readonly (readonly [string, ArrayBufferView])[] = [
      ["<i4", Int32Array.of(7, 9, 8)],
      ["int32", Int32Array.of(7, 9, 8)],
      ["<i8", BigInt64Array.of(7n, 9n, 8n)],
      ["int64", BigInt64Array.of(7n, 9n, 8n)],
    ]
    for (const [name, array] of asIds) {
      expect(rows([inlineArray(name, [1, 3], array), valuesOf, rankOf])).toEqual(expected)
    }
    const asValues: readonly (readonly [string, ArrayBufferView])[] = [
      ["<f4", Float32Array.of(-0.5, -0.25, -2)],
      ["float32", Float32Array.of(-0.5, -0.25, -2)],
      ["<f8", Float64Array.of(-0.5, -0.25, -2)],
      ["float64", Float64Array.of(-0.5, -0.25, -2)],
      ["<f2", Uint16Array.of(0xb800, 0xb400, 0xc000)],
      ["float16", Uint16Array.of(0xb800, 0xb400, 0xc000)],
      ["bfloat16", Uint16Array.of(0xbf00, 0xbe80, 0xc000)],
    ]
    for (const [name, array] of asValues) {
      expect(rows([idsOf, inlineArray(name, [1, 3], array), rankOf])).toEqual(expected)
    }
    const rank = inlineArray("<i4", [1], Int32Array.of(2))
    expect(rows([idsOf, valuesOf, rank])).toEqual(expected)
    expect(rows([idsOf, valuesOf, inlineArray("<i8", [1, 1], BigInt64Array.of(2n))])).toEqual(expected)
  })

  test("are read from extensions, binary data and frames of their own, at any alignment", () => {
    const idBytes = bytesOf(Int32Array.of(7, 9, 8))
    const valueBytes = bytesOf(Float32Array.of(-0.5, -0.25, -2))
    const rankBytes = bytesOf(BigInt64Array.of(2n))
    for (let shift = 0; shift < 8; shift++) {
      const shifted = (bytes: Uint8Array): Uint8Array => {
        const room = new Uint8Array(bytes.length + shift)
        room.set(bytes, shift)
        return room.subarray(shift)
      }
      const aux = [idBytes, valueBytes, rankBytes].map(shifted)
      expect(
        rows(
          [
            ["<i4", [1, 3], 1],
            ["<f4", [1, 3], 2],
            ["<i8", [1], 3],
          ],
          1,
          aux,
        ),
      ).toEqual(expected)
    }
    const binary: [Packable, Packable, Packable] = [
      ["<i4", [1, 3], idBytes],
      ["<f4", [1, 3], valueBytes],
      ["<i8", [1], rankBytes],
    ]
    expect(rows(binary)).toEqual(expected)
  })

  test("name the sampled token once, and end with id -1 for its second mention", () => {
    const repeated = inlineArray("<i4", [2, 3], Int32Array.of(7, 7, 9, 8, 5, 8))
    const values = inlineArray("<f4", [2, 3], Float32Array.of(-1, -1, -2, -3, -0.5, -3))
    const ranks = inlineArray("<i8", [2], BigInt64Array.of(1n, 2n))
    expect(rows([repeated, values, ranks], 2)).toEqual({
      width: 3,
      tokenIds: [7, 9, -1, 8, 5, -1],
      logprobs: [-1, -2, Number.NEGATIVE_INFINITY, -3, -0.5, Number.NEGATIVE_INFINITY],
      ranks: [1, 2],
    })
  })

  test("may be minus infinity, and ranks are clamped to 32 bits", () => {
    const value = inlineArray("<f4", [1, 1], Float32Array.of(Number.NEGATIVE_INFINITY))
    const id = inlineArray("<i8", [1, 1], BigInt64Array.of(5n))
    for (const [rank, read] of [
      [2n ** 40n, 2 ** 31 - 1],
      [-(2n ** 40n), -(2 ** 31)],
      [2n ** 31n, 2 ** 31 - 1],
      [-1n, -1],
      [2n ** 31n - 1n, 2 ** 31 - 1],
    ] as const) {
      expect(rows([id, value, inlineArray("<i8", [1], BigInt64Array.of(rank))])).toEqual({
        width: 1,
        tokenIds: [5],
        logprobs: [Number.NEGATIVE_INFINITY],
        ranks: [read],
      })
    }
  })

  test("that are not what the protocol says are faults", () => {
    const shapes = "the arrays of logprobs differ in shape"
    const noFrame = "an array's data is in a frame that did not come"
    const noFit = "an array's shape does not fit its data"
    const noType = "an array of numbers of a known type was expected"
    const cases: readonly (readonly [[Packable, Packable, Packable], string])[] = [
      [[["<i4", [1, 3], 1], valuesOf, rankOf], noFrame],
      [[["<i4", [1, 3], 0], valuesOf, rankOf], noFrame],
      [[["<i4", [1, 3], -1], valuesOf, rankOf], noFrame],
      [[["<i4", [1, 4], extension(3, new Uint8Array(12))], valuesOf, rankOf], noFit],
      [[["<i4", [-1, -3], extension(3, new Uint8Array(12))], valuesOf, rankOf], noFit],
      [[["<i4", [2 ** 40, 2 ** 40], extension(3, new Uint8Array(12))], valuesOf, rankOf], noFit],
      [
        [["<i4", [1, 3], extension(4, new Uint8Array(12))], valuesOf, rankOf],
        "an array's data has the unknown extension code 4",
      ],
      [[[">i4", [1, 3], extension(3, new Uint8Array(12))], valuesOf, rankOf], noType],
      [[["<u1", [12], extension(3, new Uint8Array(12))], valuesOf, rankOf], noType],
      [
        [["<i4", [1, 3, 1], extension(3, new Uint8Array(12))], valuesOf, rankOf],
        "an array of one or two dimensions was expected",
      ],
      [[["<i4", [1, 3]], valuesOf, rankOf], "an array is dtype, shape and data"],
      [[7, valuesOf, rankOf], "an array was expected"],
      [[inlineArray("<i4", [1, 2], Int32Array.of(1, 2)), valuesOf, rankOf], shapes],
      [[idsOf, valuesOf, inlineArray("<i8", [2], BigInt64Array.of(1n, 2n))], shapes],
      [[idsOf, valuesOf, inlineArray("<i8", [1, 2], BigInt64Array.of(1n, 2n))], shapes],
    ]
    for (const [triples, fault] of cases) expect(rows(triples)).toBe(fault)
    expect(rows([idsOf, valuesOf, rankOf], 2)).toBe("there are fewer rows of logprobs than tokens")
    const empty = inlineArray("<i4", [1, 0], new Int32Array(0))
    expect(rows([empty, inlineArray("<f4", [1, 0], new Float32Array(0)), rankOf])).toBe(
      "logprobs lack the sampled token",
    )
    expect(faultOf(fieldsOf({ 2: [idsOf, valuesOf] }).logprobs(0))).toBe("logprobs are ids, values and ranks")
    expect(faultOf(fieldsOf({ 2: "x" }).logprobs(0))).toBe("an array was expected")
  })

  test("reuse their arrays and make no objects", () => {
    const fields = fieldsOf({ 2: [idsOf, valuesOf, rankOf, null] })
    const first = fields.logprobs(0)
    expect(fields.logprobs(0)).toBe(first)
    const made = cellsMade(() => {
      for (let i = 0; i < 10_000; i++) fields.logprobs(0)
    })
    expect(made.objects + made.strings).toBeLessThanOrEqual(100)
  })

  test("of a prompt are the caller's own, of any number of rows", () => {
    const tokenIds = Int32Array.of(4, 1, 5, 5, 6, 2)
    const triples: Packable = [
      ["int32", [3, 2], 1],
      inlineArray("float32", [3, 2], Float32Array.of(-1, -2, -3, -4, -5, -6)),
      inlineArray("int64", [3], BigInt64Array.of(1n, 2n, 3n)),
      null,
      null,
    ]
    const fields = fieldsOf({ 3: triples }, [7], [bytesOf(tokenIds)])
    const read = fields.promptLogprobs(0)
    if (!read.ok) throw new Error(read.error.message)
    expect(read.value).toEqual({
      width: 2,
      tokenIds: Int32Array.of(4, 1, 5, -1, 6, 2),
      logprobs: Float32Array.of(-1, -2, -3, Number.NEGATIVE_INFINITY, -5, -6),
      ranks: Int32Array.of(1, 2, 3),
    })
    const again = fields.promptLogprobs(0)
    expect(again.ok && again.value !== read.value).toBe(true)
  })
})

describe("rare fields", () => {
  test("are null where the output has none, and where there is no such output", () => {
    const fields = fieldsOf({})
    const nothing = { ok: true, value: null } as const
    for (const i of [0, 1, 99]) {
      expect(fields.logprobs(i)).toEqual(nothing)
      expect(fields.promptLogprobs(i)).toEqual(nothing)
      expect(fields.events(i)).toEqual(nothing)
      expect(fields.prefillStats(i)).toEqual(nothing)
      expect(fields.kvTransferParams(i)).toEqual(nothing)
      expect(fields.ecTransferParams(i)).toEqual(nothing)
      expect(fields.error(i)).toEqual(nothing)
      expect(fields.multimodalMisses(i)).toEqual({ ok: true, value: [] })
    }
    expect(fields.utility()).toEqual(nothing)
    expect(fields.finishedRequests()).toEqual({ ok: true, value: [] })
  })

  test("all stand side by side", () => {
    const fields = fieldsOf({
      5: 3,
      6: 12,
      7: [
        { type: 1, timestamp: float(1.5) },
        { type: 2, timestamp: float(2.5) },
        { type: 3, timestamp: float(3.5) },
        { type: 2, timestamp: float(4.5) },
        { type: 9, timestamp: 5, new: [1] },
      ],
      8: { remote_host: "10.0.0.1", remote_port: 5_557, blocks: [1, 2], big: 2n ** 60n, none: null, share: 0.5 },
      9: { a: [] },
      11: { num_prompt_tokens: 9, num_cached_tokens: 4, num_computed_tokens: 5, later: "x" },
      14: ["h1", "h2"],
      18: { code: "engine_paused", message: "paused", retryable: true, more: 1 },
    })
    const reads = [
      fields.events(0),
      fields.kvTransferParams(0),
      fields.ecTransferParams(0),
      fields.prefillStats(0),
      fields.multimodalMisses(0),
      fields.error(0),
    ]
    expect(reads.map((read) => (read.ok ? read.value : read.error))).toEqual([
      { queuedAt: 1.5, scheduledAt: 2.5, preemptions: 1 },
      { remote_host: "10.0.0.1", remote_port: 5_557, blocks: [1, 2], big: 2n ** 60n, none: null, share: 0.5 },
      { a: [] },
      {
        promptTokens: 9,
        computedTokens: 5,
        cachedTokens: 4,
        localCachedTokens: -1,
        externalCachedTokens: -1,
        cacheCreationTokens: -1,
      },
      ["h1", "h2"],
      { code: "engine_paused", message: "paused", retryable: true },
    ])
  })

  test("of a wrong kind are faults", () => {
    expect(faultOf(fieldsOf({ 7: 1 }).events(0))).toBe("an array was expected")
    expect(faultOf(fieldsOf({ 7: [{ type: "1" }] }).events(0))).toBe("an integer was expected")
    expect(faultOf(fieldsOf({ 8: { a: new Uint8Array(2) } }).kvTransferParams(0))).toBe(
      "bytes stand where JSON was expected",
    )
    expect(faultOf(fieldsOf({ 11: [] }).prefillStats(0))).toBe("a map was expected")
    expect(faultOf(fieldsOf({ 18: { code: 1 } }).error(0))).toBe("a string was expected")
    expect(faultOf(fieldsOf({ 18: { retryable: 1 } }).error(0))).toBe("a boolean was expected")
    const deep = Array.from({ length: 100 }).reduce<Packable>((inner) => [inner], 1)
    expect(faultOf(fieldsOf({ 8: { deep } }).kvTransferParams(0))).toBe("values nest deeper than 64 levels")
  })
})

describe("a message's own fields", () => {
  /** A message with the given fields from 2 on. */
  function messageFields(...rest: readonly Packable[]): OutputFields {
    const decoder = new OutputsDecoder(ids)
    const decoded = decoder.decode([pack([0, [], ...rest])])
    if (!decoded.ok) throw new Error(decoded.error.message)
    return new OutputFields(decoder.batch, ids)
  }

  test("are answers of utility calls", () => {
    const answer = (call: Packable): unknown => messageFields(null, 1.5, call).utility()
    expect(answer([1, null, [null, { a: [1, "b", null] }]])).toEqual({
      ok: true,
      value: { callId: 1, failure: null, result: { a: [1, "b", null] } },
    })
    expect(answer([2, "it failed", null])).toEqual({
      ok: true,
      value: { callId: 2, failure: "it failed", result: null },
    })
    expect(answer([3])).toEqual({ ok: true, value: { callId: 3, failure: null, result: null } })
    expect(answer([4, null, [["builtins", "bool"], true]])).toEqual({
      ok: true,
      value: { callId: 4, failure: null, result: true },
    })
    for (const [call, callId] of [
      [[5, null, [null]], 5],
      [[6, 7, null], 6],
      [[7, null, [null, true, 1]], 7],
      [["8", null, [null, true]], null],
      [9, null],
      [[], null],
    ] as const) {
      const fields = messageFields(null, 1.5, call)
      expect([call, fields.utility(), fields.utilityCallId()]).toEqual([
        call,
        { ok: false, error: expect.objectContaining({ kind: "malformed_frame" }) } as never,
        callId,
      ])
    }
  })

  test("are ids of requests that ended, of this process alone", () => {
    const finished = [ids.make("a", 4, 5), "plain-1", new RequestIds(1).make("b", 1, 1), ids.make("", 6, 7)]
    expect(messageFields(null, 1.5, null, finished).finishedRequests()).toEqual({
      ok: true,
      value: [
        { slot: 4, serial: 5 },
        { slot: 6, serial: 7 },
      ],
    })
    expect(messageFields(null, 1.5, null, 7).finishedRequests()).toMatchObject({ ok: false })
  })

  test("are scheduler statistics, with what a message lacks at zero", () => {
    expect(messageFields({}).schedulerStats()).toEqual({
      ok: true,
      value: {
        running: 0,
        waiting: 0,
        skipped: 0,
        stepCounter: 0,
        wave: 0,
        kvCacheUsage: 0,
        prefixCache: { reset: false, requests: 0, queries: 0, hits: 0 },
        connectorPrefixCache: null,
        specDecode: null,
        waitingLora: {},
        runningLora: {},
      },
    })
    const full = {
      num_running_reqs: 3,
      num_waiting_reqs: 2,
      num_skipped_waiting_reqs: 1,
      step_counter: 9,
      current_wave: 4,
      kv_cache_usage: float(0.5, 32),
      prefix_cache_stats: { reset: true, requests: 1, queries: 20, hits: 16, hits_by_source: {} },
      connector_prefix_cache_stats: { queries: 5, hits: 4 },
      spec_decoding_stats: {
        num_spec_tokens: 2,
        num_drafts: 3,
        num_draft_tokens: 6,
        num_accepted_tokens: 4,
        num_accepted_tokens_per_pos: [3, 1],
      },
      waiting_lora_adapters: { a: 1 },
      running_lora_adapters: { b: 2, __proto__x: 3 },
      perf_stats: { a: new Uint8Array(3) },
    }
    expect(messageFields(full).schedulerStats()).toEqual({
      ok: true,
      value: {
        running: 3,
        waiting: 2,
        skipped: 1,
        stepCounter: 9,
        wave: 4,
        kvCacheUsage: 0.5,
        prefixCache: { reset: true, requests: 1, queries: 20, hits: 16 },
        connectorPrefixCache: { reset: false, requests: 0, queries: 5, hits: 4 },
        specDecode: { drafts: 3, draftTokens: 6, acceptedTokens: 4, acceptedTokensPerPosition: [3, 1] },
        waitingLora: { a: 1 },
        runningLora: { b: 2, __proto__x: 3 },
      },
    })
  })
})
