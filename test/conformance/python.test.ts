/**
 * The Python `openai` package, in a virtual environment that is made once beside this file. Every object and event is
 * validated strictly by the package's own pydantic models (python/wire.py); python/cases.py holds the cases.
 *
 * Beyond its types, and therefore listed there: completions chunks whose finish reason is null, the finish reasons
 * `abort` and `repetition`, the first token of an echoed prompt in completions logprobs, and vLLM's additional fields.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Server, startServer } from "../support/server-process"

const folder = join(import.meta.dir, "python")
const environment = join(import.meta.dir, ".venv")
const python = join(environment, "bin/python")
const cases = [...readFileSync(join(folder, "cases.py"), "utf8").matchAll(/^@case\ndef \w+\(\):\n {4}"""(.+)"""$/gm)]

/** Why no environment can be made here, or null. */
function missing(): string | null {
  const probe = "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 10) else 3)"
  if (Bun.which("python3") === null) return "no python3"
  const { exitCode } = Bun.spawnSync(["python3", "-c", probe], { stdout: "ignore", stderr: "ignore" })
  if (exitCode === 0) return null
  return exitCode === 3 ? "python3 is older than 3.10" : "python3 has no venv or no ensurepip"
}

async function run(...command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${out}${errors}`)
  return out
}

/** Makes the environment unless one with the same requirements is there. */
async function prepare(): Promise<void> {
  const requirements = join(folder, "requirements.txt")
  const stamp = join(environment, ".installed-requirements")
  const wanted = readFileSync(requirements, "utf8")
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  rmSync(environment, { recursive: true, force: true })
  await run("python3", "-m", "venv", environment)
  await run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)
  writeFileSync(stamp, wanted)
}

const reason = missing()
if (reason !== null) console.log(`python: skipped, ${reason}`)

describe("the Python client", () => {
  let server: Server | undefined
  const errors = new Map<string, string | null>()

  beforeAll(async () => {
    if (reason !== null) return
    await prepare()
    server = await startServer()
    const models: { data: { id: string }[] } = await (await fetch(`${server.baseURL}/models`)).json()
    const out = await run(python, "-B", join(folder, "cases.py"), server.baseURL, models.data[0]!.id)
    for (const line of out.trim().split("\n")) {
      const { name, error }: { name: string; error: string | null } = JSON.parse(line)
      errors.set(name, error)
    }
  }, 300_000)
  afterAll(async () => {
    if (server !== undefined) expect(await server.end()).toBe(0)
  })

  for (const [, name] of cases) {
    test.skipIf(reason !== null)(name!, () => {
      expect(errors.get(name!)).toBeNull()
    })
  }

  test.skipIf(reason !== null)("ran every case", () => {
    expect([...errors.keys()]).toEqual(cases.map(([, name]) => name!))
    expect(cases.length).toBeGreaterThan(10)
  })
})
