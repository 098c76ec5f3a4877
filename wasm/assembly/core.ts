/**
 * What the host calls (src/tokenizer/bpe-core.ts; of decode.ts: src/tokenizer/decode-core.ts).
 *
 * Once: `prepare`, the host writes the packed tables, `build`. Then, as often as wanted: `layWindow` for a size, the
 * host writes UTF-8 at its address, `encode…`, the host reads ids. Behind the text the window has room for reads beyond
 * its end.
 */
export {
  buildDecoder,
  decode,
  decodedBytes,
  decoderBytesAddress,
  decoderIdsAddress,
  decoderKindsAddress,
  decoderStartsAddress,
  decoderTextAddress,
  layDecoder,
  prepareDecoder,
} from "./decode"
export {
  layFile,
  readMerges,
  readMergesAddress,
  readMergesCount,
  readVocabulary,
  spelledAddress,
  spelledBytes,
  spelledCount,
  spelledHashesAddress,
  spelledIdEnd,
  spelledLengthsAddress,
  spelledStartsAddress,
} from "./vocabulary-file"
export { addedBytesAddress, addedIdsAddress, addedStartsAddress, buildAdded } from "./added"
import { addedEnd, addedId, layAdded, nextAdded } from "./added"
export { answer, answerAddress, askedAddress, askedBytes, markCharacters } from "./normal"
import { ASKS, beginSettling, firstTouched, lastUntouched, layForm, laySettled, settle, settledEnd, SETTLED, settledStart } from "./normal"
import { joinsOnlyText } from "./joints"
import { mark, release, reserve } from "./memory"
import { makeCharacters, scratchBytes, setScratch, setUnits } from "./merge"
import {
  blocksReached,
  encodeBlanks,
  encodeCl100k,
  encodeDeepseek3,
  encodeGpt2,
  encodeGpt2Digits,
  encodeO200k,
  encodeQwen2,
  encodeQwen35,
  encodeTekken,
} from "./blocks"
import { BLANKS, CL100K, DEEPSEEK3, GPT2, GPT2_DIGITS, O200K, pieceEnd, QWEN2, QWEN35, TEKKEN, WHOLE } from "./scan"
import { clearSawEnd, sawEnd, setClassTable } from "./unicode"
import { NONE } from "./tokens"
import { BUILT, buildMerges, buildMergesFromRanks, buildTokens, culprit, findBlank, hasAllBytes, markJoints, blankIsSpace } from "./vocabulary"
import { clearCache, encodePiece, encodeWithEnds, setWords } from "./words"

const NO_MEMORY: i32 = 1

let startsAt: usize = 0
let bytesAt: usize = 0
let tokens: u32 = 0
let mergesAt: usize = 0
let merges: u32 = 0
let fallbackAt: usize = 0
let classesAt: usize = 0
/** Behind the vocabulary's tables, where those of the text's rules are laid. */
let builtEnd: usize = 0
/** Behind all tables: everything above is window and scratch. */
let tablesEnd: usize = 0

let windowAt: usize = 0
let windowBytes: u32 = 0
let idsAt: usize = 0
let endsAt: usize = 0

/** How far the last call came, as an address in the window: the text behind it is not encoded yet. */
let reached: usize = 0

/** Room for the packed tables. False when there is no memory. */
export function prepare(tokenCount: u32, tokenBytes: u32, mergeCount: u32, classBytes: u32, joinedBytes: u32): bool {
  tokens = tokenCount
  merges = mergeCount
  startsAt = reserve((<usize>tokenCount + 1) << 2)
  bytesAt = reserve(<usize>tokenBytes + 16)
  classesAt = reserve(<usize>classBytes)
  fallbackAt = reserve(1024)
  joinedMost = joinedBytes
  return startsAt != 0 && bytesAt != 0 && classesAt != 0 && fallbackAt != 0
}

let joinedMost: u32 = 0
/** Segments that are one piece can be cut before blanks. */
let cutsAtBlanks: bool = false

export function tokenStartsAddress(): usize {
  return startsAt
}
export function tokenBytesAddress(): usize {
  return bytesAt
}
export function classesAddress(): usize {
  return classesAt
}
export function fallbackAddress(): usize {
  return fallbackAt
}

/** First half of building: bytes → id. Then the host writes the merges, if there are any, behind `layMerges`. */
export function buildVocabulary(): i32 {
  setClassTable(classesAt)
  return buildTokens(startsAt, bytesAt, tokens)
}

/** Room for the merges, 8 bytes each, before the host writes them. They stay, to build another instance from. */
export function layMerges(): usize {
  mergesAt = reserve((<usize>merges << 3) + 16)
  return mergesAt
}
export function mergesAddress(): usize {
  return mergesAt
}

