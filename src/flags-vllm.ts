/**
 * What vLLM's command line and environment know beyond the flag table. Flags that only an engine knows are handed on to
 * an engine that we start. A flag that we would have to follow and do not ends the start with "not supported yet" rather
 * than being taken and ignored; such a variable gives a warning, because environments are often shared.
 * Source: `vllm serve --help=all` of 0.32.0 and 0.33.0.
 */
import { type Flag, passedOn } from "./flags-fields"

const switches = words(`
  trust-remote-code allow-deprecated-quantization enforce-eager enable-return-routed-experts return-sampling-mask
  use-fp64-gumbel enable-trace-replay disable-sliding-window disable-cascade-attn skip-tokenizer-init
  enable-prompt-embeds enable-sleep-mode sleep-mode-offload-cudagraph enable-cumem-allocator
  enable-nccl-comm-suspend use-tqdm-on-load enable-mamba-cache-stochastic-rounding numa-bind dcp-q-replicate
  enable-hc-sp enable-expert-parallel enable-batch-sharded-sampling enable-ep-weight-filter enable-dbo
  enable-shm-tensor-arena disable-nccl-for-dp-synchronization enable-eplb ray-workers-use-nsight
  disable-custom-all-reduce enable-fault-tolerance enable-prefix-caching kv-sharing-fast-prefill swa-bounded-replay
  enable-mamba-shared-prefix-checkpoint use-replayssm language-model-only enable-mm-embeds mm-encoder-only
  interleave-mm-strings skip-mm-profiling mm-device-do-normalize enable-lora enable-tower-connector-lora
  fully-sharded-loras specialize-active-lora enable-mixed-moe-lora-format enable-moe-shared-loras kv-cache-metrics
  cudagraph-metrics enable-layerwise-nvtx-tracing enable-mfu-metrics enable-logging-iteration-details
  jit-monitor-verbose long-prefill-token-threshold-adaptive enable-chunked-prefill disable-chunked-mm-input
  scheduler-reserve-full-isl disable-hybrid-kv-cache-manager async-scheduling enable-flashinfer-autotune
`)

/** These have no `--no-` form. */
const plainSwitches = words(`
  disable-log-stats aggregate-engine-logging
`)

const withOneValue = words(`
  dtype seed hf-config-path code-revision quantization quantization-config logprobs-mode config-format hf-overrides
  model-class-overrides model-impl load-format safetensors-load-strategy safetensors-prefetch-num-threads
  safetensors-prefetch-block-size model-loader-extra-config pt-load-map-location attention-backend mamba-backend
  mamba-ssu-algorithm mamba-cache-philox-rounds distributed-executor-backend pipeline-parallel-size master-addr
  master-port nnodes node-rank distributed-timeout-seconds cpu-distributed-timeout-seconds device-ids
  tensor-parallel-size decode-context-parallel-size dcp-comm-backend dcp-kv-cache-interleave-size
  cp-kv-cache-interleave-size prefill-context-parallel-size all2all-backend ubatch-size dbo-decode-token-threshold
  dp-sync-interval dbo-prefill-token-threshold eplb-config expert-placement-strategy max-parallel-loading-workers
  worker-cls worker-extension-cls fault-tolerance-config block-size gpu-memory-utilization device-memory-utilization
  kv-cache-memory-bytes kv-cache-dtype num-gpu-blocks-override prefix-caching-hash-algo
  prefix-cache-retention-interval mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size prefix-match-unit
  mamba-cache-mode replayssm-buffer-len kv-offloading-size kv-offloading-backend offload-backend cpu-offload-gb
  offload-group-size offload-num-in-group offload-prefetch-step limit-mm-per-prompt mm-processor-kwargs
  mm-processor-cache-gb mm-processor-cache-type mm-hasher-algorithm mm-shm-cache-max-object-size-mb
  mm-encoder-tp-mode mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path
  mm-encoder-fp8-scale-save-path mm-encoder-fp8-scale-save-margin video-pruning-rate video-pruning-method
  mm-tensor-ipc mm-processor-device mm-ipc-gpu-memory-gb max-loras max-lora-rank lora-dtype max-cpu-loras
  max-lora-cls-labels log-level kv-cache-metrics-sample jit-monitor-mode max-num-batched-tokens
  max-num-scheduled-tokens max-num-seqs max-num-active-seqs long-prefill-token-threshold scheduling-policy
  scheduler-cls watermark prefill-schedule-interval max-cudagraph-capture-size ir-op-priority moe-backend
  linear-backend sparse-indexer-topk-backend speculative-config spec-method spec-model spec-tokens watermark-config
  diffusion-config kv-transfer-config kv-events-config ec-transfer-config ec-manager-config compilation-config
  attention-config engram-config reasoning-config kernel-config additional-config aux-output-config profiler-config
  optimization-level performance-mode weight-transfer-config gdn-prefill-backend kda-prefill-backend
  kda-decode-backend
`)

