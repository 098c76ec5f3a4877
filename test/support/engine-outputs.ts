/** Messages of an engine as the benches and tests need them, in the layout of ENGINE_PROTOCOL 7. */
import { float, inlineArray, type Packable, pack } from "./message-pack"

/** The fields of one output that are not nil, by their position. */
export interface OutputParts {
  readonly requestId: string
  readonly tokenIds: readonly Packable[]
  readonly fields?: { readonly [position: number]: Packable }
}

/** One output; 18 elements as 0.32 sends them, 19 as 0.33 does. */
export function outputOf(parts: OutputParts, size: 18 | 19 = 18): readonly Packable[] {
  const fields = Array.from({ length: size }, (_, i): Packable => parts.fields?.[i] ?? (i === 13 ? 0 : null))
  fields[0] = parts.requestId
  fields[1] = parts.tokenIds
  return fields
}

/** The scheduler's statistics, as they come with nearly every message: all 18 keys. */
export function schedulerStats(running: number): Packable {
  const prefixCache = {
    reset: false,
    requests: 0,
    queries: 0,
    hits: 0,
    preempted_requests: 0,
    preempted_queries: 0,
    preempted_hits: 0,
    hits_by_source: {},
  }
  return {
    num_running_reqs: running,
    num_waiting_reqs: 0,
    num_skipped_waiting_reqs: 0,
    num_kv_fetch_reqs_by_stage: { waiting_to_start: 0, in_progress: 0, completed_waiting: 0 },
    step_counter: 0,
    current_wave: 0,
    kv_cache_usage: float(0.25),
    iteration_details: null,
    prefix_cache_stats: prefixCache,
    connector_prefix_cache_stats: null,
    kv_cache_eviction_events: [],
    spec_decoding_stats: null,
    kv_connector_stats: null,
    ec_connector_stats: null,
    waiting_lora_adapters: {},
    running_lora_adapters: {},
    cudagraph_stats: null,
    perf_stats: null,
  }
}

/** A whole message; `at` is the moment of its step on the engine's clock, in seconds. */
export function messageOf(outputs: readonly (readonly Packable[])[], at = 2_075.7): Uint8Array {
  return pack([0, outputs, schedulerStats(outputs.length), float(at), null, null, null, null, "default"])
}

/** Logprobs of one token: the sampled one, and the top ones, of which the first is the sampled one again. */
export function logprobsOf(tokenId: number, count: number): Packable {
  const ids = Int32Array.from({ length: count + 1 }, (_, i) => (i === 0 ? tokenId : tokenId + i - 1))
  const values = Float32Array.from({ length: count + 1 }, (_, i) => (i === 0 ? -0.125 : -0.125 * i))
  return [
    inlineArray("<i4", [1, count + 1], ids),
    inlineArray("<f4", [1, count + 1], values),
    inlineArray("<i8", [1], BigInt64Array.of(1n)),
    null,
  ]
}
