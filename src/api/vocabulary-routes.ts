import { readJsonBody } from "../http/body"
import { err, type Result } from "../result"
import { type ApiError, errorResponse } from "./errors"
import { lowerContext, type PromptRoom } from "./room"
import type { Route } from "./route"
import { modelFault, type Serve } from "./serve"
import { detokenize, detokenizeBodySchema, tokenize, tokenizeSchema, type VocabularyView } from "./tokenize"

const uncountedMedia =
  "how many tokens media become is known to the model's processors alone, which this server has not"

/** POST /tokenize and /detokenize, the same in every role (SERVER 3). */
export function vocabularyRoutes(room: PromptRoom & { readonly vocabulary: VocabularyView }): Route[] {
  const withBody =
    (reply: (body: unknown, request: Request) => Result<object, ApiError>): Serve =>
    async (request, headers, { claim }) => {
      const body = await readJsonBody(request, room.config.limits, claim)
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
      handle: withBody((body, request) => {
        const context = { ...lowerContext(room, request.headers), mediaRefusal: uncountedMedia }
        return tokenize(body, context, room.preparer, room.vocabulary)
      }),
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
