/**
 * All routes of the full role, mounted on Elysia, which only routes: bodies are read and checked by us, replies are
 * plain `Response`s. Around every route: shutdown, API key, CORS, metrics and the access log.
 */
import type { TSchema } from "@sinclair/typebox"
import { Elysia } from "elysia"
import { isGuarded } from "../http/access"
import { readJsonBody } from "../http/body"
import type { EngineStatus } from "../ir/engine"
import { err, type Result } from "../result"
import { chatEndpoint } from "./chat/endpoint"
import { completionEndpoint } from "./completions/endpoint"
import { docs } from "./docs"
import { type ApiError, errorResponse } from "./errors"
import { listModels } from "./models"
import { RequestEntry } from "./request-entry"
import { responseEndpoint } from "./responses/endpoint"
import type { ServeRoom } from "./room"
import { modelFault, type ReplyHeaders, type Serve, serve } from "./serve"
import { detokenize, detokenizeBodySchema, tokenize, tokenizeSchema, type VocabularyView } from "./tokenize"
import { version } from "./version"

/** What the routes around generation need beside `ServeRoom`. */
export interface AppRoom extends ServeRoom {
  readonly vocabulary: VocabularyView
  readonly engineName: string
  readonly engineStatus: () => EngineStatus
  /** Prometheus text. */
  readonly metricsText: () => string
  readonly observeHttp: (method: string, handler: string, status: number, seconds: number) => void
  /** Whether an `Authorization` header carries one of the server's keys. */
  readonly hasKey: (authorization: string | null) => boolean
  /** CORS headers of a reply, or the whole answer to a preflight. */
  readonly corsHeaders: (request: Request) => ReplyHeaders
  readonly preflight: (request: Request) => Response | null
  /** True once the server takes no new work. */
  readonly isDraining: () => boolean
}

/** Sets how long the request's connection may stay silent, in seconds; 0 = for ever, null = as at first. */
export type SetSilence = (seconds: number | null) => void

/** The server's fetch function. */
export type AppFetch = (request: Request, silence: SetSilence) => Promise<Response>

interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly summary: string
  /** For the OpenAPI page. */
  readonly body?: TSchema
  readonly handle: Serve
}

/** Paths that no metrics are kept for (SERVER 5). */
const uncounted = new Set(["/metrics", "/health", "/load", "/ping", "/version"])

