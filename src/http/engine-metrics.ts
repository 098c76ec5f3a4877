import type { EngineCounters, EngineReport, EngineStatus } from "../ir/engine"
import type { Counter, Family, Gauge, Labels, Registry } from "./prometheus"

/** Counters by name, with what they count. Names and meanings: SERVER 5. */
const counterFamilies: readonly (readonly [string, string, (counters: Readonly<EngineCounters>) => number])[] = [
  ["num_preemptions_total", "Sequences put back for want of memory.", (all) => all.preemptions],
  ["prefix_cache_queries_total", "Tokens looked up in the prefix cache.", (all) => all.prefixCacheQueries],
  ["prefix_cache_hits_total", "Tokens found in the prefix cache.", (all) => all.prefixCacheHits],
  ["external_prefix_cache_queries_total", "Tokens looked up beyond the engine.", (all) => all.externalCacheQueries],
  ["external_prefix_cache_hits_total", "Tokens found beyond the engine.", (all) => all.externalCacheHits],
  ["spec_decode_num_drafts_total", "Drafts of speculative decoding.", (all) => all.drafts],
  ["spec_decode_num_draft_tokens_total", "Tokens in those drafts.", (all) => all.draftTokens],
  ["spec_decode_num_accepted_tokens_total", "Tokens of drafts that were kept.", (all) => all.acceptedTokens],
]

/** The only rank of an engine that does not report for itself. */
const soleRank = "0"

/** Figures of the engines' own, one series for each data-parallel rank. */
export class EngineMetrics {
  private readonly modelName: string
  private readonly running: Family<Gauge>
  private readonly waiting: Family<Gauge>
  private readonly cacheUsage: Family<Gauge>
  private readonly cacheConfig: Family<Gauge>
  private readonly lora: Family<Gauge>
  private readonly counters: readonly Family<Counter>[]
  private readonly acceptedByPosition: Family<Counter>
  /** What each counter showed last: the engines tell totals. */
  private readonly shown = new Map<Counter, number>()

  constructor(registry: Registry, modelName: string) {
    this.modelName = modelName
    const gauge = (name: string, help: string): Family<Gauge> => registry.gauge(`vllm:${name}`, help)
    this.running = gauge("num_requests_running", "Sequences that the engine computes now.")
    this.waiting = gauge("num_requests_waiting", "Sequences that wait for the engine.")
    this.cacheUsage = gauge("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.")
    this.cacheConfig = gauge("cache_config_info", "The KV cache; the labels say how it is laid out.")
    this.lora = gauge("lora_requests_info", "Adapters in use, as labels; the value is when, in Unix seconds.")
    this.counters = counterFamilies.map(([name, help]) => registry.counter(`vllm:${name}`, help))
    this.acceptedByPosition = registry.counter(
      "vllm:spec_decode_num_accepted_tokens_per_pos_total",
      "Kept tokens of drafts by their place in the draft.",
    )
  }

  /** Takes over the figures as they are now. */
  update(status: Pick<EngineStatus, "running" | "waiting" | "kvCacheUsage" | "engines">): void {
    if (status.engines.length === 0) this.gauges(this.labels(soleRank), status)
    for (const engine of status.engines) this.engine(engine)
  }

  private engine(engine: EngineReport): void {
    const labels = this.labels(String(engine.rank))
    this.gauges(labels, engine)
    for (const [i, [, , total]] of counterFamilies.entries()) {
      this.advance(this.counters[i]!.with(labels), total(engine.counters))
    }
    for (const [position, accepted] of engine.counters.acceptedTokensPerPosition.entries()) {
      this.advance(this.acceptedByPosition.with({ ...labels, position: String(position) }), accepted)
    }
    const { cacheBlockTokens, cacheBlocks, lora } = engine
    if (cacheBlockTokens !== null && cacheBlocks !== null) {
      const layout = { block_size: String(cacheBlockTokens), num_gpu_blocks: String(cacheBlocks) }
      this.cacheConfig.with({ ...labels, ...layout }).set(1)
    }
    if (lora === null) return
    const adapters = {
      max_lora: String(lora.max),
      running_lora_adapters: lora.running.join(","),
      waiting_lora_adapters: lora.waiting.join(","),
    }
    this.lora.with({ ...labels, ...adapters }).set(Date.now() / 1000)
  }

  private gauges(labels: Labels, now: Pick<EngineStatus, "running" | "waiting" | "kvCacheUsage">): void {
    this.running.with(labels).set(now.running)
    this.waiting.with(labels).set(now.waiting)
    this.cacheUsage.with(labels).set(now.kvCacheUsage)
  }

  private advance(counter: Counter, total: number): void {
    counter.add(total - (this.shown.get(counter) ?? 0))
    this.shown.set(counter, total)
  }

  private labels(engine: string): Labels {
    return { model_name: this.modelName, engine }
  }
}
