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
export function run(...command: readonly string[]): Promise<string> {
  return runWith("", {}, ...command)
}

/**
 * Asks a script of a reference's environment, many questions at once: a line of JSON in and one out for each. A text is a
 * question in JSON. `env` comes on top of this process's.
 */
export async function askScript(
  command: readonly string[],
  questions: readonly (object | string)[],
  env: { readonly [name: string]: string } = {},
): Promise<unknown[]> {
  const lines = questions.map((each) => `${typeof each === "string" ? each : JSON.stringify(each)}\n`).join("")
  const out = await runWith(lines, { PYTHONIOENCODING: "utf-8", ...env }, ...command)
  return out
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line))
}

async function runWith(
  input: string,
  env: { readonly [name: string]: string },
  ...command: readonly string[]
): Promise<string> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  })
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
