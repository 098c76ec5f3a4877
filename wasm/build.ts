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
import binaryen from "assemblyscript/binaryen"

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
    const bytes = withState(readFileSync(out))
    if (bytes.length <= wasmBytesMax) return bytes
    console.error(`wasm/tokenizer.wasm would have ${bytes.length} bytes, more than ${wasmBytesMax}`)
    return null
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * The module with `saveState(at)`, `restoreState(at)` and `stateBytes()`: all of its variables, written to memory and
 * read back, so that memory is all there is to an instance. Made here, behind the compiler, because a list written by
 * hand would miss one some day. Eight bytes each.
 */
function withState(bytes: Uint8Array): Buffer {
  const module = binaryen.readBinary(bytes)
  try {
    module.setFeatures(binaryen.Features.All)
    const { none, i32, i64 } = binaryen
    const at = (): number => module.local.get(0, i32)
    const saves: number[] = []
    const restores: number[] = []
    for (let i = 0; i < module.getNumGlobals(); i++) {
      const { name, type, mutable } = binaryen.getGlobalInfo(module.getGlobalByIndex(i))
      if (!mutable) continue
      if (type !== i32 && type !== i64) throw new Error(`the variable ${name} has a type that is not saved`)
      const words = type === i32 ? module.i32 : module.i64
      const offset = 8 * saves.length
      saves.push(words.store(offset, 4, at(), module.global.get(name, type)))
      restores.push(module.global.set(name, words.load(offset, 4, at())))
    }
    module.addFunction("saveState", i32, none, [], module.block(null, saves))
    module.addFunction("restoreState", i32, none, [], module.block(null, restores))
    module.addFunction("stateBytes", none, i32, [], module.i32.const(8 * saves.length))
    for (const name of ["saveState", "restoreState", "stateBytes"]) module.addFunctionExport(name, name)
    if (module.validate() !== 1) throw new Error("the module with its state is not valid")
    return Buffer.from(module.emitBinary())
  } finally {
    module.dispose()
  }
}

/** Every source by name and content, this file with its flags, and the compiler's version. */
function sourcesDigest(): string {
  const hash = createHash("sha256").update(readFileSync(import.meta.path))
  const names = readdirSync(assembly).filter((name) => name.endsWith(".ts"))
  for (const name of names.sort()) {
    hash.update(`${name}\n`).update(readFileSync(join(assembly, name)))
  }
  const lock: unknown = createRequire(import.meta.url)("assemblyscript/package.json")
  const version = typeof lock === "object" && lock !== null && "version" in lock ? String(lock.version) : ""
  return hash.update(version).digest("hex")
}
