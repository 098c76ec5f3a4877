import { ok, type Result } from "../result"
import {
  type BpeExports,
  type BuildRules,
  builtInstance,
  mergesIn,
  type TableSizes,
  type TokenizerUnusable,
  tablesIn,
  unusable,
} from "./bpe-instance"
import type { CharRanges } from "./char-set"
import { type PackedTokens, packTokens } from "./packed-tokens"
import { unicodeClasses } from "./unicode-classes"
import { type ImageLayout, imageOf, type StatefulExports } from "./wasm-image"

/**
 * How a text is cut into pieces before merges. One name for each distinct split pattern (patterns: wasm/assembly/scan.ts):
 * `whole` = no cut; `cl100k` is Llama 3's too; `tekken` is o200k without contractions and with single digits;
 * `deepseek3` cuts in three steps; `gpt2_digits` cuts out each digit (the `Digits` pre-tokenizer) before GPT-2's pattern,
 * as SmolLM does.
 */
export type ScannerFamily =
  | "whole"
  | "gpt2"
  | "gpt2_digits"
  | "cl100k"
  | "llama3"
  | "qwen2"
  | "qwen35"
  | "o200k"
  | "tekken"
  | "deepseek3"

/** The numbers of wasm/assembly/scan.ts. */
const familyNumbers: { readonly [family in ScannerFamily]: number } = {
  whole: 0,
  gpt2: 1,
  cl100k: 2,
  llama3: 2,
  qwen2: 3,
  qwen35: 4,
  o200k: 5,
  tekken: 6,
  deepseek3: 7,
  gpt2_digits: 9,
}

/** A vocabulary's tables. */
export interface BpeTables {
  readonly scanner: ScannerFamily
  /** By id; null = not a BPE token. Packed tables load faster. */
  readonly tokenBytes: readonly (Uint8Array | null)[] | PackedTokens
  /** Left id, right id for each merge in rank order; null = a rank file, where a token's id is its rank. */
  readonly merges: Uint32Array | null
  /** A piece that is a token is that token, whatever merges would make of it. Rank files always are so. */
  readonly ignoreMerges: boolean
  /** Ids of `<0x00>` … `<0xFF>` (-1 = none): units are characters then, as SentencePiece has them; null = units are bytes. */
  readonly byteFallback: Int32Array | null
  /** For units without a token; -1 = they are dropped. */
  readonly unknownId: number
  /** Unknown units side by side are one token. */
  readonly fuseUnknown: boolean
}

/** What `encode` gives for a text with a single piece that is longer than any model could use. */
export const pieceTooLong: number = Number.MIN_SAFE_INTEGER

/** What `encodePlain` gives for a text that may not go to the core as it is. */
export const notPlain: number = Number.MIN_SAFE_INTEGER + 1

/** The largest window, so that every piece of 10 MB is merged. A byte of it takes 41 bytes with its id and scratch. */
const windowBytesMax = 24 * 1024 * 1024
/**
 * Text is taken in windows of this size, so that it stays in the processor's cache and memory does not grow with it.
 * A third of it in UTF-16 units at a time: `encodeInto` is 30 times slower where the units might not fit.
 */
const windowBytesUsual = 384 * 1024
/** Ids below 2^20: more would not fit the entries of the caches and of the pair table. */
const tokensMaxEver = 1 << 20
/** Memory that a long piece may leave behind; beyond it the instance is made anew, since linear memory never shrinks. */
const spareBytesMax = 16 * 1024 * 1024
/** Up to here a loop copies faster than a fresh subarray. */
const idsCopiedOneByOne = 48

/** Outcomes of `encodeText` besides a number of ids (wasm/assembly/core.ts). */
const asked = -1
const gaveUp = -2

const utf8 = new TextEncoder()
const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** An added token that is cut out of a text wherever it is spelled. */
export interface AddedSpelling {
  readonly id: number
  readonly content: string
}

