/**
 * Builds wasm/tokenizer.wasm from wasm/assembly with the pinned AssemblyScript, and beside it the digest of what it was
 * built from. The same sources give the same bytes.
 *
 *   bun wasm/build.ts           build
 *   bun wasm/build.ts --check   build again elsewhere and compare; exit status 1 when the committed file is old
 */
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const root = join(import.meta.dir, "..")
const assembly = join(root, "wasm/assembly")
const wasmPath = join(root, "wasm/tokenizer.wasm")
const digestPath = join(root, "wasm/tokenizer.wasm.sources")
/** The limit that the built file must stay under. */
const wasmBytesMax = 200_000

const flags = ["-O3", "--converge", "--noAssert", "--runtime", "stub", "--use", "abort=", "--enable", "simd"]

process.exitCode = process.argv.includes("--check") ? check() : build()

function build(): number {
  const bytes = compile()
  if (bytes === null) return 1
  writeFileSync(wasmPath, bytes)
  writeFileSync(digestPath, `${sourcesDigest()}\n`)
  console.log(`wasm/tokenizer.wasm: ${bytes.length} bytes`)
  return 0
}

function check(): number {
  if (readFileSync(digestPath, "utf8").trim() !== sourcesDigest()) {
    console.error("wasm/tokenizer.wasm was built from other sources: npm run build:wasm")
    return 1
  }
  const bytes = compile()
  if (bytes === null) return 1
  if (!bytes.equals(readFileSync(wasmPath))) {
    console.error("wasm/tokenizer.wasm differs from what its sources give: npm run build:wasm")
    return 1
  }
  console.log("wasm/tokenizer.wasm is what its sources give")
  return 0
}

/** The compiler runs under this Bun, so that nothing from outside the package lock takes part. */
function compile(): Buffer | null {
  const folder = mkdtempSync(join(tmpdir(), "sluice-wasm-"))
  try {
    const out = join(folder, "tokenizer.wasm")
    const asc = join(dirname(createRequire(import.meta.url).resolve("assemblyscript/package.json")), "bin/asc.js")
    const run = Bun.spawnSync([process.execPath, asc, "wasm/assembly/core.ts", "--outFile", out, ...flags], {
      cwd: root,
      stdout: "pipe",
      stderr: "pipe",
    })
    if (run.exitCode !== 0) {
      console.error(run.stdout.toString() + run.stderr.toString())
      return null
    }
    const bytes = readFileSync(out)
    if (bytes.length <= wasmBytesMax) return bytes
    console.error(`wasm/tokenizer.wasm would have ${bytes.length} bytes, more than ${wasmBytesMax}`)
    return null
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Every source by name and content, the flags, and the compiler's version. */
function sourcesDigest(): string {
  const hash = createHash("sha256")
  const names = readdirSync(assembly).filter((name) => name.endsWith(".ts"))
  for (const name of names.sort()) {
    hash.update(`${name}\n`).update(readFileSync(join(assembly, name)))
  }
  const lock: unknown = createRequire(import.meta.url)("assemblyscript/package.json")
  const version = typeof lock === "object" && lock !== null && "version" in lock ? String(lock.version) : ""
  return hash.update(`${flags.join(" ")} ${version}`).digest("hex")
}
