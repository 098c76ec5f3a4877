/**
 * Reads the two large lists of a tokenizer.json, `model.vocab` and `model.merges`, from the file's bytes. The host
 * (src/tokenizer/vocabulary-scan.ts) finds them and reads all the rest. An instance that does this does nothing else, and
 * goes away afterwards.
 *
 * Whatever is out of the ordinary ends with ODD: the host then takes the road by JSON.parse, which also has the words for
 * what is wrong.
 */
import { reserve } from "./memory"

/** No offset of a file: it could not be read here. */
const ODD: u32 = 0xffff_ffff
/** Ids are below this; the host's `vocabularyIdsMax`. */
const IDS_MAX: u32 = 1 << 21
/** Tokens that the table of spellings holds at most: half of its most places. */
const TOKENS_MAX: u32 = 1 << 20
const SLOTS_MAX: u32 = 1 << 21
/** Places at first: fresh memory costs more than putting all in again a few times. */
const SLOTS_FIRST: u32 = 1 << 18

let fileAt: usize = 0
let fileEnd: usize = 0
/** The spellings in UTF-8, one behind the other. */
let bytesAt: usize = 0
let used: usize = 0
/** By id: where the spelling starts in `bytesAt`, its length + 1 (0 = no token), its hash. */
let startsAt: usize = 0
let lengthsAt: usize = 0
let hashesAt: usize = 0
/** { hash u32, id + 1 u32 } by hash, with linear probing; 0 = free. */
let slotsAt: usize = 0
let slotMask: u32 = SLOTS_FIRST - 1
let mergesAt: usize = 0
let mergeCount: u32 = 0
let tokenCount: u32 = 0
let idEnd: u32 = 0
/** A spelling with escapes, written out. */
let scratch: usize = 0

/** The string read last. */
let text: usize = 0
let textLength: u32 = 0

/** Room for a file; its address, or 0 without memory. All memory is fresh, so the tables are empty. */
export function layFile(bytes: u32): usize {
  fileAt = reserve(<usize>bytes + 64)
  fileEnd = fileAt + <usize>bytes
  // Neither the spellings nor one of them are longer than the file; a merge takes six bytes of it and eight here.
  bytesAt = reserve(<usize>bytes + 64)
  scratch = reserve(<usize>bytes + 64)
  startsAt = reserve(<usize>IDS_MAX << 2)
  lengthsAt = reserve(<usize>IDS_MAX << 2)
  hashesAt = reserve(<usize>IDS_MAX << 2)
  slotsAt = reserve(<usize>SLOTS_MAX << 3)
  mergesAt = reserve(<usize>(<u64>bytes * 8 / 6) + 64)
  const all = fileAt != 0 && bytesAt != 0 && scratch != 0 && startsAt != 0 && lengthsAt != 0 && hashesAt != 0
  return all && slotsAt != 0 && mergesAt != 0 ? fileAt : 0
}

export function spelledAddress(): usize {
  return bytesAt
}
export function spelledBytes(): u32 {
  return <u32>used
}
export function spelledStartsAddress(): usize {
  return startsAt
}
export function spelledLengthsAddress(): usize {
  return lengthsAt
}
export function spelledHashesAddress(): usize {
  return hashesAt
}
export function spelledCount(): u32 {
  return tokenCount
}
export function spelledIdEnd(): u32 {
  return idEnd
}
export function readMergesAddress(): usize {
  return mergesAt
}
export function readMergesCount(): u32 {
  return mergeCount
}

// @ts-ignore: decorator
@inline
function pastBlanks(at: usize): usize {
  while (at < fileEnd) {
    const byte: u32 = load<u8>(at)
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) break
    at++
  }
  return at
}

/** Reads the object at the offset, of spellings and ids, and gives the offset behind it; or ODD. */
export function readVocabulary(offset: u32): u32 {
  let at = pastBlanks(fileAt + <usize>offset)
  if (at >= fileEnd || load<u8>(at) != 0x7b) return ODD
  at++
  while (at < fileEnd) {
    at = pastBlanks(at)
    if (at >= fileEnd || load<u8>(at) != 0x22) return ODD
    at = readString(at + 1)
    if (at == 0) return ODD
    at = pastBlanks(at)
    if (at >= fileEnd || load<u8>(at) != 0x3a) return ODD
    at = pastBlanks(at + 1)
    let id: u32 = 0
    let digits = 0
    while (at < fileEnd && digits < 8) {
      const digit: u32 = <u32>load<u8>(at) - 0x30
      if (digit > 9) break
      id = id * 10 + digit
      digits++
      at++
    }
    at = pastBlanks(at)
    if (digits == 0 || at >= fileEnd || !put(id)) return ODD
    const next: u32 = load<u8>(at++)
    if (next == 0x7d) return <u32>(at - fileAt)
    if (next != 0x2c) return ODD
  }
  return ODD
}

