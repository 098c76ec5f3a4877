import { wasmBytes } from "./wasm-bytes"

let compiled: WebAssembly.Module | null = null

/** The compiled wasm/tokenizer.wasm; compiled on first use, shared by all instances of a thread. */
export function wasmModule(): WebAssembly.Module {
  // At once, so that loading bytes is a plain call: browsers take a module of this size so on their main thread too.
  compiled ??= new WebAssembly.Module(wasmBytes())
  return compiled
}
