/**
 * Decoding of SentencePiece-style vocabularies (Llama 2, Mistral, Gemma): `▁` for blanks, characters outside the
 * vocabulary as byte tokens `<0xE2>`, and a blank that is taken from the start of the text.
 */
import { Piece } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { unfinishedBytes } from "./byte-detokenizer"
import { DecodeCore, tokenKinds } from "./decode-core"
import type { CopyableDetokenizer } from "./detokenizer"
import { listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"
import type { PackedTokens } from "./packed-tokens"

/** A chain of decoders of tokenizer.json, as one description. */
export interface SentencePieceRules {
  /** Replaced in every token's spelling, in order. */
  readonly replacements: readonly (readonly [string, string])[]
  /** Byte tokens become the bytes they name. */
  readonly byteFallback: boolean
  /** How many of `stripped` go at the start of the text. */
  readonly stripped: string
  readonly strippedCount: number
  /** Metaspace: this mark is a blank, and nothing at all in the first token when `dropsFirst`. */
  readonly mark: string | null
  readonly dropsFirst: boolean
}

const noRules: SentencePieceRules = {
  replacements: [],
  byteFallback: false,
  stripped: "",
  strippedCount: 0,
  mark: null,
  dropsFirst: false,
}

const utf8 = new TextEncoder()
const byteSpelling = /^<0x([0-9A-Fa-f]{2})>$/
/** Prompt tokens that are looked at for an unfinished byte run, or for the start of the text. */
const promptTailTokens = 8

/** Reads a decoder made of Replace, ByteFallback, Fuse, Strip and Metaspace, in the order that real files have. */
export function readSentencePieceRules(value: unknown): Result<SentencePieceRules, Unsupported> {
  const items = typeOf(value) === "Sequence" ? (listOf(objectOf(value)?.decoders) ?? []) : [value]
  let rules = noRules
  let fused = false
  for (const item of items) {
    const shape = objectOf(item) ?? {}
    const type = typeOf(item)
    if (fused && type !== "Strip") return unsupported(`the decoder ${type} behind Fuse`)
    switch (type) {
      case "Replace": {
        const from = stringOf(objectOf(shape.pattern)?.String)
        const to = stringOf(shape.content)
        if (from === null || from === "" || to === null) return unsupported("a decoder that replaces by a regex")
        if (rules.byteFallback || rules.mark !== null) return unsupported("a Replace decoder behind others")
        rules = { ...rules, replacements: [...rules.replacements, [from, to]] }
        break
      }
      case "Metaspace": {
        if (rules.byteFallback) return unsupported("a Metaspace decoder behind ByteFallback")
        const scheme = stringOf(shape.prepend_scheme) ?? (shape.add_prefix_space === false ? "never" : "always")
        rules = { ...rules, mark: stringOf(shape.replacement) ?? "▁", dropsFirst: scheme !== "never" }
        break
      }
      case "ByteFallback":
        rules = { ...rules, byteFallback: true }
        break
      case "Fuse":
        fused = true
        break
      case "Strip": {
        const { content, start, stop } = shape
        if (!fused) return unsupported("a Strip decoder before Fuse")
        if (typeof content !== "string" || typeof start !== "number" || stop !== 0 || rules.strippedCount > 0) {
          return unsupported("a Strip decoder at the end of the text")
        }
        rules = { ...rules, stripped: content, strippedCount: start }
        break
      }
      default:
        return unsupported(`the decoder ${type}`)
    }
  }
  return ok(rules)
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

/** What each token of a vocabulary decodes to, worked out when it is first seen. */
export class SentencePieceTable {
  readonly rules: SentencePieceRules
  private readonly tokens: PackedTokens
  /** By id: undefined = not looked up, null = no such token. The text between other text; "" for byte tokens. */
  private readonly texts: (string | null | undefined)[]
  /** The same for tokens that are nothing but text: null for byte tokens, special ones and unknown ids. */
  private readonly plainTexts: (string | null | undefined)[]
  /** By id, once looked up: the byte that it stands for, or -1. */
  private readonly bytes: Int16Array
  private readonly special: Uint8Array
  private readonly spellingOf: (id: number) => string | null
  /** Made for the first `decode`: streaming, which most servers do alone, needs none of it. */
  private core: DecodeCore | null = null

  /** `tokens`: all spellings in UTF-8 by id, as `spellingOf` has them. */
  constructor(
    rules: SentencePieceRules,
    tokens: PackedTokens,
    spellingOf: (id: number) => string | null,
    specialIds: Iterable<number>,
  ) {
    const size = tokens.ends.length
    this.rules = rules
    this.tokens = tokens
    this.spellingOf = spellingOf
    this.texts = new Array<string | null | undefined>(size).fill(undefined)
    this.plainTexts = new Array<string | null | undefined>(size).fill(undefined)
    this.bytes = new Int16Array(size).fill(-1)
    this.special = new Uint8Array(size)
    for (const id of specialIds) this.special[id] = 1
  }

  /** The token gives no text at all: outside the vocabulary, or special and skipped. */
  skips(id: number, skipSpecial: boolean): boolean {
    return this.known(id) === null || (skipSpecial && this.special[id] === 1)
  }

  /** The byte that the token stands for, or -1. The id is one that `skips` has seen. */
  byte(id: number): number {
    return this.bytes[id]!
  }

  /** Hot (bench/fold.ts): the text between other text; null for all that needs a closer look. */
  plainText(id: number): string | null {
    const text = this.plainTexts[id]
    return text !== undefined ? text : this.lookUpPlain(id)
  }

  /** The token's text; `first` of all tokens or not. */
  text(id: number, first: boolean): string {
    const { mark, dropsFirst } = this.rules
    if (!first || !dropsFirst || mark === null) return this.known(id) ?? ""
    return this.replaced(this.spellingOf(id) ?? "").replaceAll(mark, "")
  }

  /** Hot (bench/detokenize.ts): all of the ids' text, where a run of byte tokens that is no UTF-8 is all U+FFFD. */
  decode(tokenIds: Uint32Array, skipSpecial: boolean): string {
    this.core ??= this.makeCore()
    let head = ""
    let at = 0
    if (this.rules.dropsFirst && this.rules.mark !== null) {
      while (at < tokenIds.length && this.skips(tokenIds[at]!, skipSpecial)) at += 1
      // A byte has no mark to lose, and its run is read as a whole.
      if (at < tokenIds.length && this.bytes[tokenIds[at]!]! < 0) head = this.text(tokenIds[at++]!, true)
    }
    const text = head + this.core.decode(at === 0 ? tokenIds : tokenIds.subarray(at), skipSpecial)
    if (this.core.isSwollen()) this.core = null
    let cut = 0
    while (cut < this.rules.strippedCount && text[cut] === this.rules.stripped) cut += 1
    return cut === 0 ? text : text.slice(cut)
  }

  private known(id: number): string | null {
    if (id >= this.bytes.length) return null
    const known = this.texts[id]
    if (known !== undefined) return known
    const text = this.lookUp(id)
    this.texts[id] = text
    return text
  }

  private lookUp(id: number): string | null {
    const { mark, byteFallback } = this.rules
    const spelling = this.spellingOf(id)
    if (spelling === null) return null
    const text = this.replaced(spelling)
    const byte = byteFallback ? byteSpelling.exec(text) : null
    if (byte !== null) this.bytes[id] = Number.parseInt(byte[1]!, 16)
    return mark === null ? text : text.replaceAll(mark, " ")
  }

  private lookUpPlain(id: number): string | null {
    if (id >= this.bytes.length) return null
    const text = this.known(id)
    const plain = this.special[id] === 1 || this.bytes[id]! >= 0 ? null : text
    this.plainTexts[id] = plain
    return plain
  }

  private replaced(spelling: string): string {
    let text = spelling
    for (const [from, to] of this.rules.replacements) text = text.replaceAll(from, () => to)
    return text
  }

  /** The tokens' texts as bytes. Spellings that hold nothing to be replaced, which are half of them, are just copied. */
  private makeCore(): DecodeCore {
    const { bytes, ends } = this.tokens
    const { replacements, byteFallback, mark } = this.rules
    const sought = replacements.map(([from]) => from)
    if (mark !== null) sought.push(mark)
    // By first byte of what is looked for. `<` begins byte tokens.
    const isSought = new Uint8Array(256)
    for (const text of sought) isSought[utf8.encode(text)[0]!] = 1
    if (byteFallback) isSought[0x3c] = 1
    const to = new ByteWriter(bytes.length)
    const toEnds = new Uint32Array(ends.length)
    const kinds = new Uint8Array(ends.length)
    for (let id = 0, start = 0; id < ends.length; id++) {
      const end = ends[id]!
      let kind = this.special[id] === 1 ? tokenKinds.special : 0
      let at = start
      while (at < end && isSought[bytes[at]!] === 0) at += 1
      if (at === end) {
        if (start === end && this.spellingOf(id) === null) kind = tokenKinds.absent
        to.copy(bytes, start, end)
      } else {
        const text = this.known(id) ?? ""
        if (this.bytes[id]! >= 0) {
          kind |= tokenKinds.byte
          to.byte(this.bytes[id]!)
        } else {
          to.text(text)
        }
      }
      kinds[id] = kind
      toEnds[id] = to.length
      start = end
    }
    return new DecodeCore({ bytes: to.written(), ends: toEnds }, kinds)
  }
}

/** Bytes written one behind the other. */
class ByteWriter {
  private bytes: Uint8Array
  length = 0

  constructor(room: number) {
    this.bytes = new Uint8Array(room + 1024)
  }

  byte(byte: number): void {
    this.reserve(1)
    this.bytes[this.length++] = byte
  }

  copy(from: Uint8Array, start: number, end: number): void {
    this.reserve(end - start)
    for (let i = start; i < end; i++) this.bytes[this.length++] = from[i]!
  }

  text(text: string): void {
    this.reserve(3 * text.length)
    this.length += utf8.encodeInto(text, this.bytes.subarray(this.length)).written
  }

  written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  private reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return
    const larger = new Uint8Array(2 * this.bytes.length + count)
    larger.set(this.bytes)
    this.bytes = larger
  }
}

/** The code point that the first `count` bytes are exactly the UTF-8 of, or -1. */
function characterOf(bytes: Uint8Array, count: number): number {
  const lead = bytes[0]!
  if (lead < 0x80) return count === 1 ? lead : -1
  const size = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  if (size !== count) return -1
  let point = lead & (0x7f >> size)
  for (let i = 1; i < count; i++) {
    if ((bytes[i]! & 0xc0) !== 0x80) return -1
    point = (point << 6) | (bytes[i]! & 0x3f)
  }
  const least = size === 2 ? 0x80 : size === 3 ? 0x800 : 0x10000
  return point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? -1 : point
}

/**
 * Streaming decoder over a `SentencePieceTable`. Shows a character as soon as its last byte is there, so it can differ
 * from `decode` in one way: when a run of byte tokens turns bad, what was shown of it before stays. State: three bytes
 * and two counts.
 */
export class SentencePieceDetokenizer implements CopyableDetokenizer {
  private readonly table: SentencePieceTable
  private readonly skipSpecial: boolean
  private readonly held = new Uint8Array(4)
  private heldCount = 0
  /** The byte run in progress holds bytes that are no UTF-8. */
  private broken = false
  private first = true
  /** How many characters at the start of the text may still be stripped. */
  private stripLeft: number
  /** Nothing from before changes what the next token's text is. */
  private isSettled = false

  constructor(table: SentencePieceTable, promptTokenIds: Uint32Array, skipSpecial: boolean, scratch: Piece) {
    this.table = table
    this.skipSpecial = skipSpecial
    this.stripLeft = table.rules.strippedCount
    let start = Math.max(0, promptTokenIds.length - promptTailTokens)
    // A run of bytes is read from its first byte: from another one on, it may look broken.
    while (start > 0 && this.continuesRun(promptTokenIds[start - 1]!)) start -= 1
    scratch.clear()
    for (let i = start; i < promptTokenIds.length; i++) this.push(promptTokenIds[i]!, scratch)
    scratch.clear()
    if (start > 0) {
      this.first = false
      this.stripLeft = 0
      this.isSettled = this.heldCount === 0 && !this.broken
    }
  }

  /** Hot (bench/fold.ts). */
  push(id: number, piece: Piece): void {
    const { table } = this
    if (this.isSettled) {
      const text = table.plainText(id)
      if (text !== null) {
        piece.add(id, text)
        return
      }
    }
    if (table.skips(id, this.skipSpecial)) {
      piece.add(id, "")
      return
    }
    const byte = table.byte(id)
    let text: string
    if (byte >= 0) {
      text = this.pushByte(byte)
    } else {
      text = table.text(id, this.first)
      if (this.heldCount > 0) text = "\ufffd".repeat(this.heldCount) + text
      this.heldCount = 0
      this.broken = false
    }
    this.first = false
    if (this.stripLeft > 0 && text !== "") text = this.strip(text)
    this.isSettled = this.heldCount === 0 && !this.broken && this.stripLeft === 0
    piece.add(id, text)
  }

  finish(piece: Piece): void {
    if (this.heldCount === 0) return
    piece.extendLast("\ufffd".repeat(this.heldCount))
    this.heldCount = 0
    this.stripLeft = 0
    this.isSettled = !this.broken && !this.first
  }

  copy(): SentencePieceDetokenizer {
    const twin = new SentencePieceDetokenizer(this.table, new Uint32Array(0), this.skipSpecial, new Piece())
    twin.held.set(this.held)
    twin.heldCount = this.heldCount
    twin.broken = this.broken
    twin.first = this.first
    twin.stripLeft = this.stripLeft
    twin.isSettled = this.isSettled
    return twin
  }

  private continuesRun(id: number): boolean {
    return this.table.skips(id, this.skipSpecial) || this.table.byte(id) >= 0
  }

  private pushByte(byte: number): string {
    if (this.broken) return "\ufffd"
    this.held[this.heldCount] = byte
    this.heldCount += 1
    const count = this.heldCount
    if (unfinishedBytes(this.held, count) === count) return ""
    this.heldCount = 0
    const point = characterOf(this.held, count)
    if (point >= 0) return String.fromCodePoint(point)
    this.broken = true
    return "\ufffd".repeat(count)
  }

  private strip(text: string): string {
    let cut = 0
    while (this.stripLeft > 0 && cut < text.length) {
      if (text[cut] !== this.table.rules.stripped) {
        this.stripLeft = 0
        break
      }
      cut += 1
      this.stripLeft -= 1
    }
    return text.slice(cut)
  }
}