const withSeveralValues = words(`
  sleep-preserve-parameter-names logits-processors ignore-patterns numa-bind-nodes numa-bind-cpus
  kv-cache-dtype-skip-layers cpu-offload-params offload-params lora-target-modules cudagraph-capture-sizes
`)

/** Flags that only an engine knows. */
export const engineOnlyFlags: readonly Flag[] = [
  ...switches.map((name) => passedOn(name, "switch", `--no-${name}`)),
  ...plainSwitches.map((name) => passedOn(name, "switch", null)),
  ...withOneValue.map((name) => passedOn(name, "one", null)),
  ...withSeveralValues.map((name) => passedOn(name, "many", null)),
]

/** vLLM's short spellings of flags that only an engine knows, as in `-tp 2`. */
export const engineShortFlags: { readonly [short: string]: string } = {
  q: "quantization",
  pp: "pipeline-parallel-size",
  n: "nnodes",
  r: "node-rank",
  tp: "tensor-parallel-size",
  dcp: "decode-context-parallel-size",
  pcp: "prefill-context-parallel-size",
  ep: "enable-expert-parallel",
  sc: "speculative-config",
  dc: "diffusion-config",
  cc: "compilation-config",
  ac: "attention-config",
  O: "optimization-level",
}

/** Flags of vLLM that are refused, without the two dashes. */
export const unsupportedFlags: ReadonlySet<string> = new Set(
  words(`
  grpc grpc-port headless tool-parser-plugin reasoning-parser-plugin tool-server
  enable-tokenizer-info-endpoint enable-log-deltas log-error-stack fingerprint-mode fingerprint-value
  ssl-cert-reqs ssl-ciphers enable-ssl-refresh middleware uvicorn-log-level h11-max-incomplete-event-size
  h11-max-header-count max-num-queued-tokens default-mm-loras log-config-file runner convert task pooler-config
  hf-token tokenizer-revision allowed-local-media-path allowed-media-domains media-io-kwargs io-processor-plugin
  data-parallel-rank data-parallel-start-rank data-parallel-backend data-parallel-hybrid-lb
  data-parallel-external-lb data-parallel-multi-port-external-lb data-parallel-supervisor-port
  dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s dp-supervisor-probe-failure-threshold
  enable-elastic-ep elastic-ep-max-dp-size otlp-traces-endpoint collect-detailed-traces
  show-hidden-metrics-for-version custom-histogram-buckets cohere-is-reasoning-model
  anthropic-disabled-thinking-effort enable-flash-late-interaction renderer-num-workers
  per-request-spec-decode-metrics fail-on-environ-validation logging-config calculate-kv-scales
  disable-frontend-multiprocessing enable-log-stats max-long-partial-prefills max-num-partial-prefills
  max-seq-len-to-capture num-lookahead-slots preemption-mode swap-space
`),
)

/** The same for short spellings. */
export const unsupportedShortFlags: ReadonlySet<string> = new Set(words("dpn dpr dpb dph dpe dpm tpl"))

/** Variables of vLLM that are warned about when they are set. */
export const unsupportedVariables: readonly string[] = [
  "VLLM_SERVER_DEV_MODE",
  "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
  "VLLM_ENABLE_RESPONSES_API_STORE",
  "VLLM_HTTP_TIMEOUT_KEEP_ALIVE",
  "VLLM_RS_REQUEST_WORKER_THREADS",
  "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH",
  "VLLM_DEBUG_LOG_API_SERVER_RESPONSE",
  "VLLM_LOG_STATS_INTERVAL",
  "VLLM_ENFORCE_STRICT_TOOL_CALLING",
  "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS",
  "VLLM_ENABLE_COHERE_API",
]

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