/** Reads the list at the offset, of `"a b"` or `["a", "b"]`, and gives the offset behind it; or ODD. */
export function readMerges(offset: u32): u32 {
  let at = pastBlanks(fileAt + <usize>offset)
  if (at >= fileEnd || load<u8>(at) != 0x5b) return ODD
  at = pastBlanks(at + 1)
  if (at < fileEnd && load<u8>(at) == 0x5d) return <u32>(at + 1 - fileAt)
  while (at < fileEnd) {
    let left: u32 = 0
    let right: u32 = 0
    if (load<u8>(at) == 0x22) {
      at = readString(at + 1)
      if (at == 0) return ODD
      let blank: u32 = 0
      while (blank < textLength && load<u8>(text + <usize>blank) != 0x20) blank++
      if (blank == textLength) return ODD
      left = find(text, blank)
      right = find(text + <usize>blank + 1, textLength - blank - 1)
    } else {
      if (load<u8>(at) != 0x5b) return ODD
      at = pastBlanks(at + 1)
      if (at >= fileEnd || load<u8>(at) != 0x22) return ODD
      at = readString(at + 1)
      if (at == 0) return ODD
      left = find(text, textLength)
      at = pastBlanks(at)
      if (at >= fileEnd || load<u8>(at) != 0x2c) return ODD
      at = pastBlanks(at + 1)
      if (at >= fileEnd || load<u8>(at) != 0x22) return ODD
      at = readString(at + 1)
      if (at == 0) return ODD
      right = find(text, textLength)
      at = pastBlanks(at)
      if (at >= fileEnd || load<u8>(at++) != 0x5d) return ODD
    }
    if (left == ODD || right == ODD) return ODD
    store<u32>(mergesAt + (<usize>mergeCount << 3), left)
    store<u32>(mergesAt + (<usize>mergeCount << 3), right, 4)
    mergeCount++
    at = pastBlanks(at)
    if (at >= fileEnd) return ODD
    const next: u32 = load<u8>(at)
    if (next == 0x5d) return <u32>(at + 1 - fileAt)
    if (next != 0x2c) return ODD
    at = pastBlanks(at + 1)
  }
  return ODD
}

/** Reads the string behind its opening quote into `text`; the address behind its closing quote, or 0. */
function readString(at: usize): usize {
  const start = at
  while (at < fileEnd) {
    const byte: u32 = load<u8>(at)
    if (byte == 0x22) {
      text = start
      textLength = <u32>(at - start)
      return at + 1
    }
    if (byte == 0x5c) return readEscaped(start, at)
    // No JSON has these in a string.
    if (byte < 0x20) return 0
    at++
  }
  return 0
}

function readEscaped(start: usize, escape: usize): usize {
  let at = escape
  memory.copy(scratch, start, at - start)
  let to = scratch + (at - start)
  while (at < fileEnd) {
    const byte: u32 = load<u8>(at++)
    if (byte == 0x22) {
      text = scratch
      textLength = <u32>(to - scratch)
      return at
    }
    if (byte < 0x20) return 0
    if (byte != 0x5c) {
      store<u8>(to++, byte)
      continue
    }
    const kind: u32 = load<u8>(at++)
    if (kind != 0x75) {
      const simple = simpleEscape(kind)
      if (simple == 0) return 0
      store<u8>(to++, simple)
      continue
    }
    let point = hex(at)
    if (point == ODD) return 0
    at += 4
    if (point >= 0xd800 && point < 0xe000) {
      // Half of a pair alone has no UTF-8.
      if (point >= 0xdc00 || load<u16>(at) != 0x755c) return 0
      const low = hex(at + 2)
      if (low < 0xdc00 || low > 0xdfff) return 0
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00)
      at += 6
    }
    to = writeUtf8(to, point)
  }
  return 0
}

function simpleEscape(kind: u32): u32 {
  switch (kind) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      return kind
    case 0x62:
      return 0x08
    case 0x66:
      return 0x0c
    case 0x6e:
      return 0x0a
    case 0x72:
      return 0x0d
    case 0x74:
      return 0x09
  }
  return 0
}

