import { describe, expect, test } from "bun:test"
import { float, type Packable, pack } from "./message-pack"
import { capturesExist, frontEndRequests, recordedMessages } from "./recorded-frames"
import { decodeAdd, EngineDies, StrictEngine } from "./strict-decoder"

/** ADD with the given sampling parameters, as the recorded tries of a real decoder had it. */
function body(sampling: Packable, change: { readonly [position: number]: Packable } = {}, size = 9): Uint8Array {
  const fields: Packable[] = ["r", [1, 2], null, sampling, null, float(1.5), null, null, null]
  for (const [at, value] of Object.entries(change)) fields[Number(at)] = value
  for (let at = 9; at < size; at++) fields[at] ??= null
  return pack(fields.slice(0, size))
}

/** Fields behind the ninth that may not be nil. */
const unset = { 11: 0, 12: 0, 13: 0, 15: false, 19: false }

function verdict(bytes: Uint8Array): string {
  try {
    decodeAdd(bytes)
    return "OK"
  } catch (cause) {
    if (!(cause instanceof EngineDies)) throw cause
    return cause.message
  }
}

describe("the strict reader of ADD judges as a real engine's decoder did", () => {
  const accepted: readonly (readonly [string, Uint8Array])[] = [
    ["9 elements", body({ max_tokens: 3 })],
    ["temperature as int", body({ temperature: 1, max_tokens: 3 })],
    ["max_tokens nil", body({ max_tokens: null })],
    ["arrival_time as int", body({ max_tokens: 3 }, { 5: 2 })],
    ["unknown sampling key", body({ unheard_of: 1, max_tokens: 3 })],
    ["stop as string", body({ stop: "a" })],
    ["stop as list", body({ stop: ["a"] })],
    ["logit_bias int keys", body({ logit_bias: new Map([[3, float(1)]]) })],
    ["_all_stop_token_ids list", body({ _all_stop_token_ids: [1, 1] })],
    ["output_kind 1", body({ output_kind: 1 })],
    ["structured json as map", body({ structured_outputs: { json: { type: "object" } } })],
    ["pooling params", body(null, { 4: [null, null, null, null, "embed"] })],
    ["lora", body({}, { 6: ["n", 1, "/p"] })],
    ["prompt_embeds aux", body({}, { ...unset, 1: null, 9: ["float32", [20, 8], 1] }, 22)],
    ["30 elements", body({ max_tokens: 3 }, unset, 30)],
  ]
  for (const [name, bytes] of accepted) test(`takes ${name}`, () => expect(verdict(bytes)).toBe("OK"))

  const rejected: readonly (readonly [string, Uint8Array, string])[] = [
    ["8 elements", body({}, {}, 8), "Expected `array` of at least length 9, got 8"],
    ["max_tokens 3.0", body({ max_tokens: float(3) }), "Expected `int`, got `float` - at `$[3].max_tokens`"],
    ["request_id as bin", body({}, { 0: new Uint8Array(1) }), "Expected `str`, got `bytes` - at `$[0]`"],
    ["token ids as whole floats", body({}, { 1: [float(1)] }), "Expected `int`, got `float` - at `$[1][0]`"],
    ["logit_bias str keys", body({ logit_bias: { 3: 1 } }), "Expected `int`, got `str` - at `key in $[3].logit_bias`"],
    ["output_kind 9", body({ output_kind: 9 }), "Invalid enum value 9 - at `$[3].output_kind`"],
    ["temperature 5", body({ temperature: 5 }), "temperature must be in [0, 2]"],
    ["n=0", body({ n: 0 }), "n must be in [1, 16384]"],
    ["structured none set", body({ structured_outputs: {} }), "one kind of structured outputs constraint, not 0"],
    [
      "structured two",
      body({ structured_outputs: { regex: "a", choice: ["b"] } }),
      "one kind of structured outputs constraint, not 2",
    ],
    ["sampling params as array", body([]), "Expected `object | null`, got `array` - at `$[3]`"],
    [
      "malformed MessagePack",
      Uint8Array.of(0xc1, 0xff, 0),
      "MessagePack data is malformed: invalid opcode 0xc1 (byte 0)",
    ],
    ["a cut body", body({}).subarray(0, 12), "Input data was truncated"],
    [
      "min_tokens above max_tokens",
      body({ min_tokens: 5, max_tokens: 4 }),
      "min_tokens must be less than or equal to max_tokens",
    ],
    ["no parameters", body(null), "sampling_params and pooling_params can't both be unset"],
    [
      "wide integers in extra_args",
      body({ extra_args: { a: [1] }, seed: "1" }),
      "Expected `int`, got `str` - at `$[3].seed`",
    ],
  ]
  for (const [name, bytes, reason] of rejected) test(`refuses ${name}`, () => expect(verdict(bytes)).toBe(reason))

  test.skipIf(!capturesExist)("takes every recorded ADD but those that were wrong on purpose", () => {
    const wrong: string[] = []
    let judged = 0
    for (const { title, frames } of recordedMessages("input ROUTER")) {
      if (frames.length < 3 || frames[1]![0] !== 0) continue
      judged += 1
      if (verdict(frames[2]!) !== "OK") wrong.push(title.replace(/ \d+:/, ":"))
    }
    expect(judged).toBeGreaterThan(30)
    expect(wrong).toEqual(["garbage: ADD with malformed msgpack", "wrongtype: ADD with a wrongly typed field"])
    for (const name of ["python_032", "rust_033"] as const) {
      const adds = frontEndRequests(name).filter(({ type }) => type === "ADD")
      expect(adds.filter(({ bytes }) => verdict(bytes) !== "OK").length).toBe(0)
      expect(adds.length).toBeGreaterThan(100)
    }
  })
})

