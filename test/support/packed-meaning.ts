/**
 * What a message of an engine says, as one plain value: once from the product's decoder, once from the JSON that Python
 * made of the same bytes, so that whole values can be compared.
 */
import type { OutputFields } from "../../src/engine/vllm/output-fields"
import type { OutputsBatch } from "../../src/engine/vllm/outputs-batch"
import type { LogprobRows } from "../../src/ir/engine"
import type { Result } from "../../src/result"
import type { RecordedMessage } from "./recorded-frames"

type Meaning = { readonly [name: string]: unknown }

/** Rows as lists; unused entries are left out. */
function rowsOf(rows: LogprobRows | null, count: number): unknown {
  if (rows === null) return null
  return Array.from({ length: count }, (_, row) => {
    const entries: [number, number][] = []
    for (let i = row * rows.width; i < (row + 1) * rows.width; i++) {
      if (rows.tokenIds[i] !== -1) entries.push([rows.tokenIds[i]!, rows.logprobs[i]!])
    }
    return { rank: rows.ranks[row], entries }
  })
}

function unwrapped<Value>(result: Result<Value, { readonly message: string }>): Value {
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}

/** What the decoder read. */
export function decodedMeaning(batch: OutputsBatch, fields: OutputFields): Meaning {
  return {
    engineIndex: batch.engineIndex,
    timestamp: batch.timestamp,
    waves: [batch.waveComplete, batch.startWave],
    utility: unwrapped(fields.utility()),
    scheduler: unwrapped(fields.schedulerStats()),
    outputs: Array.from({ length: batch.count }, (_, i) => {
      const tokenIds = [...batch.tokenIds.subarray(batch.start[i], batch.end[i])]
      const prompt = unwrapped(fields.promptLogprobs(i))
      return {
        tokenIds,
        finish: batch.finish[i],
        stopTokenId: batch.stopTokenId[i],
        logprobs: rowsOf(unwrapped(fields.logprobs(i)), tokenIds.length),
        promptLogprobs: rowsOf(prompt, prompt?.ranks.length ?? 0),
        events: unwrapped(fields.events(i)),
        kvTransfer: unwrapped(fields.kvTransferParams(i)),
        prefill: unwrapped(fields.prefillStats(i)),
        error: unwrapped(fields.error(i)),
      }
    }),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes; a wrong path fails the test
type Loose = any

/** What Python read from the same frames. */
export function recordedMeaning({ decoded, frames }: RecordedMessage): Meaning {
  const [engineIndex, outputs, stats, timestamp, utility, , waveComplete, startWave] = decoded
  return {
    engineIndex,
    timestamp,
    waves: [waveComplete ?? -1, startWave ?? -1],
    utility:
      utility === null
        ? null
        : { callId: utility[0], failure: utility[1], result: utility[2] === null ? null : utility[2][1] },
    scheduler: stats === null ? null : schedulerOf(stats),
    outputs: outputs.map((output: Loose) => ({
      tokenIds: output[1],
      finish: output[5] ?? -1,
      stopTokenId: typeof output[6] === "number" ? output[6] : -1,
      logprobs: output[2] === null ? null : recordedRows(output[2], frames),
      promptLogprobs: output[3] === null ? null : recordedRows(output[3], frames),
      events: output[7] === null ? null : eventsOf(output[7]),
      kvTransfer: output[8],
      prefill:
        output[11] === null
          ? null
          : {
              promptTokens: output[11].num_prompt_tokens,
              computedTokens: output[11].num_computed_tokens,
              cachedTokens: output[11].num_cached_tokens,
              localCachedTokens: output[11].num_local_cached_tokens,
              externalCachedTokens: output[11].num_external_cached_tokens,
              cacheCreationTokens: output[11].num_cache_creation_tokens,
            },
      error: output[18] ?? null,
    })),
  }
}

function eventsOf(events: Loose): Meaning {
  const of = (type: number): Loose => events.filter((event: Loose) => event.type === type)
  return {
    queuedAt: of(1)[0]?.timestamp ?? -1,
    scheduledAt: of(2)[0]?.timestamp ?? -1,
    preemptions: of(3).length,
  }
}

function cacheOf({ reset, requests, queries, hits }: Loose): Meaning {
  return { reset, requests, queries, hits }
}

function schedulerOf(stats: Loose): Meaning {
  return {
    running: stats.num_running_reqs,
    waiting: stats.num_waiting_reqs,
    skipped: stats.num_skipped_waiting_reqs,
    stepCounter: stats.step_counter,
    wave: stats.current_wave,
    kvCacheUsage: stats.kv_cache_usage,
    prefixCache: cacheOf(stats.prefix_cache_stats),
    connectorPrefixCache: stats.connector_prefix_cache_stats && cacheOf(stats.connector_prefix_cache_stats),
    specDecode: null,
    waitingLora: stats.waiting_lora_adapters,
    runningLora: stats.running_lora_adapters,
  }
}

function recordedRows([ids, values, ranks]: Loose, frames: readonly Uint8Array[]): unknown {
  const [rows, columns] = ids[1]
  const idAt = elementsOf(ids, frames)
  const valueAt = elementsOf(values, frames)
  const rankAt = elementsOf(ranks, frames)
  return Array.from({ length: rows }, (_, row) => {
    const entries: [number, number][] = []
    for (let i = 0; i < columns; i++) {
      const id = idAt(row * columns + i)
      // The sampled token comes first and may come again; the second mention says nothing new.
      if (i === 0 || id !== entries[0]![0]) entries.push([id, valueAt(row * columns + i)])
    }
    return { rank: rankAt(row), entries }
  })
}

function elementsOf([dtype, , where]: Loose, frames: readonly Uint8Array[]): (i: number) => number {
  const bytes = typeof where === "number" ? Buffer.from(frames[where]!) : Buffer.from(where.hex, "hex")
  switch (dtype) {
    case "<i4":
    case "int32":
      return (i) => bytes.readInt32LE(4 * i)
    case "<i8":
    case "int64":
      return (i) => Number(bytes.readBigInt64LE(8 * i))
    case "<f4":
    case "float32":
      return (i) => bytes.readFloatLE(4 * i)
    default:
      throw new Error(`no recording has ${dtype}`)
  }
}