/** A normal form that the core brings texts to. */
export interface CoreForm {
  /** The characters that it may touch, and those that a touched one may be joined to. Asked for with the first text. */
  characters(): { readonly touched: CharRanges; readonly firsts: CharRanges }
  /** A stretch of a text in its form, which has three times as many UTF-8 bytes at most. */
  formOf(stretch: string): string
}

/** What a core is besides its memory. Plain JSON. */
export interface CoreFacts {
  readonly scanner: ScannerFamily
  readonly sizes: TableSizes
  readonly rules: BuildRules
  readonly layout: ImageLayout
}

/**
 * Pre-tokenizer and BPE of one vocabulary in WebAssembly: the only file that touches its memory. Knows no added tokens,
 * no normalizer, no BOS: those are the caller's. One instance serves one thread; calls do not nest.
 */
export class BpeCore {
  private wasm: BpeExports
  private readonly scanner: ScannerFamily
  private readonly family: number
  private readonly sizes: TableSizes
  private readonly rules: BuildRules
  /** Bytes of linear memory with the usual window. */
  private usualBytes = 0
  /** What `encodePlain` cuts out. */
  private added: readonly AddedSpelling[] = []
  /** What `encodePlain` brings texts to, and whether the core knows its characters. */
  private form: CoreForm | null = null
  private knowsForm = false
  private windowBytes = 0
  private withEnds = false
  /** Views of the window; made again when it is laid anew, since memory may have grown. */
  private text: Uint8Array = new Uint8Array(0)
  private ids: Uint32Array = new Uint32Array(0)
  private ends: Uint32Array = new Uint32Array(0)

  private constructor(wasm: BpeExports, scanner: ScannerFamily, sizes: TableSizes, rules: BuildRules) {
    this.wasm = wasm
    this.scanner = scanner
    this.family = familyNumbers[scanner]
    this.sizes = sizes
    this.rules = rules
    if (!this.layWindow(windowBytesUsual, false)) throw new Error("no memory for the first window")
    this.usualBytes = this.memoryBytes()
  }

  /** Builds the tables. Fails when two ids have the same bytes or a merge's parts or result are no tokens. */
  static create(tables: BpeTables): Result<BpeCore, TokenizerUnusable> {
    const { starts, bytes, longest } = packTokens(tables.tokenBytes)
    const tokens = starts.length - 1
    if (tokens > tokensMaxEver) return unusable(`${tokens} tokens are more than ${tokensMaxEver}`)
    const merges = tables.merges
    const classes = unicodeClasses()
    const sizes = {
      tokens,
      tokenBytes: bytes.length,
      mergeWords: merges?.length ?? 0,
      classBytes: classes.length,
      longest,
    }
    const rules = {
      fromRanks: merges === null,
      wholeWords: tables.ignoreMerges || merges === null,
      characters: tables.byteFallback !== null,
      unknownId: tables.unknownId,
      fuseUnknown: tables.fuseUnknown,
    }
    const fallback = tables.byteFallback ?? new Int32Array(256)
    const built = builtInstance({ starts, bytes, classes, fallback }, merges ?? new Uint32Array(0), sizes, rules)
    return built.ok ? ok(new BpeCore(built.value, tables.scanner, sizes, rules)) : built
  }

  /** The core of an image: the instance holds its bytes. `facts` and bytes are what `image` gave. */
  static of(wasm: StatefulExports, { scanner, sizes, rules, layout }: CoreFacts): BpeCore {
    wasm.restoreState(layout.stateAt)
    // An instance like any other, and its tables are those of a core.
    return new BpeCore(wasm as BpeExports, scanner, sizes, rules)
  }

  /** What is to be kept to have this core again. Before the first text: views of memory, good until the next call. */
  image(): { facts: CoreFacts; stretches: readonly Uint8Array[] } {
    const { scanner, sizes, rules } = this
    // The window stands behind all tables, and is laid anew for the next one.
    const { layout, stretches } = imageOf(this.wasm, this.wasm.windowAddress())
    return { facts: { scanner, sizes, rules, layout }, stretches }
  }

