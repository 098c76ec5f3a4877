import type { PromptInput } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import type { LowerContext, Lowered } from "../endpoint"
import { type InvalidRequest, invalid } from "../errors"
import {
  asNumber,
  lowerReply,
  lowerReplySampling,
  lowerUsageOptions,
  replyFault,
  replyTokensFault,
  requestId,
  sessionId,
} from "../reply-fields"
import type { CompletionBody } from "./schema"

/** What both views of a completion must know. */
export interface CompletionAsk {
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  /** Alternatives for each token; null = no logprobs. */
  readonly logprobs: number | null
  readonly tokensAsIds: boolean
  readonly returnTokenIds: boolean
  readonly echo: boolean
  /** `max_tokens: 0`: the prompt is scored, the one token that the engine makes is thrown away. */
  readonly promptOnly: boolean
}

/** Tokens of a reply when the client names no limit; the API's own old default. */
const replyTokensDefault = 16

/** Completions body → the intermediate representation (CHAT 7). */
export function lowerCompletion(
  body: CompletionBody,
  context: LowerContext,
): Result<Lowered<CompletionAsk>, InvalidRequest> {
  const fault = replyFault(body, context) ?? completionFault(body, context)
  if (fault !== null) return err(fault)
  const prompts = lowerPrompts(body, context)
  if (!prompts.ok) return prompts

  const { config } = context
  const echo = body.echo ?? false
  const logprobs = body.logprobs ?? null
  const promptLogprobs = body.prompt_logprobs ?? (echo ? logprobs : null)
  const sampling = lowerReplySampling(body, logprobs, promptLogprobs, context)
  if (!sampling.ok) return sampling
  const usage = lowerUsageOptions(body, context)
  const returnTokenIds = body.return_token_ids ?? false
  const asked = asNumber(body.max_tokens) ?? replyTokensDefault
  return ok({
    id: `cmpl-${requestId(body.request_id ?? null, context)}`,
    prompts: prompts.value,
    sampling: sampling.value,
    replyTokensMax: Math.max(1, asked),
    parsing: { isChat: false, calls: false },
    includeReasoning: true,
    parallelToolCalls: true,
    wantsSteps: logprobs !== null || promptLogprobs !== null || returnTokenIds || usage.continuousUsage,
    ...lowerReply(body, context),
    sessionId: sessionId(body.session_id ?? null, context),
    ask: {
      ...usage,
      logprobs: logprobs !== null && sampling.value.logprobTokenIds !== null ? -1 : logprobs,
      tokensAsIds: body.return_tokens_as_token_ids ?? config.returnTokensAsTokenIds,
      returnTokenIds,
      echo,
      promptOnly: asked === 0,
    },
  })
}

function completionFault(body: CompletionBody, context: LowerContext): InvalidRequest | null {
  if (body.prompt_embeds != null) return invalid("prompt_embeds", "prompt_embeds are not supported by this server.")
  if (body.suffix != null && body.suffix !== "") {
    return invalid("suffix", "suffix is only supported for models with fill-in-the-middle prompts.")
  }
  if (body.max_tokens === 0 && body.echo === true) return null
  return replyTokensFault(body.max_tokens ?? null, "max_tokens", context)
}

function lowerPrompts(body: CompletionBody, context: LowerContext): Result<PromptInput[], InvalidRequest> {
  const { completionPromptsMax } = context.config.limits
  const prompt = body.prompt ?? []
  const addSpecialTokens = body.add_special_tokens ?? true
  const list = isIdList(prompt) ? [prompt] : typeof prompt === "string" ? [prompt] : prompt
  if (list.length > completionPromptsMax) {
    return err(invalid("prompt", `prompt has ${list.length} entries; the limit is ${completionPromptsMax}.`))
  }
  const { choicesMax } = context.config.limits
  if (list.length * (body.n ?? 1) > choicesMax) {
    return err(invalid("n", `prompts × n must be at most ${choicesMax}.`))
  }
  if (list.length === 0 || list.some((each) => each.length === 0)) {
    return err(invalid("prompt", "A prompt must be given, and none may be empty."))
  }
  return ok(
    list.map((each) =>
      typeof each === "string" ? { kind: "text", text: each, addSpecialTokens } : { kind: "token_ids", tokenIds: each },
    ),
  )
}

function isIdList(prompt: NonNullable<CompletionBody["prompt"]>): prompt is number[] {
  return Array.isArray(prompt) && typeof prompt[0] === "number"
}
