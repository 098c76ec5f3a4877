/**
 * Reads a BPE tokenizer.json into the parts that `WasmTokenizer` is made of. Whatever is not supported exactly is
 * refused by name; `open.ts` then decides between the fallback and a refusal at start.
 */
import { err, ok, type Result } from "../result"
import type { AddedToken } from "./added-tokens"
import type { BpeTables } from "./bpe-core"
import { lacksBytes } from "./dropped-bytes"
import { type JsonObject, listOf, nestsDeeper, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"
import { type Normalizer, normalizedText, readNormalizer } from "./normalizer"
import { bytesOf, longestToken, type PackedTokens, packedVocabulary, withBlanks, wordsOf } from "./packed-tokens"
import { type PostProcessor, readPostProcessor } from "./post-processor"
import { type PreTokenizer, type PreTokenizerStep, readPreTokenizer } from "./pre-tokenizer"
import { readSentencePieceRules } from "./sentencepiece"
import type { DecoderRules, KeptParts, ReadParts, TokenizerParts } from "./tokenizer-parts"
import { unicodeClass } from "./unicode-class"
import { Vocabulary } from "./vocabulary"
import { scanTokenizerJson } from "./vocabulary-scan"

/** Reads a parsed tokenizer.json. `tokenizer_config.json` changes nothing here: the reference is the file alone. */
export function readTokenizerJson(value: unknown): Result<ReadParts, Unsupported> {
  const json = objectOf(value)
  const model = objectOf(json?.model)
  if (json === null || model === null) return unsupported("no model")
  const refusal = modelRefusal(model)
  if (refusal !== null) return unsupported(refusal)
  const vocabulary = readVocabulary(model)
  if (!vocabulary.ok) return vocabulary
  const merges = readMerges(model.merges, vocabulary.value)
  return merges.ok ? readParts(json, model, vocabulary.value, merges.value) : merges
}

/** As `readTokenizerJson`, from the file's bytes, which is several times faster than parsing them first. */
export function readTokenizerJsonBytes(bytes: Uint8Array): Result<ReadParts, Unsupported> {
  const scanned = scanTokenizerJson(bytes)
  const json = objectOf(scanned?.json)
  const model = objectOf(json?.model)
  if (scanned !== null && json !== null && model !== null) {
    const refusal = modelRefusal(model)
    return refusal === null ? readParts(json, model, scanned.vocabulary, scanned.merges) : unsupported(refusal)
  }
  try {
    return readTokenizerJson(JSON.parse(new TextDecoder().decode(bytes)))
  } catch (cause) {
    return unsupported(`a file that is no JSON: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** What `KeptParts` of this kind hold beside the vocabulary's arrays and the decoded tokens. */
interface JsonFacts {
  /** As the file, or `blanksAsThemselves`, has them. */
  readonly normalizer: unknown
  readonly preTokenizer: unknown
  readonly dropsBytes: boolean
  readonly postProcessor: PostProcessor
  readonly decoder: DecoderRules
  readonly addedTokens: readonly AddedToken[]
  readonly tokenBytesMax: number
  /** Tokens of the vocabulary, added ones included. */
  readonly tokens: number
}

/** What facts are turned into again. */
interface TextRules {
  readonly normalizer: Normalizer | null
  readonly preTokenizer: PreTokenizer
  readonly lossyCuts: readonly PreTokenizerStep[] | null
}

/** What is read by walking down, and how far: real files have no more than ten levels. */
const textParts = ["normalizer", "pre_tokenizer", "post_processor", "decoder"]
const levelsMax = 100

/** The parts around a vocabulary and its merges; takes the vocabulary over. */
function readParts(
  json: JsonObject,
  model: JsonObject,
  vocabulary: Vocabulary,
  merges: Uint32Array,
): Result<ReadParts, Unsupported> {
  const deep = textParts.find((part) => nestsDeeper(json[part], levelsMax))
  if (deep !== undefined) return unsupported(`a ${deep} of more than ${levelsMax} levels`)
  const blanks = json.pre_tokenizer === null || splitsNothing(json) ? blanksAsThemselves(json, vocabulary) : null
  const normalizer = blanks ?? json.normalizer
  const preTokenizer = splitsNothing(json) ? null : json.pre_tokenizer
  // A byte without a token is unknown, or nothing where there is no unknown token. Added tokens do not count.
  const dropsBytes = stringOf(model.unk_token) === null && lacksBytes((spelling) => vocabulary.idOf(spelling))
  const rules = readTextRules(normalizer, preTokenizer, dropsBytes)
  if (!rules.ok) return rules
  const postProcessor = readPostProcessor(json.post_processor)
  if (!postProcessor.ok) return postProcessor
  const decoder = readDecoder(json.decoder)
  if (!decoder.ok) return decoder
  const { byteLevel, scanner } = rules.value.preTokenizer
  const packedTokens = packedVocabulary(vocabulary, byteLevel, null)
  const tokenBytes = blanks === null ? packedTokens : withBlanks(packedTokens)
  const tables = readTables(model, vocabulary, tokenBytes, merges, byteLevel, scanner ?? "whole")
  if (!tables.ok) return tables
  const addedTokens = readAddedTokens(json, vocabulary)
  if (!addedTokens.ok) return addedTokens
  const facts: JsonFacts = {
    normalizer,
    preTokenizer,
    dropsBytes,
    postProcessor: postProcessor.value,
    decoder: decoder.value,
    addedTokens: addedTokens.value,
    tokenBytesMax: longestToken(packedTokens),
    tokens: vocabulary.count,
  }
  const shown = shownSpellings(facts, rules.value)
  const decodedTokens = packedVocabulary(vocabulary, decoder.value.kind === "bytes", shown)
  return ok({
    parts: assembled(facts, rules.value, vocabulary, decodedTokens, shown),
    tables: tables.value,
    keep: () => {
      const [bytes, ...words] = vocabulary.arrays()
      const arrays = [bytes, ...words.map(bytesOf), decodedTokens.bytes, bytesOf(decodedTokens.ends)]
      return { kind: "tokenizer.json", facts, arrays }
    },
  })
}

/** The parts of what `keep` gave, with the arrays taken over. */
export function partsOfTokenizerJson({ facts: kept, arrays }: KeptParts): Result<TokenizerParts, Unsupported> {
  // What `keep` gave is of this shape.
  const facts = kept as JsonFacts
  const rules = readTextRules(facts.normalizer, facts.preTokenizer, facts.dropsBytes)
  if (!rules.ok) return rules
  const [starts, lengths, hashes, slots, ends] = [1, 2, 3, 4, 6].map((i) => wordsOf(arrays[i]!))
  const signed = (words: Uint32Array): Int32Array => new Int32Array(words.buffer, words.byteOffset, words.length)
  const vocabulary = Vocabulary.ofArrays(facts.tokens, [arrays[0]!, starts!, signed(lengths!), hashes!, signed(slots!)])
  const shown = shownSpellings(facts, rules.value)
  return ok(assembled(facts, rules.value, vocabulary, { bytes: arrays[5]!, ends: ends! }, shown))
}

function readTextRules(
  normalizer: unknown,
  preTokenizer: unknown,
  dropsBytes: boolean,
): Result<TextRules, Unsupported> {
  const changes = readNormalizer(normalizer, unicodeClass)
  if (!changes.ok) return changes
  const cuts = readPreTokenizer(preTokenizer, unicodeClass)
  if (!cuts.ok) return cuts
  let lossyCuts: TextRules["lossyCuts"] = null
  if (dropsBytes && cuts.value.byteLevel) {
    const steps = readPreTokenizer(preTokenizer, unicodeClass, false)
    if (!steps.ok) return steps
    lossyCuts = steps.value.steps
  }
  return ok({ normalizer: changes.value, preTokenizer: cuts.value, lossyCuts })
}

/** By id: the reference shows, and decodes, an added token in its normalized spelling. */
function shownSpellings({ addedTokens }: JsonFacts, { normalizer }: TextRules): ReadonlyMap<number, string> {
  const shown = new Map<number, string>()
  for (const { id, content, normalized } of addedTokens) {
    const spelling = normalized ? normalizedText(normalizer, content) : content
    if (spelling !== content) shown.set(id, spelling)
  }
  return shown
}

function assembled(
  facts: JsonFacts,
  rules: TextRules,
  vocabulary: Vocabulary,
  decodedTokens: PackedTokens,
  shown: ReadonlyMap<number, string>,
): TokenizerParts {
  const { postProcessor, decoder, addedTokens, tokenBytesMax } = facts
  return {
    ...rules,
    postProcessor,
    decoder,
    addedTokens,
    tokenBytesMax,
    decodedTokens,
    vocabSize: vocabulary.idEnd,
    spellingOf: (id) => shown.get(id) ?? vocabulary.spellingOf(id),
    idOf: (spelling) => vocabulary.idOf(spelling),
  }
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

function modelRefusal(model: JsonObject): string | null {
  const type = typeOf(model)
  // npm `@huggingface/tokenizers` knows WordPiece and Unigram, but differs from the reference on ties between pieces, on
  // rare characters of BERT's rules, and wherever a Precompiled normalizer has a rule.
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

/**
 * A vocabulary that spells blanks as `▁`, whose normalizer does nothing but that to a text (and may put one in front),
 * can spell them as themselves instead: then texts go to the core as they are, and words are shorter. What the
 * normalizer has to be for that, which makes `▁` a blank too; or null.
 */
function blanksAsThemselves(json: JsonObject, vocabulary: Vocabulary): unknown {
  const items =
    typeOf(json.normalizer) === "Sequence" ? listOf(objectOf(json.normalizer)?.normalizers) : [json.normalizer]
  const shapes = (items ?? []).map(objectOf)
  const replace = shapes.at(-1)
  const prepends = shapes.length === 2 && shapes[0]?.type === "Prepend" && shapes[0].prepend === mark
  if (shapes.length !== (prepends ? 2 : 1) || replace?.type !== "Replace" || replace.content !== mark) return null
  if (objectOf(replace.pattern)?.String !== " " || vocabulary.idOf(mark) < 0) return null
  // Spellings with a blank could not be told from those with the sign. Normalized tokens are looked for by the sign.
  if (vocabulary.allBytes().subarray(0, vocabulary.usedBytes()).includes(0x20)) return null
  if ((listOf(json.added_tokens) ?? []).some((token) => objectOf(token)?.normalized !== false)) return null
  const back = { type: "Replace", pattern: { String: mark }, content: " " }
  return prepends ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: " " }, back] } : back
}

/** U+2581: how SentencePiece spells a blank. */
const mark = "▁"

function readDecoder(value: unknown): Result<DecoderRules, Unsupported> {
  if (value === null || value === undefined) return unsupported("no decoder")
  const items = typeOf(value) === "Sequence" ? (listOf(objectOf(value)?.decoders) ?? []) : [value]
  if (items.length > 0 && items.every((item) => typeOf(item) === "ByteLevel")) return ok({ kind: "bytes" })
  const rules = readSentencePieceRules(value)
  return rules.ok ? ok({ kind: "sentencepiece", rules: rules.value }) : rules
}

function readVocabulary(model: JsonObject): Result<Vocabulary, Unsupported> {
  const vocab = objectOf(model.vocab)
  if (vocab === null) return unsupported("a BPE model without a vocabulary")
  const vocabulary = new Vocabulary()
  for (const spelling in vocab) {
    const id = vocab[spelling]
    // The vocabulary takes no id twice, nor one that is out of range.
    if (typeof id !== "number" || !vocabulary.putText(id, spelling)) {
      return unsupported(`the id ${String(id)} of ${JSON.stringify(spelling)}`)
    }
  }
  return vocabulary.count === 0 ? unsupported("an empty vocabulary") : ok(vocabulary)
}

function readTables(
  model: JsonObject,
  vocabulary: Vocabulary,
  tokenBytes: PackedTokens,
  merges: Uint32Array,
  byteLevel: boolean,
  scanner: BpeTables["scanner"],
): Result<BpeTables, Unsupported> {
  const unknown = stringOf(model.unk_token)
  const unknownId = unknown === null ? -1 : vocabulary.idOf(unknown)
  if (unknown !== null && unknownId < 0) return unsupported(`an unk_token ${unknown} that is no token`)
  let byteFallback: Int32Array | null = null
  if (byteLevel) {
    if (model.byte_fallback === true) return unsupported("byte_fallback beside ByteLevel")
    // SmolLM2's lacks bytes that its corpus did not have: see dropped-bytes.ts.
  } else {
    byteFallback = new Int32Array(256).fill(-1)
  }
  if (byteFallback !== null && model.byte_fallback === true) {
    for (let byte = 0; byte < 256; byte++) {
      const id = vocabulary.idOf(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
      // Gemma has no <0x09>, and needs none: its vocabulary holds the tab itself. A byte that may be needed and is not
      // there would make the reference give up on some characters only.
      const isNeeded = byte >= 0x80 || vocabulary.idOf(String.fromCharCode(byte)) < 0
      if (id < 0 && isNeeded) return unsupported(`byte_fallback without the token of byte ${byte}`)
      byteFallback[byte] = id
    }
  }
  return ok({
    scanner,
    tokenBytes,
    merges,
    ignoreMerges: model.ignore_merges === true,
    byteFallback,
    unknownId,
    fuseUnknown: model.fuse_unk === true,
  })
}

/** Merges in either notation: `"a b"`, or `["a", "b"]`. */
function readMerges(value: unknown, vocabulary: Vocabulary): Result<Uint32Array, Unsupported> {
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
    const leftId = vocabulary.idOf(left)
    const rightId = vocabulary.idOf(right)
    if (leftId < 0 || rightId < 0) return unsupported(`the merge ${JSON.stringify(merge)} of no tokens`)
    merges[2 * i] = leftId
    merges[2 * i + 1] = rightId
  }
  return ok(merges)
}

/**
 * Adds the tokens to the vocabulary, under the ids that the reference gives them whatever the file says: the one that
 * the vocabulary has for the spelling, or the next free one behind it.
 */
function readAddedTokens(json: JsonObject, vocabulary: Vocabulary): Result<AddedToken[], Unsupported> {
  const tokens = new Map<string, AddedToken>()
  let next = vocabulary.count
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
    const known = vocabulary.idOf(content)
    const id = known < 0 ? next : known
    next = Math.max(next, id + 1)
    if (known < 0 && !vocabulary.putText(id, content)) {
      return unsupported(`the added token ${JSON.stringify(content)}, whose id another token has`)
    }
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
