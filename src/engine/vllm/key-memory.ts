import type { MessagePackReader } from "./message-pack-reader"

interface KnownKey {
  readonly bytes: Uint8Array
  readonly text: string
}

/** Keys of one walk that are remembered; further ones are read anew. */
const knownMax = 64

/**
 * Reads keys of maps whose writer always writes the same ones in the same order: the key that stood here last time is
 * compared byte by byte, and only another one becomes a new string. `begin` at the start of each walk.
 */
export class KeyMemory {
  private readonly known: KnownKey[] = []
  private at = 0

  begin(): void {
    this.at = 0
  }

  /** Hot (once a step and key). The next key of the walk; the reader stands behind it. */
  read(reader: MessagePackReader): string {
    const start = reader.at
    reader.readStringExtent()
    const { bytes, byteStart, byteEnd } = reader
    const place = this.at
    this.at += 1
    const expected = this.known[place]
    if (expected !== undefined && isSame(expected.bytes, bytes, byteStart, byteEnd)) return expected.text
    if (reader.failed) return ""
    reader.at = start
    const text = reader.readString()
    if (place < knownMax) this.known[place] = { bytes: bytes.slice(byteStart, byteEnd), text }
    return text
  }
}

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (known.length !== end - start) return false
  for (let i = 0; i < known.length; i++) if (known[i] !== bytes[start + i]) return false
  return true
}
