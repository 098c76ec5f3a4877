import { Tiktoken } from "tiktoken/lite"
import { Piece } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { ByteDetokenizer, decodeBytes, type TokenBytes } from "./byte-detokenizer"
import { bytesOfSpelling, spellBytes } from "./byte-level"
import type { Detokenizer } from "./detokenizer"
import { mergeBytes } from "./merge"
import type { EncodeFailure, EncodeOptions, Tokenizer } from "./tokenizer"

/** Ranks as npm `tiktoken` ships them: lines of `! offset base64 base64 …`. */
export interface RankFile {
  readonly bpe_ranks: string
  readonly pat_str: string
}

/** Tokens beside the ranks, spelled out → id. Both kinds are found in text; only the special ones can be skipped. */
export interface ExtraTokens {
  readonly special: { readonly [token: string]: number }
  readonly added: { readonly [token: string]: number }
}

/** A run without (or of only) white space longer than this may hold one piece that npm tiktoken takes quadratic time for. */
const runUnitsMax = 256

/** Texts that are longer than this for each token that may come are most likely too long: worth counting along. */
const likelyTokenUnits = 8

/** The longest piece that is merged: a second of work. No text that a model could use has a longer one. */
const pieceUnitsMax = 1024 * 1024

/** Unicode White_Space, which is what `\s` means to the reference's regex engine; JavaScript's lacks U+0085 and has U+FEFF. */
const whiteSpace = "\\t\\n\\v\\f\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"

const whiteSpaceUnit = new RegExp(`[${whiteSpace}]`)

const noBytes = new Uint8Array(0)
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const utf8 = new TextEncoder()

/**
 * OpenAI's vocabularies through npm `tiktoken`, which is the oracle of the WASM tokenizer too. Texts with very long
 * pieces take a road of our own (`merge.ts`), since the package needs quadratic time for them.
 */
export class TiktokenTokenizer implements Tokenizer, TokenBytes {
  readonly vocabSize: number
  readonly tokenBytesMax = 128
  private readonly encoding: Tiktoken
  private readonly extraIds = new Map<string, number>()
  private readonly extraTexts = new Map<number, string>()
  private readonly specialIds = new Set<number>()
  private readonly rankCount: number
  private readonly rankFile: RankFile
  private readonly splitPattern: RegExp
  private readonly extraPattern: RegExp | null
  /** Made on first use: only hostile or very odd texts need it. */
  private ranks: Map<string, number> | null = null
  /** Lazily filled: undefined = not looked up, null = not whole characters. */
  private readonly texts: (string | null | undefined)[]

  constructor(file: RankFile, extra: ExtraTokens) {
    for (const [token, id] of [...Object.entries(extra.special), ...Object.entries(extra.added)]) {
      this.extraIds.set(token, id)
      this.extraTexts.set(id, token)
    }
    for (const id of Object.values(extra.special)) this.specialIds.add(id)
    this.encoding = new Tiktoken(file.bpe_ranks, Object.fromEntries(this.extraIds), file.pat_str)
    this.rankFile = file
    this.rankCount = countRanks(file.bpe_ranks)
    this.vocabSize = Math.max(this.rankCount, ...[...this.extraTexts.keys()].map((id) => id + 1))
    this.texts = new Array<string | null | undefined>(this.vocabSize)
    this.splitPattern = new RegExp(whiteSpaceSpelledOut(file.pat_str), "gu")
    const spellings = [...this.extraIds.keys()].sort((a, b) => b.length - a.length).map(escapePattern)
    this.extraPattern = spellings.length === 0 ? null : new RegExp(`(${spellings.join("|")})`, "u")
  }

  encode(text: string, { tokensMax = Infinity }: EncodeOptions): Result<Uint32Array, EncodeFailure> {
    const wellFormed = text.toWellFormed()
    try {
      const byPiece = text.length > tokensMax * likelyTokenUnits || hasLongRun(wellFormed)
      return byPiece ? this.encodeLong(wellFormed, tokensMax) : ok(this.encoding.encode(wellFormed, "all", []))
    } catch (cause) {
      return err({ kind: "encode_failed", message: `the text cannot be tokenized: ${String(cause)}` })
    }
  }

  decode(tokenIds: Uint32Array, skipSpecialTokens: boolean): string {
    return decodeBytes(this, tokenIds, skipSpecialTokens, new Piece())
  }

  tokenToId(token: string): number {
    const extra = this.extraIds.get(token)
    if (extra !== undefined) return extra
    const bytes = bytesOfSpelling(token)
    if (bytes === null || bytes.length === 0) return -1
    return this.rankMap().get(latin1(bytes)) ?? -1
  }

