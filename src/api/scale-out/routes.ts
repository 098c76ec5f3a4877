/**
 * Routes of scale-out: render and derender in every role, generate where there is an engine. Switched off they answer
 * 403 without a look at the body, so that an operator learns what to turn on (RENDER 2).
 */
import { readJsonBody } from "../../http/body"
import { errorResponse, invalid } from "../errors"
import { generatedMedia } from "../media-places"
import type { AppRoom, RenderRoom, ServeRoom } from "../room"
import type { Route } from "../route"
import { isRecord } from "../schema"
import { type Serve, serve } from "../serve"
import { derenderRoutes } from "./derender"
import { generateEndpoint } from "./generate"
import { renderRoutes } from "./render"

/** The routes of the full role. */
export function scaleOutRoutes(room: AppRoom): Route[] {
  const { enableScaleOut, tokensOnly } = room.config
  const text = textRoutes(room)
  const tokens = tokenRoutes(room)
  if (!enableScaleOut) return switchedOff([...text, ...tokens])
  if (!tokensOnly) return [...text, ...tokens]
  const abort = { ...abortRoute(room), path: "/abort_requests" }
  return [...text.map(withoutText), ...tokens, abort]
}

/** The routes of the role without an engine. */
export function renderRoleRoutes(room: RenderRoom): Route[] {
  const text = textRoutes(room)
  return room.config.enableScaleOut ? text : switchedOff(text)
}

/** What needs a vocabulary and no engine. */
function textRoutes(room: RenderRoom): Route[] {
  return [...renderRoutes(room), messagesRoute, ...derenderRoutes(room)]
}

/** What needs an engine and no vocabulary. */
function tokenRoutes(room: ServeRoom): Route[] {
  const { path, summary, check } = generateEndpoint
  return [
    {
      method: "POST",
      path,
      summary,
      body: check.schema,
      isStreamed: true,
      statuses: { 403: "Scale-out is off" },
      handle: serve(generateEndpoint, room, generatedMedia(room)),
    },
    abortRoute(room),
  ]
}

const messagesRoute: Route = {
  method: "POST",
  path: "/v1/messages/render",
  summary: "Not there yet",
  hidden: true,
  handle: async (_request, headers) =>
    errorResponse(
      { kind: "not_implemented", message: "This server has no Messages API, so it renders none." },
      headers,
    ),
}

/** Ends requests by the ids that their replies have; what does not run any more is not missed. */
function abortRoute(room: ServeRoom): Route {
  return {
    method: "POST",
    path: "/inference/v1/abort_requests",
    summary: "Ends running requests by their ids",
    statuses: { 400: "request_ids is missing", 403: "Scale-out is off" },
    handle: async (request, headers, { claim }) => {
      const body = await readJsonBody(request, room.config.limits, claim)
      if (!body.ok) return errorResponse(body.error, headers)
      const ids = isRecord(body.value) ? body.value.request_ids : null
      if (!Array.isArray(ids))
        return errorResponse(invalid("request_ids", "request_ids must be a list of ids."), headers)
      const wanted = new Set(ids)
      // The answer does not wait for their ends.
      setImmediate(() => {
        for (const running of [...room.running]) if (wanted.has(running.id)) running.abort()
      })
      return new Response(null, { status: 200, headers })
    },
  }
}

function switchedOff(routes: readonly Route[]): Route[] {
  const refuse: Serve = async (_request, headers) => errorResponse({ kind: "scale_out_disabled" }, headers)
  return routes.map(({ method, path, summary }) => ({ method, path, summary, hidden: true, handle: refuse }))
}

/** A route of a server that has tokens only: nothing there is turned into text or made of it. */
export function withoutText({ method, path, summary }: Route): Route {
  const message = "This server has tokens only (--tokens-only): POST /inference/v1/generate."
  return {
    method,
    path,
    summary,
    hidden: true,
    handle: async (_request, headers) => errorResponse({ kind: "not_implemented", message }, headers),
  }
}
