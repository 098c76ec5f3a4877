/**
 * A plain BPE core: what `BpeCore` must give, written to be read, not to be fast. Pieces by the general matcher, merges
 * by looking for the lowest rank again and again.
 */
import { type BpeTables, notPlain } from "../../src/tokenizer/bpe-core"
import { scannerPatterns } from "../../src/tokenizer/scanner-family"
import { SplitRegex } from "../../src/tokenizer/split-regex"
import { unicodeClass } from "../../src/tokenizer/unicode-class"
import type { SegmentEncoder } from "../../src/tokenizer/wasm-tokenizer"

interface Token {
  readonly id: number
  /** UTF-8 bytes. */
  readonly length: number
}

const utf8 = new TextEncoder()

/** One vocabulary's tables, as maps. */
export class ReferenceBpe implements SegmentEncoder {
  private readonly tables: BpeTables
  /** By the token's bytes as a Latin-1 string. */
  private readonly idOf = new Map<string, number>()
  private readonly bytesOf: string[] = []
  /** By "left right". */
  private readonly merges = new Map<string, { rank: number; id: number }>()
  private readonly steps: SplitRegex[]

  constructor(tables: BpeTables) {
    this.tables = tables
    const { tokenBytes } = tables
    if ("ends" in tokenBytes) {
      for (const [id, end] of tokenBytes.ends.entries()) {
        this.add(id, tokenBytes.bytes.subarray(tokenBytes.ends[id - 1] ?? 0, end))
      }
    } else {
      for (const [id, bytes] of tokenBytes.entries()) this.add(id, bytes ?? new Uint8Array(0))
    }
    const pairs = tables.merges ?? []
    for (let i = 0; i < pairs.length; i += 2) {
      const id = this.idOf.get(this.bytesOf[pairs[i]!]! + this.bytesOf[pairs[i + 1]!]!)
      if (id === undefined) throw new Error(`merge ${i / 2} makes no token`)
      this.merges.set(`${pairs[i]} ${pairs[i + 1]}`, { rank: i / 2, id })
    }
    const patterns = tables.scanner === "whole" ? [] : scannerPatterns[tables.scanner]!
    this.steps = patterns.map((pattern) => {
      const step = SplitRegex.create(pattern, unicodeClass)
      if (!step.ok) throw new Error(step.error.message)
      return step.value
    })
  }

  encode(text: string, out: Uint32Array, at: number, tokensMax: number): number {
    return put(this.tokens(text), out, at, tokensMax)
  }

  encodePlain(
    text: string,
    leaves: ((text: string) => boolean) | null,
    _cuts: boolean,
    out: Uint32Array,
    at: number,
    tokensMax: number,
  ): number {
    return leaves === null || leaves(text) ? this.encode(text.toWellFormed(), out, at, tokensMax) : notPlain
  }

  /** Takes none, so that all of them are done before. */
  takeRules(): boolean {
    return false
  }

  encodePiece(text: string, out: Uint32Array, at: number, tokensMax: number): number {
    return put(this.piece(text), out, at, tokensMax)
  }

  encodeWithOffsets(text: string, out: Uint32Array, ends: Uint32Array, at: number, tokensMax: number): number {
    const tokens = this.tokens(text)
    let end = 0
    tokens.forEach((token, i) => {
      end += token.length
      ends[at + i] = end
    })
    return put(tokens, out, at, tokensMax)
  }

  private add(id: number, bytes: Uint8Array): void {
    const spelling = Buffer.from(bytes).toString("latin1")
    this.bytesOf[id] = spelling
    if (spelling !== "") this.idOf.set(spelling, id)
  }

  private tokens(text: string): Token[] {
    let pieces = text === "" ? [] : [text]
    for (const step of this.steps) {
      pieces = pieces.flatMap((piece) => {
        const found: number[] = []
        if (!step.matches(piece, found).ok) throw new Error("the budget is spent")
        const parts: string[] = []
        let last = 0
        for (let i = 0; i < found.length; i += 2) {
          parts.push(piece.slice(last, found[i]), piece.slice(found[i], found[i + 1]))
          last = found[i + 1]!
        }
        parts.push(piece.slice(last))
        return parts.filter((part) => part !== "")
      })
    }
    return pieces.flatMap((piece) => this.piece(piece))
  }

  private piece(text: string): Token[] {
    const { tables } = this
    const whole = Buffer.from(utf8.encode(text)).toString("latin1")
    const known = this.idOf.get(whole)
    if ((tables.ignoreMerges || tables.merges === null) && known !== undefined)
      return [{ id: known, length: whole.length }]
    const parts = tables.byteFallback === null ? this.byteUnits(whole) : this.characterUnits(text, tables.byteFallback)
    for (;;) {
      let best = -1
      let bestRank = Infinity
      let bestId = -1
      for (let i = 0; i + 1 < parts.length; i++) {
        const merge = this.mergeOf(parts[i]!.id, parts[i + 1]!.id)
        if (merge !== undefined && merge.rank < bestRank) [best, bestRank, bestId] = [i, merge.rank, merge.id]
      }
      if (best < 0) return parts
      parts.splice(best, 2, { id: bestId, length: parts[best]!.length + parts[best + 1]!.length })
    }
  }

  private mergeOf(left: number, right: number): { rank: number; id: number } | undefined {
    if (this.tables.merges !== null) return this.merges.get(`${left} ${right}`)
    const id = this.idOf.get(this.bytesOf[left]! + this.bytesOf[right]!)
    return id === undefined ? undefined : { rank: id, id }
  }

  private byteUnits(whole: string): Token[] {
    return Array.from(whole, (byte) => ({ id: this.idOf.get(byte)!, length: 1 }))
  }

  private characterUnits(text: string, fallback: Int32Array): Token[] {
    const { unknownId, fuseUnknown } = this.tables
    const units: Token[] = []
    let fuses = false
    for (const char of text) {
      const bytes = utf8.encode(char)
      const id = this.idOf.get(Buffer.from(bytes).toString("latin1"))
      if (id !== undefined) units.push({ id, length: bytes.length })
      else if (bytes.every((byte) => fallback[byte]! >= 0))
        for (const byte of bytes) units.push({ id: fallback[byte]!, length: 1 })
      else if (unknownId >= 0) {
        const before = units[units.length - 1]
        if (fuses && fuseUnknown && before !== undefined) {
          units[units.length - 1] = { id: unknownId, length: before.length + bytes.length }
        } else units.push({ id: unknownId, length: bytes.length })
        fuses = true
        continue
      }
      fuses = false
    }
    return units
  }
}

function put(tokens: readonly Token[], out: Uint32Array, at: number, tokensMax: number): number {
  const kept = tokens.slice(0, Math.min(tokens.length, tokensMax + 1))
  if (at + kept.length > out.length) return -(at + kept.length)
  kept.forEach((token, i) => {
    out[at + i] = token.id
  })
  return at + kept.length
}
