/**
 * What vLLM's command line and environment know and we do not build yet. Such a flag ends the start with "not supported
 * yet" rather than being taken and ignored; such a variable gives a warning, because environments are often shared.
 * Source: vLLM 0.33.0, `vllm serve --help`.
 */

/** Flags of vLLM that are refused, without the two dashes. */
export const unsupportedFlags: ReadonlySet<string> = new Set(
  `
  grpc grpc-port headless tool-parser-plugin reasoning-parser-plugin tool-strict-level tool-server enable-scale-out
  tokens-only enable-tokenizer-info-endpoint enable-log-deltas log-error-stack fingerprint-mode fingerprint-value
  ssl-cert-reqs ssl-ciphers enable-ssl-refresh middleware uvicorn-log-level h11-max-incomplete-event-size
  h11-max-header-count max-num-queued-tokens enable-lora lora-modules max-loras max-lora-rank max-cpu-loras
  lora-dtype fully-sharded-loras default-mm-loras log-config-file disable-frontend-multiprocessing
  model-impl runner convert task dtype seed hf-config-path hf-token hf-overrides code-revision tokenizer-revision
  skip-tokenizer-init trust-remote-code allowed-local-media-path allowed-media-domains config-format logits-processors
  logprobs-mode enable-prompt-embeds enable-sleep-mode disable-sliding-window disable-cascade-attn pooler-config
  load-format model-loader-extra-config ignore-patterns use-tqdm-on-load safetensors-load-strategy pt-load-map-location
  quantization enforce-eager max-seq-len-to-capture io-processor-plugin
  tensor-parallel-size pipeline-parallel-size data-parallel-size data-parallel-rank data-parallel-start-rank
  data-parallel-size-local data-parallel-address data-parallel-rpc-port data-parallel-backend data-parallel-hybrid-lb
  data-parallel-external-lb enable-expert-parallel enable-eplb eplb-config decode-context-parallel-size
  prefill-context-parallel-size distributed-executor-backend max-parallel-loading-workers ray-workers-use-nsight
  disable-custom-all-reduce worker-cls worker-extension-cls nnodes node-rank master-addr master-port all2all-backend
  block-size gpu-memory-utilization swap-space kv-cache-dtype kv-cache-memory-bytes num-gpu-blocks-override
  enable-prefix-caching prefix-caching-hash-algo cpu-offload-gb calculate-kv-scales kv-offloading-size
  kv-offloading-backend kv-sharing-fast-prefill mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size
  limit-mm-per-prompt media-io-kwargs mm-processor-kwargs mm-processor-cache-gb mm-processor-cache-type
  mm-encoder-tp-mode mm-encoder-only interleave-mm-strings skip-mm-profiling video-pruning-rate
  max-num-batched-tokens max-num-seqs max-num-partial-prefills max-long-partial-prefills long-prefill-token-threshold
  enable-chunked-prefill num-lookahead-slots scheduling-policy scheduler-cls async-scheduling
  scheduler-reserve-full-isl disable-hybrid-kv-cache-manager disable-chunked-mm-input preemption-mode
  speculative-config kv-transfer-config kv-events-config ec-transfer-config compilation-config additional-config
  structured-outputs-config reasoning-config attention-backend attention-config kernel-config profiler-config
  optimization-level
  show-hidden-metrics-for-version otlp-traces-endpoint collect-detailed-traces kv-cache-metrics cudagraph-metrics
  enable-layerwise-nvtx-tracing enable-mfu-metrics enable-logging-iteration-details
  disable-log-stats aggregate-engine-logging enable-log-stats
  `
    .split(/\s+/)
    .filter((name) => name !== ""),
)

/** Variables of vLLM that are warned about when they are set. */
export const unsupportedVariables: readonly string[] = [
  "VLLM_SERVER_DEV_MODE",
  "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
  "VLLM_ENABLE_RESPONSES_API_STORE",
  "VLLM_ENABLE_SCALE_OUT_ENDPOINTS",
  "VLLM_HTTP_TIMEOUT_KEEP_ALIVE",
  "VLLM_RS_REQUEST_WORKER_THREADS",
  "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH",
  "VLLM_DEBUG_LOG_API_SERVER_RESPONSE",
  "VLLM_LOG_STATS_INTERVAL",
  "VLLM_SYSTEM_START_DATE",
  "VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS",
  "VLLM_ENFORCE_STRICT_TOOL_CALLING",
  "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS",
  "VLLM_ENABLE_COHERE_API",
]

/** vLLM's short spellings of engine flags, as in `-tp 2` or `-O3`. */
export const unsupportedShortFlags: ReadonlySet<string> = new Set(
  "tp pp dp dpn dpr dps dpl dpa dpp dpb dph dpe ep dcp pcp tpl n r q O O0 O1 O2 O3 cc asc ac sc".split(" "),
)
