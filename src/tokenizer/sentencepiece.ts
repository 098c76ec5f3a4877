/**
 * Decoding of SentencePiece-style vocabularies (Llama 2, Mistral, Gemma): `▁` for blanks, characters outside the
 * vocabulary as byte tokens `<0xE2>`, and a blank that is taken from the start of the text.
 */
import { Piece } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { unfinishedBytes } from "./byte-detokenizer"
import type { CopyableDetokenizer } from "./detokenizer"
import { listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"

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

const byteSpelling = /^<0x([0-9A-Fa-f]{2})>$/
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
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
  /** By id: undefined = not looked up, null = no such token. The text between other text; "" for byte tokens. */
  private readonly texts: (string | null | undefined)[]
  /** By id, once looked up: the byte that it stands for, or -1. */
  private readonly bytes: Int16Array
  private readonly special: Uint8Array
  private readonly spellingOf: (id: number) => string | null

  constructor(
    rules: SentencePieceRules,
    vocabSize: number,
    spellingOf: (id: number) => string | null,
    specialIds: Iterable<number>,
  ) {
    this.rules = rules
    this.spellingOf = spellingOf
    this.texts = new Array<string | null | undefined>(vocabSize)
    this.bytes = new Int16Array(vocabSize).fill(-1)
    this.special = new Uint8Array(vocabSize)
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

  /** The token's text; `first` of all tokens or not. */
  text(id: number, first: boolean): string {
    const { mark, dropsFirst } = this.rules
    if (!first || !dropsFirst || mark === null) return this.known(id) ?? ""
    return this.replaced(this.spellingOf(id) ?? "").replaceAll(mark, "")
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

  private replaced(spelling: string): string {
    let text = spelling
    for (const [from, to] of this.rules.replacements) text = text.replaceAll(from, () => to)
    return text
  }

  /** All of the ids' text, as the reference decodes it: a run of byte tokens that is no UTF-8 is all U+FFFD. */
  decode(tokenIds: Uint32Array, skipSpecial: boolean): string {
    let text = ""
    let run: number[] = []
    let first = true
    for (const id of tokenIds) {
      if (this.skips(id, skipSpecial)) continue
      const byte = this.bytes[id]!
      if (byte >= 0) {
        run.push(byte)
      } else {
        if (run.length > 0) {
          text += runText(run)
          run = []
        }
        text += this.text(id, first)
      }
      first = false
    }
    if (run.length > 0) text += runText(run)
    let cut = 0
    while (cut < this.rules.strippedCount && text[cut] === this.rules.stripped) cut += 1
    return cut === 0 ? text : text.slice(cut)
  }
}

function runText(run: readonly number[]): string {
  return decoded(Uint8Array.from(run)) ?? "\ufffd".repeat(run.length)
}

function decoded(bytes: Uint8Array): string | null {
  try {
    return strict.decode(bytes)
  } catch {
    return null
  }
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
    }
  }

  /** Hot (bench/fold.ts). */
  push(id: number, piece: Piece): void {
    const { table } = this
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
    piece.add(id, text)
  }

  finish(piece: Piece): void {
    if (this.heldCount === 0) return
    piece.extendLast("\ufffd".repeat(this.heldCount))
    this.heldCount = 0
    this.stripLeft = 0
  }

  copy(): SentencePieceDetokenizer {
    const twin = new SentencePieceDetokenizer(this.table, new Uint32Array(0), this.skipSpecial, new Piece())
    twin.held.set(this.held)
    twin.heldCount = this.heldCount
    twin.broken = this.broken
    twin.first = this.first
    twin.stripLeft = this.stripLeft
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
    const text = decoded(this.held.subarray(0, count))
    if (text !== null) return text
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
