/**
 * Vocabularies that are lists of ranks: npm `tiktoken`'s encoder files, `*.tiktoken` and `tiktoken.model` files, and
 * Mistral's tekken.json. A token's id is its rank, or its rank behind the special tokens.
 */
import { err, ok, type Result } from "../result"
import type { AddedToken } from "./added-tokens"
import type { AlignedText } from "./aligned-text"
import { sliced } from "./aligned-text"
import { bytesOfSpelling, spellBytes } from "./byte-level"
import type { ExtraTokens } from "./extra-tokens"
import { listOf, objectOf, stringOf, type Unsupported } from "./json-shape"
import { bytesOf, longestToken, type PackedTokens, wordsOf } from "./packed-tokens"
import type { PreTokenizer } from "./pre-tokenizer"
import { recognise } from "./scanner-family"
import { type SplitFailure, SplitRegex } from "./split-regex"
import type { KeptParts, ReadParts, TokenizerParts } from "./tokenizer-parts"
import { unicodeClass } from "./unicode-class"

/** Ranks as npm `tiktoken` ships them: lines of `! offset base64 base64 …`. */
export interface RankFile {
  readonly bpe_ranks: string
  readonly pat_str: string
}

/** Ids, and so ranks, are below this. */
const idsMax = 1 << 21

const noTokens: ExtraTokens = { special: {}, added: {} }

/** Reads an encoder file of npm `tiktoken`. */
export function readRankFile(file: RankFile, extra: ExtraTokens): Result<ReadParts, Unsupported> {
  const ranks = new RankCollector()
  for (const line of file.bpe_ranks.split("\n")) {
    if (line === "") continue
    const words = line.split(" ")
    let rank = Number(words[1])
    for (let i = 2; i < words.length; i++, rank++) {
      if (!ranks.add(rank, words[i]!)) return unsupported(`the rank file at rank ${rank}`)
    }
  }
  return readParts(ranks.packed(0), file.pat_str, extra)
}

/** Reads lines of `base64 rank` (`*.tiktoken`, `tiktoken.model`), whose split pattern is known from elsewhere. */
export function readTiktokenFile(
  bytes: Uint8Array,
  pattern: string,
  extra: ExtraTokens,
): Result<ReadParts, Unsupported> {
  const ranks = new RankCollector()
  const text = new TextDecoder().decode(bytes)
  let number = 0
  for (const line of text.split("\n")) {
    number += 1
    if (line === "" || line === "\r") continue
    const blank = line.indexOf(" ")
    if (blank <= 0 || !ranks.add(Number(line.slice(blank + 1)), line.slice(0, blank))) {
      return unsupported(`line ${number} of the rank file`)
    }
  }
  return readParts(ranks.packed(0), pattern, extra)
}

/**
 * Reads a parsed tekken.json: ranks follow the special tokens. Files before version v11 may name no special tokens;
 * theirs are fixed. Its BOS goes before a text with special tokens around it. Source: `Tekkenizer` of mistral_common.
 */
export function readTekken(value: unknown): Result<ReadParts, Unsupported> {
  const json = objectOf(value)
  const config = objectOf(json?.config)
  const pattern = stringOf(config?.pattern)
  const size = config?.default_vocab_size
  const specialCount = config?.default_num_special_tokens
  const vocab = listOf(json?.vocab)
  if (json === null || pattern === null || vocab === null) return unsupported("a tekken.json without its parts")
  if (typeof size !== "number" || typeof specialCount !== "number" || size > idsMax || specialCount > size) {
    return unsupported("the sizes in tekken.json")
  }
  const ranks = new RankCollector()
  for (const item of vocab) {
    const rank = objectOf(item)?.rank
    const token = stringOf(objectOf(item)?.token_bytes)
    if (typeof rank !== "number" || token === null) return unsupported("a token of tekken.json")
    // The file holds more ranks than the vocabulary takes.
    if (rank < size - specialCount && !ranks.add(rank, token)) return unsupported(`the token of rank ${rank}`)
  }
  const special: { [token: string]: number } = {}
  const named = listOf(json.special_tokens) ?? oldTekkenTokens.map((token_str, rank) => ({ token_str, rank }))
  for (const item of named) {
    const spelling = stringOf(objectOf(item)?.token_str)
    const rank = objectOf(item)?.rank
    if (spelling === null || typeof rank !== "number" || rank >= specialCount) return unsupported("a special token")
    special[spelling] = rank
  }
  for (let id = named.length; id < specialCount; id++) special[`<SPECIAL_${id}>`] = id
  const bos = special["<s>"]
  return readParts(ranks.packed(specialCount), pattern, { ...noTokens, special }, bos === undefined ? [] : [bos])
}

