/**
 * Tokenizers that were built before: the core's memory as it was when its tables stood, and what the parts around it are
 * made of, kept in a `RecordCache`. A tokenizer from there has read no JSON and built no table, and is the same.
 */
import { ok, type Result } from "../result"
import { BpeCore, type CoreFacts } from "./bpe-core"
import type { Unsupported } from "./json-shape"
import { openParts } from "./open-parts"
import { RecordCache } from "./record-cache"
import { partsOfRanks } from "./tiktoken-ranks"
import type { TokenizerFailure } from "./tokenizer"
import { partsOfTokenizerJson } from "./tokenizer-json"
import type { KeptParts, ReadParts } from "./tokenizer-parts"
import { wasmBytes } from "./wasm-bytes"
import { instanceFor } from "./wasm-image"
import { WasmTokenizer } from "./wasm-tokenizer"

/**
 * To be raised when loading gives other records than before from the same file: test/tokenizer/kept-tokenizer.test.ts
 * sees it. A change of wasm/tokenizer.wasm counts by itself.
 */
export const keptVersion = 2

/** A record's header. */
interface KeptFacts {
  readonly core: CoreFacts
  readonly kind: KeptParts["kind"]
  readonly parts: unknown
  /** Lengths of the parts' arrays in bytes; the stretches of the core's memory follow them. */
  readonly arrayBytes: readonly number[]
}

/**
 * Opens a vocabulary through the cache in `folder`: what was kept of the same `sources` (a file's bytes, and all that was
 * said about it), else what `read` makes of them, which is kept for the next time.
 */
export function openKept(
  folder: string,
  sources: readonly (string | Uint8Array)[],
  read: () => Result<ReadParts, Unsupported | TokenizerFailure>,
): Result<WasmTokenizer, TokenizerFailure> {
  const cache = RecordCache.in(folder)
  if (cache === null) return openParts(read())
  const key = cache.keyOf([`${keptVersion}`, wasmBytes(), ...sources])
  const kept = restored(cache, key)
  if (kept !== null) return ok(kept)
  return openParts(read(), (core, { keep }) => {
    const { kind, facts, arrays } = keep()
    const image = core.image()
    const keptFacts: KeptFacts = {
      core: image.facts,
      kind,
      parts: facts,
      arrayBytes: arrays.map((each) => each.length),
    }
    cache.write(key, keptFacts, [...arrays, ...image.stretches])
  })
}

function restored(cache: RecordCache, key: string): WasmTokenizer | null {
  const placed = cache.read(key, (value) => {
    // Of this form: the key holds the version, and the record is whole.
    const facts = value as KeptFacts
    const parts = facts.arrayBytes.map((length) => new Uint8Array(length))
    const { wasm, stretches } = instanceFor(facts.core.layout)
    return { facts, parts, wasm, arrays: [...parts, ...stretches] }
  })
  if (placed === null) return null
  const { facts, wasm } = placed
  const kept: KeptParts = { kind: facts.kind, facts: facts.parts, arrays: placed.parts }
  const parts = kept.kind === "ranks" ? partsOfRanks(kept) : partsOfTokenizerJson(kept)
  return parts.ok ? new WasmTokenizer(parts.value, BpeCore.of(wasm, facts.core)) : null
}
