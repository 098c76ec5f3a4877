import { readFileSync } from "node:fs"

let compiled: WebAssembly.Module | null = null

/** The compiled wasm/tokenizer.wasm; compiled on first use, shared by all instances of a thread. */
export function wasmModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(readFileSync(new URL("../../wasm/tokenizer.wasm", import.meta.url)))
  return compiled
}
