/**
 * Reads a BPE tokenizer.json into the parts that `WasmTokenizer` is made of. Whatever is not supported exactly is
 * refused by name; `open.ts` then decides between the fallback and a refusal at start.
 */
import { err, ok, type Result } from "../result"
import type { AddedToken } from "./added-tokens"
import type { BpeTables, PackedTokens } from "./bpe-core"
import { byteOfUnit } from "./byte-level"
import { type JsonObject, listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"
import { normalizedText, readNormalizer } from "./normalizer"
import { readPostProcessor } from "./post-processor"
import { readPreTokenizer } from "./pre-tokenizer"
import { readSentencePieceRules } from "./sentencepiece"
import type { DecoderRules, TokenizerParts } from "./tokenizer-parts"
import { unicodeClass } from "./unicode-class"

/** The most ids a vocabulary may have: the largest public ones hold 262 144. */
const idsMax = 1 << 22

const utf8 = new TextEncoder()

/** Reads a parsed tokenizer.json. `tokenizer_config.json` changes nothing here: the reference is the file alone. */
export function readTokenizerJson(value: unknown): Result<TokenizerParts, Unsupported> {
  const json = objectOf(value)
  const model = objectOf(json?.model)
  if (json === null || model === null) return unsupported("no model")
  const refusal = modelRefusal(model)
  if (refusal !== null) return unsupported(refusal)
  const normalizer = readNormalizer(json.normalizer, unicodeClass)
  if (!normalizer.ok) return normalizer
  const preTokenizer = readPreTokenizer(splitsNothing(json) ? null : json.pre_tokenizer, unicodeClass)
  if (!preTokenizer.ok) return preTokenizer
  const postProcessor = readPostProcessor(json.post_processor)
  if (!postProcessor.ok) return postProcessor
  const decoder = readDecoder(json.decoder)
  if (!decoder.ok) return decoder
  const vocabulary = readVocabulary(model)
  if (!vocabulary.ok) return vocabulary
  const { ids, spellings } = vocabulary.value
  const { byteLevel } = preTokenizer.value
  const tables = readTables(model, ids, spellings, byteLevel, preTokenizer.value.scanner ?? "whole")
  if (!tables.ok) return tables
  const addedTokens = readAddedTokens(json, ids, spellings)
  if (!addedTokens.ok) return addedTokens
  // The reference shows, and decodes, an added token in its normalized spelling.
  for (const token of addedTokens.value) {
    if (token.normalized) spellings[token.id] = normalizedText(normalizer.value, token.content)
  }
  const decodesBytes = decoder.value.kind === "bytes"
  return ok({
    tables: tables.value.tables,
    packedTokens: tables.value.packedTokens,
    normalizer: normalizer.value,
    preTokenizer: preTokenizer.value,
    addedTokens: addedTokens.value,
    postProcessor: postProcessor.value,
    decoder: decoder.value,
    vocabSize: spellings.length,
    decodedTokens: decodesBytes ? packed(spellings, true, true) : null,
    spellingOf: (id) => spellings[id] ?? null,
    idOf: (spelling) => ids.get(spelling) ?? -1,
  })
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

function modelRefusal(model: JsonObject): string | null {
  const type = typeOf(model)
  if (type !== "BPE" && !(type === "" && model.merges !== undefined))
    return `the model kind ${type || "without a name"}`
  if (typeof model.dropout === "number" && model.dropout > 0) return "a BPE model with dropout, which is random"
  if (stringOf(model.continuing_subword_prefix)) return "a BPE model with continuing_subword_prefix"
  if (stringOf(model.end_of_word_suffix)) return "a BPE model with end_of_word_suffix"
  return null
}

/** Gemma 2 and 3 split at blanks after their normalizer has replaced them all: a pre-tokenizer that never acts. */
function splitsNothing(json: JsonObject): boolean {
  const split = objectOf(json.pre_tokenizer)
  const replace = objectOf(json.normalizer)
  if (split?.type !== "Split" || replace?.type !== "Replace" || split.behavior === "Removed" || split.invert === true) {
    return false
  }
  const sought = stringOf(objectOf(split.pattern)?.String)
  return (
    sought !== null &&
    sought === stringOf(objectOf(replace.pattern)?.String) &&
    sought.length === 1 &&
    replace.content !== sought
  )
}

function readDecoder(value: unknown): Result<DecoderRules, Unsupported> {
  if (value === null || value === undefined) return unsupported("no decoder")
  const items = typeOf(value) === "Sequence" ? (listOf(objectOf(value)?.decoders) ?? []) : [value]
  if (items.length > 0 && items.every((item) => typeOf(item) === "ByteLevel")) return ok({ kind: "bytes" })
  const rules = readSentencePieceRules(value)
  return rules.ok ? ok({ kind: "sentencepiece", rules: rules.value }) : rules
}

interface Vocabulary {
  readonly ids: Map<string, number>
  readonly spellings: (string | null)[]
}

function readVocabulary(model: JsonObject): Result<Vocabulary, Unsupported> {
  const vocab = objectOf(model.vocab)
  if (vocab === null) return unsupported("a BPE model without a vocabulary")
  const ids = new Map<string, number>()
  const spellings: (string | null)[] = []
  for (const spelling in vocab) {
    const id = vocab[spelling]
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= idsMax) {
      return unsupported(`the id ${String(id)} of ${JSON.stringify(spelling)}`)
    }
    while (spellings.length <= id) spellings.push(null)
    if (spellings[id] !== null) return unsupported(`two tokens with the id ${id}`)
    spellings[id] = spelling
    ids.set(spelling, id)
  }
  return ids.size === 0 ? unsupported("an empty vocabulary") : ok({ ids, spellings })
}

function readTables(
  model: JsonObject,
  ids: ReadonlyMap<string, number>,
  spellings: readonly (string | null)[],
  byteLevel: boolean,
  scanner: BpeTables["scanner"],
): Result<{ tables: BpeTables; packedTokens: PackedTokens }, Unsupported> {
  const packedTokens = packed(spellings, byteLevel, false)
  const unknown = stringOf(model.unk_token)
  const unknownId = unknown === null ? -1 : ids.get(unknown)
  if (unknownId === undefined) return unsupported(`an unk_token ${unknown} that is no token`)
  let byteFallback: Int32Array | null = null
  if (byteLevel) {
    if (model.byte_fallback === true) return unsupported("byte_fallback beside ByteLevel")
    const singles = singleBytes(packedTokens)
    if (singles < 256) return unsupported(`a byte-level vocabulary that lacks ${256 - singles} bytes`)
  } else {
    byteFallback = new Int32Array(256).fill(-1)
  }
  if (byteFallback !== null && model.byte_fallback === true) {
    for (let byte = 0; byte < 256; byte++) {
      const id = ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
      // Gemma has no <0x09>, and needs none: its vocabulary holds the tab itself. A byte that may be needed and is not
      // there would make the reference give up on some characters only.
      const isNeeded = byte >= 0x80 || !ids.has(String.fromCharCode(byte))
      if (id === undefined && isNeeded) return unsupported(`byte_fallback without the token of byte ${byte}`)
      byteFallback[byte] = id ?? -1
    }
  }
  const merges = readMerges(model.merges, ids)
  if (!merges.ok) return merges
  const tables: BpeTables = {
    scanner,
    tokenBytes: packedTokens,
    merges: merges.value,
    ignoreMerges: model.ignore_merges === true,
    byteFallback,
    unknownId: byteLevel ? -1 : unknownId,
    fuseUnknown: model.fuse_unk === true,
  }
  return ok({ tables, packedTokens })
}

/** Merges in either notation: `"a b"`, or `["a", "b"]`. */
function readMerges(value: unknown, ids: ReadonlyMap<string, number>): Result<Uint32Array, Unsupported> {
  const list = listOf(value)
  if (list === null) return unsupported("a BPE model without merges")
  const merges = new Uint32Array(2 * list.length)
  for (let i = 0; i < list.length; i++) {
    const merge = list[i]
    let left: unknown
    let right: unknown
    if (typeof merge === "string") {
      const blank = merge.indexOf(" ")
      if (blank < 0 || merge.includes(" ", blank + 1)) return unsupported(`the merge ${JSON.stringify(merge)}`)
      left = merge.slice(0, blank)
      right = merge.slice(blank + 1)
    } else if (Array.isArray(merge) && merge.length === 2) {
      left = merge[0]
      right = merge[1]
    }
    if (typeof left !== "string" || typeof right !== "string") return unsupported(`the merge ${JSON.stringify(merge)}`)
    const leftId = ids.get(left)
    const rightId = ids.get(right)
    if (leftId === undefined || rightId === undefined)
      return unsupported(`the merge ${JSON.stringify(merge)} of no tokens`)
    merges[2 * i] = leftId
    merges[2 * i + 1] = rightId
  }
  return ok(merges)
}

/**
 * Adds the tokens to the vocabulary, under the ids that the reference gives them whatever the file says: the one that
 * the vocabulary has for the spelling, or the next free one behind it.
 */
function readAddedTokens(
  json: JsonObject,
  ids: Map<string, number>,
  spellings: (string | null)[],
): Result<AddedToken[], Unsupported> {
  const tokens = new Map<string, AddedToken>()
  let next = ids.size
  for (const item of listOf(json.added_tokens) ?? []) {
    const shape = objectOf(item)
    const content = stringOf(shape?.content)
    if (shape === null || content === null) return unsupported("an added token without content")
    if (content === "") continue
    const special = shape.special === true
    const earlier = tokens.get(content)
    if (earlier !== undefined) {
      if (special) tokens.set(content, { ...earlier, special })
      continue
    }
    const id = ids.get(content) ?? next
    next = Math.max(next, id + 1)
    while (spellings.length <= id) spellings.push(null)
    if (spellings[id] !== null && spellings[id] !== content) {
      return unsupported(`the added token ${JSON.stringify(content)}, whose id another token has`)
    }
    spellings[id] = content
    ids.set(content, id)
    tokens.set(content, {
      id,
      content,
      special,
      singleWord: shape.single_word === true,
      lstrip: shape.lstrip === true,
      rstrip: shape.rstrip === true,
      normalized: shape.normalized === undefined ? !special : shape.normalized === true,
    })
  }
  return ok([...tokens.values()])
}

function singleBytes({ bytes, ends }: PackedTokens): number {
  const seen = new Set<number>()
  for (let id = 0; id < ends.length; id++) {
    const start = ends[id - 1] ?? 0
    if (ends[id] === start + 1) seen.add(bytes[start]!)
  }
  return seen.size
}

/**
 * The spellings' bytes. In GPT-2's spelling when `byteLevel`: a spelling with a character that spells no byte is empty,
 * so that no text reaches it, or, when decoding, stands for itself.
 */
function packed(spellings: readonly (string | null)[], byteLevel: boolean, decoding: boolean): PackedTokens {
  const ends = new Uint32Array(spellings.length)
  let length = 0
  for (const spelling of spellings) if (spelling !== null) length += 3 * spelling.length
  const bytes = new Uint8Array(length)
  let to = 0
  for (let id = 0; id < spellings.length; id++) {
    const spelling = spellings[id]!
    if (spelling !== null) {
      const written = byteLevel ? putSpelled(spelling, bytes, to) : -1
      if (written >= 0) to += written
      else if (!byteLevel || decoding) to += utf8.encodeInto(spelling, bytes.subarray(to)).written
    }
    ends[id] = to
  }
  return { bytes: bytes.slice(0, to), ends }
}

/** Writes the bytes of a spelling, and gives how many; -1 when it spells none. */
function putSpelled(spelling: string, bytes: Uint8Array, at: number): number {
  for (let i = 0; i < spelling.length; i++) {
    const byte = byteOfUnit(spelling.charCodeAt(i))
    if (byte < 0) return -1
    bytes[at + i] = byte
  }
  return spelling.length
}
