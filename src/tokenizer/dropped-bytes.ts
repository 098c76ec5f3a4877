/**
 * Offsets where a vocabulary lacks bytes (SmolLM2's conversions). The reference drops such a byte from a piece and goes
 * on counting as if it had never been there, so all tokens behind it are said to come from further left. Source: HF
 * tokenizers' BPE, whose offsets are sums of its tokens' lengths in GPT-2's spelling.
 */
import type { AlignedText } from "./aligned-text"
import { spellBytes } from "./byte-level"

const utf8 = new TextEncoder()

/** Whether some byte has no token; `idOf` gives the id of a spelling, or -1. */
export function lacksBytes(idOf: (spelling: string) => number): boolean {
  for (let byte = 0; byte < 256; byte++) if (idOf(spellBytes(Uint8Array.of(byte))) < 0) return true
  return false
}

/** Appends `start, end` of each of a piece's tokens, given by their spellings, in UTF-16 units of the original text. */
export function putOffsets(piece: AlignedText, spellings: readonly string[], out: number[]): void {
  /** By byte of the piece's spelling: the unit where the character behind it begins. */
  const unitOf: number[] = []
  for (let unit = 0; unit < piece.text.length; ) {
    const char = String.fromCodePoint(piece.text.codePointAt(unit)!)
    for (let left = spelledLength(spellBytes(utf8.encode(char))); left > 0; left--) unitOf.push(unit)
    unit += char.length
  }
  let at = 0
  for (const spelling of spellings) {
    const end = at + spelledLength(spelling)
    out.push(piece.starts![unitOf[at]!] ?? 0, piece.ends![unitOf[end - 1]!] ?? 0)
    at = end
  }
}

/** Bytes of a spelling in UTF-8: all its characters are below U+0800. */
function spelledLength(spelling: string): number {
  let length = spelling.length
  for (let i = 0; i < spelling.length; i++) if (spelling.charCodeAt(i) > 0x7f) length += 1
  return length
}
