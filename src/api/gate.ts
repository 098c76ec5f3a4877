import { isGuarded } from "../http/access"
import { errorResponse } from "./errors"
import { RequestEntry } from "./request-entry"
import type { GateRoom } from "./room"
import type { Route } from "./route"
import type { ReplyHeaders } from "./serve"

/** Sets how long the request's connection may stay silent, in seconds; 0 = for ever, null = as at first. */
export type SetSilence = (seconds: number | null) => void

/** Paths that no metrics are kept for (SERVER 5). */
const uncounted = new Set(["/metrics", "/health", "/load", "/ping", "/version"])

/** What a route needs that Elysia does not carry. */
export interface Pending {
  readonly headers: ReplyHeaders
  /** Without what is only for those who may see the reply. */
  readonly bareHeaders: ReplyHeaders
  readonly entry: RequestEntry
  /** True when no key is needed, or the right one was sent. */
  readonly hasKey: boolean
  handler: string
}

/** Answers a request whose path is `path` without the proxy's prefix, by whatever route that is. */
export type Dispatch = (request: Request, path: string, pending: Pending) => Response | Promise<Response>

/** What happens before and after every route. */
export class Gate {
  private readonly room: GateRoom
  private readonly allowed: readonly { readonly pattern: RegExp; readonly methods: string }[]
  private readonly unlogged: ReadonlySet<string>

  constructor(room: GateRoom, routes: readonly Route[], hasDocs: boolean) {
    this.room = room
    this.unlogged = new Set(room.config.accessLogSkippedPaths)
    const methods = new Map<string, string[]>()
    for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method])
    if (hasDocs) for (const path of ["/docs", "/openapi.json"]) methods.set(path, ["GET"])
    this.allowed = [...methods].map(([path, of]) => ({
      pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}/?$`),
      methods: of.join(", "),
    }))
  }

  async pass(request: Request, dispatch: Dispatch, silence: SetSilence): Promise<Response> {
    const { room } = this
    const { now } = room
    const startedAt = now()
    const path = this.pathOf(request)
    const log = room.config.accessLog && !this.unlogged.has(path) ? room.log : null
    const entry = new RequestEntry(request.method, path, now, log, silence, room.bodies.claim())
    const bareHeaders = this.bareHeaders(request)
    const pending: Pending = {
      bareHeaders,
      headers: { ...bareHeaders, ...room.corsHeaders(request) },
      entry,
      hasKey: room.hasKey(request.headers.get("authorization")),
      handler: "none",
    }

    const response = await this.respond(request, path, pending, dispatch)
    if (!uncounted.has(pending.handler)) {
      room.observeHttp(request.method, pending.handler, response.status, now() - startedAt)
    }
    if (!entry.deferred) entry.end(response.status)
    return response
  }

  private async respond(request: Request, path: string, pending: Pending, dispatch: Dispatch): Promise<Response> {
    const { room } = this
    if (room.isDraining() && path !== "/health" && path !== "/metrics") {
      const message = "The server is shutting down."
      return errorResponse({ kind: "overloaded", message }, { ...pending.headers, connection: "close" })
    }
    const preflight = request.method === "OPTIONS" ? room.preflight(request) : null
    if (preflight !== null) return withHeaders(preflight, pending.bareHeaders)
    // The key is checked outside CORS, so a refusal carries no CORS headers (SERVER 4).
    if (!pending.hasKey && request.method !== "OPTIONS" && isGuarded(path)) {
      return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
    }
    // Relative links on the page would miss.
    if (path === "/docs/" && room.config.docs) {
      pending.handler = "/docs"
      const location = `${room.config.rootPath}/docs`
      return new Response(null, { status: 308, headers: { ...pending.headers, location } })
    }
    const response = await dispatch(request, path, pending)
    if (pending.handler !== "none") return response
    if (response.status === 404) return this.unrouted(request, path, pending.headers)
    // Routes of the docs plugin know nothing of our headers.
    pending.handler = path
    return withHeaders(response, pending.headers)
  }

  /** The path without the proxy's prefix. */
  private pathOf(request: Request): string {
    const path = rawPath(request.url)
    const { rootPath } = this.room.config
    if (rootPath === "" || !path.startsWith(rootPath)) return path
    const rest = path.slice(rootPath.length)
    return rest === "" ? "/" : rest.startsWith("/") ? rest : path
  }

  private bareHeaders(request: Request): ReplyHeaders {
    const { room } = this
    if (!room.config.enableRequestIdHeaders) return { "x-sluice-engine": room.engineName }
    const id = request.headers.get("x-request-id") || room.newId()
    return { "x-sluice-engine": room.engineName, "x-request-id": id }
  }

  private unrouted(request: Request, path: string, headers: ReplyHeaders): Response {
    const known = this.allowed.find(({ pattern }) => pattern.test(path))
    if (known === undefined) return errorResponse({ kind: "route_not_found", path: path.slice(0, 256) }, headers)
    return errorResponse({ kind: "method_not_allowed", method: request.method, allowed: known.methods }, headers)
  }
}

/** The request as a router shall see it: with a whole URL, and that path. */
export function routed(request: Request, path: string): Request {
  if (isWholeUrl(request.url) && rawPath(request.url) === path) return request
  const query = request.url.indexOf("?")
  return new Request(`http://localhost${path}${query === -1 ? "" : request.url.slice(query)}`, request)
}

/** Requests without a usable Host header have nothing but a path for a URL. */
function isWholeUrl(url: string): boolean {
  return url.startsWith("http://") || url.startsWith("https://")
}

/** The path of a URL as it was sent, without the query. */
export function rawPath(url: string): string {
  const from = isWholeUrl(url) ? url.indexOf("/", url.indexOf("://") + 3) : 0
  const query = url.indexOf("?", Math.max(0, from))
  return from === -1 ? "/" : url.slice(from, query === -1 ? undefined : query)
}

function withHeaders(response: Response, headers: ReplyHeaders): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}
