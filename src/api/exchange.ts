import type { ReadingOptions } from "../generate/generate"
import type { GenerateRequest, LoraAdapter } from "../ir/generate-request"
import type { SamplingParams } from "../ir/sampling"
import type { Prepared } from "../prompt/prepare"
import { err, ok, type Result } from "../result"
import type { Exchange, LowerContext, Lowered } from "./endpoint"
import { type ApiError, invalid } from "./errors"
import { constrainReply, type ReplyConstraint } from "./reply-constraint"
import type { PromptRoom } from "./room"
import { replyTokens, wantedTokens } from "./sampling"

/**
 * A lowered request → its prompts' ids and its effective sampling. The one road down: what is generated here
 * (api/serve) and what is only rendered for an engine elsewhere (api/scale-out) both come out of it, so that they are
 * the same by construction. `adapter` null = the served model itself. Source: RENDER 3.
 */
export function makeExchange<Ask>(
  lowered: Lowered<Ask>,
  room: PromptRoom,
  context: LowerContext,
  adapter: LoraAdapter | null,
): Result<Exchange<Ask>, ApiError> {
  const prompts: Prepared[] = []
  for (const input of lowered.prompts) {
    const prepared = room.preparer.prepare(input, lowered.truncation)
    if (!prepared.ok) return prepared
    prompts.push(prepared.value)
  }
  const { sampling } = lowered
  if (lowered.parsing.isChat && room.chatParser.needsSpecialTokens) sampling.skipSpecialTokens = false
  const constraint = constrain(lowered, prompts, room)
  sampling.structuredOutputs = constraint.structuredOutputs
  sampling.maxTokens = replyTokens(lowered.replyTokensMax, prompts[0]!.tokenIds.length, context)
  const media = lowered.media ?? null
  const isOpenEnded = media?.contentParts != null && wantedTokens(lowered.replyTokensMax, context) === null
  if (sampling.minTokens > sampling.maxTokens) {
    const { minTokens, maxTokens } = sampling
    return err(
      invalid("min_tokens", `min_tokens must be less than or equal to max_tokens=${maxTokens}, got ${minTokens}.`),
    )
  }
  return ok({
    id: lowered.id,
    createdAt: room.unixTime(),
    model: adapter?.name ?? room.facts.names[0]!,
    ask: lowered.ask,
    prompts,
    media,
    isOpenEnded,
    choicesPerPrompt: lowered.choicesPerPrompt,
    sampling,
    reasoningEnded: constraint.reasoningEnded,
    facts: room.facts,
    config: room.config,
  })
}

/** The sampling of one prompt: its own length decides how long its reply may be. */
export function samplingOf<Ask>(
  lowered: Lowered<Ask>,
  exchange: Exchange<Ask>,
  promptIndex: number,
  context: LowerContext,
): SamplingParams {
  const promptTokens = exchange.prompts[promptIndex]!.tokenIds.length
  return { ...exchange.sampling, maxTokens: replyTokens(lowered.replyTokensMax, promptTokens, context) }
}

/** Chat replies may have reasoning before what the constraint is for, and calls in its place. */
function constrain<Ask>(lowered: Lowered<Ask>, prompts: readonly Prepared[], room: PromptRoom): ReplyConstraint {
  const { config, chatParser } = room
  const { structuredOutputs } = lowered.sampling
  const [conversation] = lowered.prompts
  if (!lowered.parsing.isChat || conversation?.kind !== "conversation") {
    return { structuredOutputs, reasoningEnded: lowered.reasoningEnded ?? null }
  }
  const { parallelToolCalls } = lowered
  const request = { conversation, parallelToolCalls, structuredOutputs }
  const backend = config.vllm.structuredOutputsBackend
  const takesTags = backend === "auto" || backend === "xgrammar"
  return constrainReply(request, prompts[0]!.tokenIds, config.toolStrictLevel, takesTags, chatParser)
}

/** Fields of a `GenerateRequest` that a request's headers say. */
export function headerFields(headers: Headers): Pick<GenerateRequest, "dataParallelRank" | "traceHeaders"> {
  return {
    dataParallelRank: intHeader(headers.get("x-data-parallel-rank")),
    traceHeaders: traceHeaders(headers),
  }
}

function intHeader(value: string | null): number | null {
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) : null
}

/** W3C trace context, forwarded as it came. */
function traceHeaders(headers: Headers): { readonly [name: string]: string } | null {
  const traceparent = headers.get("traceparent")
  if (traceparent === null) return null
  const tracestate = headers.get("tracestate")
  return tracestate === null ? { traceparent } : { traceparent, tracestate }
}

/** How the output is read: the same whether it is generated here or comes from an engine elsewhere. */
export function readingOf(
  lowered: Lowered<unknown>,
  room: Pick<PromptRoom, "chatParser" | "textParser">,
): ReadingOptions {
  return {
    parser: lowered.parsing.isChat ? room.chatParser : room.textParser,
    parseCalls: lowered.parsing.calls,
    wantsSteps: lowered.wantsSteps,
    intervalTokens: lowered.intervalTokens,
    includeReasoning: lowered.includeReasoning,
    parallelToolCalls: lowered.parallelToolCalls,
  }
}
