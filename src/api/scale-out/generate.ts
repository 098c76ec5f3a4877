import type { Endpoint } from "../endpoint"
import { BodyCheck } from "../schema"
import { type GenerateAsk, lowerGenerate } from "./generate-lower"
import { GenerateStream, presentGenerate } from "./generate-reply"
import { type GenerateRequestBody, generateSchema } from "./generate-schema"

/** POST /inference/v1/generate: token ids in, token ids out. An endpoint like the others, whose prompt is made. */
export const generateEndpoint: Endpoint<GenerateRequestBody, GenerateAsk> = {
  path: "/inference/v1/generate",
  summary: "Token ids for a prompt of token ids",
  check: new BodyCheck(generateSchema),
  lower: lowerGenerate,
  stream: (exchange, write) => new GenerateStream(exchange, write),
  present: presentGenerate,
}
