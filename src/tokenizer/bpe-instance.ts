/** An instance of wasm/tokenizer.wasm with a vocabulary's tables in it. Used by `BpeCore` alone. */
import { err, ok, type Result } from "../result"
import type { StatefulExports } from "./wasm-image"
import { wasmModule } from "./wasm-module"

/** Tables that contradict themselves, or that are too large. */
export interface TokenizerUnusable {
  readonly kind: "tokenizer_unusable"
  readonly message: string
}

/** The WebAssembly side (wasm/assembly/core.ts). Addresses are bytes. */
export interface BpeExports extends StatefulExports {
  prepare(tokens: number, tokenBytes: number, merges: number, classBytes: number, joinedBytes: number): number
  tokenStartsAddress(): number
  tokenBytesAddress(): number
  classesAddress(): number
  fallbackAddress(): number
  buildVocabulary(): number
  layMerges(): number
  mergesAddress(): number
  build(fromRanks: boolean, wholeWords: boolean, characters: boolean, unknown: number, fuses: boolean): number
  culpritIndex(): number
  layRules(addedTokens: number, addedBytes: number, form: boolean): number
  addedStartsAddress(): number
  addedBytesAddress(): number
  addedIdsAddress(): number
  buildAdded(): void
  markCharacters(first: number, last: number, isTouched: boolean): void
  askedAddress(): number
  askedBytes(): number
  answerAddress(): number
  answer(bytes: number): void
  layWindow(bytes: number, pieceBytes: number, withEnds: boolean): number
  windowAddress(): number
  idsAddress(): number
  endsAddress(): number
  reachedBytes(): number
  keepRest(bytes: number): void
  forgetWords(): void
  encode(family: number, bytes: number, final: boolean, idsMost: number): number
  encodeText(
    family: number,
    bytes: number,
    final: boolean,
    idsMost: number,
    cuts: boolean,
    normalizes: boolean,
    goesOn: boolean,
  ): number
  encodeEnds(family: number, bytes: number, final: boolean, base: number, idsMost: number): number
}

/** How large the packed tables are. */
export interface TableSizes {
  readonly tokens: number
  readonly tokenBytes: number
  /** Two for each merge. */
  readonly mergeWords: number
  readonly classBytes: number
  readonly longest: number
}

/** How tables are built. */
export interface BuildRules {
  readonly fromRanks: boolean
  readonly wholeWords: boolean
  readonly characters: boolean
  readonly unknownId: number
  readonly fuseUnknown: boolean
}

/** What tables are built from. */
export interface PackedTables {
  readonly starts: Uint32Array
  readonly bytes: Uint8Array
  readonly classes: Uint8Array
  readonly fallback: Int32Array
}

/** A new instance with its tables built; the arguments are copied. */
export function builtInstance(
  from: PackedTables,
  merges: Uint32Array,
  sizes: TableSizes,
  rules: BuildRules,
): Result<BpeExports, TokenizerUnusable> {
  // The imports are none, and the exports are what wasm/assembly/core.ts says.
  const wasm = new WebAssembly.Instance(wasmModule()).exports as unknown as BpeExports
  if (!wasm.prepare(sizes.tokens, sizes.tokenBytes, sizes.mergeWords >> 1, sizes.classBytes, sizes.longest)) {
    return unusable("no memory for the tables")
  }
  const to = tablesIn(wasm, sizes)
  to.starts.set(from.starts)
  to.bytes.set(from.bytes)
  to.classes.set(from.classes)
  to.fallback.set(from.fallback.subarray(0, 256))
  let outcome = wasm.buildVocabulary()
  if (outcome === 0) {
    if (!rules.fromRanks) {
      if (wasm.layMerges() === 0) return unusable("no memory for the merges")
      mergesIn(wasm, sizes).set(merges)
    }
    outcome = wasm.build(rules.fromRanks, rules.wholeWords, rules.characters, rules.unknownId, rules.fuseUnknown)
  }
  return outcome === 0 ? ok(wasm) : unusable(buildFailure(outcome, wasm.culpritIndex()))
}

/** Where an instance holds what its tables are built from; it stays there unchanged. */
export function tablesIn(wasm: BpeExports, sizes: TableSizes): PackedTables {
  const { buffer } = wasm.memory
  return {
    starts: new Uint32Array(buffer, wasm.tokenStartsAddress(), sizes.tokens + 1),
    bytes: new Uint8Array(buffer, wasm.tokenBytesAddress(), sizes.tokenBytes),
    classes: new Uint8Array(buffer, wasm.classesAddress(), sizes.classBytes),
    fallback: new Int32Array(buffer, wasm.fallbackAddress(), 256),
  }
}

/** The same for the merges. */
export function mergesIn(wasm: BpeExports, sizes: TableSizes): Uint32Array {
  return new Uint32Array(wasm.memory.buffer, wasm.mergesAddress(), sizes.mergeWords)
}

/** A failure as a value. */
export function unusable(message: string): { readonly ok: false; readonly error: TokenizerUnusable } {
  return err({ kind: "tokenizer_unusable", message })
}

/** Outcomes of wasm/assembly/vocabulary.ts in words. */
function buildFailure(outcome: number, index: number): string {
  switch (outcome) {
    case 2:
      return `token ${index} has the same bytes as another`
    case 3:
      return `merge ${index} names a token that is not there`
    case 4:
      return `what merge ${index} makes is not in the vocabulary`
    case 5:
      return "the merges do not fit their table"
    default:
      return "no memory for the tables"
  }
}
