/**
 * Which routes need the key, asked of the routers themselves: every route of every role is sent a request without one.
 * docs/security.md has the same list; a route that is not in it, or is guarded otherwise, fails here.
 */
import { expect, spyOn, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Elysia } from "elysia"
import type { Config } from "../src/config"
import { startTestRenderer } from "./support/test-renderer"
import { startTestServer, type TestServer } from "./support/test-server"

const roles: { readonly [name: string]: Partial<Config> } = {
  serve: {},
  "serve, scale-out": { enableScaleOut: true },
  "serve, tokens only": { enableScaleOut: true, tokensOnly: true },
  render: { role: "render", enableScaleOut: true },
}

interface RouteSeen {
  readonly method: string
  readonly path: string
}

/** Starts a role with a key, and tells which routes its router was built with. */
async function open(config: Partial<Config>): Promise<{ server: TestServer; routes: readonly RouteSeen[] }> {
  const routes: RouteSeen[] = []
  const compile = Elysia.prototype.compile
  const spy = spyOn(Elysia.prototype, "compile").mockImplementation(function (this: Elysia) {
    for (const { method, path } of this.routes) routes.push({ method, path })
    return compile.call(this)
  })
  const start = config.role === "render" ? startTestRenderer : startTestServer
  const server = await start({ config: { ...config, apiKeys: ["k"] } })
  spy.mockRestore()
  return { server, routes }
}

/** What a route answers to a broken body, without a key. */
async function status(server: TestServer, { method, path }: RouteSeen): Promise<number> {
  const url = server.url + path.replaceAll(/:\w+/g, "x")
  const body = method === "POST" ? "{broken" : undefined
  const headers = { "content-type": "application/json" }
  const reply = await fetch(url, { method, headers, body, redirect: "manual" })
  await reply.arrayBuffer()
  return reply.status
}

test("docs/security.md lists every route of every role as the routers guard it", async () => {
  const guarded = new Map<string, Set<string>>()
  const openRoutes = new Map<string, Set<string>>()
  for (const [role, config] of Object.entries(roles)) {
    const { server, routes } = await open(config)
    expect(routes.length).toBeGreaterThan(10)
    for (const route of routes) {
      const list = (await status(server, route)) === 401 ? guarded : openRoutes
      const line = `${route.method} ${route.path}`
      list.set(line, (list.get(line) ?? new Set()).add(role))
    }
    await server.stop()
  }
  const rows = (list: ReadonlyMap<string, ReadonlySet<string>>): string =>
    [...list]
      .map(
        ([line, among]) =>
          `| \`${line}\` | ${among.size === Object.keys(roles).length ? "all" : [...among].join("; ")} |`,
      )
      .sort()
      .join("\n")
  const document = readFileSync(join(import.meta.dir, "../docs/security.md"), "utf8")
  const section = (title: string): string =>
    new RegExp(`## ${title}\\n[\\s\\S]*?\\| --- \\| --- \\|\\n([\\s\\S]*?)\\n(?:\\n|$)`).exec(document)?.[1] ??
    "(no such section)"
  expect(section("Routes that need the key")).toBe(rows(guarded))
  expect(section("Routes that are open")).toBe(rows(openRoutes))
  for (const line of openRoutes.keys()) expect(line).not.toMatch(/ \/+(?:v1|v2|inference|cohere)/)
}, 60_000)
