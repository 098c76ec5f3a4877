import { err, ok, type Result } from "../result"
import { BpeCore } from "./bpe-core"
import type { Unsupported } from "./json-shape"
import type { TokenizerFailure } from "./tokenizer"
import type { ReadParts } from "./tokenizer-parts"
import { WasmTokenizer } from "./wasm-tokenizer"

/** Messages quote the file, whose spellings may be of any length. */
const messageUnitsMax = 400

/** Makes the tokenizer of a file that was read, or says why it was refused. `onCore` sees the core before any text. */
export function openParts(
  read: Result<ReadParts, Unsupported | TokenizerFailure>,
  onCore: (core: BpeCore, read: ReadParts) => void = () => {},
): Result<WasmTokenizer, TokenizerFailure> {
  if (!read.ok) {
    const { kind, message } = read.error
    if (kind === "tokenizer_unusable") return err({ kind, message })
    const shown = message.length > messageUnitsMax ? `${message.slice(0, messageUnitsMax)}…` : message
    return err({ kind: "tokenizer_unusable", message: `the tokenizer is not supported: ${shown}` })
  }
  const core = BpeCore.create(read.value.tables)
  if (!core.ok) return core
  onCore(core.value, read.value)
  return ok(new WasmTokenizer(read.value.parts, core.value))
}
