/**
 * The Tokenizer plug over the BPE core: cuts added tokens out, normalizes, hands segments to the core, puts ids around.
 * Ids, offsets and text equal HF tokenizers' and tiktoken's.
 */
import { Piece } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { AddedTokens, type MayBeToken } from "./added-tokens"
import { type AlignedText, originalText, prefixed, sliced } from "./aligned-text"
import { type BpeCore, notPlain, pieceTooLong } from "./bpe-core"
import { ByteDetokenizer } from "./byte-detokenizer"
import { ByteTable } from "./byte-table"
import type { CopyableDetokenizer } from "./detokenizer"
import { putOffsets } from "./dropped-bytes"
import { normalizedText } from "./normalizer"
import type { PreTokenizerStep } from "./pre-tokenizer"
import { SentencePieceDetokenizer, SentencePieceTable } from "./sentencepiece"
import { TextStream } from "./text-stream"
import type { EncodeFailure, EncodeOptions, OffsetUnit, TextSegment, Tokenizer, TokensWithOffsets } from "./tokenizer"
import type { TokenizerParts } from "./tokenizer-parts"
import { whiteSpace, wordCharactersTiktoken } from "./unicode-ranges"

/** The part of `BpeCore` that is used here; test/support/reference-bpe.ts is a plain one. */
export type SegmentEncoder = Pick<BpeCore, "encode" | "encodePiece" | "encodePlain" | "encodeWithOffsets" | "takeRules">

const tooLong = "the text has a piece that is longer than any model could use"

/** Ids that a call may leave allocated for the next one: 4 MiB. */
const keptIdsMax = 1 << 20

/** What a call that gives no options asks for; as in HF tokenizers. */
const usualOptions: EncodeOptions = {}

/** One BPE vocabulary, ready to use. Not re-entrant: a call ends before the next begins. */
export class WasmTokenizer implements Tokenizer {
  readonly vocabSize: number
  readonly tokenBytesMax: number
  private readonly parts: TokenizerParts
  private readonly core: SegmentEncoder
  private readonly rawAdded: AddedTokens
  private readonly normalizedAdded: AddedTokens
  /** A normalized added token is special, so who may be control must be known through the normalizer. */
  private readonly tracksControl: boolean
  private readonly specialIds: Set<number>
  /** Nothing but an added token or a touchy character keeps a text from going to the core as it came. */
  private readonly mayBePlain: boolean
  /** The core cuts the added tokens out of plain texts. Found out when the first text comes. */
  private coreCuts: boolean | null = null
  /** The core brings plain texts to their normal form. */
  private coreNormalizes = false
  /** Says that the normalizer leaves a text as it is; null: it leaves all. */
  private readonly leaves: ((text: string) => boolean) | null
  /** The normalizer leaves ASCII as it is. */
  private readonly leavesAscii: boolean
  private readonly bytes: ByteTable | null
  private readonly sentencePiece: SentencePieceTable | null
  private readonly scratch = new Piece()

  /** Ids of the call in progress. */
  private ids: Uint32Array = new Uint32Array(4096)
  /** The array is ours, and may be made larger before it must. */
  private growsIds = true
  private count = 0
  private tokensMax = Infinity
  private failure: EncodeFailure | null = null
  /** Offsets of the call in progress, in UTF-16 units of the text: start, end, start, end … null: not wanted. */
  private offsets: number[] | null = null
  /** By index of the call's ids: what was cut out as an added token, with the white space that it took along. */
  private readonly cutTexts = new Map<number, string>()
  private mayBeToken: MayBeToken | null = null

