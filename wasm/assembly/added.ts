/**
 * Added tokens in UTF-8: leftmost, then longest (src/tokenizer/added-tokens.ts has the rules, and all the cases that are
 * not this plain). Cutting here costs one call a text; cutting in JavaScript cost two copies and a call a segment, which
 * were three quarters of the time of chat texts and half of the time of Gemma, where each line break is an added token.
 */
import { addByte, BYTE_SET_BYTES, bytesIn } from "./byte-set"
import { reserve } from "./memory"
import { NONE } from "./tokens"

const MIX: u32 = 0x9e37_79b1

/** { node << 8 | byte, plus 1; the child } × a power of two; 0 = free. Node 0 is the root. */
let edges: usize = 0
let edgeMask: u32 = 0
let edgeShift: u32 = 0
let nodes: u32 = 0
/** u32 by node: the id that is spelled up to there, or NONE. */
let idOfNode: usize = 0
/** u8 by node: 1 = spellings go on. */
let goesOn: usize = 0
/** u32 by first byte: the root's child, or 0. */
let childOfRoot: usize = 0
/** The bytes that spellings begin with (byte-set.ts). */
let beginnings: usize = 0

let count: u32 = 0
let startsAt: usize = 0
let bytesAt: usize = 0
let idsAt: usize = 0

/** What `nextAdded` found: an id, or NONE; and where it ends. */
export let addedId: u32 = NONE
export let addedEnd: usize = 0

/** Room for the spellings, which the host writes then: all bytes one behind the other. False without memory. */
export function layAdded(tokens: u32, bytes: u32): bool {
  count = tokens
  nodes = 1
  startsAt = reserve((<usize>tokens + 1) << 2)
  idsAt = reserve(<usize>tokens << 2)
  bytesAt = reserve(<usize>bytes)
  let bits: u32 = 4
  while (<u32>1 << bits < bytes * 2) bits++
  edgeMask = (<u32>1 << bits) - 1
  edgeShift = 32 - bits
  edges = reserve(<usize>8 << bits)
  idOfNode = reserve((<usize>bytes + 1) << 2)
  goesOn = reserve(<usize>bytes + 1)
  childOfRoot = reserve(1024)
  beginnings = reserve(BYTE_SET_BYTES)
  if (startsAt == 0 || idsAt == 0 || bytesAt == 0 || edges == 0 || idOfNode == 0) return false
  if (goesOn == 0 || childOfRoot == 0 || beginnings == 0) return false
  memory.fill(edges, 0, <usize>8 << bits)
  memory.fill(idOfNode, 0xff, (<usize>bytes + 1) << 2)
  memory.fill(goesOn, 0, <usize>bytes + 1)
  memory.fill(childOfRoot, 0, 1024)
  memory.fill(beginnings, 0, BYTE_SET_BYTES)
  return true
}

export function addedStartsAddress(): usize {
  return startsAt
}
export function addedBytesAddress(): usize {
  return bytesAt
}
export function addedIdsAddress(): usize {
  return idsAt
}

/** Builds what finds them. The first of equal spellings wins; none is empty. */
export function buildAdded(): void {
  for (let token: u32 = 0; token < count; token++) {
    const end = bytesAt + load<u32>(startsAt + (<usize>token << 2), 4)
    let at = bytesAt + load<u32>(startsAt + (<usize>token << 2))
    const first: u32 = load<u8>(at)
    let node: u32 = 0
    for (; at < end; at++) {
      store<u8>(goesOn + <usize>node, 1)
      node = childFor(node, load<u8>(at))
    }
    if (load<u32>(idOfNode + (<usize>node << 2)) == NONE) {
      store<u32>(idOfNode + (<usize>node << 2), load<u32>(idsAt + (<usize>token << 2)))
    }
    store<u32>(childOfRoot + (<usize>first << 2), childOf(0, first))
    addByte(beginnings, first)
  }
}

function childFor(node: u32, byte: u32): u32 {
  const found = childOf(node, byte)
  if (found != 0) return found
  const key = ((node << 8) | byte) + 1
  let slot = (key * MIX) >> edgeShift
  while (load<u32>(edges + (<usize>slot << 3)) != 0) slot = (slot + 1) & edgeMask
  const child = nodes++
  store<u32>(edges + (<usize>slot << 3), key)
  store<u32>(edges + (<usize>slot << 3), child, 4)
  return child
}

/** The node behind one more byte, or 0. */
function childOf(node: u32, byte: u32): u32 {
  const key = ((node << 8) | byte) + 1
  let slot = (key * MIX) >> edgeShift
  while (true) {
    const has = load<u32>(edges + (<usize>slot << 3))
    if (has == key) return load<u32>(edges + (<usize>slot << 3), 4)
    if (has == 0) return 0
    slot = (slot + 1) & edgeMask
  }
}

/**
 * Where the next added token starts, or `end`. Unless `final`, also where one may start that goes on behind `end`: then
 * `addedId` is NONE. Takes a look at each byte, and at the longest spelling for each byte that may begin one.
 */
export function nextAdded(at: usize, end: usize, final: bool): usize {
  addedId = NONE
  if (count == 0) return end
  const low = v128.load(beginnings)
  const high = v128.load(beginnings, 16)
  // Sixteen bytes at a time; what is read behind the text does not count.
  for (let from = at; from < end; from += 16) {
    for (let lanes = bytesIn(low, high, v128.load(from)); lanes != 0; lanes &= lanes - 1) {
      const here = from + <usize>ctz(lanes)
      if (here >= end) return end
      if (spellsAdded(here, end, final)) return here
    }
  }
  return end
}

/** Whether an added token starts here, or may, see `nextAdded`. */
function spellsAdded(at: usize, end: usize, final: bool): bool {
  let node = load<u32>(childOfRoot + (<usize>load<u8>(at) << 2))
  for (let next = at + 1; node != 0; next++) {
    const id = load<u32>(idOfNode + (<usize>node << 2))
    if (id != NONE) {
      addedId = id
      addedEnd = next
    }
    if (load<u8>(goesOn + <usize>node) == 0) break
    if (next == end) {
      if (final) break
      addedId = NONE
      return true
    }
    node = childOf(node, load<u8>(next))
  }
  return addedId != NONE
}
