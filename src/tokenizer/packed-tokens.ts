/** The tokens of a vocabulary as flat arrays, which cost no object a token. */

import { byteOfUnit } from "./byte-level"
import type { Vocabulary } from "./vocabulary"

const utf8 = new TextEncoder()

/** All tokens' bytes one behind the other: token `id` is `[ends[id - 1] ?? 0, ends[id])`; an empty one is no BPE token. */
export interface PackedTokens {
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
}

/** The most bytes that a token has. */
export function longestToken({ ends }: PackedTokens): number {
  let longest = 0
  for (let id = 0, start = 0; id < ends.length; id++) {
    longest = Math.max(longest, ends[id]! - start)
    start = ends[id]!
  }
  return longest
}

/** Tokens by id as the core takes them: `starts` has one more than there are tokens. `longest` is in bytes. */
export function packTokens(tokens: readonly (Uint8Array | null)[] | PackedTokens): {
  starts: Uint32Array
  bytes: Uint8Array
  longest: number
} {
  if ("ends" in tokens) {
    const starts = new Uint32Array(tokens.ends.length + 1)
    starts.set(tokens.ends, 1)
    return { starts, bytes: tokens.bytes, longest: longestToken(tokens) }
  }
  let longest = 0
  const starts = new Uint32Array(tokens.length + 1)
  for (let id = 0; id < tokens.length; id++) {
    const length = tokens[id]?.length ?? 0
    longest = Math.max(longest, length)
    starts[id + 1] = starts[id]! + length
  }
  const bytes = new Uint8Array(starts[tokens.length]!)
  for (let id = 0; id < tokens.length; id++) {
    const token = tokens[id]
    if (token !== null && token !== undefined) bytes.set(token, starts[id]!)
  }
  return { starts, bytes, longest }
}

/** An array's bytes, as a view. */
export function bytesOf(array: Uint32Array | Int32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

/** The words of what `bytesOf` gave, as a view; bytes that have a buffer of their own. */
export function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)
}

/**
 * The tokens' bytes. In GPT-2's spelling when `byteLevel`: a spelling with a character that spells no byte is empty, so
 * that no text reaches it. `shown` (when decoding) has spellings that differ; there a spelling that is not all bytes
 * stands for itself.
 */
export function packedVocabulary(
  vocabulary: Vocabulary,
  byteLevel: boolean,
  shown: ReadonlyMap<number, string> | null,
): PackedTokens {
  const ends = new Uint32Array(vocabulary.idEnd)
  let room = 0
  for (let id = 0; id < ends.length; id++) room += Math.max(0, vocabulary.lengthOf(id))
  for (const spelling of shown?.values() ?? []) room += 3 * spelling.length
  const bytes = new Uint8Array(room)
  const spelled = vocabulary.allBytes()
  let to = 0
  for (let id = 0; id < ends.length; id++) {
    const other = shown?.get(id)
    if (other !== undefined) {
      const otherSpelled = utf8.encode(other)
      to = putToken(otherSpelled, 0, otherSpelled.length, byteLevel, true, bytes, to)
    } else if (vocabulary.has(id)) {
      const start = vocabulary.startOf(id)
      to = putToken(spelled, start, start + vocabulary.lengthOf(id), byteLevel, shown !== null, bytes, to)
    }
    ends[id] = to
  }
  return { bytes: bytes.slice(0, to), ends }
}

/**
 * Writes what the spelling `[start, end)` stands for, and gives where that ends. One that does not spell bytes is
 * written as it is when `keepsOther`, else not at all.
 */
function putToken(
  spelled: Uint8Array,
  start: number,
  end: number,
  byteLevel: boolean,
  keepsOther: boolean,
  bytes: Uint8Array,
  at: number,
): number {
  let to = at
  for (let i = start; byteLevel && i < end; i++) {
    const first = spelled[i]!
    // All spelled bytes are below U+0180: one or two bytes of UTF-8.
    const unit = first < 0x80 ? first : first < 0xe0 ? ((first & 0x1f) << 6) | (spelled[++i]! & 0x3f) : 0xffff
    const byte = byteOfUnit(unit)
    if (byte < 0) {
      to = -1
      break
    }
    bytes[to++] = byte
  }
  if (byteLevel && to >= 0) return to
  if (byteLevel && !keepsOther) return at
  to = at
  for (let i = start; i < end; i++) bytes[to++] = spelled[i]!
  return to
}

/** The same tokens with blanks for `▁` (E2 96 81). */
export function withBlanks(tokens: PackedTokens): PackedTokens {
  const bytes = new Uint8Array(tokens.bytes.length)
  const ends = new Uint32Array(tokens.ends.length)
  let to = 0
  for (let id = 0, at = 0; id < ends.length; id++) {
    const end = tokens.ends[id]!
    for (; at < end; at++) {
      const isMark = tokens.bytes[at] === 0xe2 && tokens.bytes[at + 1] === 0x96 && tokens.bytes[at + 2] === 0x81
      bytes[to++] = isMark ? 0x20 : tokens.bytes[at]!
      if (isMark) at += 2
    }
    ends[id] = to
  }
  return { bytes: bytes.slice(0, to), ends }
}