/** What tekken.json files had before they named them. Source: `Tekkenizer.DEPRECATED_SPECIAL_TOKENS`. */
const oldTekkenTokens = [
  ...["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"],
  ...["[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"],
  ...["[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"],
]

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

/** Six bits by character code of base64; 255 for others. */
const sextets = new Uint8Array(128).fill(255)
for (const [i, char] of Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").entries()) {
  sextets[char.charCodeAt(0)] = i
}

/** Gathers base64 tokens by rank into one array of bytes. */
class RankCollector {
  private bytes = new Uint8Array(1 << 20)
  private used = 0
  /** By rank: where the token starts in `bytes`, and how long it is; 0 = none. */
  private readonly starts: number[] = []
  private readonly lengths: number[] = []

  /** False: no rank, no base64, an empty token, or a rank that is taken. */
  add(rank: number, base64: string): boolean {
    if (!Number.isInteger(rank) || rank < 0 || rank >= idsMax) return false
    while (this.lengths.length <= rank) {
      this.starts.push(0)
      this.lengths.push(0)
    }
    if (this.lengths[rank] !== 0) return false
    if (this.used + base64.length > this.bytes.length) {
      const larger = new Uint8Array(2 * this.bytes.length + base64.length)
      larger.set(this.bytes)
      this.bytes = larger
    }
    const start = this.used
    let bits = 0
    let held = 0
    let end = base64.length
    while (end > 0 && base64.charCodeAt(end - 1) === 0x3d) end -= 1
    for (let i = 0; i < end; i++) {
      const sextet = sextets[base64.charCodeAt(i)] ?? 255
      if (sextet === 255) return false
      held = ((held << 6) | sextet) & 0xffff
      bits += 6
      if (bits >= 8) {
        bits -= 8
        this.bytes[this.used++] = (held >> bits) & 0xff
      }
    }
    this.starts[rank] = start
    this.lengths[rank] = this.used - start
    return this.used > start
  }

  /** All tokens in rank order, `idOffset` ids without bytes before them. */
  packed(idOffset: number): PackedTokens {
    const ends = new Uint32Array(idOffset + this.lengths.length)
    const bytes = new Uint8Array(this.used)
    let to = 0
    for (let rank = 0; rank < this.lengths.length; rank++) {
      const start = this.starts[rank]!
      const length = this.lengths[rank]!
      for (let i = 0; i < length; i++) bytes[to + i] = this.bytes[start + i]!
      to += length
      ends[idOffset + rank] = to
    }
    return { bytes, ends }
  }
}

/** The ranks that `KeptParts` of this kind hold. */
interface RankFacts {
  readonly pattern: string
  readonly extra: ExtraTokens
  /** Ids before a text, with `addSpecialTokens`. */
  readonly before: readonly number[]
}

function readParts(
  packedTokens: PackedTokens,
  pattern: string,
  extra: ExtraTokens,
  before: readonly number[] = [],
): Result<ReadParts, Unsupported> {
  if (packedTokens.bytes.length === 0) return unsupported("a file without ranks")
  const facts: RankFacts = { pattern, extra, before }
  const parts = partsOf(packedTokens, facts)
  if (!parts.ok) return parts
  return ok({
    parts: parts.value,
    tables: {
      scanner: parts.value.preTokenizer.scanner ?? "whole",
      tokenBytes: packedTokens,
      merges: null,
      ignoreMerges: true,
      byteFallback: null,
      unknownId: -1,
      fuseUnknown: false,
    },
    keep: () => ({ kind: "ranks", facts, arrays: [packedTokens.bytes, bytesOf(packedTokens.ends)] }),
  })
}

/** The parts of what `keep` gave, with the arrays taken over. */
export function partsOfRanks({ facts, arrays }: KeptParts): Result<TokenizerParts, Unsupported> {
  // What `keep` gave is of this shape.
  return partsOf({ bytes: arrays[0]!, ends: wordsOf(arrays[1]!) }, facts as RankFacts)
}

