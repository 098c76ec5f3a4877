import { createHash } from "node:crypto"
import type { LoraModule } from "./config"
import type { LoraAdapter } from "./ir/generate-request"

/** Ids are positive and fit 32 bits with a sign. */
const idsMax = 0x7fff_ffff

/**
 * Adapters with the numbers that engines know them by. A number stands for what the adapter is, in every process: an
 * engine that has loaded one never looks at its path again, and may outlive the process that named it.
 */
export function withAdapterIds(modules: readonly LoraModule[]): LoraAdapter[] {
  const taken = new Set<number>()
  return modules.map((module) => {
    const { name, path, is3dWeight } = module
    const digest = createHash("sha256")
      .update(JSON.stringify([name, path, is3dWeight]))
      .digest()
    let id = digest.readUInt32LE(0) % idsMax
    do id = (id % idsMax) + 1
    while (taken.has(id))
    taken.add(id)
    return { ...module, id }
  })
}
