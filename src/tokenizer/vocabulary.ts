/**
 * Spellings ↔ ids of one vocabulary, as bytes in flat arrays: a string for each of 260 000 tokens would take longer to
 * make than all of the rest of loading.
 */

/** Ids are below this: the largest public vocabularies hold 262 144. */
export const vocabularyIdsMax: number = 1 << 21

const utf8 = new TextEncoder()
const text = new TextDecoder("utf-8", { ignoreBOM: true })

/** A vocabulary's arrays: spellings, and by id where each starts, its length, its hash; and the places by hash. */
export type VocabularyArrays = readonly [
  bytes: Uint8Array,
  starts: Uint32Array,
  lengths: Int32Array,
  hashes: Uint32Array,
  slots: Int32Array,
]

/** Grows as tokens are put in; nothing is ever taken out but by a later token of the same spelling. */
export class Vocabulary {
  /** Spellings in UTF-8, one behind the other in the order they came. */
  private bytes: Uint8Array = new Uint8Array(1 << 20)
  private used = 0
  /** By id. A length of -1: no token. */
  private starts: Uint32Array = new Uint32Array(1 << 16)
  private lengths: Int32Array = new Int32Array(1 << 16).fill(-1)
  private hashes: Uint32Array = new Uint32Array(1 << 16)
  /** Open addressing: ids by hash, -1 = free. */
  private slots: Int32Array = new Int32Array(1 << 17).fill(-1)
  private scratch = new Uint8Array(1024)
  /** Tokens. */
  count = 0
  /** One more than the largest id. */
  idEnd = 0

  /**
   * All of a vocabulary at once, from arrays that are taken over: spellings one behind the other, and by id where each
   * starts, how long it is (-1: no token), and its hash.
   */
  static of(bytes: Uint8Array, starts: Uint32Array, lengths: Int32Array, hashes: Uint32Array): Vocabulary {
    let count = 0
    for (let id = 0; id < lengths.length; id++) if (lengths[id]! >= 0) count += 1
    const vocabulary = Vocabulary.ofArrays(count, [bytes, starts, lengths, hashes, new Int32Array(0)])
    let size = 1 << 17
    while (size < 2 * count) size *= 2
    vocabulary.place(size)
    return vocabulary
  }

  /** A vocabulary of `count` tokens from all of its arrays, which are taken over. */
  static ofArrays(count: number, [bytes, starts, lengths, hashes, slots]: VocabularyArrays): Vocabulary {
    const vocabulary = new Vocabulary()
    vocabulary.bytes = bytes
    vocabulary.used = bytes.length
    vocabulary.starts = starts
    vocabulary.lengths = lengths
    vocabulary.hashes = hashes
    vocabulary.slots = slots
    vocabulary.idEnd = lengths.length
    vocabulary.count = count
    return vocabulary
  }

  /** What `ofArrays` takes, as views. */
  arrays(): VocabularyArrays {
    const { idEnd } = this
    return [
      this.bytes.subarray(0, this.used),
      this.starts.subarray(0, idEnd),
      this.lengths.subarray(0, idEnd),
      this.hashes.subarray(0, idEnd),
      this.slots,
    ]
  }

  /** Puts a token in. False: the id is out of range, or another token has it. */
  put(id: number, from: Uint8Array, start: number, end: number): boolean {
    if (!Number.isInteger(id) || id < 0 || id >= vocabularyIdsMax) return false
    this.reserve(id, end - start)
    if (this.lengths[id] !== -1) return this.find(from, start, end) === id
    const hash = hashOf(from, start, end)
    let slot = hash & (this.slots.length - 1)
    while (this.slots[slot] !== -1 && !this.equals(this.slots[slot]!, hash, from, start, end)) {
      slot = (slot + 1) & (this.slots.length - 1)
    }
    const earlier = this.slots[slot]!
    if (earlier >= 0) {
      // The same spelling twice: the last one counts, in JSON and in the reference.
      this.lengths[earlier] = -1
      this.count -= 1
    }
    for (let i = start, to = this.used; i < end; i++, to++) this.bytes[to] = from[i]!
    this.starts[id] = this.used
    this.lengths[id] = end - start
    this.hashes[id] = hash
    this.used += end - start
    this.slots[slot] = id
    this.count += 1
    if (id >= this.idEnd) this.idEnd = id + 1
    return true
  }

