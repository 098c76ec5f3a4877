import type { Endpoint } from "../endpoint"
import { BodyCheck } from "../schema"
import { type ChatAsk, lowerChat } from "./lower"
import { presentChat } from "./present"
import { type ChatBody, chatSchema } from "./schema"
import { ChatStream } from "./stream"

/** POST /v1/chat/completions. */
export const chatEndpoint: Endpoint<ChatBody, ChatAsk> = {
  path: "/v1/chat/completions",
  summary: "Chat completion",
  check: new BodyCheck(chatSchema),
  lower: lowerChat,
  stream: (exchange, write, writeDelta) => new ChatStream(exchange, write, writeDelta),
  present: presentChat,
}
