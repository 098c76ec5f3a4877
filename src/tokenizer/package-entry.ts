/**
 * `sluice/tokenizer`: what the package gives to those who use its tokenizer alone, in Bun, Node and browsers. The door of
 * the package, not a way around inside it: nothing here in src/ imports this file. What it reaches runs without packages
 * and without Node's modules (test/layout.test.ts), so that one built file is all that a browser loads.
 */

// biome-ignore lint/performance/noBarrelFile: users of a package need one name to import from; see above.
export { Piece } from "../ir/piece"
export type { Result } from "../result"
export type { CopyableDetokenizer, Detokenizer } from "./detokenizer"
export { type ExtraTokens, harmonyTokens } from "./extra-tokens"
export { type LoadOptions, load, loadBytes } from "./load"
export type { LoadedTokenizer } from "./loaded-tokenizer"
export type { TextStream } from "./text-stream"
export type {
  EncodeFailure,
  EncodeOptions,
  OffsetUnit,
  TextSegment,
  Tokenizer,
  TokenizerFailure,
  TokensWithOffsets,
} from "./tokenizer"