  /**
   * Takes over the added tokens that `encodePlain` cuts out, the first of equal spellings, and the normal form that it
   * brings texts to; instead of those before. False, and nothing is taken: a spelling is not all text, or no memory.
   */
  takeRules(added: readonly AddedSpelling[], form: CoreForm | null): boolean {
    const areTexts = added.every(({ content }) => content !== "" && content.isWellFormed())
    this.added = areTexts ? added : []
    this.form = areTexts ? form : null
    const laid = this.layRules()
    if (!laid) {
      this.added = []
      this.form = null
      this.layRules()
    }
    if (!this.layWindow(this.windowBytes, this.withEnds)) throw new Error("no memory for the window")
    this.usualBytes = this.memoryBytes()
    return laid && areTexts
  }

  /**
   * Ids of the text to `out` from index `at` on; gives the index behind the last. Stops early once there are more than
   * `tokensMax`. A negative number -n: `out` is too short, and has to hold n at least, which is enough unless a normal
   * form makes the rest of the text longer. `pieceTooLong`: see there.
   */
  encode(text: string, out: Uint32Array, at: number, tokensMax: number): number {
    return this.run(this.family, text, out, asItIs, at, tokensMax)
  }

  /**
   * Hot (bench/tokenize.ts): as `encode`, in the form of `takeRules`, unless the text is `notPlain`: `leaves` (null:
   * every text does) is asked about it when it is not all ASCII, which nothing would change. `cuts`: the added tokens of
   * `takeRules` are cut out first. Lone surrogates are U+FFFD.
   */
  encodePlain(
    text: string,
    leaves: ((text: string) => boolean) | null,
    cuts: boolean,
    out: Uint32Array,
    at: number,
    tokensMax: number,
  ): number {
    const { length } = text
    if (length * 3 > windowBytesUsual) {
      if (leaves !== null && !leaves(text)) return notPlain
      return this.run(this.family, text, out, cuts ? plainAndCut : plain, at, tokensMax)
    }
    const { written } = utf8.encodeInto(text, this.text)
    if (written !== length && leaves !== null && !leaves(text)) return notPlain
    const normalizes = written !== length && this.form !== null
    const count = this.encodeWindow(written, true, idsLeft(tokensMax, 0), cuts, normalizes)
    if (count < 0) return notPlain
    // A form has more bytes than the text, so it may have more ids than the text could have.
    if (at + count > out.length) return -(at + Math.max(count, length * 3))
    copyIds(this.ids, count, out, at)
    return at + count
  }

  /** The same for UTF-8 bytes in [start, end), which must be valid. */
  encodeUtf8(bytes: Uint8Array, start: number, end: number, out: Uint32Array, at: number, tokensMax: number): number {
    let from = start
    let held = 0
    let to = at
    for (;;) {
      const taken = wholeCharacters(bytes, from, Math.min(end, from + this.windowBytes - held), end) - from
      this.text.set(bytes.subarray(from, from + taken), held)
      from += taken
      held += taken
      const final = from === end
      const count = this.wasm.encode(this.family, held, final, idsLeft(tokensMax, to - at))
      if (to + count > out.length) return -(at + end - start)
      copyIds(this.ids, count, out, to)
      to += count
      if (final || to - at > tokensMax) return this.done(to)
      held = this.keepRest(held)
      if (held < 0) return this.done(pieceTooLong)
    }
  }

  /** As `encode`, for a text that is one piece: no scanner cuts it. */
  encodePiece(text: string, out: Uint32Array, at: number, tokensMax: number): number {
    return this.run(0, text, out, asItIs, at, tokensMax)
  }

  /** As `encode`; `ends[i]` is where the token `out[i]` ends, in UTF-8 bytes of the text. */
  encodeWithOffsets(text: string, out: Uint32Array, ends: Uint32Array, at: number, tokensMax: number): number {
    return this.run(this.family, text, out, { ends, byRules: false, cuts: false }, at, tokensMax)
  }

