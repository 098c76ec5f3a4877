import type { Json } from "../../ir/conversation"
import type { LogprobRows } from "../../ir/engine"
import { err, ok, type Result } from "../../result"
import { ArrayReader } from "./array-reader"
import { KeyMemory } from "./key-memory"
import { type MalformedFrame, MessagePackReader, skipValue } from "./message-pack-reader"
import { OutputField, type OutputsBatch } from "./outputs-batch"
import { type RequestIds, serialAt, slotAt } from "./request-id"

/** Moments of one sequence in one message; seconds on the engine's monotonic clock, -1 = not in this message. */
export interface OutputEvents {
  readonly queuedAt: number
  readonly scheduledAt: number
  /** Times it was put back for want of memory. */
  readonly preemptions: number
}

/** How the prompt was computed; tokens. */
export interface PrefillStats {
  readonly promptTokens: number
  readonly computedTokens: number
  readonly cachedTokens: number
  readonly localCachedTokens: number
  readonly externalCachedTokens: number
  readonly cacheCreationTokens: number
}

/** Why the engine ended a sequence with finish `error`; 0.33 and later. */
export interface OutputError {
  /** `validation_error`, `engine_paused`, … */
  readonly code: string
  readonly message: string
  readonly retryable: boolean
}

/** Prefix-cache counters: increments since the engine's last message. Tokens, except `requests`. */
export interface PrefixCacheStats {
  readonly reset: boolean
  readonly requests: number
  readonly queries: number
  readonly hits: number
}

/** Speculative decoding in one step: increments. */
export interface SpecDecodeStats {
  readonly drafts: number
  readonly draftTokens: number
  readonly acceptedTokens: number
  readonly acceptedTokensPerPosition: readonly number[]
}

/** The scheduler's state: gauges, and counters since its last message (ENGINE_PROTOCOL 9). */
export interface SchedulerStats {
  readonly running: number
  /** Waiting for room; `skipped` wait for something else (a grammar, transferred memory). */
  readonly waiting: number
  readonly skipped: number
  readonly stepCounter: number
  readonly wave: number
  /** 0–1. */
  readonly kvCacheUsage: number
  readonly prefixCache: PrefixCacheStats
  /** Of the transfer connector; null without one. */
  readonly connectorPrefixCache: PrefixCacheStats | null
  readonly specDecode: SpecDecodeStats | null
  /** Requests by adapter. */
  readonly waitingLora: { readonly [name: string]: number }
  readonly runningLora: { readonly [name: string]: number }
}

/** The answer to a utility call. */
export interface UtilityAnswer {
  /** Exact for the calls that we number. */
  readonly callId: number
  /** The engine's words when the call failed; `result` is then null. */
  readonly failure: string | null
  readonly result: Json
}

/** A sequence that a request id names. */
export interface NamedSequence {
  readonly slot: number
  readonly serial: number
}

type Read<Value> = Result<Value, MalformedFrame>

/** Rows whose arrays only grow, up to what is worth keeping. */
class KeptRows implements LogprobRows {
  width = 1
  tokenIds = new Int32Array(64)
  logprobs = new Float32Array(64)
  ranks = new Int32Array(16)

  reserve(rows: number, width: number): void {
    this.width = width
    const entries = rows * width
    const isWasteful = this.tokenIds.length > keptEntriesMax && entries <= keptEntriesMax
    if (this.tokenIds.length < entries || isWasteful) {
      this.tokenIds = new Int32Array(entries)
      this.logprobs = new Float32Array(entries)
    }
    if (this.ranks.length < rows) this.ranks = new Int32Array(rows)
  }
}

/** Larger arrays (whole vocabularies) are given back when the next rows are small: 1 MB. */
const keptEntriesMax = 131_072

/**
 * Reads the rare fields of a batch's outputs, and the message's own, on demand. Every method reads the batch as it is
 * now; a field that is nil gives null, one that is not what the protocol says gives the fault. Arrays of `logprobs` are
 * reused by its next call; everything else is made for the caller.
 */
export class OutputFields {
  private readonly batch: OutputsBatch
  private readonly ids: RequestIds
  private readonly reader = new MessagePackReader()
  /** Statistics come with every message and always have the same keys; other maps come and go. */
  private readonly statsKeys = new KeyMemory()
  private readonly otherKeys = new KeyMemory()
  private keys = this.otherKeys
  private readonly rows = new KeptRows()
  private readonly tokenIds = new ArrayReader()
  private readonly values = new ArrayReader()
  private readonly ranks = new ArrayReader()
  private readonly readRows: Read<LogprobRows> = ok(this.rows)

