/**
 * All routes of the full role, mounted on Elysia, which only routes: bodies are read and checked by us, replies are
 * plain `Response`s. Around every route: shutdown, API key, CORS, metrics and the access log.
 */
import type { TSchema } from "@sinclair/typebox"
import { Elysia } from "elysia"
import { isGuarded } from "../http/access"
import { readJsonBody } from "../http/body"
import { prometheusContentType } from "../http/prometheus"
import { err, type Result } from "../result"
import { chatEndpoint } from "./chat/endpoint"
import { completionEndpoint } from "./completions/endpoint"
import { docs } from "./docs"
import { type ApiError, errorResponse } from "./errors"
import { Gate, type Pending, rawPath, type SetSilence } from "./gate"
import { listModels } from "./models"
import { responseEndpoint } from "./responses/endpoint"
import { type AppRoom, lowerContext } from "./room"
import { describeRoute, type Route } from "./route"
import { modelFault, type Serve, serve } from "./serve"
import { detokenize, detokenizeBodySchema, tokenize, tokenizeSchema } from "./tokenize"
import { version } from "./version"

/** The server's fetch function. */
export type AppFetch = (request: Request, silence: SetSilence) => Promise<Response>

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

async function answer(route: Route, request: Request, waiting: WeakMap<Request, Pending>): Promise<Response> {
  const pending = waiting.get(request)
  if (pending === undefined) return errorResponse({ kind: "internal" })
  pending.handler = route.path
  // The gate goes by the path as it reads it, the router by its own reading: a guarded route checks again.
  if (!pending.hasKey && isGuarded(route.path)) return errorResponse({ kind: "unauthorized" }, pending.bareHeaders)
  return await route.handle(request, pending.headers, pending.entry)
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
      const fault = modelFault(body.value, room)
      const replied = fault === null ? reply(body.value, request) : err(fault)
      return replied.ok ? Response.json(replied.value, { headers }) : errorResponse(replied.error, headers)
    }
  return [
    {
      method: "POST",
      path: "/tokenize",
      summary: "Token ids of a prompt or a conversation",
      body: tokenizeSchema,
      handle: withBody((body, request) =>
        tokenize(body, lowerContext(room, request.headers), room.preparer, room.vocabulary),
      ),
    },
    {
      method: "POST",
      path: "/detokenize",
      summary: "Text of token ids",
      body: detokenizeBodySchema,
      handle: withBody((body) => detokenize(body, room.vocabulary)),
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
          headers: { ...headers, "content-type": prometheusContentType },
        }),
    },
  ]
}