describe("the strict engine", () => {
  const options = { maxModelLen: 8, vocabSize: 100 }
  const add = (change: { readonly [position: number]: Packable }, sampling: Packable = { max_tokens: 2 }): string => {
    try {
      new StrictEngine(options).add(body(sampling, change))
      return "OK"
    } catch (cause) {
      return cause instanceof EngineDies ? cause.message : String(cause)
    }
  }

  test("dies of a second live id, and takes it again once the first has ended", () => {
    const engine = new StrictEngine(options)
    engine.add(body({ max_tokens: 2 }))
    expect(() => engine.add(body({ max_tokens: 2 }))).toThrow("lives already")
    expect(engine.abort(pack(["r", "unknown"]))).toEqual(["r", "unknown"])
    engine.add(body({ max_tokens: 2 }))
    engine.finish("r")
    engine.add(body({ max_tokens: 2 }))
    expect([...engine.live.keys()]).toEqual(["r"])
    expect(() => engine.abort(pack([1]))).toThrow(EngineDies)
  })

  test("dies of prompts and ids beyond what it has", () => {
    expect(add({})).toBe("OK")
    expect(add({ 1: [] })).toBe("the prompt is empty")
    expect(add({ 1: [1, 2, 3, 4, 5, 6, 7, 8] })).toBe("the prompt has 8 tokens, the model takes 8")
    expect(add({ 1: [1, 100] })).toBe("prompt_token_ids has 100, which is out of vocabulary")
    expect(add({}, { max_tokens: 7 })).toBe("max_tokens must fit behind the prompt")
    expect(add({}, { max_tokens: 1, allowed_token_ids: [] })).toBe("allowed_token_ids is empty")
    expect(add({}, { max_tokens: 1, logit_bias: new Map([[100, 1]]) })).toBe(
      "logit_bias has 100, which is out of vocabulary",
    )
    expect(add({}, { max_tokens: 1, structured_outputs: { regex: "a" } })).toBe(
      "structured_outputs._backend must be set",
    )
  })

  test("reads utility calls", () => {
    const engine = new StrictEngine(options)
    expect(engine.utility(pack([0, 1, "sleep", [1]]))).toEqual({ callId: 1, method: "sleep", args: [1] })
    expect(() => engine.utility(pack([0, 1, "sleep"]))).toThrow(EngineDies)
  })
})
