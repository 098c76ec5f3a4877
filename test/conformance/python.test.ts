/**
 * Python clients, in a virtual environment that is made once beside this file: the `openai` package, with every object
 * and event validated strictly by the package's own pydantic models (python/wire.py), the Agents SDK, and LangChain.
 * Each of the files named here holds the cases of one; casebook.py says how they report.
 *
 * Beyond the types of `openai`, and therefore listed in wire.py: completions chunks whose finish reason is null, the
 * finish reasons `abort` and `repetition`, the first token of an echoed prompt in completions logprobs, and vLLM's
 * additional fields.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { missingPython, prepareEnvironment, run } from "../support/python-environment"
import { type Server, startServer } from "../support/server-process"

const folder = join(import.meta.dir, "python")
const environment = join(import.meta.dir, ".venv")
const python = join(environment, "bin/python")
const clients = { openai: "openai_cases.py", "the Agents SDK": "agents_cases.py", LangChain: "langchain_cases.py" }

const reason = missingPython()
if (reason !== null) console.log(`python: skipped, ${reason}`)

let server: Server | undefined
let model = ""

beforeAll(async () => {
  if (reason !== null) return
  await prepareEnvironment(environment, join(folder, "requirements.txt"))
  server = await startServer()
  const models: { data: { id: string }[] } = await (await fetch(`${server.baseURL}/models`)).json()
  model = models.data[0]!.id
}, 600_000)
afterAll(async () => {
  if (server !== undefined) expect(await server.end()).toBe(0)
})

for (const [client, file] of Object.entries(clients)) {
  const source = readFileSync(join(folder, file), "utf8")
  const names = [...source.matchAll(/^@case\ndef \w+\(\):\n {4}"""(.+)"""$/gm)].map(([, name]) => name!)

  describe(`${client} for Python`, () => {
    const errors = new Map<string, string | null>()

    beforeAll(async () => {
      if (server === undefined) return
      const out = await run(python, "-B", join(folder, file), server.baseURL, model)
      for (const line of out.trim().split("\n")) {
        const { name, error }: { name: string; error: string | null } = JSON.parse(line)
        errors.set(name, error)
      }
    }, 120_000)

    for (const name of names) {
      test.skipIf(reason !== null)(name, () => {
        expect(errors.get(name)).toBeNull()
      })
    }

    test.skipIf(reason !== null)("ran every case", () => {
      expect([...errors.keys()]).toEqual(names)
      expect(names.length).toBeGreaterThan(3)
    })
  })
}