  constructor(parts: TokenizerParts, core: SegmentEncoder) {
    this.parts = parts
    this.core = core
    this.vocabSize = parts.vocabSize
    // As in the reference, what is skipped goes by the spelling that a token decodes to.
    const special = parts.addedTokens.filter((token) => token.special)
    const contents = new Set(special.map((token) => token.content))
    const skipped = special.filter(({ id }) => contents.has(parts.spellingOf(id) ?? ""))
    this.specialIds = new Set(skipped.map((token) => token.id))
    const { decoder, decodedTokens, spellingOf } = parts
    this.bytes = decoder.kind === "bytes" ? new ByteTable(decodedTokens, this.specialIds) : null
    this.sentencePiece =
      decoder.kind === "sentencepiece"
        ? new SentencePieceTable(decoder.rules, decodedTokens, spellingOf, this.specialIds)
        : null
    this.tokenBytesMax = longestBytes(parts)
    const classes = { word: wordCharactersTiktoken, whiteSpace }
    const raw = parts.addedTokens.filter((token) => !token.normalized)
    const normalized = parts.addedTokens.filter((token) => token.normalized)
    this.rawAdded = new AddedTokens(raw, (token) => token.content, classes)
    this.normalizedAdded = new AddedTokens(
      normalized,
      (token) => normalizedText(parts.normalizer, token.content),
      classes,
    )
    const { scanner, prefixBlank } = parts.preTokenizer
    const mayLeaveText = parts.normalizer === null || parts.normalizer.leaves !== undefined
    this.mayBePlain = scanner !== null && !prefixBlank && normalized.length === 0 && mayLeaveText
    this.leaves = parts.normalizer?.leaves ?? null
    this.leavesAscii = parts.normalizer?.leavesAscii === true
    this.tracksControl = parts.normalizer !== null && normalized.some((token) => token.special)
  }

  encode(text: string, options: EncodeOptions = usualOptions): Result<Uint32Array, EncodeFailure> {
    return this.encodeText(text, options, null)
  }

  encodeSegments(
    segments: readonly TextSegment[],
    options: EncodeOptions = usualOptions,
  ): Result<Uint32Array, EncodeFailure> {
    // One text, as the reference would have it, with the places where tokens may not be seen.
    const ends: number[] = []
    const kinds: TextSegment["special"][] = []
    let text = ""
    for (const segment of segments) {
      text += segment.text
      ends.push(text.length)
      kinds.push(segment.special)
    }
    if (kinds.every((kind) => kind === "token")) return this.encodeText(text, options, null)
    let at = 0
    return this.encodeText(text, options, (start, end, special) => {
      // Questions come in order of `start`, but for lookups from the beginning of another cut.
      if (at > 0 && start < ends[at - 1]!) at = 0
      while (at < ends.length && ends[at]! <= start) at += 1
      for (let i = at; i < ends.length; i++) {
        const hides = kinds[i] === "plain" || (special && kinds[i] === "text")
        if (hides && (i === 0 ? 0 : ends[i - 1]!) < ends[i]!) return false
        if (ends[i]! >= end) return true
      }
      return true
    })
  }

  /**
   * As `encode`, into the caller's array from its start: how many ids there are. More than fit: the array holds the
   * first ones, and the count says what it would take.
   */
  encodeInto(text: string, out: Uint32Array, options: EncodeOptions = usualOptions): Result<number, EncodeFailure> {
    const own = this.ids
    this.ids = out
    this.growsIds = false
    const failure = this.run(text, options, null, false)
    const reached = this.ids
    this.ids = own
    this.growsIds = true
    if (failure !== null) return err(failure)
    if (reached !== out) out.set(reached.subarray(0, Math.min(this.count, out.length)))
    return ok(this.count)
  }

  /** As `encode`, for many texts; the first failure ends it. */
  encodeBatch(texts: readonly string[], options: EncodeOptions = usualOptions): Result<Uint32Array[], EncodeFailure> {
    const all: Uint32Array[] = []
    for (const text of texts) {
      const encoded = this.encode(text, options)
      if (!encoded.ok) return encoded
      all.push(encoded.value)
    }
    return ok(all)
  }