  constructor(batch: OutputsBatch, ids: RequestIds) {
    this.batch = batch
    this.ids = ids
  }

  /**
   * Rows of output i, one for each of its new tokens: the sampled token, then its alternatives as they came. Where the
   * sampled token is among them its second mention is dropped (ENGINE_PROTOCOL 8) and the row ends with id -1.
   * Hot (bench/frames.ts) for requests with logprobs: makes no objects but the result's parts named above.
   */
  logprobs(i: number): Read<LogprobRows | null> {
    const { batch } = this
    if (!this.seek(i, OutputField.logprobs)) return nothing
    return this.rowsAt(batch.end[i]! - batch.start[i]!, this.rows)
  }

  /** Rows for prompt tokens 1…; exact arrays of the caller's own. Comes once, with the first output after the prefill. */
  promptLogprobs(i: number): Read<LogprobRows | null> {
    if (!this.seek(i, OutputField.promptLogprobs)) return nothing
    return this.rowsAt(-1, null)
  }

  /** Queue and schedule times, and preemptions. */
  events(i: number): Read<OutputEvents | null> {
    if (!this.seek(i, OutputField.events)) return nothing
    const { reader } = this
    let queuedAt = -1
    let scheduledAt = -1
    let preemptions = 0
    const events = reader.readArraySize()
    for (let event = 0; event < events && !reader.failed; event++) {
      let type = 0
      let timestamp = -1
      this.eachEntry((key) => {
        if (key === "type") type = reader.readInteger()
        else if (key === "timestamp") timestamp = reader.readNumber()
        else return false
        return true
      })
      if (type === 1) queuedAt = timestamp
      else if (type === 2 && scheduledAt < 0) scheduledAt = timestamp
      else if (type === 3) preemptions += 1
    }
    return this.read({ queuedAt, scheduledAt, preemptions })
  }

  /** Token counts of the prefill; with the first output of a sequence. */
  prefillStats(i: number): Read<PrefillStats | null> {
    if (!this.seek(i, OutputField.prefillStats)) return nothing
    const counts = this.numbers()
    return this.read({
      promptTokens: counts.num_prompt_tokens ?? -1,
      computedTokens: counts.num_computed_tokens ?? -1,
      cachedTokens: counts.num_cached_tokens ?? -1,
      localCachedTokens: counts.num_local_cached_tokens ?? -1,
      externalCachedTokens: counts.num_external_cached_tokens ?? -1,
      cacheCreationTokens: counts.num_cache_creation_tokens ?? -1,
    })
  }

  /** What the other side of a transfer must be told, as the engine's connector made it. */
  kvTransferParams(i: number): Read<Json> {
    return this.seek(i, OutputField.kvTransfer) ? this.json() : nothing
  }

  /** The same for encoder caches. */
  ecTransferParams(i: number): Read<Json> {
    return this.seek(i, OutputField.ecTransfer) ? this.json() : nothing
  }

  /** Why the sequence ended with finish `error`, where the engine says so. */
  error(i: number): Read<OutputError | null> {
    if (!this.seek(i, OutputField.error)) return nothing
    const { reader } = this
    let code = ""
    let message = ""
    let retryable = false
    this.eachEntry((key) => {
      if (key === "code") code = reader.readString()
      else if (key === "message") message = reader.readString()
      else if (key === "retryable") retryable = reader.readBoolean()
      else return false
      return true
    })
    return this.read({ code, message, retryable })
  }

  /** Hashes of media that the engine wants to be sent again; empty = none. */
  multimodalMisses(i: number): Read<readonly string[]> {
    if (!this.seek(i, OutputField.multimodalMisses)) return noWords
    const { reader } = this
    const hashes: string[] = []
    const count = reader.readArraySize()
    for (let hash = 0; hash < count && !reader.failed; hash++) hashes.push(reader.readString())
    return this.read(hashes)
  }