function partsOf(packedTokens: PackedTokens, facts: RankFacts): Result<TokenizerParts, Unsupported> {
  const { pattern, extra, before } = facts
  const preTokenizer = preTokenizerOf(pattern)
  if (!preTokenizer.ok) return preTokenizer
  const addedTokens: AddedToken[] = []
  const flags = { singleWord: false, lstrip: false, rstrip: false, normalized: false }
  for (const [content, id] of Object.entries(extra.special)) addedTokens.push({ id, content, special: true, ...flags })
  for (const [content, id] of Object.entries(extra.added)) addedTokens.push({ id, content, special: false, ...flags })
  const spellingById = new Map<number, string>()
  const idBySpelling = new Map<string, number>()
  for (const { id, content } of addedTokens) {
    if (!Number.isInteger(id) || id < 0 || id >= idsMax) return unsupported(`the id of ${JSON.stringify(content)}`)
    // Two spellings may share an id (o200k_harmony's 200018): the first is what it decodes to.
    if (!spellingById.has(id)) spellingById.set(id, content)
    idBySpelling.set(content, id)
  }
  const decodedTokens = withAdded(packedTokens, spellingById)
  let ranks: Map<string, number> | null = null
  return ok({
    vocabSize: decodedTokens.ends.length,
    tokenBytesMax: longestToken(packedTokens),
    normalizer: null,
    preTokenizer: preTokenizer.value,
    lossyCuts: null,
    addedTokens,
    postProcessor: { before, after: [], trimOffsets: null },
    decoder: { kind: "bytes" },
    decodedTokens,
    spellingOf: (id) => {
      const added = spellingById.get(id)
      if (added !== undefined) return added
      const { bytes: all, ends } = packedTokens
      const bytes = id < ends.length ? all.subarray(ends[id - 1] ?? 0, ends[id]) : null
      return bytes === null || bytes.length === 0 ? null : spellBytes(bytes)
    },
    idOf: (spelling) => {
      const added = idBySpelling.get(spelling)
      if (added !== undefined) return added
      const bytes = bytesOfSpelling(spelling)
      if (bytes === null || bytes.length === 0) return -1
      // Asked for a few tokens at start, if ever: not worth a map of all before that.
      ranks ??= rankMap(packedTokens)
      return ranks.get(latin1(bytes)) ?? -1
    },
  })
}

function preTokenizerOf(pattern: string): Result<PreTokenizer, Unsupported> {
  const scanner = recognise([pattern])
  if (scanner !== null) return ok({ scanner, prefixBlank: false, steps: [], byteLevel: true })
  const regex = SplitRegex.create(pattern, unicodeClass, "text_end")
  if (!regex.ok) return unsupported(regex.error.message)
  return ok({
    scanner: null,
    prefixBlank: false,
    byteLevel: true,
    steps: [(pieces) => keptMatches(pieces, regex.value)],
  })
}

/** tiktoken takes the matches, and nothing of what lies between them. */
function keptMatches(pieces: readonly AlignedText[], regex: SplitRegex): Result<AlignedText[], SplitFailure> {
  const result: AlignedText[] = []
  for (const piece of pieces) {
    const found: number[] = []
    const searched = regex.matches(piece.text, found)
    if (!searched.ok) return searched
    for (let i = 0; i < found.length; i += 2) result.push(sliced(piece, found[i]!, found[i + 1]!))
  }
  return ok(result)
}

/** The ranks' bytes, with the added tokens' spellings where they belong. */
function withAdded(tokens: PackedTokens, spellings: ReadonlyMap<number, string>): PackedTokens {
  const utf8 = new TextEncoder()
  let size = tokens.ends.length
  let length = tokens.bytes.length
  for (const [id, spelling] of spellings) {
    size = Math.max(size, id + 1)
    length += 3 * spelling.length
  }
  const ends = new Uint32Array(size)
  const bytes = new Uint8Array(length)
  const added = [...spellings].sort((a, b) => a[0] - b[0])
  let to = 0
  let id = 0
  const copyUntil = (until: number): void => {
    const last = Math.min(until, tokens.ends.length)
    if (id < last) {
      const start = tokens.ends[id - 1] ?? 0
      bytes.set(tokens.bytes.subarray(start, tokens.ends[last - 1]), to)
      const shift = to - start
      for (; id < last; id++) ends[id] = tokens.ends[id]! + shift
      to = ends[last - 1]!
    }
    for (; id < until; id++) ends[id] = to
  }
  for (const [addedId, spelling] of added) {
    copyUntil(addedId)
    to += utf8.encodeInto(spelling, bytes.subarray(to)).written
    ends[addedId] = to
    id = addedId + 1
  }
  copyUntil(size)
  return { bytes: bytes.subarray(0, to), ends }
}

function rankMap({ bytes, ends }: PackedTokens): Map<string, number> {
  const ranks = new Map<string, number>()
  for (let id = 0; id < ends.length; id++) {
    const start = ends[id - 1] ?? 0
    if (ends[id]! > start) ranks.set(latin1(bytes.subarray(start, ends[id])), id)
  }
  return ranks
}

function latin1(bytes: Uint8Array): string {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}