  encodeWithOffsets(
    text: string,
    unit: OffsetUnit,
    options: EncodeOptions = usualOptions,
  ): Result<TokensWithOffsets, EncodeFailure> {
    const failure = this.run(text, options, null, true)
    if (failure !== null) return err(failure)
    const tokenIds = this.ids.slice(0, this.count)
    const offsets = Uint32Array.from(this.offsets ?? [])
    this.release()
    if (unit === "code_point") toCodePoints(text, offsets)
    return ok({ tokenIds, offsets })
  }

  decode(tokenIds: Uint32Array, skipSpecialTokens = true): string {
    if (this.bytes !== null) return this.bytes.decode(tokenIds, skipSpecialTokens)
    return this.sentencePiece!.decode(tokenIds, skipSpecialTokens)
  }

  tokenToId(token: string): number {
    return this.parts.idOf(token)
  }

  idToToken(id: number): string | null {
    return this.parts.spellingOf(id)
  }

  isSpecial(id: number): boolean {
    return this.specialIds.has(id)
  }

  detokenizer(promptTokenIds: Uint32Array, skipSpecialTokens: boolean): CopyableDetokenizer {
    if (this.bytes !== null) return new ByteDetokenizer(this.bytes, skipSpecialTokens, promptTokenIds)
    return new SentencePieceDetokenizer(this.sentencePiece!, promptTokenIds, skipSpecialTokens, this.scratch)
  }

  /** A decoder for text as it comes, without the bookkeeping of `Piece`: see `TextStream`. */
  stream(skipSpecialTokens = true, promptTokenIds: Uint32Array = new Uint32Array(0)): TextStream {
    return new TextStream(this.detokenizer(promptTokenIds, skipSpecialTokens))
  }

  private encodeText(
    text: string,
    options: EncodeOptions,
    mayBeToken: MayBeToken | null,
  ): Result<Uint32Array, EncodeFailure> {
    const failure = this.run(text, options, mayBeToken, false)
    if (failure !== null) return err(failure)
    const ids = this.ids.slice(0, this.count)
    this.release()
    return ok(ids)
  }

  /** The ids of a text, in `this.ids`. */
  private run(
    text: string,
    options: EncodeOptions,
    mayBeToken: MayBeToken | null,
    wantsOffsets: boolean,
  ): EncodeFailure | null {
    const { before, after, trimOffsets } = this.parts.postProcessor
    this.count = 0
    this.failure = null
    this.tokensMax = options.tokensMax ?? Infinity
    this.mayBeToken = mayBeToken
    this.offsets = wantsOffsets ? [] : null
    if (wantsOffsets) this.cutTexts.clear()
    const adds = options.addSpecialTokens ?? true
    if (adds) this.put(before)
    const contentStart = this.count
    let wellFormed = text
    if (wantsOffsets || !this.encodesPlain(text)) {
      wellFormed = text.isWellFormed() ? text : text.toWellFormed()
      this.cutRaw(wellFormed)
    }
    if (this.failure !== null) {
      this.release()
      return this.failure
    }
    const { truncate } = options
    let dropped = 0
    if (truncate !== undefined) {
      const room = Math.max(0, truncate.tokensMax - (adds ? before.length + after.length : 0))
      dropped = this.truncate(contentStart, room, truncate.side)
    }
    // As in the reference, what is first behind a cut counts as the text's first token.
    if (trimOffsets !== null && this.offsets !== null)
      this.trimOffsets(wellFormed, contentStart, dropped, trimOffsets.addPrefixSpace)
    if (adds) this.put(after)
    return null
  }

  private release(): void {
    this.offsets = null
    this.mayBeToken = null
    if (this.growsIds && this.ids.length > keptIdsMax) this.ids = new Uint32Array(4096)
  }

  private put(ids: readonly number[]): void {
    for (const id of ids) {
      this.reserve(this.count + 1)
      this.ids[this.count++] = id
      this.offsets?.push(0, 0)
    }
  }

  /** Likely enough for any text of so many units; the core says when it is not, and then starts again. */
  private reserveFor(units: number): void {
    this.reserve(this.count + (units > 0x8000 ? units >> 1 : units) + 16)
  }

