/**
 * Ids → bytes. Each id has a slot of 16 bytes: its bytes and, in the last one, how many there are, so that most ids cost
 * one load and one store. Slots that say more than that are looked at by `other`.
 *
 * An instance decodes or encodes, not both: the tables of the one are not laid in the other's memory.
 */
import { mark, release, reserve } from "./memory"

/** The last byte of a slot: up to 15 bytes, or one of these. */
const SLOT_BYTES_MAX: u32 = 15
const LONG: u32 = 0x10
/** Dropped when special tokens are skipped. */
const SPECIAL: u32 = 0x20
/** A byte of a SentencePiece vocabulary: what side by side is no UTF-8 becomes U+FFFD, one for each byte. */
const BYTE: u32 = 0x40
/** No token: as if it were not there. */
const ABSENT: u32 = 0x80

let slots: usize = 0
let size: u32 = 0
let starts: usize = 0
let bytes: usize = 0
/** u8 by id, written by the host: SPECIAL, BYTE, ABSENT, or 0. */
let kinds: usize = 0
let tablesTop: usize = 0

let idsAt: usize = 0
let textAt: usize = 0
let textEnd: usize = 0
let textLength: u32 = 0

/** Room for the packed tokens, which the host writes then. False when there is no memory. */
export function prepareDecoder(tokenCount: u32, tokenBytes: u32): bool {
  size = tokenCount
  starts = reserve((<usize>tokenCount + 1) << 2)
  bytes = reserve(<usize>tokenBytes + 16)
  kinds = reserve(<usize>tokenCount)
  // One more: what ids outside the vocabulary are.
  slots = reserve((<usize>tokenCount + 1) << 4)
  return starts != 0 && bytes != 0 && kinds != 0 && slots != 0
}

export function decoderStartsAddress(): usize {
  return starts
}
export function decoderBytesAddress(): usize {
  return bytes
}
export function decoderKindsAddress(): usize {
  return kinds
}

/** Fills the slots. */
export function buildDecoder(): void {
  for (let id: u32 = 0; id < size; id++) {
    const at = bytes + load<u32>(starts + (<usize>id << 2))
    const length = load<u32>(starts + (<usize>id << 2), 4) - load<u32>(starts + (<usize>id << 2))
    const slot = slots + (<usize>id << 4)
    const kind: u32 = load<u8>(kinds + <usize>id)
    v128.store(slot, v128.load(at))
    const isLong = length > SLOT_BYTES_MAX || kind != 0
    store<u8>(slot, isLong ? kind | LONG : length, 15)
  }
  store<u8>(slots + (<usize>size << 4), ABSENT, 15)
  tablesTop = mark()
}

/** Lays room for so many ids and so many bytes of text; what was there is lost. */
export function layDecoder(ids: u32, textBytes: u32): bool {
  release(tablesTop)
  idsAt = reserve(<usize>ids << 2)
  textAt = reserve(<usize>textBytes + 16)
  textEnd = textAt + <usize>textBytes
  return idsAt != 0 && textAt != 0
}

export function decoderIdsAddress(): usize {
  return idsAt
}
export function decoderTextAddress(): usize {
  return textAt
}
/** Bytes that the last call wrote. */
export function decodedBytes(): u32 {
  return textLength
}

/**
 * Decodes the first `count` ids and says how many it took: fewer when the text is full, or when a run of byte tokens goes
 * up to the end and is not `final`.
 */
export function decode(count: u32, skipsSpecial: bool, final: bool): u32 {
  const end = idsAt + (<usize>count << 2)
  const last = textEnd - 16
  let at = idsAt
  let out = textAt
  while (at < end && out <= last) {
    const slot = slots + (<usize>min<u32>(load<u32>(at), size) << 4)
    v128.store(out, v128.load(slot))
    const length: u32 = load<u8>(slot, 15)
    if (length <= SLOT_BYTES_MAX) {
      out += length
      at += 4
      continue
    }
    if ((length & ABSENT) != 0 || ((length & SPECIAL) != 0 && skipsSpecial)) {
      at += 4
      continue
    }
    if ((length & BYTE) != 0) {
      const next = byteRun(at, end, out, skipsSpecial, final)
      if (next == at) break
      out = runEnd
      at = next
      continue
    }
    const id = load<u32>(at)
    const from = bytes + load<u32>(starts + (<usize>id << 2))
    const all = load<u32>(starts + (<usize>id << 2), 4) - load<u32>(starts + (<usize>id << 2))
    if (out + all > textEnd) break
    for (let i: u32 = 0; i < all; i += 16) v128.store(out + i, v128.load(from + i))
    out += all
    at += 4
  }
  textLength = <u32>(out - textAt)
  return <u32>((at - idsAt) >> 2)
}

/** Where the text of the last run of byte tokens ends. */
let runEnd: usize = 0

/** Takes a run of byte tokens, with skipped ones in between, and gives the address behind it; `at` when it has to wait. */
function byteRun(from: usize, end: usize, start: usize, skipsSpecial: bool, final: bool): usize {
  let at = from
  let out = start
  while (at < end) {
    const slot = slots + (<usize>min<u32>(load<u32>(at), size) << 4)
    const kind: u32 = load<u8>(slot, 15)
    if (kind <= SLOT_BYTES_MAX) break
    if ((kind & ABSENT) == 0 && !((kind & SPECIAL) != 0 && skipsSpecial)) {
      if ((kind & BYTE) == 0) break
      if (out >= textEnd) return from
      store<u8>(out, load<u8>(slot))
      out++
    }
    at += 4
  }
  if (at == end && !final) return from
  const count = out - start
  if (isUtf8(start, out)) {
    runEnd = out
    return at
  }
  if (start + count * 3 > textEnd) return from
  out = start
  for (let i: usize = 0; i < count; i++) {
    store<u16>(out, 0xbfef)
    store<u8>(out, 0xbd, 2)
    out += 3
  }
  runEnd = out
  return at
}

/** Whether [at, end) is UTF-8: no spelling too long, no surrogates, nothing above U+10FFFF, nothing unfinished. */
function isUtf8(at: usize, end: usize): bool {
  while (at < end) {
    const lead: u32 = load<u8>(at++)
    if (lead < 0x80) continue
    if (lead < 0xc2 || lead > 0xf4) return false
    // The byte behind the lead has narrower bounds for some leads.
    const least: u32 = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80
    const most: u32 = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf
    const more: usize = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3
    if (at + more > end) return false
    const second: u32 = load<u8>(at)
    if (second < least || second > most) return false
    for (let i: usize = 1; i < more; i++) if ((load<u8>(at + i) & 0xc0) != 0x80) return false
    at += more
  }
  return true
}