/** Second half: the pairs, the cache, and how units are made. */
export function build(fromRanks: bool, wholeWords: bool, characters: bool, unknown: i32, fuses: bool): i32 {
  let outcome: i32
  if (fromRanks) {
    outcome = buildMergesFromRanks()
  } else {
    const joined = reserve(<usize>joinedMost * 2 + 16)
    if (joined == 0) return NO_MEMORY
    outcome = buildMerges(mergesAt, merges, joined)
  }
  if (outcome != BUILT) return outcome
  const unknownId = unknown < 0 ? NONE : <u32>unknown
  // The only step that gives memory back, so it comes before the caches, which need fresh memory.
  const cuts = characters ? !fromRanks && joinsOnlyText(mergesAt, merges, fallbackAt, unknownId) : hasAllBytes()
  if (!setUnits(characters ? fallbackAt : 0, unknownId, fuses, fromRanks ? tokens : merges) || !setWords(wholeWords, cuts) || !makeCharacters()) {
    return NO_MEMORY
  }
  // A whole segment of a SentencePiece vocabulary falls into words, unless whole words are looked for in it.
  cutsAtBlanks =
    characters && !fromRanks && !wholeWords && findBlank() && markJoints(mergesAt, merges, fallbackAt, unknownId)
  builtEnd = mark()
  tablesEnd = builtEnd
  return BUILT
}

/** Texts are brought to a normal form on their way. */
let hasForm: bool = false

/**
 * Room for the added tokens, whose spellings the host writes before `buildAdded`, and for a normal form, whose characters
 * the host marks. The window is lost.
 */
export function layRules(addedTokens: u32, addedBytes: u32, form: bool): bool {
  release(builtEnd)
  hasForm = form
  const laid = layAdded(addedTokens, addedBytes) && (!form || layForm())
  tablesEnd = mark()
  return laid
}

/** The token or merge that an outcome of building is about. */
export function culpritIndex(): u32 {
  return culprit
}

/** Lays a window for `bytes` of text, its ids, and scratch for a piece of `pieceBytes`. What was in it is lost. */
export function layWindow(bytes: u32, pieceBytes: u32, withEnds: bool): bool {
  release(tablesEnd)
  windowBytes = bytes
  windowAt = reserve(<usize>bytes + 80)
  // One id a byte at most, and a few more that may be overwritten behind them.
  idsAt = reserve((<usize>bytes << 2) + 32)
  endsAt = withEnds ? reserve((<usize>bytes << 2) + 32) : 0
  const scratch = reserve(scratchBytes(pieceBytes))
  setScratch(scratch, pieceBytes)
  if (hasForm && !laySettled(bytes)) return false
  return windowAt != 0 && idsAt != 0 && scratch != 0 && (!withEnds || endsAt != 0)
}

export function windowAddress(): usize {
  return windowAt
}
export function idsAddress(): usize {
  return idsAt
}
export function endsAddress(): usize {
  return endsAt
}
/** Bytes of the window that the last call encoded. */
export function reachedBytes(): u32 {
  return <u32>(reached - windowAt)
}
/** Moves what was not encoded to the front of the window. */
export function keepRest(bytes: u32): void {
  memory.copy(windowAt, reached, bytes - <u32>(reached - windowAt))
}

export function forgetWords(): void {
  clearCache()
}

/**
 * Encodes the window's first `bytes` bytes, and stops once there are more than `most` ids. Unless `final`, more text will
 * follow, and a piece that it could change is left. Gives the number of ids.
 */
export function encode(family: i32, bytes: u32, final: bool, most: u32): u32 {
  const outEnd = idsAt + (<usize>min<u32>(most, windowBytes) << 2)
  return <u32>((encodeRange(family, windowAt, windowAt + bytes, final, idsAt, outEnd) - idsAt) >> 2)
}

/** What `encodeText` gives instead of a number of ids. */
const ASKED: u32 = 0xffff_ffff
const GAVE_UP: u32 = 0xffff_fffe

/** Where `encodeText` was when it asked: the segment, up to where it is to be in its form, and where ids go on. */
let cutAt: usize = 0
let cutNext: usize = 0
let cutSure: usize = 0
let cutOut: usize = 0
/** Bytes that normal forms have more than what they stand for, since the window was filled. */
let grown: usize = 0

/**
 * As `encode`. `cuts`: added tokens are cut out first, and what stands between two of them is encoded as if nothing stood
 * around it. `normalizes`: some of the text may have to be brought to its normal form. ASKED: see `settle`; then this is
 * called again with `goesOn`. GAVE_UP: the form does not fit.
 */