  private reserve(length: number): void {
    if (length <= this.ids.length) return
    const ids = new Uint32Array(Math.max(length, 2 * this.ids.length))
    ids.set(this.ids.subarray(0, this.count))
    this.ids = ids
  }

  /**
   * Hot (bench/tokenize.ts): encodes a text that can go to the core as it is, else says false. Most texts can, so finding
   * out must cost little.
   */
  private encodesPlain(text: string): boolean {
    if (!this.mayBePlain) return false
    this.coreCuts ??= this.handsRulesOver()
    // The core cuts wherever a token is spelled: all of the text is control.
    if (this.coreCuts && this.mayBeToken === null) return this.putsPlain(text, true)
    return !this.rawAdded.mayBeIn(text) && this.putsPlain(text, false)
  }

  /** Tokens with flags depend on what stands around them, which the core does not look at. */
  private handsRulesOver(): boolean {
    const raw = this.parts.addedTokens.filter(({ normalized, content }) => !normalized && content !== "")
    if (raw.some(({ singleWord, lstrip, rstrip }) => singleWord || lstrip || rstrip)) return false
    const form = this.parts.normalizer?.inCore?.(raw.map(({ content }) => content)) ?? null
    const takes = this.core.takeRules(raw, form)
    this.coreNormalizes = takes && form !== null
    return takes
  }

  /** The same once `mayBePlain`, with the core cutting added tokens out, or for a text without any. */
  private putsPlain(text: string, cuts: boolean): boolean {
    const { leavesAscii } = this
    const leaves = this.coreNormalizes ? null : this.leaves
    if (leaves !== null && !leavesAscii && !leaves(text)) return false
    if (this.growsIds) this.reserveFor(text.length)
    for (;;) {
      const asked = leavesAscii ? leaves : null
      const end = this.core.encodePlain(text, asked, cuts, this.ids, this.count, this.tokensMax - this.count)
      if (end >= 0) this.count = end
      else if (end === notPlain) return false
      else if (end === pieceTooLong) this.fail(tooLong)
      else {
        this.reserve(-end)
        continue
      }
      return true
    }
  }

  /** Added tokens that are looked for in the text as it came; the rest goes on to the normalizer. */
  private cutRaw(text: string): void {
    if (this.rawAdded.count === 0) {
      if (text !== "") this.normalizeSegment(text, 0)
      return
    }
    this.rawAdded.cut(
      text,
      this.mayBeToken,
      (start, end) => this.normalizeSegment(start === 0 && end === text.length ? text : text.slice(start, end), start),
      (token, start, end) => this.putAdded(token.id, start, end, this.offsets === null ? "" : text.slice(start, end)),
    )
  }

  private putAdded(id: number, start: number, end: number, cutText: string): boolean {
    this.reserve(this.count + 1)
    if (this.offsets !== null) this.cutTexts.set(this.count, cutText)
    this.ids[this.count++] = id
    this.offsets?.push(start, end)
    return this.count <= this.tokensMax
  }

  /** False: enough. */
  private normalizeSegment(segment: string, at: number): boolean {
    if (this.offsets === null && this.mayBePlain && this.putsPlain(segment, false)) {
      return this.failure === null && this.count <= this.tokensMax
    }
    const aligned = this.offsets !== null || (this.tracksControl && this.mayBeToken !== null)
    let text = originalText(segment, aligned, at)
    if (this.parts.normalizer !== null) {
      const normalized = this.parts.normalizer(text)
      if (!normalized.ok) return this.fail(normalized.error.message)
      text = normalized.value
    }
    if (text.text === "") return true
    if (this.normalizedAdded.count === 0) return this.encodeSegment(text, at === 0)
    const original = (start: number): number => text.starts?.[start] ?? at + start
    const originalEnd = (end: number): number => text.ends?.[end - 1] ?? at + end
    const { mayBeToken } = this
    let goes = true
    this.normalizedAdded.cut(
      text.text,
      mayBeToken === null ? null : (start, end, special) => mayBeToken(original(start), originalEnd(end), special),
      (start, end) => {
        goes = this.encodeSegment(sliced(text, start, end), at === 0 && start === 0)
        return goes
      },
      (token, start, end) => {
        goes = this.putAdded(token.id, original(start), originalEnd(end), text.text.slice(start, end))
        return goes
      },
    )
    return goes
  }