/** Puts the routes together. */
export function createApp(room: AppRoom): AppFetch {
  const routes = [...generationRoutes(room), ...storedResponseRoutes(), ...vocabularyRoutes(room), ...stateRoutes(room)]
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

/** What a route needs that Elysia does not carry. */
interface Pending {
  readonly headers: ReplyHeaders
  /** Without what is only for those who may see the reply. */
  readonly bareHeaders: ReplyHeaders
  readonly entry: RequestEntry
  /** True when no key is needed, or the right one was sent. */
  readonly hasKey: boolean
  handler: string
}

async function answer(route: Route, request: Request, waiting: WeakMap<Request, Pending>): Promise<Response> {
  const pending = waiting.get(request)
  if (pending === undefined) return errorResponse({ kind: "internal" })
  pending.handler = route.path
  // The gate goes by the path as it reads it, the router by its own reading: a guarded route checks again.
  if (!pending.hasKey && isGuarded(route.path, "")) return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
  return await route.handle(request, pending.headers, pending.entry)
}

/** What happens before and after every route. */
class Gate {
  private readonly room: AppRoom
  private readonly allowed: readonly { readonly pattern: RegExp; readonly methods: string }[]
  private readonly unlogged: ReadonlySet<string>

  constructor(room: AppRoom, routes: readonly Route[], hasDocs: boolean) {
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

  async pass(
    request: Request,
    waiting: WeakMap<Request, Pending>,
    fetch: (request: Request) => Response | Promise<Response>,
    silence: SetSilence,
  ): Promise<Response> {
    const { room } = this
    const { now } = room.generate
    const startedAt = now()
    const path = this.pathOf(request)
    const log = room.config.accessLog && !this.unlogged.has(path) ? room.log : null
    const entry = new RequestEntry(request.method, path, now, log, silence)
    const bareHeaders = this.bareHeaders(request)
    const pending: Pending = {
      bareHeaders,
      headers: { ...bareHeaders, ...room.corsHeaders(request) },
      entry,
      hasKey: room.config.apiKeys.length === 0 || room.hasKey(request.headers.get("authorization")),
      handler: "none",
    }

    const response = await this.respond(request, path, pending, waiting, fetch)
    if (!uncounted.has(pending.handler)) {
      room.observeHttp(request.method, pending.handler, response.status, now() - startedAt)
    }
    if (!entry.deferred) entry.end(response.status)
    return response
  }

  private async respond(
    request: Request,
    path: string,
    pending: Pending,
    waiting: WeakMap<Request, Pending>,
    fetch: (request: Request) => Response | Promise<Response>,
  ): Promise<Response> {
    const { room } = this
    if (room.isDraining() && path !== "/health" && path !== "/metrics") {
      const message = "The server is shutting down."
      return errorResponse({ kind: "overloaded", message }, { ...pending.headers, connection: "close" })
    }
    const preflight = request.method === "OPTIONS" ? room.preflight(request) : null
    if (preflight !== null) return withHeaders(preflight, pending.bareHeaders)
    // The key is checked outside CORS, so a refusal carries no CORS headers (SERVER 4).
    if (!pending.hasKey && request.method !== "OPTIONS" && isGuarded(path, "")) {
      return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
    }
    // Relative links on the page would miss.
    if (path === "/docs/") return Response.redirect(`${room.config.rootPath}/docs`, 308)
    waiting.set(request, pending)
    const response = await fetch(this.routed(request, path, waiting, pending))
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

  /** The request as the router shall see it: with a whole URL, and without the prefix. */
  private routed(request: Request, path: string, waiting: WeakMap<Request, Pending>, pending: Pending): Request {
    if (isWholeUrl(request.url) && rawPath(request.url) === path) return request
    const query = request.url.indexOf("?")
    const url = `http://localhost${path}${query === -1 ? "" : request.url.slice(query)}`
    const routed = new Request(url, request)
    waiting.set(routed, pending)
    return routed
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

/** Requests without a usable Host header have nothing but a path for a URL. */
function isWholeUrl(url: string): boolean {
  return url.startsWith("http://") || url.startsWith("https://")
}

function rawPath(url: string): string {
  const from = isWholeUrl(url) ? url.indexOf("/", url.indexOf("://") + 3) : 0
  const query = url.indexOf("?", Math.max(0, from))
  return from === -1 ? "/" : url.slice(from, query === -1 ? undefined : query)
}

function withHeaders(response: Response, headers: ReplyHeaders): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}

/** A route in the OpenAPI page's terms: its body, its answers, and whether it needs a key. */
function describeRoute(route: Route): object {
  const operation = `${route.method.toLowerCase()}${route.path.replaceAll(/[/:](\w)/g, (_, first) => first.toUpperCase())}`
  const failure = { description: "Failure", content: { "application/json": { schema: errorSchema } } }
  const isStreamed = route.path.startsWith("/v1/") && route.body !== undefined
  const success = isStreamed
    ? { "application/json": { schema: { type: "object" } }, "text/event-stream": { schema: { type: "string" } } }
    : { "application/json": { schema: { type: "object" } } }
  return {
    summary: route.summary,
    operationId: operation.replaceAll(/[^\w]/g, "_"),
    tags: [route.path.startsWith("/v1/") ? "models" : "server"],
    ...(route.body !== undefined && { requestBody: jsonBody(route.body) }),
    ...(isGuarded(route.path, "") && { security: [{ key: [] }] }),
    responses: {
      200: { description: "Success", content: success },
      ...(isGuarded(route.path, "") && { 401: { description: "Missing or wrong key" } }),
      ...(route.body !== undefined && { 400: failure, 404: failure, 413: failure, 500: failure, 503: failure }),
    },
  }
}

const errorSchema = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        message: { type: "string" },
        type: { type: "string" },
        param: { type: ["string", "null"] },
        code: { type: "integer" },
      },
    },
  },
}

