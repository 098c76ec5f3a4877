/**
 * Every failure that a client can see → HTTP status and OpenAI error body. The only such table (CHAT 8).
 */
import type { BodyFailure } from "../http/body"
import type { EngineError } from "../ir/engine"
import type { PrepareFailure } from "../prompt/prepare"
import type { SchemaMismatch } from "./schema"

/** A request that fits the schema but makes no sense, or asks for what we refuse. */
export interface InvalidRequest {
  readonly kind: "invalid_request"
  readonly message: string
  readonly param: string | null
}

/** Everything that ends a request with an error reply. */
export type ApiError =
  | BodyFailure
  | SchemaMismatch
  | InvalidRequest
  | PrepareFailure
  | EngineError
  | { readonly kind: "model_not_found"; readonly model: string; readonly names: readonly string[] }
  | { readonly kind: "response_not_found"; readonly id: string }
  | { readonly kind: "route_not_found"; readonly path: string }
  | { readonly kind: "method_not_allowed"; readonly method: string; readonly allowed: string }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "scale_out_disabled" }
  | { readonly kind: "not_implemented"; readonly message: string }
  | { readonly kind: "previous_response_given" }
  | { readonly kind: "overloaded"; readonly message: string }
  | { readonly kind: "internal" }

/** Inside of the error envelope. */
export interface ErrorBody {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: number
}

/** Makes an `InvalidRequest`. */
export function invalid(param: string | null, message: string): InvalidRequest {
  return { kind: "invalid_request", message, param }
}

function badRequest(message: string, param: string | null): ErrorBody {
  return { message, type: "BadRequestError", param, code: 400 }
}

/** A body that is broken or has the wrong shape carries the status phrase as its type, as vLLM's validation does. */
function badBody(message: string, param: string | null): ErrorBody {
  return { message, type: "Bad Request", param, code: 400 }
}

/** Engine trouble is told in fixed words: its own may name hosts, paths or other requests. */
const internalError: ErrorBody = {
  message: "Internal server error",
  type: "InternalServerError",
  param: null,
  code: 500,
}

/** The error body; its `code` is the HTTP status. */
export function errorBody(error: ApiError): ErrorBody {
  switch (error.kind) {
    case "not_json_content_type":
      return badBody("Unsupported media type: only 'application/json' is allowed", null)
    case "body_too_large":
      return { message: error.message, type: "RequestEntityTooLargeError", param: null, code: 413 }
    case "body_not_utf8":
    case "body_not_json":
    case "body_too_deep":
      return badBody(error.message, null)
    case "body_too_slow":
      return { message: error.message, type: "RequestTimeoutError", param: null, code: 408 }
    case "client_gone":
      return { message: "the client closed the connection", type: "ClientClosedRequest", param: null, code: 499 }
    case "schema_mismatch": {
      const count = error.problems.length
      const title = count === 1 ? "1 validation error" : `${count} validation errors`
      return badBody(`${title}:\n  ${error.problems.join("\n  ")}`, error.param)
    }
    case "invalid_request":
    case "conversation_refused":
      return badRequest(error.message, error.param)
    case "template_refused":
      return badRequest(error.message, null)
    case "no_chat_template":
      return badRequest("The model has no chat template; start the server with --chat-template", null)
    case "text_too_long":
      return badRequest(
        `The prompt has ${error.textBytes} bytes of text; at most ${error.textBytesMax} are taken with this window.`,
        "input_text",
      )
    case "prompt_too_long":
      return badRequest(
        `The prompt has at least ${error.promptTokens} tokens, but the model's window is ${error.contextTokensMax} tokens ` +
          "and the reply needs at least one of them.",
        "input_tokens",
      )
    case "encode_failed":
      return badRequest(error.message, null)
    case "token_out_of_vocabulary":
      return badRequest(`Token id ${error.tokenId} is out of vocabulary`, error.param)
    case "prompt_empty":
      return badRequest("The prompt has no tokens", error.param)
    case "media_misplaced":
      return badRequest(
        `The request has ${error.items} ${error.media} parts, but its prompt has ${error.placeholders} placeholders for ` +
          "them: the chat template leaves parts out, a text spells a placeholder, or truncation cut one off.",
        null,
      )
    case "model_not_found": {
      const message = `The model \`${error.model}\` does not exist. Served: ${error.names.join(", ")}.`
      return { message, type: "NotFoundError", param: "model", code: 404 }
    }
    case "response_not_found":
      return {
        message: `Response with id '${error.id}' not found.`,
        type: "NotFoundError",
        param: "response_id",
        code: 404,
      }
    case "route_not_found":
      return { message: `No route ${error.path}`, type: "Not Found", param: null, code: 404 }
    case "method_not_allowed":
      return {
        message: `${error.method} is not allowed here; allowed: ${error.allowed}`,
        type: "Method Not Allowed",
        param: null,
        code: 405,
      }
    case "unauthorized":
      return { message: "Unauthorized", type: "AuthenticationError", param: null, code: 401 }
    case "scale_out_disabled":
      return {
        message: "The scale-out endpoints are off; restart the server with --enable-scale-out.",
        type: "PermissionDeniedError",
        param: null,
        code: 403,
      }
    case "not_implemented":
      return { message: error.message, type: "NotImplementedError", param: null, code: 501 }
    case "previous_response_given":
      return {
        message: "Rendering is stateless: previous_response_id cannot be followed; send the items in input.",
        type: "invalid_request_error",
        param: "previous_response_id",
        code: 400,
      }
    case "overloaded":
    case "bodies_too_many":
      return { message: error.message, type: "ServiceUnavailableError", param: null, code: 503 }
    case "engine_validation":
      return badRequest(error.message, error.param)
    case "engine_retryable":
      return {
        message: "The engine cannot take this request now; please try again",
        type: "ServiceUnavailableError",
        param: null,
        code: 503,
      }
    case "shutting_down":
      return { message: "The server is shutting down", type: "ServiceUnavailableError", param: null, code: 503 }
    case "engine_dead":
    case "engine_failed":
    case "engine_disconnected":
    case "internal":
      return internalError
    default:
      return unknownKind(error)
  }
}

/** Keeps the table whole: the compiler refuses a kind that has no row. */
function unknownKind(error: never): ErrorBody {
  void error
  return internalError
}

/** The error as an HTTP reply. A missing key has a body of its own shape (SERVER 4). */
export function errorResponse(error: ApiError, headers: { readonly [name: string]: string } = {}): Response {
  const body = errorBody(error)
  if (error.kind === "unauthorized") return Response.json({ error: "Unauthorized" }, { status: 401, headers })
  return Response.json({ error: body }, { status: body.code, headers: { ...headers, ...headersOf(error) } })
}

/** When to try again is a guess: the client's own backoff takes it from there. Seconds. */
const retryAfter = { "retry-after": "1" }

function headersOf(error: ApiError): { readonly [name: string]: string } {
  switch (error.kind) {
    case "method_not_allowed":
      return { allow: error.allowed }
    case "overloaded":
    case "bodies_too_many":
    case "engine_retryable":
      return retryAfter
    default:
      return {}
  }
}
