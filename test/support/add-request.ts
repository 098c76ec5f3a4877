import type { AddRequest } from "../../src/engine/vllm/add-request"
import type { GenerateRequest } from "../../src/ir/generate-request"
import type { SamplingParams } from "../../src/ir/sampling"

/** Sampling parameters with every field at its default, and `change` on top. */
export function samplingParams(change: Partial<SamplingParams> = {}): SamplingParams {
  return {
    temperature: 1,
    topP: 1,
    topK: 0,
    minP: 0,
    presencePenalty: 0,
    frequencyPenalty: 0,
    repetitionPenalty: 1,
    seed: null,
    maxTokens: 16,
    minTokens: 0,
    stop: [],
    includeStopStrInOutput: false,
    stopTokenIds: [],
    ignoreEos: false,
    skipSpecialTokens: true,
    spacesBetweenSpecialTokens: true,
    logprobs: null,
    promptLogprobs: null,
    logprobTokenIds: null,
    logitBias: null,
    allowedTokenIds: null,
    badWords: [],
    structuredOutputs: null,
    thinkingTokenBudget: null,
    watermarking: null,
    repetitionDetection: null,
    extraArgs: null,
    ...change,
  }
}

/** A request to an engine with every field at its default, and `change` on top. */
export function addRequest(
  change: Partial<AddRequest> & Partial<GenerateRequest> & { readonly sampling?: SamplingParams } = {},
): AddRequest {
  const { engineRequestId, arrivalTime, clientIndex, currentWave, badWordTokenIds, mediaFeatures, ...request } = change
  return {
    engineRequestId: engineRequestId ?? "req-1-00000000-000000000000",
    arrivalTime: arrivalTime ?? 1_795_954_105.5,
    clientIndex: clientIndex ?? 0,
    currentWave: currentWave ?? 0,
    badWordTokenIds: badWordTokenIds ?? [],
    mediaFeatures: mediaFeatures ?? [],
    request: {
      requestId: "req-1",
      promptTokenIds: Uint32Array.of(1, 2, 3),
      sampling: samplingParams(),
      eosTokenIds: [],
      priority: 0,
      cacheSalt: null,
      sessionId: null,
      dataParallelRank: null,
      traceHeaders: null,
      ...change.request,
      ...request,
    },
  }
}
