import { prometheusContentType } from "../http/prometheus"
import { listModels } from "./models"
import type { StateRoom } from "./room"
import type { Route } from "./route"
import type { Serve } from "./serve"
import { version } from "./version"

/** Routes about the server itself, the same in every role (SERVER 3). */
export function stateRoutes(room: StateRoom): Route[] {
  const json =
    (make: () => object): Serve =>
    async (_request, headers) =>
      Response.json(make(), { headers })
  const health: Serve = async (_request, headers) =>
    new Response(null, { status: room.isHealthy() ? 200 : 503, headers })
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
