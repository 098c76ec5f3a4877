/**
 * Puts routes on Elysia, which only routes: bodies are read and checked by us, replies are plain `Response`s. Around
 * every route: shutdown, API key, CORS, metrics and the access log (api/gate).
 */
import { Elysia } from "elysia"
import { isGuarded } from "../http/access"
import { docs } from "./docs"
import { errorResponse } from "./errors"
import { type Dispatch, Gate, type Pending, routed, type SetSilence } from "./gate"
import type { GateRoom } from "./room"
import { describeRoute, type Route } from "./route"

/** The server's fetch function. */
export type AppFetch = (request: Request, silence: SetSilence) => Promise<Response>

/** Mounts the routes of a role. */
export function createRouter(room: GateRoom, routes: readonly Route[]): AppFetch {
  const waiting = new WeakMap<Request, Pending>()
  // Elysia otherwise skips the first 11 characters of the URL, which is wrong for hosts of one to three letters.
  const app = new Elysia({ name: "sluice", handler: { standardHostname: false } })
  for (const route of routes) {
    app.route(route.method, route.path, ({ request }) => answer(route, request, waiting.get(request) ?? null), {
      parse: "none",
      detail: describeRoute(route),
    })
  }
  if (room.config.docs) app.use(docs(room.config.rootPath))
  const failed = (error: unknown): Response => {
    room.log(`internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return errorResponse({ kind: "internal" })
  }
  app.onError(({ error, code }) => {
    return code === "NOT_FOUND" ? errorResponse({ kind: "route_not_found", path: "" }) : failed(error)
  })
  app.compile()
  // A path that stands there as it is needs no router: on Elysia's way to the same answer a request costs 6 µs more.
  const plain = new Map(
    routes.filter(({ path }) => !path.includes(":")).map((route) => [`${route.method} ${route.path}`, route]),
  )
  const dispatch: Dispatch = (request, path, pending) => {
    const route = plain.get(`${request.method} ${path}`)
    if (route !== undefined) return answer(route, request, pending).catch(failed)
    const seen = routed(request, path)
    waiting.set(seen, pending)
    return app.fetch(seen)
  }
  const gate = new Gate(room, routes, room.config.docs)
  return (request, silence) => gate.pass(request, dispatch, silence)
}

async function answer(route: Route, request: Request, pending: Pending | null): Promise<Response> {
  if (pending === null) return errorResponse({ kind: "internal" })
  pending.handler = route.path
  // The gate goes by the path as it reads it, the router by its own reading: a guarded route checks again.
  if (!pending.hasKey && isGuarded(route.path)) return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
  return await route.handle(request, pending.headers, pending.entry)
}