  /** Empties the word cache. For measurements: a cold core gives the same ids. */
  forgetWords(): void {
    this.wasm.forgetWords()
  }

  /** Bytes of linear memory. */
  memoryBytes(): number {
    return this.wasm.memory.buffer.byteLength
  }

  /** Hot (bench/tokenize.ts): fills the window, encodes it, copies the ids, until the text is at its end. */
  private run(
    family: number,
    text: string,
    out: Uint32Array,
    { ends, byRules, cuts }: Road,
    at: number,
    tokensMax: number,
  ): number {
    if (ends !== null && !this.withEnds && !this.layWindow(this.windowBytes, true)) return pieceTooLong
    const length = text.length
    let units = 0
    let held = 0
    let behind = 0
    let to = at
    let normalizes = false
    for (;;) {
      const part = partOf(text, units, Math.trunc((this.windowBytes - held) / 3))
      const { read, written } = utf8.encodeInto(part, held === 0 ? this.text : this.text.subarray(held))
      units += read
      held += written
      const final = units === length
      const most = idsLeft(tokensMax, to - at)
      let count: number
      if (ends !== null) count = this.wasm.encodeEnds(family, held, final, behind, most)
      else if (!byRules) count = this.wasm.encode(family, held, final, most)
      else {
        normalizes ||= read !== written && this.form !== null
        count = this.encodeWindow(held, final, most, cuts, normalizes)
        if (count < 0) return this.done(notPlain)
      }
      if (to + count > out.length) return -Math.max(at + length * 3, to + count)
      copyIds(this.ids, count, out, to)
      if (ends !== null) ends.set(this.ends.subarray(0, count), to)
      to += count
      if (final || to - at > tokensMax) return this.done(to)
      behind += this.wasm.reachedBytes()
      held = this.keepRest(held)
      if (held < 0) return this.done(pieceTooLong)
    }
  }

  /**
   * Moves the window's rest to its front, and gives its length. A rest that fills half of the window gets one twice as
   * large, so that it is looked at a few times only, however long it becomes.
   */
  private keepRest(bytes: number): number {
    const rest = bytes - this.wasm.reachedBytes()
    if (rest * 2 <= this.windowBytes) {
      this.wasm.keepRest(bytes)
      return rest
    }
    const kept = this.text.slice(bytes - rest, bytes)
    const larger = this.windowBytes * 2
    if (larger > windowBytesMax || !this.layWindow(larger, this.withEnds)) return -1
    this.text.set(kept)
    return rest
  }

  /** Goes back to the usual window after a long piece. */
  private done(result: number): number {
    if (this.windowBytes === windowBytesUsual && !this.withEnds) return result
    if (this.memoryBytes() > this.usualBytes + spareBytesMax) {
      const built = builtInstance(
        tablesIn(this.wasm, this.sizes),
        mergesIn(this.wasm, this.sizes),
        this.sizes,
        this.rules,
      )
      // Without memory for a second one the large one stays.
      if (built.ok) {
        this.wasm = built.value
        if (!this.layRules()) throw new Error("no memory for the added tokens")
      }
    }
    this.layWindow(windowBytesUsual, false)
    return result
  }

  /** Ids of the window's first `bytes` bytes by the rules of `takeRules`; a negative number when the form does not fit. */
  private encodeWindow(bytes: number, final: boolean, most: number, cuts: boolean, normalizes: boolean): number {
    const { wasm, family } = this
    if (!cuts && !normalizes) return wasm.encode(family, bytes, final, most)
    if (normalizes && !this.knowsForm) this.teachForm()
    let count = wasm.encodeText(family, bytes, final, most, cuts, normalizes, false)
    while (count === asked) {
      this.answer()
      count = wasm.encodeText(family, bytes, final, most, cuts, normalizes, true)
    }
    return count === gaveUp ? -1 : count
  }

