/**
 * Runs before `npm run serve` and `npm test`: where npm did not run post-install scripts, the `bun` package holds a
 * placeholder; its own installer then puts the real program in its place.
 */
import { spawnSync } from "node:child_process"
import { existsSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"

const placeholderBytesMax = 1024 * 1024

const folder = dirname(createRequire(import.meta.url).resolve("bun/package.json"))
const program = join(folder, "bin", "bun.exe")
if (!existsSync(program) || statSync(program).size < placeholderBytesMax) {
  const { status } = spawnSync(process.execPath, [join(folder, "install.js")], { cwd: folder, stdio: "inherit" })
  process.exit(status ?? 1)
}
