/** Hashes of what the reference renders (scripts/template-golden.ts): they are here where Python is not. */
import { join } from "node:path"
import type { Rendering } from "./template-oracle"

/** The file of hashes. */
export const goldenFile = join(import.meta.dir, "../golden/templates/hashes.json")

/** The file of probes with their answers. */
export const probeFile = join(import.meta.dir, "../golden/templates/probes.json")

/** What the file of hashes holds. */
export interface GoldenTemplates {
  /** Versions that made it. */
  readonly reference: string
  /** Name and hash of each conversation, in order. */
  readonly conversations: readonly string[]
  /** By name: the template's hash, and that of each conversation's rendering, `-` where the reference refuses. */
  readonly templates: { readonly [name: string]: { readonly template: string; readonly rendered: string } }
}

/** The first twelve hexadecimal digits of SHA-256. */
export function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12)
}

/** The hash of a rendering's text, or `-`. */
export function hashOfRendering(rendering: Rendering): string {
  return "text" in rendering ? hashOf(rendering.text) : "-"
}
