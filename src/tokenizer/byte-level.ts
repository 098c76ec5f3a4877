/**
 * GPT-2's printable spelling of bytes: each byte is one visible character, so that a vocabulary can be a JSON file.
 * Bytes that print as themselves stay; the other 68 get U+0100 and up, in order. Source: the ByteLevel pre-tokenizer
 * of HF tokenizers.
 */
const charOfByte: string[] = []
const byteOfChar = new Map<string, number>()

function printsAsItself(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
}

/** The same by UTF-16 unit, for whole vocabularies: -1 for units that spell no byte. */
const byteByUnit = new Int16Array(0x180).fill(-1)

let next = 0x100
for (let byte = 0; byte < 256; byte++) {
  const char = String.fromCharCode(printsAsItself(byte) ? byte : next++)
  charOfByte.push(char)
  byteOfChar.set(char, byte)
  byteByUnit[char.charCodeAt(0)] = byte
}

/** The byte that a UTF-16 unit of a spelling stands for, or -1. */
export function byteOfUnit(unit: number): number {
  return unit < byteByUnit.length ? byteByUnit[unit]! : -1
}

/** Bytes in GPT-2's spelling (`Ġhello`). */
export function spellBytes(bytes: Uint8Array): string {
  let spelling = ""
  for (const byte of bytes) spelling += charOfByte[byte]!
  return spelling
}

/** The bytes of a spelling, or null when it holds a character that spells no byte. */
export function bytesOfSpelling(spelling: string): Uint8Array | null {
  const bytes = new Uint8Array(spelling.length)
  for (let i = 0; i < spelling.length; i++) {
    const byte = byteOfChar.get(spelling[i]!)
    if (byte === undefined) return null
    bytes[i] = byte
  }
  return bytes
}