export function encodeText(
  family: i32,
  bytes: u32,
  final: bool,
  most: u32,
  cuts: bool,
  normalizes: bool,
  goesOn: bool,
): u32 {
  const end = windowAt + bytes
  const outEnd = idsAt + (<usize>min<u32>(most, windowBytes) << 2)
  let at = windowAt
  let out = idsAt
  if (goesOn) {
    at = cutAt
    out = cutOut
  } else {
    grown = 0
  }
  while (at < end && out <= outEnd) {
    let next = end
    if (goesOn) next = cutNext
    else if (cuts) next = nextAdded(at, end, final)
    const id = cuts ? addedId : NONE
    if (next > at) {
      const closed = final || id != NONE
      if (normalizes && (goesOn || firstTouched(at, next) != next)) {
        // What a later character might still be joined to waits for it.
        let sure = next
        if (goesOn) sure = cutSure
        else if (!closed) sure = lastUntouched(at, next)
        if (sure == at) break
        if (!goesOn) beginSettling(at)
        goesOn = false
        const outcome = settle(sure)
        if (outcome == ASKS) {
          cutAt = at
          cutNext = next
          cutSure = sure
          cutOut = out
          return ASKED
        }
        const size = settledEnd() - settledStart()
        if (size > sure - at) grown += size - (sure - at)
        // There is room for one id a byte of the window.
        if (outcome != SETTLED || <usize>bytes + grown > <usize>windowBytes) return GAVE_UP
        out = encodeRange(family, settledStart(), settledEnd(), closed, out, outEnd)
        const rest = settledEnd() - reached
        if (rest > sure - windowAt) return GAVE_UP
        // The rest goes back to the window, as its own form: to be brought to it again changes nothing.
        memory.copy(sure - rest, reached, rest)
        reached = sure - rest
      } else {
        out = encodeRange(family, at, next, closed, out, outEnd)
      }
      at = reached
    }
    if (id == NONE || at < next) break
    store<u32>(out, id)
    out += 4
    at = addedEnd
  }
  reached = at
  return <u32>((out - idsAt) >> 2)
}

/** Encodes [at, end), gives the address behind the ids, and leaves in `reached` how far it came. */
function encodeRange(family: i32, at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  switch (family) {
    case GPT2:
      out = encodeGpt2(at, end, final, out, outEnd)
      break
    case GPT2_DIGITS:
      out = encodeGpt2Digits(at, end, final, out, outEnd)
      break
    case CL100K:
      out = encodeCl100k(at, end, final, out, outEnd)
      break
    case QWEN2:
      out = encodeQwen2(at, end, final, out, outEnd)
      break
    case QWEN35:
      out = encodeQwen35(at, end, final, out, outEnd)
      break
    case O200K:
      out = encodeO200k(at, end, final, out, outEnd)
      break
    case TEKKEN:
      out = encodeTekken(at, end, final, out, outEnd)
      break
    case DEEPSEEK3:
      out = encodeDeepseek3(at, end, final, out, outEnd)
      break
    default:
      if (cutsAtBlanks && blankIsSpace) {
        out = encodeBlanks(at, end, final, out, outEnd)
        break
      }
      return encodePieces(cutsAtBlanks ? BLANKS : family, at, end, final, out, outEnd)
  }
  reached = blocksReached
  return out
}

/** Without blocks: pieces by the scanner. */
function encodePieces(family: i32, at: usize, end: usize, final: bool, out: usize, outEnd: usize): usize {
  while (at < end && out <= outEnd) {
    clearSawEnd()
    const next = family == BLANKS ? pieceEnd(BLANKS, at, end) : pieceEnd(WHOLE, at, end)
    if (sawEnd && !final) break
    out = encodePiece(at, <u32>(next - at), out)
    at = next
  }
  reached = at
  return out
}

/** As `encode` without the cache, with the end of each token in bytes from the window's start plus `base`. */
export function encodeEnds(family: i32, bytes: u32, final: bool, base: u32, most: u32): u32 {
  const end = windowAt + bytes
  const outEnd = idsAt + (<usize>min<u32>(most, windowBytes) << 2)
  let at = windowAt
  let out = idsAt
  while (at < end && out <= outEnd) {
    clearSawEnd()
    const next = pieceEnd(family == WHOLE && cutsAtBlanks ? BLANKS : family, at, end)
    if (sawEnd && !final) break
    out = encodeWithEnds(at, <u32>(next - at), out, endsAt + (out - idsAt), base + <u32>(at - windowAt))
    at = next
  }
  reached = at
  return <u32>((out - idsAt) >> 2)
}
