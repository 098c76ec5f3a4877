import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Why no virtual environment can be made here, or null. */
export function missingPython(): string | null {
  const probe = "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 10) else 3)"
  if (Bun.which("python3") === null) return "no python3"
  const { exitCode } = Bun.spawnSync(["python3", "-c", probe], { stdout: "ignore", stderr: "ignore" })
  if (exitCode === 0) return null
  return exitCode === 3 ? "python3 is older than 3.10" : "python3 has no venv or no ensurepip"
}

/** Runs a command to its end and gives what it printed; throws with all of it when it fails. */
export async function run(...command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${out}${errors}`)
  return out
}

/** Makes the environment with what a requirements file names, unless one with the same is there. */
export async function prepareEnvironment(environment: string, requirements: string): Promise<void> {
  const stamp = join(environment, ".installed-requirements")
  const wanted = readFileSync(requirements, "utf8")
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  rmSync(environment, { recursive: true, force: true })
  await run("python3", "-m", "venv", environment)
  const pip = [join(environment, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
  await run(...pip, "--requirement", requirements)
  writeFileSync(stamp, wanted)
}
