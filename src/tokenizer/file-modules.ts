/**
 * The modules of Bun and Node that read files and check them; null in a browser. Not imported: bundlers for browsers
 * refuse their names.
 */
export function fileModules() {
  if (typeof process === "undefined" || typeof process.getBuiltinModule !== "function") return null
  return {
    files: process.getBuiltinModule("node:fs/promises"),
    filesAtOnce: process.getBuiltinModule("node:fs"),
    paths: process.getBuiltinModule("node:path"),
    zlib: process.getBuiltinModule("node:zlib"),
    crypto: process.getBuiltinModule("node:crypto"),
  }
}