  private fail(message: string): boolean {
    this.failure = { kind: "encode_failed", message }
    return false
  }

  /** A normalized segment without added tokens. */
  private encodeSegment(segment: AlignedText, startsText: boolean): boolean {
    const { scanner, steps, prefixBlank } = this.parts.preTokenizer
    const { lossyCuts } = this.parts
    if (lossyCuts !== null && this.offsets !== null) {
      return this.encodeStepwise(segment, startsText, lossyCuts, (piece) => this.encodeLossy(piece))
    }
    if (scanner !== null) {
      const text = prefixBlank && !segment.text.startsWith(" ") ? prefixed(segment, " ") : segment
      return this.offsets === null ? this.encodePieces(text.text, false) : this.encodeAligned(text)
    }
    return this.encodeStepwise(segment, startsText, steps, (piece) =>
      this.offsets === null ? this.encodePieces(piece.text, true) : this.encodeAligned(piece),
    )
  }

  private encodeStepwise(
    segment: AlignedText,
    startsText: boolean,
    steps: readonly PreTokenizerStep[],
    encodePiece: (piece: AlignedText) => boolean,
  ): boolean {
    let pieces: AlignedText[] = [segment]
    for (const step of steps) {
      const next = step(pieces, { startsText })
      if (!next.ok) return this.fail(next.error.message)
      pieces = next.value
    }
    return pieces.every(encodePiece)
  }

  /** A piece whose bytes may be dropped, with offsets. */
  private encodeLossy(piece: AlignedText): boolean {
    const first = this.count
    const goes = this.encodePieces(piece.text, true)
    const spellings = Array.from(this.ids.subarray(first, this.count), (id) => this.parts.spellingOf(id) ?? "")
    putOffsets(piece, spellings, this.offsets!)
    return goes
  }

  private encodePieces(text: string, whole: boolean): boolean {
    if (this.growsIds) this.reserveFor(text.length)
    for (;;) {
      const tokensMax = this.tokensMax - this.count
      const end = whole
        ? this.core.encodePiece(text, this.ids, this.count, tokensMax)
        : this.core.encode(text, this.ids, this.count, tokensMax)
      if (end >= 0) {
        this.count = end
        return this.count <= this.tokensMax
      }
      if (end === pieceTooLong) return this.fail(tooLong)
      this.reserve(-end)
    }
  }

  /** The slow road, with an offset for each token. */
  private encodeAligned(text: AlignedText): boolean {
    const room = 3 * text.text.length + 1
    const ids = new Uint32Array(room)
    const ends = new Uint32Array(room)
    const count = this.core.encodeWithOffsets(text.text, ids, ends, 0, this.tokensMax - this.count)
    if (count < 0) return this.fail(tooLong)
    this.reserve(this.count + count)
    this.ids.set(ids.subarray(0, count), this.count)
    this.count += count
    const unitOf = unitsByByte(text.text)
    let startByte = 0
    for (let i = 0; i < count; i++) {
      const endByte = ends[i]!
      const first = unitOf[startByte]!
      const last = unitOf[Math.max(startByte, endByte - 1)]!
      this.offsets!.push(text.starts![first] ?? 0, text.ends![last] ?? 0)
      startByte = endByte
    }
    return this.count <= this.tokensMax
  }

