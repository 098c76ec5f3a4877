import type { Json } from "../../ir/conversation"
import { type EngineError, type EngineOutput, Finish, finishCode } from "../../ir/engine"
import { promptLogprobRows, tokenLogprobRows } from "../../ir/logprob-json"

/** Ids are integers of 31 bits; one that no vocabulary here has is still a token, and has no text. */
const tokenIdMax = 2 ** 31 - 1

type Fields = { readonly [name: string]: Json }

/** What one event of a generate stream was. */
export type ChunkKind = "tokens" | "usage" | "error" | "malformed"

/**
 * Reads one event of a generate stream into `output`, which keeps what the event does not say. `error` is the last
 * failure that an event told.
 */
export class ChunkReader {
  error: EngineError | null = null
  private readonly promptTokenIds: Uint32Array
  private readonly isExpanded: boolean

  /** `isExpanded`: the service makes the prompt longer, and only its counts tell how long. */
  constructor(promptTokenIds: Uint32Array, isExpanded: boolean) {
    this.promptTokenIds = promptTokenIds
    this.isExpanded = isExpanded
  }

  /** Gives what the event was; of `tokens`, the output's ids, finish and logprobs are the event's. */
  read(data: string, output: EngineOutput): ChunkKind {
    let chunk: Json
    try {
      chunk = JSON.parse(data) as Json // JSON.parse gives nothing else
    } catch {
      return "malformed"
    }
    if (!isRecord(chunk)) return "malformed"
    if (isRecord(chunk.error)) {
      this.error = errorOf(chunk.error)
      return "error"
    }
    this.readUsage(chunk, output)
    const { choices } = chunk
    if (!Array.isArray(choices)) return "malformed"
    const [choice] = choices
    if (choice === undefined) return "usage"
    return isRecord(choice) && this.readChoice(choice, chunk, output) ? "tokens" : "malformed"
  }

  private readUsage({ usage }: Fields, output: EngineOutput): void {
    if (this.isExpanded && isRecord(usage) && typeof usage.prompt_tokens === "number") {
      output.promptTokens = usage.prompt_tokens
    }
    const details = isRecord(usage) ? usage.prompt_tokens_details : null
    const cached = isRecord(details) ? details.cached_tokens : null
    if (typeof cached === "number") output.cachedTokens = cached
  }

  private readChoice(choice: Fields, chunk: Fields, output: EngineOutput): boolean {
    const { token_ids: ids, finish_reason: finish = null, stop_reason: stop = null } = choice
    if (!Array.isArray(ids)) return false
    if (output.tokenIds.length < ids.length) output.tokenIds = new Uint32Array(ids.length * 2)
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]
      if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id > tokenIdMax) return false
      output.tokenIds[i] = id
    }
    output.start = 0
    output.end = ids.length
    output.finish = finish === null ? Finish.none : (finishCode(finish) ?? Finish.error)
    output.stopTokenId = typeof stop === "number" ? stop : -1
    output.logprobs = isRecord(choice.logprobs) ? tokenLogprobRows(choice.logprobs.content ?? null, ids.length) : null
    output.promptLogprobs = promptLogprobRows(chunk.prompt_logprobs ?? null, this.promptTokenIds)
    output.kvTransferParams = chunk.kv_transfer_params ?? null
    output.ecTransferParams = chunk.ec_transfer_params ?? null
    return true
  }
}

/** An error body of a service, as ours: what it says to clients is all that is known. */
export function errorOf(body: Fields): EngineError {
  const code = typeof body.code === "number" ? body.code : 500
  const message = typeof body.message === "string" ? body.message : "no reason given"
  return statusError(code, message, typeof body.param === "string" ? body.param : null)
}

/** A refusal by its status: what the client asked for, what another try may get, or neither. */
export function statusError(status: number, message: string, param: string | null): EngineError {
  // A key or a model that the service does not take is the operator's fault, not the client's.
  if (status === 400 || status === 413 || status === 422) return { kind: "engine_validation", message, param }
  if (status === 429 || status === 503) return { kind: "engine_retryable", message }
  return { kind: "engine_failed", message: `${status}: ${message}` }
}

function isRecord(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