  /** Tells the core what it asked for: a stretch of text that it has not met. */
  private answer(): void {
    const { wasm } = this
    const { buffer } = wasm.memory
    const stretch = utf8Decoder.decode(new Uint8Array(buffer, wasm.askedAddress(), wasm.askedBytes()))
    const content = this.form!.formOf(stretch)
    const to = new Uint8Array(buffer, wasm.answerAddress(), 3 * wasm.askedBytes())
    wasm.answer(utf8.encodeInto(content, to).written)
  }

  private teachForm(): void {
    const { touched, firsts } = this.form!.characters()
    const { wasm } = this
    for (let i = 0; i < touched.length; i += 2) wasm.markCharacters(touched[i]!, touched[i + 1]!, true)
    for (let i = 0; i < firsts.length; i += 2) wasm.markCharacters(firsts[i]!, firsts[i + 1]!, false)
    this.knowsForm = true
  }

  private layRules(): boolean {
    const spelled = this.added.map(({ content }) => utf8.encode(content))
    const bytes = spelled.reduce((sum, each) => sum + each.length, 0)
    const { wasm } = this
    this.knowsForm = false
    if (!wasm.layRules(spelled.length, bytes, this.form !== null)) return false
    const { buffer } = wasm.memory
    const starts = new Uint32Array(buffer, wasm.addedStartsAddress(), spelled.length + 1)
    const to = new Uint8Array(buffer, wasm.addedBytesAddress(), bytes)
    const ids = new Uint32Array(buffer, wasm.addedIdsAddress(), spelled.length)
    starts[0] = 0
    for (const [i, each] of spelled.entries()) {
      to.set(each, starts[i]!)
      starts[i + 1] = starts[i]! + each.length
      ids[i] = this.added[i]!.id
    }
    wasm.buildAdded()
    return true
  }

  private layWindow(bytes: number, withEnds: boolean): boolean {
    if (!this.wasm.layWindow(bytes, bytes, withEnds)) return false
    const { buffer } = this.wasm.memory
    this.windowBytes = bytes
    this.withEnds = withEnds
    this.text = new Uint8Array(buffer, this.wasm.windowAddress(), bytes)
    this.ids = new Uint32Array(buffer, this.wasm.idsAddress(), bytes)
    this.ends = withEnds ? new Uint32Array(buffer, this.wasm.endsAddress(), bytes) : new Uint32Array(0)
    return true
  }
}

/** Which road a text takes through `run`. */
interface Road {
  /** Where the ends of tokens go; null = they are not asked for. */
  readonly ends: Uint32Array | null
  /** The text is brought to the form of `takeRules`. Not together with `ends`. */
  readonly byRules: boolean
  /** And its added tokens are cut out. */
  readonly cuts: boolean
}

const asItIs: Road = { ends: null, byRules: false, cuts: false }
const plain: Road = { ends: null, byRules: true, cuts: false }
const plainAndCut: Road = { ends: null, byRules: true, cuts: true }

function idsLeft(tokensMax: number, written: number): number {
  return Math.min(tokensMax - written, 0xffff_ffff)
}

/** Up to `units` UTF-16 units from `start`, not ending inside a character. */
function partOf(text: string, start: number, units: number): string {
  let end = start + units
  if (start === 0 && end >= text.length) return text
  if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1
  return text.substring(start, end)
}

/** `cut`, or the start of the character that it falls into; `end` is the end of the text. */
function wholeCharacters(bytes: Uint8Array, start: number, cut: number, end: number): number {
  let at = cut
  if (at < end) while (at > start && (bytes[at]! & 0xc0) === 0x80) at -= 1
  return at
}

function copyIds(ids: Uint32Array, count: number, out: Uint32Array, at: number): void {
  if (count > idsCopiedOneByOne) out.set(ids.subarray(0, count), at)
  else for (let i = 0; i < count; i++) out[at + i] = ids[i]!
}
