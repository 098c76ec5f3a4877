/** What docs/from-vllm.md says is refused or missing, against the flags and a running server. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { unsupportedFlags } from "../src/flags-vllm"
import { type Server, startServer } from "./support/server-process"

const page = readFileSync(join(import.meta.dir, "../docs/from-vllm.md"), "utf8")

let server: Server

beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  expect(await server.end()).toBe(0)
})

/** The text under one heading. */
function section(title: string): string {
  const found = page.split(/^## /m).find((part) => part.startsWith(`${title}\n`))
  if (found === undefined) throw new Error(`no section ${title}`)
  return found
}

/** What stands in backquotes in one column of a section's table, headings left out. */
function marked(text: string, column: number): string[] {
  const rows = [...text.matchAll(/^\| (.*) \|$/gm)].map((match) => match[1]!.split(" | ")[column] ?? "")
  return rows.slice(2).flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), (match) => match[1]!))
}

test("the flags that are refused all stand there, and no others", () => {
  const shown = marked(section("Flags that are refused"), 1).filter((name) => name.startsWith("--"))
  expect(shown.toSorted()).toEqual(Array.from(unsupportedFlags, (name) => `--${name}`).toSorted())
})

test("routes that are not there are 404, whatever the method", async () => {
  const routes = marked(section("Routes that are not there"), 0)
  expect(routes.length).toBeGreaterThan(20)
  for (const route of routes) {
    const path = route.replace("GET ", "").replace("…", "/v1/responses/{id}").replace("{id}", "resp_1")
    const statuses = await Promise.all(
      ["GET", "POST"].map(async (method) => {
        const { status } = await fetch(`${server.origin}${path}`, { method, body: method === "GET" ? null : "{}" })
        return status
      }),
    )
    // A path that has one method answers the other with 405.
    expect([route, ...new Set(statuses.filter((status) => status !== 405))]).toEqual([route, 404])
  }
})

test("metrics that are not there are not there", async () => {
  const names = Array.from(section("Metrics that are not there").matchAll(/`(vllm:[a-z_]+)`/g), (match) => match[1]!)
  expect(names.length).toBeGreaterThan(10)
  const families = Array.from(
    (await (await fetch(`${server.origin}/metrics`)).text()).matchAll(/^# TYPE (\S+)/gm),
    (match) => match[1]!,
  )
  expect(families).toContain("vllm:num_requests_running")
  expect(families.filter((name) => names.some((missing) => name.startsWith(missing)))).toEqual([])
})