  /**
   * Leaves white space at a token's ends out of its offsets; `dropped` ids went before the first one. Source:
   * `process_offsets` of HF's ByteLevel.
   */
  private trimOffsets(text: string, from: number, dropped: number, addPrefixSpace: boolean): void {
    const offsets = this.offsets!
    for (let i = from; i < this.count; i++) {
      const spelling = this.cutTexts.get(i + dropped) ?? this.parts.spellingOf(this.ids[i]!) ?? ""
      const chars = Array.from(spelling)
      let leading = 0
      while (leading < chars.length && isTrimmed(chars[leading]!)) leading += 1
      let trailing = 0
      while (trailing < chars.length && isTrimmed(chars[chars.length - 1 - trailing]!)) trailing += 1
      let start = offsets[2 * i]!
      let end = offsets[2 * i + 1]!
      if (leading > 0) {
        // One blank is what add_prefix_space put there; more were in the text.
        if ((i === from || start === 0) && addPrefixSpace && leading === 1) leading = 0
        start = Math.min(forward(text, start, leading), end)
      }
      if (trailing > 0) end = Math.max(backward(text, end, trailing), start)
      offsets[2 * i] = start
      offsets[2 * i + 1] = end
    }
  }

  /** Gives how many ids went before the first one that is left. */
  private truncate(contentStart: number, room: number, side: "left" | "right"): number {
    const surplus = this.count - contentStart - room
    if (surplus <= 0) return 0
    if (side === "left") {
      this.ids.copyWithin(contentStart, contentStart + surplus, this.count)
      this.offsets?.splice(2 * contentStart, 2 * surplus)
    } else {
      this.offsets?.splice(2 * (contentStart + room))
    }
    this.count -= surplus
    return side === "left" ? surplus : 0
  }
}

function longestBytes(parts: TokenizerParts): number {
  let longest = Math.max(1, parts.tokenBytesMax)
  for (const { content } of parts.addedTokens) longest = Math.max(longest, 3 * content.length)
  return longest
}

/** For each byte of the text's UTF-8: the UTF-16 unit that its character starts at. */
function unitsByByte(text: string): Uint32Array {
  const units = new Uint32Array(3 * text.length + 1)
  let byte = 0
  for (let unit = 0; unit < text.length; ) {
    const code = text.codePointAt(unit)!
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    for (let k = 0; k < size; k++) units[byte++] = unit
    unit += code > 0xffff ? 2 : 1
  }
  units.fill(Math.max(0, text.length - 1), byte)
  return units
}

function isTrimmed(char: string): boolean {
  const code = char.codePointAt(0)!
  if (char === "Ġ") return true
  for (let i = 0; i < whiteSpace.length; i += 2) if (code >= whiteSpace[i]! && code <= whiteSpace[i + 1]!) return true
  return false
}

function forward(text: string, at: number, count: number): number {
  let unit = at
  for (let i = 0; i < count && unit < text.length; i++) unit += text.codePointAt(unit)! > 0xffff ? 2 : 1
  return unit
}

function backward(text: string, at: number, count: number): number {
  let unit = at
  for (let i = 0; i < count && unit > 0; i++) {
    const low = text.charCodeAt(unit - 1)
    unit -= low >= 0xdc00 && low <= 0xdfff && unit >= 2 ? 2 : 1
  }
  return unit
}

/** Turns UTF-16 offsets of `text` into code point offsets, in place. */
function toCodePoints(text: string, offsets: Uint32Array): void {
  let isPlain = true
  for (let i = 0; i < text.length && isPlain; i++) isPlain = (text.charCodeAt(i) & 0xf800) !== 0xd800
  if (isPlain) return
  const points = new Uint32Array(text.length + 1)
  let count = 0
  for (let unit = 0; unit < text.length; ) {
    const size = text.codePointAt(unit)! > 0xffff ? 2 : 1
    for (let k = 0; k < size; k++) points[unit + k] = count
    unit += size
    count += 1
  }
  points[text.length] = count
  for (let i = 0; i < offsets.length; i++) offsets[i] = points[offsets[i]!]!
}
