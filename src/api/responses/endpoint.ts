import type { Endpoint } from "../endpoint"
import { BodyCheck } from "../schema"
import { lowerResponse, type ResponseAsk } from "./lower"
import { presentResponse } from "./present"
import { type ResponseBody, responseSchema } from "./schema"
import { ResponseStream } from "./stream"

/** POST /v1/responses. */
export const responseEndpoint: Endpoint<ResponseBody, ResponseAsk> = {
  path: "/v1/responses",
  summary: "Response",
  check: new BodyCheck(responseSchema),
  lower: lowerResponse,
  stream: (exchange, write, writeDelta) => new ResponseStream(exchange, write, writeDelta),
  present: (exchange, folds) => presentResponse(exchange, folds[0]!),
}
