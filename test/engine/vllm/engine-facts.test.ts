import { describe, expect, test } from "bun:test"
import { readEngineFacts, readStatusMessage, unknownFacts } from "../../../src/engine/vllm/engine-facts"
import { float, type Packable, pack } from "../../support/message-pack"

/** What 0.32 sends; 0.33 has three more. */
const sent: { readonly [key: string]: Packable } = {
  max_model_len: 4_096,
  num_gpu_blocks: 100,
  block_size: 16,
  dp_stats_address: null,
  dtype: "bfloat16",
  vllm_version: "0.32.0",
  world_size: 2,
  data_parallel_size: 1,
  tensor_parallel_size: 2,
  pipeline_parallel_size: 1,
  decode_context_parallel_size: 1,
  data_parallel_rank: 0,
  max_num_seqs: 64,
  max_num_batched_tokens: 8_192,
  instance_id: "x",
  supports_lora: true,
  max_loras: 3,
  mamba_block_size: null,
  kv_cache_size_tokens: 1_600,
  kv_cache_max_concurrency: float(0.4),
  kv_events_config: null,
  weight_transfer_backend: null,
  enable_sleep_mode: false,
  supports_draft_weight_updates: false,
  effective_attention_block_size: 16,
}
const facts = {
  contextTokensMax: 4_096,
  sequencesMax: 64,
  blockTokens: 16,
  blockCount: 100,
  kvCacheTokens: 1_600,
  version: "0.32.0",
  dtype: "bfloat16",
  worldSize: 2,
  supportsLora: true,
  loraMax: 3,
}

describe("a registration", () => {
  test("of 25 keys, 28 keys or none at all is read", () => {
    const later = { coord_store_port: 0, coordinator_input_address: null, coordinator_output_address: null }
    expect(readEngineFacts(pack(sent))).toEqual({ ok: true, value: facts })
    expect(readEngineFacts(pack({ ...sent, ...later }))).toEqual({ ok: true, value: facts })
    for (const empty of [new Uint8Array(0), pack({})]) {
      expect(readEngineFacts(empty)).toEqual({ ok: true, value: unknownFacts })
    }
  })

  test("with values of other types leaves them unknown", () => {
    const odd: Packable[] = ["4096", null, -1, 0, float(1.5), 2n ** 63n, [1], true, { a: 1 }]
    for (const value of odd) {
      const read = readEngineFacts(pack(Object.fromEntries(Object.keys(sent).map((key) => [key, value]))))
      const { version, dtype, supportsLora, ...counts } = read.ok ? read.value : unknownFacts
      expect(Object.values(counts)).toEqual(Object.values(counts).map(() => null))
      expect([version, dtype]).toEqual(typeof value === "string" ? [value, value] : [null, null])
      expect(supportsLora).toBe(value === true)
    }
  })

  test("that is no map, or none that ends, is a fault", () => {
    for (const bytes of [pack(null), pack([sent]), pack("x"), Uint8Array.of(0xc1), pack(sent).subarray(0, 40)]) {
      expect(readEngineFacts(bytes)).toMatchObject({ ok: false, error: { kind: "malformed_frame" } })
    }
  })
})

test("HELLO and READY are read, and what says nothing is a fault", () => {
  const read = (value: Packable) => readStatusMessage(pack(value))
  expect(read({ status: "HELLO", local: false, headless: true })).toEqual({
    ok: true,
    value: { status: "HELLO", isHeadless: true },
  })
  expect(read({ status: "READY", headless: false, parallel_config_hash: "x" })).toEqual({
    ok: true,
    value: { status: "READY", isHeadless: false },
  })
  expect(read({ status: "READY" })).toEqual({ ok: true, value: { status: "READY", isHeadless: true } })
  const wrong: Packable[] = [{}, { status: 1 }, [], "HELLO"]
  for (const value of wrong) expect(read(value).ok).toBe(false)
  expect(readStatusMessage(new Uint8Array(0)).ok).toBe(false)
})
