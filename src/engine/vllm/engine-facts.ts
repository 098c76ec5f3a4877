import type { Json } from "../../ir/conversation"
import { err, ok, type Result } from "../../result"
import { type MalformedFrame, MessagePackReader, type MessagePackValue } from "./message-pack-reader"

/** What an engine says of itself when it registers (ENGINE_PROTOCOL 2). Unknown = null; very old ones say nothing. */
export interface EngineFacts {
  /** Prompt and reply together, in tokens. */
  readonly contextTokensMax: number | null
  /** Sequences that one step computes. */
  readonly sequencesMax: number | null
  /** Tokens of a KV cache block, and how many blocks there are. */
  readonly blockTokens: number | null
  readonly blockCount: number | null
  readonly kvCacheTokens: number | null
  readonly version: string | null
  readonly dtype: string | null
  readonly worldSize: number | null
  readonly supportsLora: boolean
  /** Adapters that one step can hold. */
  readonly loraMax: number | null
}

/** The facts of an engine that said nothing. */
export const unknownFacts: EngineFacts = {
  contextTokensMax: null,
  sequencesMax: null,
  blockTokens: null,
  blockCount: null,
  kvCacheTokens: null,
  version: null,
  dtype: null,
  worldSize: null,
  supportsLora: false,
  loraMax: null,
}

/** Reads the registration's payload. Keys that are missing or of another type are unknown; those that are new are left. */
export function readEngineFacts(payload: Uint8Array): Result<EngineFacts, MalformedFrame> {
  if (payload.length === 0) return ok(unknownFacts)
  const fields = readMap(payload)
  if (!fields.ok) return fields
  return ok(factsOf(fields.value))
}

/** The facts in a registration's keys; those that are missing or of another type are unknown. */
export function factsOf(value: { readonly [key: string]: unknown }): EngineFacts {
  return {
    contextTokensMax: count(value.max_model_len),
    sequencesMax: count(value.max_num_seqs),
    blockTokens: count(value.block_size),
    blockCount: count(value.num_gpu_blocks),
    kvCacheTokens: count(value.kv_cache_size_tokens),
    version: text(value.vllm_version),
    dtype: text(value.dtype),
    worldSize: count(value.world_size),
    supportsLora: value.supports_lora === true,
    loraMax: count(value.max_loras),
  }
}

/** A registration that says these facts: what `factsOf` reads. */
export function registrationOf(facts: EngineFacts): { readonly [key: string]: Json } {
  return {
    max_model_len: facts.contextTokensMax,
    max_num_seqs: facts.sequencesMax,
    block_size: facts.blockTokens,
    num_gpu_blocks: facts.blockCount,
    kv_cache_size_tokens: facts.kvCacheTokens,
    vllm_version: facts.version,
    dtype: facts.dtype,
    world_size: facts.worldSize,
    supports_lora: facts.supportsLora,
    max_loras: facts.loraMax,
  }
}

/** A message of the handshake: what the engine is about to do. */
export interface EngineStatusMessage {
  /** `HELLO` or `READY`. */
  readonly status: string
  /** False for engines that also serve HTTP of their own. */
  readonly isHeadless: boolean
}

/** Reads HELLO and READY. */
export function readStatusMessage(payload: Uint8Array): Result<EngineStatusMessage, MalformedFrame> {
  const fields = readMap(payload)
  if (!fields.ok) return fields
  const { status, headless } = fields.value
  if (typeof status !== "string") return err({ kind: "malformed_frame", message: "the status is missing", at: 0 })
  return ok({ status, isHeadless: headless !== false })
}

function readMap(payload: Uint8Array): Result<{ readonly [key: string]: MessagePackValue }, MalformedFrame> {
  const reader = new MessagePackReader()
  reader.reset(payload)
  const value = reader.readValue()
  if (reader.failed) return err(reader.failure())
  const isMap = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
  if (!isMap) return err({ kind: "malformed_frame", message: "a map was expected", at: 0 })
  return ok(value as { readonly [key: string]: MessagePackValue }) // a plain object is what maps are read as
}

function count(value: unknown): number | null {
  return typeof value === "number" && value > 0 && Number.isSafeInteger(value) ? value : null
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null
}
