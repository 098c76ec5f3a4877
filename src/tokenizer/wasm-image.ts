/**
 * The memory of an instance of wasm/tokenizer.wasm as bytes that can be kept, and an instance made of them again.
 * Memory and variables are all there is to an instance: wasm/build.ts sees to it that none of the variables is left out.
 */
import { wasmModule } from "./wasm-module"

/** What every instance has. Addresses are bytes. */
export interface StatefulExports {
  readonly memory: WebAssembly.Memory
  /** Writes all variables to memory; how many bytes that takes; and reads them back. */
  saveState(at: number): void
  stateBytes(): number
  restoreState(at: number): void
}

/** Where an image's bytes belong. */
export interface ImageLayout {
  /** The memory's first bytes: what lies behind is not kept. */
  readonly bytes: number
  readonly stateAt: number
  /** `[start, end)` of each stretch that is kept, flat; all between them is zero. */
  readonly runs: readonly number[]
}

const pageBytes = 4096
const memoryPageBytes = 65_536

/**
 * The image of an instance whose memory is in use up to `end`, which is a multiple of 8; behind it there must be room
 * for the variables. The stretches are views of its memory, in the order of `runs`, good until its next call.
 */
export function imageOf(wasm: StatefulExports, end: number): { layout: ImageLayout; stretches: Uint8Array[] } {
  wasm.saveState(end)
  const bytes = end + wasm.stateBytes()
  const { buffer } = wasm.memory
  const words = new Uint32Array(buffer, 0, bytes >> 2)
  const runs: number[] = []
  for (let at = 0; at < bytes; at += pageBytes) {
    const next = Math.min(at + pageBytes, bytes)
    let word = at >> 2
    while (word < next >> 2 && words[word] === 0) word += 1
    if (word === next >> 2) continue
    // Memory is most often used without gaps.
    if (runs[runs.length - 1] === at) runs[runs.length - 1] = next
    else runs.push(at, next)
  }
  return { layout: { bytes, stateAt: end, runs }, stretches: stretchesOf(buffer, runs) }
}

/** A fresh instance with memory for an image, and where its bytes go: once they are there, `restoreState` is called. */
export function instanceFor(layout: ImageLayout): { wasm: StatefulExports; stretches: Uint8Array[] } {
  // The imports are none, and the exports are what wasm/assembly/core.ts says.
  const wasm = new WebAssembly.Instance(wasmModule()).exports as unknown as StatefulExports
  const missing = layout.bytes - wasm.memory.buffer.byteLength
  if (missing > 0) wasm.memory.grow(Math.ceil(missing / memoryPageBytes))
  return { wasm, stretches: stretchesOf(wasm.memory.buffer, layout.runs) }
}

function stretchesOf(buffer: ArrayBufferLike, runs: readonly number[]): Uint8Array[] {
  const stretches: Uint8Array[] = []
  for (let i = 0; i < runs.length; i += 2) stretches.push(new Uint8Array(buffer, runs[i]!, runs[i + 1]! - runs[i]!))
  return stretches
}
