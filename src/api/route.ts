import type { TSchema } from "@sinclair/typebox"
import { isGuarded } from "../http/access"
import type { Serve } from "./serve"

/** One route of the server. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly summary: string
  /** For the OpenAPI page. */
  readonly body?: TSchema
  /** Statuses that only this route has, with what they mean. */
  readonly statuses?: { readonly [status: number]: string }
  /** Left out of the OpenAPI page. */
  readonly hidden?: true
  /** Answers with an event stream where the body asks for one. */
  readonly isStreamed?: true
  readonly handle: Serve
}

/** A route in the OpenAPI page's terms: its body, its answers, and whether it needs a key. */
export function describeRoute(route: Route): object {
  const operation = `${route.method.toLowerCase()}${route.path.replaceAll(/[/:](\w)/g, (_, first) => first.toUpperCase())}`
  if (route.hidden === true) return { hide: true }
  const failure = { description: "Failure", content: { "application/json": { schema: errorSchema } } }
  const isStreamed = route.isStreamed === true
  const success = isStreamed
    ? { "application/json": { schema: { type: "object" } }, "text/event-stream": { schema: { type: "string" } } }
    : { "application/json": { schema: { type: "object" } } }
  return {
    summary: route.summary,
    operationId: operation.replaceAll(/[^\w]/g, "_"),
    tags: [route.path.startsWith("/v1/") ? "models" : "server"],
    ...(route.body !== undefined && { requestBody: jsonBody(route.body) }),
    ...(isGuarded(route.path) && { security: [{ key: [] }] }),
    responses: {
      200: { description: "Success", content: success },
      ...(isGuarded(route.path) && { 401: { description: "Missing or wrong key" } }),
      ...(route.body !== undefined && { 400: failure, 404: failure, 413: failure, 500: failure, 503: failure }),
      ...Object.fromEntries(
        Object.entries(route.statuses ?? {}).map(([status, description]) => [status, { ...failure, description }]),
      ),
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