  /** The scheduler's gauges and counters; null when this message brings none. */
  schedulerStats(): Read<SchedulerStats | null> {
    if (!this.seekTo(this.batch.schedulerStatsAt)) return nothing
    this.keys = this.statsKeys
    this.keys.begin()
    const { reader } = this
    const counts: { [name: string]: number } = Object.create(null)
    let prefixCache: PrefixCacheStats = { reset: false, requests: 0, queries: 0, hits: 0 }
    let connectorPrefixCache: PrefixCacheStats | null = null
    let specDecode: SpecDecodeStats | null = null
    let waitingLora: { readonly [name: string]: number } = {}
    let runningLora: { readonly [name: string]: number } = {}
    this.eachEntry((key) => {
      if (key === "prefix_cache_stats") prefixCache = this.prefixCache()
      else if (key === "connector_prefix_cache_stats") connectorPrefixCache = this.prefixCache()
      else if (key === "spec_decoding_stats") specDecode = this.specDecode()
      else if (key === "waiting_lora_adapters") waitingLora = this.numbers()
      else if (key === "running_lora_adapters") runningLora = this.numbers()
      else if (countNames.has(key)) counts[key] = reader.readNumber()
      else return false
      return true
    })
    return this.read({
      running: counts.num_running_reqs ?? 0,
      waiting: counts.num_waiting_reqs ?? 0,
      skipped: counts.num_skipped_waiting_reqs ?? 0,
      stepCounter: counts.step_counter ?? 0,
      wave: counts.current_wave ?? 0,
      kvCacheUsage: counts.kv_cache_usage ?? 0,
      prefixCache,
      connectorPrefixCache,
      specDecode,
      waitingLora,
      runningLora,
    })
  }

  /** The answer to a utility call; null when this message brings none. */
  utility(): Read<UtilityAnswer | null> {
    if (!this.seekTo(this.batch.utilityAt)) return nothing
    const { reader } = this
    const fields = reader.readArraySize()
    const callId = reader.readInteger()
    const failure = fields < 2 || reader.takeNil() ? null : reader.readString()
    let result: Json = null
    if (fields >= 3 && !reader.takeNil()) {
      // [type, result]: the type is nil unless the engine serializes Python objects.
      const parts = reader.readArraySize()
      if (parts !== 2) reader.fail("a utility result is a type and a value")
      reader.skip()
      result = reader.readJson()
    }
    return this.read({ callId, failure, result })
  }

  /** Of an answer that `utility` cannot read, which call it is for; null = that cannot be read either. */
  utilityCallId(): number | null {
    if (!this.seekTo(this.batch.utilityAt)) return null
    const { reader } = this
    reader.readArraySize()
    const callId = reader.readInteger()
    return reader.failed ? null : callId
  }

  /** Sequences that ended on the engine, as far as their ids are of this process. */
  finishedRequests(): Read<readonly NamedSequence[]> {
    if (!this.seekTo(this.batch.finishedRequestsAt)) return noSequences
    const { reader, ids } = this
    const found: NamedSequence[] = []
    const count = reader.readArraySize()
    for (let each = 0; each < count && !reader.failed; each++) {
      const { bytes, at } = reader
      reader.skip()
      if (reader.failed || !ids.isOurs(bytes, at, reader.at)) continue
      const slot = slotAt(bytes, reader.at)
      const serial = serialAt(bytes, reader.at)
      if (slot >= 0 && serial >= 0) found.push({ slot, serial })
    }
    return this.read(found)
  }

  /** Puts the reader at a field of output i; false when it is nil. */
  private seek(i: number, field: OutputField): boolean {
    const { batch } = this
    if (i >= batch.count || !batch.has(i, field)) return false
    const body = batch.frames[0]!
    let at = batch.fieldsAt[i]!
    // The decoder has stepped over these fields before, so they are whole.
    for (let skipped = 2; skipped < field; skipped++) at = skipValue(body, at, body.length)
    return this.seekTo(at)
  }

  private seekTo(at: number): boolean {
    if (at < 0) return false
    this.keys = this.otherKeys
    this.keys.begin()
    this.reader.reset(this.batch.frames[0]!, at)
    return true
  }

  private read<Value>(value: Value): Read<Value> {
    return this.reader.failed ? err(this.reader.failure()) : ok(value)
  }

  private json(): Read<Json> {
    return this.read(this.reader.readJson())
  }

  /** Walks a map; keys that `read` does not take (gives false) are stepped over, and so are nil values. */
  private eachEntry(read: (key: string) => boolean): void {
    const { reader } = this
    const entries = reader.readMapSize()
    for (let entry = 0; entry < entries && !reader.failed; entry++) {
      const key = this.keys.read(reader)
      if (!reader.takeNil() && !read(key)) reader.skip()
    }
  }

