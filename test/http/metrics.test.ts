import { describe, expect, test } from "bun:test"
import { createMetrics } from "../../src/http/metrics"
import { Registry } from "../../src/http/prometheus"

describe("the text format", () => {
  test("of counters and gauges has help, type, sorted labels and escaped values", () => {
    const registry = new Registry()
    registry.counter("a_total", "First.").with({ z: 'quo"te', b: "back\\slash", m: "new\nline" }).add(2)
    registry.gauge("b", "Second.").with({}).set(0.5)
    registry.gauge("c", "Third.")
    expect(registry.render()).toBe(
      [
        "# HELP a_total First.",
        "# TYPE a_total counter",
        'a_total{b="back\\\\slash",m="new\\nline",z="quo\\"te"} 2.0',
        "# HELP b Second.",
        "# TYPE b gauge",
        "b 0.5",
        "# HELP c Third.",
        "# TYPE c gauge",
        "",
      ].join("\n"),
    )
  })

  test("of histograms counts what is at most the bound, and everything in +Inf", () => {
    const registry = new Registry()
    const histogram = registry.histogram("h", "Help.", [0.1, 1, 1_000_000, 2_500_000]).with({ x: "y" })
    for (const value of [0.1, 0.05, 1, 1.5, 3e6]) histogram.observe(value)
    histogram.observeMany(0.25, 4)
    expect(registry.render()).toBe(
      [
        "# HELP h Help.",
        "# TYPE h histogram",
        'h_bucket{le="0.1",x="y"} 2.0',
        'h_bucket{le="1.0",x="y"} 7.0',
        'h_bucket{le="1e+06",x="y"} 8.0',
        'h_bucket{le="2.5e+06",x="y"} 8.0',
        'h_bucket{le="+Inf",x="y"} 9.0',
        'h_sum{x="y"} 3000003.65',
        'h_count{x="y"} 9.0',
        "",
      ].join("\n"),
    )
  })
})

const idle = { running: 0, waiting: 0, kvCacheUsage: 0, engines: [] }

/** Lines of one family without comments, name and the labels that all have. */
function lines(text: string, name: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(name) && /^(?:_bucket|_sum|_count)?[ {]/.test(line.slice(name.length)))
    .map((line) => line.slice(name.length).replace(/engine="0",?|,?model_name="m"/g, ""))
}

function bounds(text: string, name: string): number[] {
  return lines(text, name).flatMap((line) => {
    const le = /le="([\d.e+]+)"/.exec(line)
    return le === null ? [] : [Number(le[1])]
  })
}

const usage = { promptTokens: 7, outputTokens: 5, reasoningTokens: 0, cachedTokens: 3, cacheWriteTokens: 0 }
/** The engine's clock is another one than ours. */
const timing = { queuedAt: 910.25, scheduledAt: 910.5, firstTokenAt: 911, lastTokenAt: 913, firstTokenCameAt: 11 }

