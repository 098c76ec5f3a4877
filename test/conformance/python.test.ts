/**
 * The Python `openai` package, in a virtual environment that is made once beside this file. Every object and event is
 * validated strictly by the package's own pydantic models (python/wire.py); python/cases.py holds the cases.
 *
 * Beyond its types, and therefore listed there: completions chunks whose finish reason is null, the finish reasons
 * `abort` and `repetition`, the first token of an echoed prompt in completions logprobs, and vLLM's additional fields.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { missingPython, prepareEnvironment, run } from "../support/python-environment"
import { type Server, startServer } from "../support/server-process"

const folder = join(import.meta.dir, "python")
const environment = join(import.meta.dir, ".venv")
const python = join(environment, "bin/python")
const cases = [...readFileSync(join(folder, "cases.py"), "utf8").matchAll(/^@case\ndef \w+\(\):\n {4}"""(.+)"""$/gm)]

const reason = missingPython()
if (reason !== null) console.log(`python: skipped, ${reason}`)

describe("the Python client", () => {
  let server: Server | undefined
  const errors = new Map<string, string | null>()

  beforeAll(async () => {
    if (reason !== null) return
    await prepareEnvironment(environment, join(folder, "requirements.txt"))
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