  /** A map of numbers; other values are left out. */
  private numbers(): { readonly [name: string]: number } {
    const { reader } = this
    const found: { [name: string]: number } = Object.create(null)
    this.eachEntry((key) => {
      if (!isNumber(reader.peek())) return false
      found[key] = reader.readNumber()
      return true
    })
    return found
  }

  private prefixCache(): PrefixCacheStats {
    const { reader } = this
    let reset = false
    let requests = 0
    let queries = 0
    let hits = 0
    this.eachEntry((key) => {
      if (key === "reset") reset = reader.readBoolean()
      else if (key === "requests") requests = reader.readInteger()
      else if (key === "queries") queries = reader.readInteger()
      else if (key === "hits") hits = reader.readInteger()
      else return false
      return true
    })
    return { reset, requests, queries, hits }
  }

  private specDecode(): SpecDecodeStats {
    const { reader } = this
    let drafts = 0
    let draftTokens = 0
    let acceptedTokens = 0
    const acceptedTokensPerPosition: number[] = []
    this.eachEntry((key) => {
      if (key === "num_drafts") drafts = reader.readInteger()
      else if (key === "num_draft_tokens") draftTokens = reader.readInteger()
      else if (key === "num_accepted_tokens") acceptedTokens = reader.readInteger()
      else if (key === "num_accepted_tokens_per_pos") {
        const positions = reader.readArraySize()
        for (let i = 0; i < positions && !reader.failed; i++) acceptedTokensPerPosition.push(reader.readInteger())
      } else return false
      return true
    })
    return { drafts, draftTokens, acceptedTokens, acceptedTokensPerPosition }
  }

  /** `[ids, logprobs, ranks, …]`; `wanted` rows into `into`, or all of them (-1) into arrays of their own (null). */
  private rowsAt(wanted: number, into: KeptRows | null): Read<LogprobRows> {
    const { reader, tokenIds, values, ranks, batch } = this
    if (reader.readArraySize() < 3) reader.fail("logprobs are ids, values and ranks")
    tokenIds.open(reader, batch.frames)
    values.open(reader, batch.frames)
    ranks.open(reader, batch.frames)
    const { columns } = tokenIds
    const rows = wanted < 0 ? tokenIds.rows : wanted
    if (!reader.failed) {
      const isSquare = values.rows === tokenIds.rows && values.columns === columns && ranks.columns === 1
      if (!isSquare || ranks.rows !== tokenIds.rows) reader.fail("the arrays of logprobs differ in shape")
      else if (columns < 1) reader.fail("logprobs lack the sampled token")
      else if (tokenIds.rows < rows) reader.fail("there are fewer rows of logprobs than tokens")
    }
    if (reader.failed) return err(reader.failure())
    const target: KeptRows | LogprobRows = into ?? {
      width: columns,
      tokenIds: new Int32Array(rows * columns),
      logprobs: new Float32Array(rows * columns),
      ranks: new Int32Array(rows),
    }
    into?.reserve(rows, columns)
    for (let row = 0; row < rows; row++) this.copyRow(row, target)
    return into === null ? ok(target) : this.readRows
  }

  private copyRow(row: number, target: LogprobRows): void {
    const { tokenIds, values, ranks } = this
    const { columns } = tokenIds
    const first = row * columns
    const sampled = tokenIds.integer(first)
    let to = first
    for (let from = first; from < first + columns; from++) {
      const id = tokenIds.integer(from)
      if (from > first && id === sampled) continue
      target.tokenIds[to] = id
      target.logprobs[to] = values.float(from)
      to += 1
    }
    for (; to < first + columns; to++) {
      target.tokenIds[to] = -1
      target.logprobs[to] = Number.NEGATIVE_INFINITY
    }
    target.ranks[row] = ranks.integer(row)
  }
}

const nothing: { readonly ok: true; readonly value: null } = ok(null)
const noWords: Read<readonly string[]> = ok([])
const noSequences: Read<readonly NamedSequence[]> = ok([])

const countNames: ReadonlySet<string> = new Set([
  "num_running_reqs",
  "num_waiting_reqs",
  "num_skipped_waiting_reqs",
  "step_counter",
  "current_wave",
  "kv_cache_usage",
])

function isNumber(tag: number): boolean {
  return (tag >= 0 && tag <= 0x7f) || tag >= 0xe0 || (tag >= 0xca && tag <= 0xd3)
}
