/** What README.md shows for clients, run as it stands but for the port: curl commands, JavaScript and Python. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { missingPython, prepareEnvironment } from "../support/python-environment"
import { type Server, startServer } from "../support/server-process"

const hasCurl = Bun.which("curl") !== null && Bun.which("bash") !== null
const noPython = missingPython()
const environment = join(import.meta.dir, ".venv")
/** Beside the clients, so that imports find them. */
const scripts = join(import.meta.dir, ".cache/readme")
const usualOrigin = /http:\/\/(?:127\.0\.0\.1|localhost):8000/g

let server: Server

beforeAll(async () => {
  mkdirSync(scripts, { recursive: true })
  server = await startServer()
})
afterAll(async () => {
  expect(await server.end()).toBe(0)
})

/** Commands that begin with `curl` in the shell blocks, with their continued lines. */
function curlCommands(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/^```(?:sh|bash|shell|console)\n([\s\S]*?)^```/gm)].map((match) => match[1]!)
  return blocks.flatMap((block) => block.match(/^(?:\$ )?curl\b(?:[^\n'\\]|\\[\s\S]|'[^']*')*$/gm) ?? [])
}

/** Client code of one language, by the bold title above each block. */
function examples(markdown: string, language: string): { readonly title: string; readonly code: string }[] {
  const block = new RegExp(`^\\*\\*([^*\\n]+)\\*\\*\\n\\n\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm")
  return [...markdown.matchAll(block)].flatMap(([, title, code]) => {
    return code!.search(usualOrigin) !== -1 ? [{ title: title!, code: code! }] : []
  })
}

/** Points a command or a script at this run's server. */
function pointed(shown: string): string {
  const changed = shown.replace(usualOrigin, server.origin)
  expect(changed).toContain(server.origin)
  return changed
}

async function output(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: 50_000 })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect([await child.exited, errors]).toEqual([0, ""])
  return out
}

const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8")

describe.skipIf(!hasCurl)("README.md's commands", () => {
  for (const command of curlCommands(readme)) {
    test(`work: ${command.split("\n")[0]}`, async () => {
      const shown = pointed(command.replace(/^\$ /, ""))
      const out = await output("bash", "-c", shown.replace("curl", "curl --silent --show-error --fail --max-time 20"))
      expect(out.length).toBeGreaterThan(0)
    })
  }

  test("are found, continued lines and quotes included", () => {
    const markdown = "```sh\ncurl http://a/b \\\n  -d '{\"x\":\n 1}'\nls\n```\ncurl no\n```sh\n$ curl http://c\n```\n"
    expect(curlCommands(markdown)).toEqual(["curl http://a/b \\\n  -d '{\"x\":\n 1}'", "$ curl http://c"])
  })
})

describe("README.md's JavaScript", () => {
  for (const [at, { title, code }] of examples(readme, "js").entries()) {
    test(`works: ${title}`, async () => {
      const file = join(scripts, `example-${at}.mjs`)
      writeFileSync(file, pointed(code))
      expect(await output(process.execPath, "--no-install", file)).toContain("Hello")
    })
  }

  test("is found", () => {
    expect(examples(readme, "js").map(({ title }) => title)).toEqual([
      ...["openai (JavaScript)", "Vercel AI SDK", "Agents SDK (JavaScript)", "LangChain (JavaScript)"],
    ])
  })
})

describe.skipIf(noPython !== null)("README.md's Python", () => {
  beforeAll(async () => {
    await prepareEnvironment(environment, join(import.meta.dir, "python/requirements.txt"))
  }, 600_000)

  for (const { title, code } of examples(readme, "python")) {
    test(`works: ${title}`, async () => {
      expect(await output(join(environment, "bin/python"), "-c", pointed(code))).toContain("Hello")
    })
  }

  test("is found", () => {
    expect(examples(readme, "python").map(({ title }) => title)).toEqual([
      ...["openai (Python)", "Agents SDK (Python)", "LangChain (Python)"],
    ])
  })
})