describe("the families", () => {
  test("are there before anything happened, with the model's name and rank 0", () => {
    const text = createMetrics({ modelName: "m", contextTokensMax: 100 }).render(idle)
    expect([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map((match) => `${match[1]} ${match[2]}`)).toEqual([
      "http_requests_total counter",
      "http_request_duration_seconds histogram",
      "http_request_duration_highr_seconds histogram",
      "vllm:num_requests_running gauge",
      "vllm:num_requests_waiting gauge",
      "vllm:kv_cache_usage_perc gauge",
      "vllm:cache_config_info gauge",
      "vllm:lora_requests_info gauge",
      "vllm:num_preemptions_total counter",
      "vllm:prefix_cache_queries_total counter",
      "vllm:prefix_cache_hits_total counter",
      "vllm:external_prefix_cache_queries_total counter",
      "vllm:external_prefix_cache_hits_total counter",
      "vllm:spec_decode_num_drafts_total counter",
      "vllm:spec_decode_num_draft_tokens_total counter",
      "vllm:spec_decode_num_accepted_tokens_total counter",
      "vllm:spec_decode_num_accepted_tokens_per_pos_total counter",
      "vllm:prompt_tokens_total counter",
      "vllm:generation_tokens_total counter",
      "vllm:prompt_tokens_cached_total counter",
      "sluice:unguarded_prompts_total counter",
      "sluice:body_bytes_in_flight gauge",
      "vllm:request_success_total counter",
      "vllm:time_to_first_token_seconds histogram",
      "vllm:inter_token_latency_seconds histogram",
      "vllm:request_time_per_output_token_seconds histogram",
      "vllm:e2e_request_latency_seconds histogram",
      "vllm:request_queue_time_seconds histogram",
      "vllm:request_inference_time_seconds histogram",
      "vllm:request_prefill_time_seconds histogram",
      "vllm:request_decode_time_seconds histogram",
      "vllm:request_prompt_tokens histogram",
      "vllm:request_generation_tokens histogram",
      "vllm:request_params_n histogram",
      "vllm:request_params_max_tokens histogram",
    ])
    expect(text).toContain('\nvllm:prompt_tokens_total{engine="0",model_name="m"} 0.0\n')
    expect(lines(text, "vllm:request_success_total").sort()).toEqual(
      ["abort", "error", "length", "repetition", "stop"].map((reason) => `{finished_reason="${reason}"} 0.0`),
    )
  })

  test("have the reference's buckets", () => {
    const text = createMetrics({ modelName: "m", contextTokensMax: 40_960 }).render(idle)
    expect(bounds(text, "vllm:e2e_request_latency_seconds")).toEqual([
      ...[0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
    ])
    expect(bounds(text, "vllm:time_to_first_token_seconds")).toEqual([
      ...[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640],
      2560,
    ])
    expect(bounds(text, "vllm:inter_token_latency_seconds")).toEqual([
      ...[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
    ])
    expect(bounds(text, "vllm:request_params_n")).toEqual([1, 2, 5, 10, 20])
    expect(bounds(text, "vllm:request_prompt_tokens")).toEqual([
      ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000],
    ])
  })

  test("show the engine's gauges as they are when asked", () => {
    const metrics = createMetrics({ modelName: "m", contextTokensMax: 100 })
    metrics.render({ ...idle, running: 9, waiting: 9, kvCacheUsage: 1 })
    const text = metrics.render({ ...idle, running: 3, waiting: 2, kvCacheUsage: 0.25 })
    expect(lines(text, "vllm:num_requests_running")).toEqual(["{} 3.0"])
    expect(lines(text, "vllm:num_requests_waiting")).toEqual(["{} 2.0"])
    expect(lines(text, "vllm:kv_cache_usage_perc")).toEqual(["{} 0.25"])
  })

  test("show what engines report for themselves, by rank, and their totals once", () => {
    const metrics = createMetrics({ modelName: "m", contextTokensMax: 100 })
    const engine = {
      rank: 1,
      running: 3,
      waiting: 2,
      kvCacheUsage: 0.25,
      counters: {
        preemptions: 1,
        prefixCacheQueries: 40,
        prefixCacheHits: 32,
        externalCacheQueries: 0,
        externalCacheHits: 0,
        drafts: 2,
        draftTokens: 6,
        acceptedTokens: 5,
        acceptedTokensPerPosition: [2, 2, 1],
      },
      cacheBlockTokens: 16,
      cacheBlocks: 1_000,
      lora: { running: ["sql", "de"], waiting: [], max: 2 },
    }
    const status = { running: 3, waiting: 2, kvCacheUsage: 0.25, engines: [engine] }
    metrics.render(status)
    const text = metrics.render(status)
    const shown = text.split("\n").filter((line) => line.includes('engine="1"'))
    expect(shown.map((line) => line.replace(',model_name="m"', "").replace(/(lora_requests_info.*) .*/, "$1"))).toEqual(
      [
        'vllm:num_requests_running{engine="1"} 3.0',
        'vllm:num_requests_waiting{engine="1"} 2.0',
        'vllm:kv_cache_usage_perc{engine="1"} 0.25',
        'vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="1000"} 1.0',
        'vllm:lora_requests_info{engine="1",max_lora="2",running_lora_adapters="sql,de",waiting_lora_adapters=""}',
        'vllm:num_preemptions_total{engine="1"} 1.0',
        'vllm:prefix_cache_queries_total{engine="1"} 40.0',
        'vllm:prefix_cache_hits_total{engine="1"} 32.0',
        'vllm:external_prefix_cache_queries_total{engine="1"} 0.0',
        'vllm:external_prefix_cache_hits_total{engine="1"} 0.0',
        'vllm:spec_decode_num_drafts_total{engine="1"} 2.0',
        'vllm:spec_decode_num_draft_tokens_total{engine="1"} 6.0',
        'vllm:spec_decode_num_accepted_tokens_total{engine="1"} 5.0',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 2.0',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="1"} 2.0',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="2"} 1.0',
      ],
    )
  })

  test("count an ended choice with its times", () => {
    const metrics = createMetrics({ modelName: "m", contextTokensMax: 100 })
    metrics.started(2, 64)
    metrics.tokens(usage.promptTokens, usage.outputTokens)
    metrics.choiceEnded({ finish: "stop", usage, timing }, 10, 14)
    const text = metrics.render(idle)
    const sumAndCount = (name: string): string[] => lines(text, name).filter((line) => /^_(sum|count)/.test(line))
    expect(lines(text, "vllm:prompt_tokens_total")).toEqual(["{} 7.0"])
    expect(lines(text, "vllm:generation_tokens_total")).toEqual(["{} 5.0"])
    expect(lines(text, "vllm:prompt_tokens_cached_total")).toEqual(["{} 3.0"])
    expect(lines(text, "vllm:request_success_total")).toContain('{finished_reason="stop"} 1.0')
    for (const [name, sum, count] of [
      ["time_to_first_token_seconds", "1.0", "1.0"],
      ["inter_token_latency_seconds", "2.0", "4.0"],
      ["request_time_per_output_token_seconds", "0.5", "1.0"],
      ["e2e_request_latency_seconds", "4.0", "1.0"],
      ["request_queue_time_seconds", "0.25", "1.0"],
      ["request_inference_time_seconds", "2.5", "1.0"],
      ["request_prefill_time_seconds", "0.5", "1.0"],
      ["request_decode_time_seconds", "2.0", "1.0"],
      ["request_prompt_tokens", "7.0", "1.0"],
      ["request_generation_tokens", "5.0", "1.0"],
      ["request_params_n", "2.0", "1.0"],
      ["request_params_max_tokens", "64.0", "1.0"],
    ] as const) {
      expect([name, ...sumAndCount(`vllm:${name}`)]).toEqual([name, `_sum{} ${sum}`, `_count{} ${count}`])
    }
  })

  test("leave out times that are unknown, and choices that did not end by themselves", () => {
    const metrics = createMetrics({ modelName: "m", contextTokensMax: 100 })
    const unknown = { queuedAt: -1, scheduledAt: -1, firstTokenAt: -1, lastTokenAt: -1, firstTokenCameAt: -1 }
    metrics.choiceEnded({ finish: "length", usage: { ...usage, cachedTokens: -1 }, timing: unknown }, 10, 14)
    metrics.choiceEnded({ finish: null, usage, timing }, 10, 14)
    const text = metrics.render(idle)
    expect(lines(text, "vllm:prompt_tokens_cached_total")).toEqual(["{} 3.0"])
    for (const name of ["time_to_first_token", "inter_token_latency", "request_queue_time", "request_decode_time"]) {
      expect(lines(text, `vllm:${name}_seconds`).at(-1)).toBe("_count{} 0.0")
    }
    expect(lines(text, "vllm:e2e_request_latency_seconds").at(-1)).toBe("_count{} 1.0")
  })

  test("of HTTP count by method, status class and route, and bound the methods", () => {
    const metrics = createMetrics({ modelName: "m", contextTokensMax: 100 })
    metrics.http("POST", "/v1/chat/completions", 200, 0.05)
    metrics.http("POST", "/v1/chat/completions", 201, 0.5)
    metrics.http("POST", "/v1/chat/completions", 404, 2)
    for (let i = 0; i < 1_000; i++) metrics.http(`M${i}`, "none", 405, 0)
    const text = metrics.render(idle)
    expect(lines(text, "http_requests_total")).toEqual([
      '{handler="/v1/chat/completions",method="POST",status="2xx"} 2.0',
      '{handler="/v1/chat/completions",method="POST",status="4xx"} 1.0',
      '{handler="none",method="other",status="4xx"} 1000.0',
    ])
    expect(lines(text, "http_request_duration_seconds").slice(0, 6)).toEqual([
      '_bucket{handler="/v1/chat/completions",le="0.1",method="POST"} 1.0',
      '_bucket{handler="/v1/chat/completions",le="0.5",method="POST"} 2.0',
      '_bucket{handler="/v1/chat/completions",le="1.0",method="POST"} 2.0',
      '_bucket{handler="/v1/chat/completions",le="+Inf",method="POST"} 3.0',
      '_sum{handler="/v1/chat/completions",method="POST"} 2.55',
      '_count{handler="/v1/chat/completions",method="POST"} 3.0',
    ])
    expect(lines(text, "http_request_duration_highr_seconds").at(-1)).toBe("_count 1003.0")
  })
})
