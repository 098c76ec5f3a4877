import type { Endpoint } from "../endpoint"
import { BodyCheck } from "../schema"
import { type CompletionAsk, lowerCompletion } from "./lower"
import { presentCompletion } from "./present"
import { type CompletionBody, completionSchema } from "./schema"
import { CompletionStream } from "./stream"

/** POST /v1/completions. */
export const completionEndpoint: Endpoint<CompletionBody, CompletionAsk> = {
  path: "/v1/completions",
  summary: "Text completion",
  check: new BodyCheck(completionSchema),
  lower: lowerCompletion,
  stream: (exchange, write, writeDelta) => new CompletionStream(exchange, write, writeDelta),
  present: presentCompletion,
}
