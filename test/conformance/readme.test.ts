/** The curl commands that README.md shows, run as they stand but for the port. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Server, startServer } from "../support/server-process"

const here = Bun.which("curl") !== null && Bun.which("bash") !== null
const usualOrigin = /http:\/\/(?:127\.0\.0\.1|localhost):8000/g

let server: Server

beforeAll(async () => {
  if (here) server = await startServer()
})
afterAll(async () => {
  if (here) expect(await server.end()).toBe(0)
})

/** Commands that begin with `curl` in the shell blocks, with their continued lines. */
function curlCommands(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/^```(?:sh|bash|shell|console)\n([\s\S]*?)^```/gm)].map((match) => match[1]!)
  return blocks.flatMap((block) => block.match(/^(?:\$ )?curl\b(?:[^\n'\\]|\\[\s\S]|'[^']*')*$/gm) ?? [])
}

describe.skipIf(!here)("README.md", () => {
  const path = join(import.meta.dir, "../../README.md")
  const commands = existsSync(path) ? curlCommands(readFileSync(path, "utf8")) : []
  for (const command of commands) {
    test(`works: ${command.split("\n")[0]}`, async () => {
      const shown = command.replace(/^\$ /, "").replace(usualOrigin, server.origin)
      expect(shown).toContain(server.origin)
      const child = Bun.spawn(
        ["bash", "-c", shown.replace("curl", "curl --silent --show-error --fail --max-time 20")],
        {
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      )
      const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect([await child.exited, errors]).toEqual([0, ""])
      expect(out.length).toBeGreaterThan(0)
    })
  }

  test("has its commands found, continued lines and quotes included", () => {
    const markdown = "```sh\ncurl http://a/b \\\n  -d '{\"x\":\n 1}'\nls\n```\ncurl no\n```sh\n$ curl http://c\n```\n"
    expect(curlCommands(markdown)).toEqual(["curl http://a/b \\\n  -d '{\"x\":\n 1}'", "$ curl http://c"])
  })
})
