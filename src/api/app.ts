/** All routes of the full role: generation, what stands around it, and scale-out. */
import type { TSchema } from "@sinclair/typebox"
import { chatEndpoint } from "./chat/endpoint"
import { completionEndpoint } from "./completions/endpoint"
import { errorResponse } from "./errors"
import { rawPath } from "./gate"
import { servedMedia } from "./media-places"
import { responseEndpoint } from "./responses/endpoint"
import type { AppRoom } from "./room"
import type { Route } from "./route"
import { type AppFetch, createRouter } from "./router"
import { scaleOutRoutes, withoutText } from "./scale-out/routes"
import { type Serve, serve } from "./serve"
import { stateRoutes } from "./state-routes"
import { vocabularyRoutes } from "./vocabulary-routes"

/** The server's fetch function. */
export function createApp(room: AppRoom): AppFetch {
  return createRouter(room, appRoutes(room))
}

/** Every route of the full role, for the router and for tests that walk them. */
function appRoutes(room: AppRoom): Route[] {
  const text = [...generationRoutes(room), ...vocabularyRoutes(room)]
  return [
    ...(room.config.tokensOnly ? text.map(withoutText) : text),
    ...storedResponseRoutes(),
    ...scaleOutRoutes(room),
    ...stateRoutes(room),
  ]
}

function generationRoutes(room: AppRoom): Route[] {
  const post = (path: string, summary: string, body: TSchema, handle: Serve): Route => ({
    method: "POST",
    path,
    summary,
    body,
    isStreamed: true,
    handle,
  })
  const { path, summary, check } = chatEndpoint
  return [
    post(path, summary, check.schema, serve(chatEndpoint, room, servedMedia(room))),
    post(
      responseEndpoint.path,
      responseEndpoint.summary,
      responseEndpoint.check.schema,
      serve(responseEndpoint, room, servedMedia(room)),
    ),
    post(
      completionEndpoint.path,
      completionEndpoint.summary,
      completionEndpoint.check.schema,
      serve(completionEndpoint, room, null),
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