function jsonBody(schema: TSchema): { required: true; content: { "application/json": { schema: never } } } {
  // TypeBox schemas are JSON schemas; the plugin's types want OpenAPI's own spelling of them.
  return { required: true, content: { "application/json": { schema: schema as never } } }
}

function generationRoutes(room: AppRoom): Route[] {
  const post = (path: string, summary: string, body: TSchema, handle: Serve): Route => ({
    method: "POST",
    path,
    summary,
    body,
    handle,
  })
  const { path, summary, check } = chatEndpoint
  return [
    post(path, summary, check.schema, serve(chatEndpoint, room)),
    post(responseEndpoint.path, responseEndpoint.summary, responseEndpoint.check.schema, serve(responseEndpoint, room)),
    post(
      completionEndpoint.path,
      completionEndpoint.summary,
      completionEndpoint.check.schema,
      serve(completionEndpoint, room),
    ),
  ]
}

/** Nothing is stored, so every stored response is unknown (RESPONSES 0). */
function storedResponseRoutes(): Route[] {
  const unknown: Serve = async (request, headers) => {
    const id = decodeURIComponentSafely(rawPath(request.url).split("/")[3] ?? "")
    return errorResponse({ kind: "response_not_found", id: id.slice(0, 128) }, headers)
  }
  const summary = "Stored response: this server stores none"
  return [
    { method: "GET", path: "/v1/responses/:id", summary, handle: unknown },
    { method: "DELETE", path: "/v1/responses/:id", summary, handle: unknown },
    { method: "POST", path: "/v1/responses/:id/cancel", summary, handle: unknown },
    { method: "GET", path: "/v1/responses/:id/input_items", summary, handle: unknown },
  ]
}

function decodeURIComponentSafely(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function vocabularyRoutes(room: AppRoom): Route[] {
  const withBody =
    (reply: (body: unknown, request: Request) => Result<object, ApiError>): Serve =>
    async (request, headers) => {
      const body = await readJsonBody(request, room.config.limits)
      if (!body.ok) return errorResponse(body.error, headers)
      const replied = reply(body.value, request)
      return replied.ok ? Response.json(replied.value, { headers }) : errorResponse(replied.error, headers)
    }
  const context = (request: Request) => ({
    config: room.config,
    model: room.facts,
    headers: request.headers,
    newId: room.newId,
  })
  return [
    {
      method: "POST",
      path: "/tokenize",
      summary: "Token ids of a prompt or a conversation",
      body: tokenizeSchema,
      handle: withBody((body, request) => {
        const fault = modelFault(body, room)
        return fault === null ? tokenize(body, context(request), room.preparer, room.vocabulary) : err(fault)
      }),
    },
    {
      method: "POST",
      path: "/detokenize",
      summary: "Text of token ids",
      body: detokenizeBodySchema,
      handle: withBody((body) => {
        const fault = modelFault(body, room)
        return fault === null ? detokenize(body, room.vocabulary) : err(fault)
      }),
    },
  ]
}

/** Routes about the server itself. */
function stateRoutes(room: AppRoom): Route[] {
  const json =
    (make: () => object): Serve =>
    async (_request, headers) =>
      Response.json(make(), { headers })
  const health: Serve = async (_request, headers) =>
    new Response(null, { status: room.engineStatus().alive ? 200 : 503, headers })
  return [
    {
      method: "GET",
      path: "/v1/models",
      summary: "Served models",
      handle: json(() => listModels(room.facts, room.newId, room.unixTime)),
    },
    { method: "GET", path: "/health", summary: "200 while the engine lives", handle: health },
    { method: "GET", path: "/ping", summary: "As /health", handle: health },
    { method: "POST", path: "/ping", summary: "As /health", handle: health },
    { method: "GET", path: "/version", summary: "Version", handle: json(() => ({ version })) },
    {
      method: "GET",
      path: "/load",
      summary: "Generation requests being handled",
      handle: json(() => ({ server_load: room.admission.inside })),
    },
    {
      method: "GET",
      path: "/metrics",
      summary: "Prometheus metrics",
      handle: async (_request, headers) =>
        new Response(room.metricsText(), {
          headers: { ...headers, "content-type": "text/plain; version=0.0.4; charset=utf-8" },
        }),
    },
  ]
}
