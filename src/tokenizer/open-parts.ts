import { err, ok, type Result } from "../result"
import { BpeCore } from "./bpe-core"
import type { Unsupported } from "./json-shape"
import type { TokenizerFailure } from "./tokenizer"
import type { TokenizerParts } from "./tokenizer-parts"
import { WasmTokenizer } from "./wasm-tokenizer"

/** Makes the tokenizer of parts that were read, or says why they were refused. */
export function openParts(parts: Result<TokenizerParts, Unsupported>): Result<WasmTokenizer, TokenizerFailure> {
  if (!parts.ok) {
    return err({ kind: "tokenizer_unusable", message: `the tokenizer is not supported: ${parts.error.message}` })
  }
  const core = BpeCore.create(parts.value.tables)
  return core.ok ? ok(new WasmTokenizer(parts.value, core.value)) : core
}
