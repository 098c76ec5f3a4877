/**
 * Builds what the package exports as `sluice/tokenizer` outside Bun: dist/tokenizer/tokenizer.js, one ES module that
 * holds the WASM too, and its types beside it. `npm run build`; `npm pack` runs it first.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, resolve } from "node:path"

const root = join(import.meta.dir, "..")
const source = join(root, "src")
const entry = join(source, "tokenizer/package-entry.ts")
const out = join(root, "dist/tokenizer")

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
await buildModule()
buildTypes()

/** One module for all: it imports nothing, so no bundler and no import map has anything to resolve. */
async function buildModule(): Promise<void> {
  const base64 = readFileSync(join(root, "wasm/tokenizer.wasm")).toString("base64")
  const wasmBytes = `
    /** The bytes of wasm/tokenizer.wasm, which the build put here. */
    export const wasmBytes = () => Uint8Array.from(atob("${base64}"), (char) => char.charCodeAt(0))
  `
  const built = await Bun.build({
    entrypoints: [entry],
    files: { [join(source, "tokenizer/wasm-bytes.ts")]: wasmBytes },
    target: "browser",
    format: "esm",
  })
  const [module, ...others] = built.outputs
  if (module === undefined || others.length > 0) throw new Error("the build gives more than one file")
  const text = await module.text()
  const imports = new Bun.Transpiler({ loader: "js" }).scanImports(text).map(({ path }) => path)
  if (imports.length > 0) throw new Error(`the built module imports ${imports.join(", ")}`)
  writeFileSync(join(out, "tokenizer.js"), text)
}

/** Declarations of the entry and of all that it names; Node's resolution wants the files' endings. */
function buildTypes(): void {
  const declared = mkdtempSync(join(tmpdir(), "sluice-types-"))
  try {
    const project = join(import.meta.dir, "tokenizer-types.json")
    const run = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "--project", project, "--outDir", declared])
    if (run.exitCode !== 0) throw new Error(run.stdout.toString())
    const open = [join(declared, "tokenizer/package-entry.d.ts")]
    const seen = new Set(open)
    for (let file = open.pop(); file !== undefined; file = open.pop()) {
      const text = readFileSync(file, "utf8").replace(/(\bfrom |\bimport\()"(\.[^"]+)"/g, (_, before, path) => {
        const next = `${resolve(dirname(file!), path)}.d.ts`
        if (!seen.has(next)) open.push(next)
        seen.add(next)
        return `${before}"${path}.js"`
      })
      const to = join(out, "types", relative(declared, file))
      mkdirSync(dirname(to), { recursive: true })
      writeFileSync(to, text)
    }
  } finally {
    rmSync(declared, { recursive: true })
  }
}
