/**
 * Puts routes on Elysia, which only routes: bodies are read and checked by us, replies are plain `Response`s. Around
 * every route: shutdown, API key, CORS, metrics and the access log (api/gate).
 */
import { Elysia } from "elysia"
import { isGuarded } from "../http/access"
import { docs } from "./docs"
import { errorResponse } from "./errors"
import { Gate, type Pending, type SetSilence } from "./gate"
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
    app.route(route.method, route.path, ({ request }) => answer(route, request, waiting), {
      parse: "none",
      detail: describeRoute(route),
    })
  }
  if (room.config.docs) app.use(docs(room.config.rootPath))
  app.onError(({ error, code }) => {
    if (code === "NOT_FOUND") return errorResponse({ kind: "route_not_found", path: "" })
    room.log(`internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return errorResponse({ kind: "internal" })
  })
  app.compile()
  const fetch = app.fetch
  const gate = new Gate(room, routes, room.config.docs)
  return async (request, silence) => await gate.pass(request, waiting, fetch, silence)
}

async function answer(route: Route, request: Request, waiting: WeakMap<Request, Pending>): Promise<Response> {
  const pending = waiting.get(request)
  if (pending === undefined) return errorResponse({ kind: "internal" })
  pending.handler = route.path
  // The gate goes by the path as it reads it, the router by its own reading: a guarded route checks again.
  if (!pending.hasKey && isGuarded(route.path)) return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
  return await route.handle(request, pending.headers, pending.entry)
}