  /** As `put`, for a string. */
  putText(id: number, spelling: string): boolean {
    const length = this.spell(spelling)
    return this.put(id, this.scratch, 0, length)
  }

  /** The id of a spelling given in UTF-8, or -1. */
  find(from: Uint8Array, start: number, end: number): number {
    const hash = hashOf(from, start, end)
    const mask = this.slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const id = this.slots[slot]!
      if (id < 0 || this.equals(id, hash, from, start, end)) return id
    }
  }

  /** The id of a spelling, or -1. */
  idOf(spelling: string): number {
    // A lone surrogate has no UTF-8, and would be taken for U+FFFD.
    return spelling.isWellFormed() ? this.find(this.scratch, 0, this.spell(spelling)) : -1
  }

  has(id: number): boolean {
    return id < this.idEnd && this.lengths[id] !== -1
  }

  /** The spelling's length in UTF-8 bytes; -1: no such token. */
  lengthOf(id: number): number {
    return id < this.idEnd ? this.lengths[id]! : -1
  }

  /** The spelling in UTF-8: a view that lives until the next `put`. */
  bytesOf(id: number): Uint8Array {
    const start = this.starts[id]!
    return this.bytes.subarray(start, start + Math.max(0, this.lengthOf(id)))
  }

  /** Where the spelling starts in `allBytes`. */
  startOf(id: number): number {
    return this.starts[id]!
  }

  /** All spellings: for loops over a whole vocabulary, where a view of each would cost most of the time. */
  allBytes(): Uint8Array {
    return this.bytes
  }

  /** How many of `allBytes` are spellings. */
  usedBytes(): number {
    return this.used
  }

  /** The spelling, or null. */
  spellingOf(id: number): string | null {
    return this.has(id) ? text.decode(this.bytesOf(id)) : null
  }

  private spell(spelling: string): number {
    if (3 * spelling.length > this.scratch.length) this.scratch = new Uint8Array(6 * spelling.length)
    return utf8.encodeInto(spelling, this.scratch).written
  }

  private equals(id: number, hash: number, from: Uint8Array, start: number, end: number): boolean {
    if (this.hashes[id] !== hash || this.lengths[id] !== end - start) return false
    let at = this.starts[id]!
    for (let i = start; i < end; i++, at++) if (this.bytes[at] !== from[i]) return false
    return true
  }

  private reserve(id: number, length: number): void {
    if (this.used + length > this.bytes.length) {
      const larger = new Uint8Array(2 * this.bytes.length + length)
      larger.set(this.bytes)
      this.bytes = larger
    }
    if (id >= this.starts.length) {
      const size = Math.max(id + 1, 2 * this.starts.length)
      this.starts = grown(this.starts, new Uint32Array(size))
      this.lengths = grown(this.lengths, new Int32Array(size).fill(-1))
      this.hashes = grown(this.hashes, new Uint32Array(size))
    }
    if (2 * this.count >= this.slots.length) this.place(2 * this.slots.length)
  }

  private place(size: number): void {
    const slots = new Int32Array(size).fill(-1)
    const mask = slots.length - 1
    for (let id = 0; id < this.idEnd; id++) {
      if (this.lengths[id] === -1) continue
      let slot = this.hashes[id]! & mask
      while (slots[slot] !== -1) slot = (slot + 1) & mask
      slots[slot] = id
    }
    this.slots = slots
  }
}

function grown<Table extends Uint32Array | Int32Array>(from: Table, to: Table): Table {
  to.set(from)
  return to
}

/** FNV-1a, stirred at the end so that its low bits may pick a slot. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
