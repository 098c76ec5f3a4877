#!/usr/bin/env node
/**
 * Starts Sluice from Node with the Bun that npm installed: `sluice serve …`. Nothing is decided here; src/main.ts reads
 * the arguments. Signals are passed on and the exit status handed back, so that whoever ends this process ends the
 * server too, after its drain.
 */
import { spawn } from "node:child_process"
import { existsSync, realpathSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { constants } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))))
const require = createRequire(join(root, "package.json"))

/** Smaller files are the stub that stands for Bun until its post-install has run. */
const realBunBytesMin = 1_000_000

const bun = findBun()
if (bun === null) {
  console.error("sluice: Bun is not installed; run npm install in the package's folder")
  process.exit(1)
}

const child = spawn(
  bun,
  [
    // The folder we are started in is the user's: neither its bunfig.toml nor its .env is ours to follow.
    "--no-install",
    "--no-env-file",
    `--config=${join(root, "bunfig.toml")}`,
    join(root, "src/main.ts"),
    ...process.argv.slice(2),
  ],
  {
    stdio: "inherit",
    // Engines behind HTTP have a connection for each sequence; Bun alone allows 256.
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", ...process.env },
  },
)
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal))
child.on("error", (error) => {
  console.error(`sluice: cannot start ${bun}: ${error.message}`)
  process.exit(1)
})
child.on("exit", (status, signal) => {
  process.exit(status ?? 128 + (constants.signals[signal] ?? 0))
})

/** The real Bun: where the post-install puts it, else the platform's own package that it comes from. */
function findBun() {
  const packages = ["bun", ...platformPackages().map((name) => `@oven/${name}`)]
  for (const name of packages) {
    const folder = packageFolder(name)
    if (folder === null) continue
    for (const file of ["bin/bun.exe", "bin/bun"]) {
      const path = join(folder, file)
      if (existsSync(path) && statSync(path).size >= realBunBytesMin) return path
    }
  }
  return null
}

/** Names of Bun's packages for this machine; which C library it has is found by trying both. */
function platformPackages() {
  const system = process.platform === "win32" ? "windows" : process.platform
  const processor = process.arch === "arm64" ? "aarch64" : process.arch
  const name = `bun-${system}-${processor}`
  if (system !== "linux") return [name]
  // Node names the C library's version only where it is glibc.
  const glibc = process.report.getReport().header.glibcVersionRuntime !== undefined
  return glibc ? [name, `${name}-musl`] : [`${name}-musl`, name]
}

function packageFolder(name) {
  try {
    return dirname(require.resolve(`${name}/package.json`))
  } catch {
    return null
  }
}