function hex(at: usize): u32 {
  let value: u32 = 0
  for (let i: usize = 0; i < 4; i++) {
    const byte: u32 = load<u8>(at + i)
    const letter = (byte | 0x20) - 0x61
    const digit = byte - 0x30 <= 9 ? byte - 0x30 : letter <= 5 ? letter + 10 : ODD
    if (digit == ODD) return ODD
    value = (value << 4) | digit
  }
  return value
}

function writeUtf8(to: usize, point: u32): usize {
  if (point < 0x80) {
    store<u8>(to, point)
    return to + 1
  }
  if (point < 0x800) {
    store<u8>(to, 0xc0 | (point >> 6))
    store<u8>(to, 0x80 | (point & 63), 1)
    return to + 2
  }
  if (point < 0x10000) {
    store<u8>(to, 0xe0 | (point >> 12))
    store<u8>(to, 0x80 | ((point >> 6) & 63), 1)
    store<u8>(to, 0x80 | (point & 63), 2)
    return to + 3
  }
  store<u8>(to, 0xf0 | (point >> 18))
  store<u8>(to, 0x80 | ((point >> 12) & 63), 1)
  store<u8>(to, 0x80 | ((point >> 6) & 63), 2)
  store<u8>(to, 0x80 | (point & 63), 3)
  return to + 4
}

/** The hash that the host's `Vocabulary` uses, so that it takes the hashes as they are. */
function hashOf(at: usize, length: u32): u32 {
  let hash: u32 = 0x811c_9dc5
  for (let i: u32 = 0; i < length; i++) hash = (hash ^ <u32>load<u8>(at + <usize>i)) * 0x0100_0193
  return hash ^ (hash >> 15)
}

/** The id of a spelling, or ODD. */
function find(at: usize, length: u32): u32 {
  const hash = hashOf(at, length)
  let slot = hash & slotMask
  while (true) {
    const entry = load<u64>(slotsAt + (<usize>slot << 3))
    if (entry == 0) return ODD
    const id = <u32>(entry >> 32) - 1
    if (<u32>entry == hash && equals(id, at, length)) return id
    slot = (slot + 1) & slotMask
  }
}

/** Puts a spelling that is not there into the table. */
function place(hash: u32, id: u32): void {
  let slot = hash & slotMask
  while (load<u64>(slotsAt + (<usize>slot << 3)) != 0) slot = (slot + 1) & slotMask
  store<u64>(slotsAt + (<usize>slot << 3), (<u64>(id + 1) << 32) | <u64>hash)
}

function growSlots(): void {
  memory.fill(slotsAt, 0, (<usize>slotMask + 1) << 3)
  slotMask = (slotMask << 1) | 1
  for (let id: u32 = 0; id < idEnd; id++) {
    if (load<u32>(lengthsAt + (<usize>id << 2)) != 0) place(load<u32>(hashesAt + (<usize>id << 2)), id)
  }
}

function equals(id: u32, at: usize, length: u32): bool {
  const here = <usize>id << 2
  if (load<u32>(lengthsAt + here) != length + 1) return false
  const bytes = bytesAt + <usize>load<u32>(startsAt + here)
  let i: usize = 0
  for (; i + 8 <= <usize>length; i += 8) if (load<u64>(bytes + i) != load<u64>(at + i)) return false
  for (; i < <usize>length; i++) if (load<u8>(bytes + i) != load<u8>(at + i)) return false
  return true
}

/** Puts the string read last in. False: an id out of range or taken, a spelling that is there, or too many tokens. */
function put(id: u32): bool {
  const here = <usize>id << 2
  if (id >= IDS_MAX || tokenCount >= TOKENS_MAX || load<u32>(lengthsAt + here) != 0) return false
  if (find(text, textLength) != ODD) return false
  if (tokenCount * 2 > slotMask) growSlots()
  const hash = hashOf(text, textLength)
  place(hash, id)
  store<u32>(startsAt + here, <u32>used)
  store<u32>(lengthsAt + here, textLength + 1)
  store<u32>(hashesAt + here, hash)
  for (let i: usize = 0; i < <usize>textLength; i += 8) store<u64>(bytesAt + used + i, load<u64>(text + i))
  used += <usize>textLength
  tokenCount++
  if (id >= idEnd) idEnd = id + 1
  return true
}