  idToToken(id: number): string | null {
    const extra = this.extraTexts.get(id)
    if (extra !== undefined) return extra
    const bytes = this.bytes(id)
    return bytes.length === 0 ? null : spellBytes(bytes)
  }

  isSpecial(id: number): boolean {
    return this.specialIds.has(id)
  }

  detokenizer(_promptTokenIds: Uint32Array, skipSpecialTokens: boolean): Detokenizer {
    return new ByteDetokenizer(this, skipSpecialTokens)
  }

  /** Hot (bench/fold.ts): one array read once the token has been seen. */
  text(id: number): string | null {
    if (id >= this.vocabSize) return ""
    const known = this.texts[id]
    if (known !== undefined) return known
    const text = this.lookUpText(id)
    this.texts[id] = text
    return text
  }

  bytes(id: number): Uint8Array {
    const extra = this.extraTexts.get(id)
    if (extra !== undefined) return utf8.encode(extra)
    return id < this.rankCount ? this.encoding.decode_single_token_bytes(id) : noBytes
  }

  private lookUpText(id: number): string | null {
    try {
      return strict.decode(this.bytes(id))
    } catch {
      return null
    }
  }

  private encodeLong(text: string, tokensMax: number): Result<Uint32Array, EncodeFailure> {
    const ids: number[] = []
    const parts = this.extraPattern === null ? [text] : text.split(this.extraPattern)
    for (const part of parts) {
      const extra = this.extraIds.get(part)
      if (extra !== undefined) ids.push(extra)
      else {
        const failure = this.encodeOrdinaryLong(part, ids, tokensMax)
        if (failure !== null) return err(failure)
      }
      if (ids.length > tokensMax) break
    }
    return ok(Uint32Array.from(ids))
  }

  /**
   * Splits as the package would and merges every piece here. Short stretches cannot be handed back to the package:
   * where a text ends changes how the white space before it splits.
   */
  private encodeOrdinaryLong(text: string, ids: number[], tokensMax: number): EncodeFailure | null {
    const ranks = this.rankMap()
    const rankOf = (bytes: string): number | undefined => ranks.get(bytes)
    this.splitPattern.lastIndex = 0
    for (let match = this.splitPattern.exec(text); match !== null; match = this.splitPattern.exec(text)) {
      if (match[0].length > pieceUnitsMax) {
        return { kind: "encode_failed", message: `the text has more than ${pieceUnitsMax} characters without a break` }
      }
      const bytes = latin1(utf8.encode(match[0]))
      const whole = ranks.get(bytes)
      if (whole !== undefined) ids.push(whole)
      else mergeBytes(bytes, rankOf, ids)
      if (ids.length > tokensMax) return null
    }
    return null
  }

  private rankMap(): Map<string, number> {
    if (this.ranks !== null) return this.ranks
    const ranks = new Map<string, number>()
    for (const line of this.rankFile.bpe_ranks.split("\n")) {
      const [, offset, ...tokens] = line.split(" ")
      let rank = Number(offset)
      for (const token of tokens) ranks.set(atob(token), rank++)
    }
    this.ranks = ranks
    return ranks
  }
}

function countRanks(bpeRanks: string): number {
  let count = 0
  for (const line of bpeRanks.split("\n")) {
    const [, offset, ...tokens] = line.split(" ")
    count = Math.max(count, Number(offset) + tokens.length)
  }
  return count
}

/** `\s` and `\S`, inside and outside a class, as the reference's engine reads them. */
function whiteSpaceSpelledOut(pattern: string): string {
  let inClass = false
  let result = ""
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === "\\") {
      const escaped = pattern[i + 1]!
      i += 1
      if (escaped === "s") result += inClass ? whiteSpace : `[${whiteSpace}]`
      else if (escaped === "S" && !inClass) result += `[^${whiteSpace}]`
      else result += `\\${escaped}`
      continue
    }
    if (char === "[") inClass = true
    else if (char === "]") inClass = false
    result += char
  }
  return result
}

function escapePattern(token: string): string {
  return token.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")
}

/**
 * True when some run of white space, or of anything else, is long enough to hold a long piece. Line breaks lengthen
 * either kind of run, since a piece may be punctuation with line breaks behind it.
 */
function hasLongRun(text: string): boolean {
  let run = 0
  let space = false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 0x0a || unit === 0x0d) {
      run += 1
    } else {
      const isSpace =
        unit <= 0x20 ? unit === 0x20 || (unit >= 0x09 && unit <= 0x0d) : unit >= 0x85 && whiteSpaceUnit.test(text[i]!)
      run = isSpace === space ? run + 1 : 1
      space = isSpace
    }
    if (run >= runUnitsMax) return true
  }
  return false
}

function latin1(bytes: Uint8Array): string {
  let text = ""
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192))
  return text
}
