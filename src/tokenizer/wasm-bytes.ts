import { readFileSync } from "node:fs"
import file from "../../wasm/tokenizer.wasm" with { type: "file" }

/**
 * The bytes of wasm/tokenizer.wasm. Bun knows where the file lies, also in what it bundles. In the build for npm,
 * scripts/build-tokenizer.ts puts the bytes themselves in this file's place: Node and browsers then need no other file.
 */
export function wasmBytes(): Uint8Array<ArrayBuffer> {
  // A path from the root, or in a bundle one from where the bundle lies.
  return readFileSync(file.startsWith(".") ? new URL(file, import.meta.url) : file)
}
