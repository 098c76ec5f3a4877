/**
 * The modules of Bun and Node that read files and check them; null in a browser. Not imported: bundlers for browsers
 * refuse their names.
 */
export function fileModules() {
  if (typeof process === "undefined" || typeof process.getBuiltinModule !== "function") return null
  // The same sum; but Bun takes 12 ms to load node:zlib, half of what a vocabulary takes from a cache.
  const crc32: (bytes: Uint8Array) => number =
    typeof Bun === "undefined" ? process.getBuiltinModule("node:zlib").crc32 : Bun.hash.crc32
  return {
    crc32,
    files: process.getBuiltinModule("node:fs"),
    paths: process.getBuiltinModule("node:path"),
    crypto: process.getBuiltinModule("node:crypto"),
  }
}
